/* bench_kernels.h - the ops that `bench kernels` times, beside PyTorch's where it is installed.

   A row is a statement of the graph's text form, which Python reads as well. One letter is an operand, described below;
   '@' is the dtype of the row, of which there may be several. A row without '=' has the one result y. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

enum { ANY, POSITIVE, BELOW_1000 };

static const struct { char name; const char *type; int values; } bench_operands[] = {
    { 'a', "@[1000,1000]", ANY }, { 'b', "@[1000,1000]", ANY }, { 'c', "@[1000,1000]", ANY },
    { 'p', "@[1000,1000]", POSITIVE }, { 'q', "@[1000,1000]", POSITIVE },
    { 'v', "@[1000]", ANY }, { 'u', "@[1000]", ANY }, { 'w', "@[1000,1]", ANY },
    { 'x', "@[1,64,125,125]", ANY }, { 'd', "@[64]", ANY }, { 'e', "@[64]", ANY }, { 'r', "@[64]", POSITIVE },
    { 'f', "@[100,100,100]", ANY }, { 'g', "@[1,128,12,640]", ANY },
    { 'H', "@[250,250]", ANY }, { 'S', "@[500,64]", ANY }, { 'T', "@[500,64]", ANY }, { 'O', "@[1,125,125,2]", ANY },
    { 'K', "@[1,64,63,63]", ANY }, { 'L', "@[64,64,3,3]", ANY }, { 'Z', "c64[1000,1000]", ANY },
    { 'i', "i64[1000,1000]", BELOW_1000 }, { 'j', "i64[1000]", BELOW_1000 }, { 'm', "bool[1000,1000]", ANY }
};

typedef struct bench_group {
    const char *name, *dtypes;
    double target; /* times PyTorch's speed */
    const char *const *ops;
    size_t num_ops;
} bench_group;

static const char *const bench_first[] = {
    "aten.softmax.int(a, 1)", "aten.softmax.int(a, 0)", "aten.layer_norm.default(a, [1000], v, u)",
    "aten.gelu.default(a)", "aten.gelu.default(a, approximate='tanh')", "aten.sum.default(a)",
    "aten.sum.dim_IntList(a, [1])", "aten.sum.dim_IntList(a, [0])"
};

static const char *const bench_unary[] = {
    "aten.relu.default(a)", "aten.silu.default(a)", "aten.sigmoid.default(a)", "aten.tanh.default(a)",
    "aten.hardswish.default(a)", "aten.hardsigmoid.default(a)", "aten.hardtanh.default(a)",
    "aten.relu6.default(a)", "aten.leaky_relu.default(a)", "aten.elu.default(a)", "aten.celu.default(a)",
    "aten.selu.default(a)", "aten.mish.default(a)", "aten.softplus.default(a)", "aten.log_sigmoid.default(a)",
    "aten.hardshrink.default(a)", "aten.softshrink.default(a)", "aten.threshold.default(a, 0.1, 20.0)",
    "aten.exp.default(a)", "aten.exp2.default(a)", "aten.expm1.default(a)", "aten.log.default(p)",
    "aten.log2.default(p)", "aten.log10.default(p)", "aten.log1p.default(p)", "aten.sqrt.default(p)",
    "aten.rsqrt.default(p)", "aten.reciprocal.default(a)", "aten.square.default(a)", "aten.neg.default(a)",
    "aten.abs.default(a)", "aten.sign.default(a)", "aten.ceil.default(a)", "aten.floor.default(a)",
    "aten.round.default(a)", "aten.trunc.default(a)", "aten.frac.default(a)", "aten.sin.default(a)",
    "aten.cos.default(a)", "aten.tan.default(a)", "aten.asin.default(a)", "aten.acos.default(a)",
    "aten.atan.default(a)", "aten.sinh.default(a)", "aten.cosh.default(a)", "aten.asinh.default(a)",
    "aten.acosh.default(p)", "aten.atanh.default(a)", "aten.erf.default(a)", "aten.erfc.default(a)",
    "aten.erfinv.default(a)", "aten.lgamma.default(p)", "aten.digamma.default(p)", "aten.logit.default(a)",
    "aten.sinc.default(a)", "aten.i0.default(a)", "aten.deg2rad.default(a)", "aten.rad2deg.default(a)",
    "aten.angle.default(a)", "aten.isnan.default(a)", "aten.isinf.default(a)", "aten.isfinite.default(a)",
    "aten.signbit.default(a)", "aten.logical_not.default(a)", "aten.nan_to_num.default(a)"
};

static const char *const bench_binary[] = {
    "aten.add.Tensor(a, b)", "aten.add.Tensor(a, b, alpha=2)", "aten.add.Scalar(a, 2.5)",
    "aten.sub.Tensor(a, b)", "aten.mul.Tensor(a, b)", "aten.mul.Scalar(a, 2.5)", "aten.div.Tensor(a, b)",
    "aten.div.Scalar(a, 2.5)", "aten.div.Tensor_mode(a, b, rounding_mode='trunc')",
    "aten.div.Tensor_mode(a, b, rounding_mode='floor')", "aten.pow.Tensor_Tensor(p, b)",
    "aten.pow.Tensor_Scalar(p, 1.7)", "aten.pow.Tensor_Scalar(a, 2)", "aten.pow.Tensor_Scalar(a, 3)",
    "aten.pow.Tensor_Scalar(p, 0.5)", "aten.pow.Scalar(2.5, a)", "aten.maximum.default(a, b)",
    "aten.minimum.default(a, b)", "aten.fmax.default(a, b)", "aten.fmin.default(a, b)",
    "aten.fmod.Tensor(a, b)", "aten.remainder.Tensor(a, b)", "aten.atan2.default(a, b)",
    "aten.hypot.default(a, b)", "aten.copysign.Tensor(a, b)", "aten.logaddexp.default(a, b)",
    "aten.xlogy.Tensor(a, p)", "aten.heaviside.default(a, b)", "aten.nextafter.default(a, b)",
    "aten.eq.Tensor(a, b)", "aten.ne.Scalar(a, 0.5)", "aten.lt.Tensor(a, b)", "aten.le.Tensor(a, b)",
    "aten.gt.Scalar(a, 0.5)", "aten.ge.Tensor(a, b)", "aten.logical_and.default(a, b)",
    "aten.isclose.default(a, b)", "aten.where.self(m, a, b)", "aten.masked_fill.Scalar(a, m, 1.5)",
    "aten.clamp.default(a, -0.5, 0.5)", "aten.clamp.Tensor(a, b, c)", "aten.lerp.Scalar(a, b, 0.3)",
    "aten.lerp.Tensor(a, b, c)", "aten.addcmul.default(a, b, c)", "aten.addcdiv.default(a, b, c)",
    "aten.prelu.default(a, v)", "aten.glu.default(a, 1)"
};

static const char *const bench_reductions[] = {
    "aten.mean.default(a)", "aten.mean.dim(a, [1])", "aten.mean.dim(a, [0])", "aten.amax.default(a, [0, 1])",
    "aten.amax.default(a, [1])", "aten.amax.default(a, [0])", "aten.amin.default(a, [1])",
    "aten.max.default(a)", "aten.min.default(a)", "y, z = aten.max.dim(a, 1)", "y, z = aten.max.dim(a, 0)",
    "y, z = aten.min.dim(a, 1)", "aten.argmax.default(a, 1)", "aten.argmax.default(a, 0)",
    "aten.argmax.default(a)", "aten.argmin.default(a, 1)", "y, z = aten.aminmax.default(a)",
    "aten.prod.default(a)", "aten.prod.dim_int(a, 1)", "aten.prod.dim_int(a, 0)", "aten.var.default(a)",
    "aten.var.dim(a, [1])", "aten.var.dim(a, [0])", "aten.std.dim(a, [1])",
    "y, z = aten.var_mean.dim(a, [1])", "aten.norm.Scalar(a)", "aten.linalg_vector_norm.default(a, 2, [1])",
    "aten.linalg_vector_norm.default(a, 1, [0])", "aten.logsumexp.default(a, [1])",
    "aten.logsumexp.default(a, [0])", "aten.count_nonzero.default(a)", "aten.all.dim(a, 1)",
    "aten.any.default(a)", "aten.nansum.default(a)", "aten.cumsum.default(a, 1)", "aten.cumsum.default(a, 0)",
    "aten.cumprod.default(a, 1)", "y, z = aten.cummax.default(a, 1)", "aten.log_softmax.int(a, 1)",
    "aten.log_softmax.int(a, 0)", "y, z = aten.sort.default(a, 1)", "y, z = aten.topk.default(a, 10, 1)",
    "aten.batch_norm.default(x, d, e, d, r, false, 0.1, 1e-05, true)",
    "aten.batch_norm.default(x, d, e, none, none, true, 0.1, 1e-05, true)",
    "aten.group_norm.default(x, 8, d, e)",
    "aten.instance_norm.default(x, d, e, none, none, true, 0.1, 1e-05, true)"
};

static const char *const bench_copies[] = {
    "aten.clone.default(a)", "aten.t.default(a)", "aten.permute.default(f, [2, 1, 0])",
    "aten.permute.default(f, [1, 0, 2])", "aten.permute.default(f, [0, 2, 1])",
    "aten.permute.default(g, [0, 2, 1, 3])", "aten.cat.default([a, b], 0)", "aten.cat.default([a, b], 1)",
    "aten.stack.default([a, b], dim=-1)", "aten.slice.Tensor(a, 1, 100, 900)",
    "aten.slice.Tensor(a, 1, 0, 1000, 2)", "aten.slice.Tensor(a, 0, 0, 1000, 2)", "aten.select.int(f, 2, 5)",
    "aten.expand.default(v, [1000, 1000])", "aten.expand.default(w, [1000, 1000])",
    "aten.repeat.default(v, [1000, 1])", "aten.repeat_interleave.self_int(v, 1000)",
    "aten.flip.default(a, [1])", "aten.flip.default(a, [0])", "aten.roll.default(a, [7], [1])",
    "aten.roll.default(a, [7], [0])", "aten.gather.default(a, 1, i)", "aten.gather.default(a, 0, i)",
    "aten.index_select.default(a, 0, j)", "aten.index_select.default(a, 1, j)",
    "aten.embedding.default(a, j)", "aten.index.Tensor(a, [j])", "aten.scatter.src(a, 1, i, b)",
    "aten.scatter_add.default(a, 1, i, b)", "aten.constant_pad_nd.default(a, [1, 1, 1, 1], 0.5)",
    "aten.reflection_pad2d.default(x, [1, 1, 1, 1])", "y, y2 = aten.native_dropout.default(a, 0.1, false)",
    "aten.tril.default(a)", "aten.diagonal.default(a)",
    "aten.to.dtype(a, f64)", "aten.to.dtype(a, f16)", "aten.to.dtype(a, bf16)", "aten.to.dtype(a, i64)",
    "aten.to.dtype(a, i32)", "aten.to.dtype(a, u8)", "aten.to.dtype(a, bool)"
};

static const char *const bench_to_float[] = {
    "aten.to.dtype(a, f32)"
};

static const char *const bench_broadcasts[] = {
    "aten.add.Tensor(a, v)", "aten.add.Tensor(a, w)", "aten.mul.Tensor(w, v)", "aten.where.self(m, a, w)",
    "t = aten.t.default(b); y = aten.add.Tensor(a, t)", "t = aten.t.default(a); y = aten.relu.default(t)",
    "t = aten.t.default(a); y = aten.sum.dim_IntList(t, [1])",
    "t = aten.t.default(a); y = aten.softmax.int(t, 1)",
    "t = aten.permute.default(f, [1, 0, 2]); y = aten.exp.default(t)",
    "t = aten.slice.Tensor(a, 1, 0, 1000, 2); y = aten.mul.Scalar(t, 2.5)",
    "t = aten.expand.default(w, [1000, 1000]); y = aten.mul.Tensor(a, t)"
};

static const char *const bench_floats[] = {
    "aten.add.Tensor(a, b)", "aten.mul.Scalar(a, 2.5)", "aten.div.Tensor(a, b)", "aten.relu.default(a)",
    "aten.gelu.default(a)", "aten.exp.default(a)", "aten.log.default(p)", "aten.tanh.default(a)",
    "aten.sigmoid.default(a)", "aten.sqrt.default(p)", "aten.sin.default(a)", "aten.erf.default(a)",
    "aten.pow.Tensor_Scalar(p, 1.7)", "aten.maximum.default(a, b)", "aten.lt.Tensor(a, b)",
    "aten.where.self(m, a, b)", "aten.clamp.default(a, -0.5, 0.5)", "aten.lerp.Scalar(a, b, 0.3)",
    "aten.addcmul.default(a, b, c)", "aten.add.Tensor(a, v)", "aten.add.Tensor(a, w)", "aten.sum.default(a)",
    "aten.sum.dim_IntList(a, [1])", "aten.sum.dim_IntList(a, [0])", "aten.mean.dim(a, [1])",
    "aten.amax.default(a, [1])", "aten.argmax.default(a, 1)", "aten.var.dim(a, [1])", "aten.mse_loss.default(a, b)",
    "aten.softmax.int(a, 1)", "aten.layer_norm.default(a, [1000], v, u)", "aten.cumsum.default(a, 1)",
    "aten.t.default(a)", "aten.cat.default([a, b], 1)", "aten.gather.default(a, 1, i)",
    "aten.embedding.default(a, j)"
};

static const char *const bench_integers[] = {
    "aten.add.Tensor(a, b)", "aten.add.Scalar(a, 2)", "aten.sub.Tensor(a, b)", "aten.mul.Tensor(a, b)",
    "aten.div.Tensor(a, b)", "aten.div.Tensor_mode(a, b, rounding_mode='floor')",
    "aten.remainder.Tensor(a, b)", "aten.pow.Tensor_Scalar(a, 2)", "aten.neg.default(a)",
    "aten.abs.default(a)", "aten.maximum.default(a, b)", "aten.clamp.default(a, 5, 50)",
    "aten.eq.Tensor(a, b)", "aten.lt.Scalar(a, 7)", "aten.bitwise_and.Tensor(a, b)",
    "aten.bitwise_not.default(a)", "aten.bitwise_left_shift.Tensor(a, b)", "aten.where.self(m, a, b)",
    "aten.logical_and.default(a, b)", "aten.add.Tensor(a, v)", "aten.add.Tensor(a, w)", "aten.sum.default(a)",
    "aten.sum.dim_IntList(a, [1])", "aten.sum.dim_IntList(a, [0])", "aten.amax.default(a, [1])",
    "aten.max.default(a)", "aten.argmax.default(a, 1)", "aten.prod.default(a)", "aten.any.default(a)",
    "aten.cumsum.default(a, 1)", "aten.t.default(a)", "aten.cat.default([a, b], 1)",
    "aten.gather.default(a, 1, i)", "aten.embedding.default(a, j)"
};

static const char *const bench_words[] = {
    "aten.mm.default(H, H)", "aten.linear.default(S, T)", "aten.outer.default(v, u)",
    "s, s2 = aten.sort.default(v); y = aten.bucketize.Tensor(a, s)"
};

static const char *const bench_bools[] = {
    "aten.logical_and.default(a, b)", "aten.logical_not.default(a)", "aten.bitwise_or.Tensor(a, b)",
    "aten.bitwise_xor.Tensor(a, b)", "aten.eq.Tensor(a, b)", "aten.any.default(a)", "aten.all.dim(a, 1)",
    "aten.sum.default(a)", "aten.sum.dim_IntList(a, [0])", "aten.t.default(a)", "aten.cat.default([a, b], 1)",
    "aten.where.self(m, a, b)"
};

static const char *const bench_windows[] = {
    "aten.max_pool2d.default(x, [3, 3], [2, 2], [1, 1])", "aten.max_pool2d.default(x, [3, 3], [1, 1], [1, 1])",
    "y, y2 = aten.max_pool2d_with_indices.default(x, [3, 3], [2, 2], [1, 1])",
    "aten.avg_pool2d.default(x, [3, 3], [1, 1], [1, 1])", "y, y2 = aten.adaptive_max_pool2d.default(x, [7, 7])",
    "aten.im2col.default(x, [3, 3], [1, 1], [1, 1], [1, 1])", "aten.grid_sampler_2d.default(x, O, 0, 0, false)",
    "aten.reflection_pad2d.default(x, [1, 1, 1, 1])"
};

static const char *const bench_losses[] = {
    "aten.mse_loss.default(a, b)", "aten.l1_loss.default(a, b)", "aten.smooth_l1_loss.default(a, b)",
    "aten.huber_loss.default(a, b)", "aten.soft_margin_loss.default(a, b)",
    "aten.binary_cross_entropy_with_logits.default(a, b)", "aten.kl_div.default(a, p)",
    "aten.cosine_similarity.default(a, b)", "aten.pairwise_distance.default(a, b)", "aten.dist.default(a, b)",
    "aten.triplet_margin_loss.default(a, b, c)", "aten._softmax_backward_data.default(a, p, 1, f32)",
    "aten.cross_entropy_loss.default(a, j)", "aten.poisson_nll_loss.default(a, b, true, false, 1e-08, 1)",
    "y, y2, y3 = aten.native_layer_norm_backward.default(a, b, [1000], w, w, v, u, [true, true, true])",
    "y, y2, y3 = aten.convolution_backward.default(K, K, L, [64], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, true, "
    "true])"
};

static const char *const bench_transforms[] = {
    "aten._fft_r2c.default(a, [1], 0, true)", "aten._fft_c2c.default(Z, [1], 0, true)",
    "aten._fft_c2r.default(Z, [1], 2, 1998)", "aten.mul.Tensor(Z, Z)", "aten.abs.default(Z)"
};

static const char *const bench_matrices[] = {
    "aten._cdist_forward.default(S, T, 2.0, none)", "aten._cdist_forward.default(S, T, 1.0, none)",
    "aten.outer.default(v, u)", "aten.cov.default(S)", "aten.corrcoef.default(S)", "aten.addr.default(a, v, u)",
    "aten.linalg_vecdot.default(a, b)", "aten.linalg_inv.default(H)", "aten.linalg_solve.default(H, H)",
    "aten.linalg_det.default(H)", "y, y2 = aten.linalg_qr.default(H)", "y, y2 = aten.linalg_eigh.default(H)",
    "y, y2, y3 = aten.linalg_svd.default(H, false)", "aten.linalg_solve_triangular.default(H, H, upper=true)"
};

static const char *const bench_creation[] = {
    "aten.full_like.default(a, 1.5)", "aten.zeros_like.default(a)", "aten.full.default([1000, 1000], 2.5)",
    "aten.arange.default(1000000)"
};

#define BENCH_OPS(ops) ops, sizeof ops / sizeof ops[0]

static const bench_group bench_groups[] = {
    { "softmax, layer_norm, gelu, sum", "f32", 1.0, BENCH_OPS(bench_first) },
    { "one operand", "f32", 0.8, BENCH_OPS(bench_unary) },
    { "several operands", "f32", 0.8, BENCH_OPS(bench_binary) },
    { "reductions, normalisation", "f32", 0.8, BENCH_OPS(bench_reductions) },
    { "copies", "f32", 0.8, BENCH_OPS(bench_copies) },
    { "casts", "f64 f16 bf16 i64 i32 u8 bool", 0.8, BENCH_OPS(bench_to_float) },
    { "broadcasts, views", "f32", 0.25, BENCH_OPS(bench_broadcasts) },
    { "other floats", "f16 bf16 f64", 0.25, BENCH_OPS(bench_floats) },
    { "integers", "i64 i32 u8", 0.25, BENCH_OPS(bench_integers) },
    { "products, search of integers", "i64 i32", 0.25, BENCH_OPS(bench_words) },
    { "bool", "bool", 0.25, BENCH_OPS(bench_bools) },
    { "windows, borders, grids", "f32", 0.8, BENCH_OPS(bench_windows) },
    { "losses, gradients", "f32", 0.5, BENCH_OPS(bench_losses) },
    { "transforms, complex numbers", "f32", 0.1, BENCH_OPS(bench_transforms) },
    { "distances, decompositions", "f32", 0.1, BENCH_OPS(bench_matrices) },
    { "creation", "f32", 0.25, BENCH_OPS(bench_creation) }
};

#endif
