/* Builders, layers and models: what each emits, exactly. */
#include "npu_test.h"

static npu_spec f32(uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t dims[4];
    dims[0] = a;
    dims[1] = b;
    dims[2] = c;
    dims[3] = d;
    return npu_spec_tensor(NPU_F32, rank, dims);
}

static const npu_value none = { 0 };

/* The text form without its first two lines. */
static void check_text(const npu_graph *g, const char *expected)
{
    npu_text text = npu_text_init(NULL);
    const char *body;
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
    body = strstr(text.data, "graph main\n");
    NPU_CHECK_STR(body ? body + 11 : text.data, expected);
    npu_text_free(&text);
}

/* ---- typed builders: each emits its kind ---- */

static void check_kind(npu_graph *g, npu_op op, const char *name, int line)
{
    const npu_op_def *def = npu_op_definition(g, op);
    if (!def || strcmp(def->name, name) != 0) {
        fprintf(stderr, "line %d: %s\n", line, npu_graph_diag(g)->message);
        NPU_CHECK_STR(def ? def->name : "(failed)", name);
        npu_graph_clear_error(g);
    }
}

#define NPU_BUILDS(call, name) check_kind(g, npu_value_producer(g, call, NULL), name, __LINE__)

static void test_matrix_builders(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, NULL, f32(4, 1, 2, 8, 8)), w = npu_input(g, NULL, f32(4, 6, 2, 3, 3)),
              wt = npu_input(g, NULL, f32(4, 2, 6, 3, 3));
    npu_value x3 = npu_input(g, NULL, f32(3, 1, 2, 8, 0)), w3 = npu_input(g, NULL, f32(3, 6, 2, 3, 0)),
              a = npu_input(g, NULL, f32(2, 2, 3, 0, 0));
    npu_value b = npu_input(g, NULL, f32(2, 3, 5, 0, 0)), c = npu_input(g, NULL, f32(2, 5, 3, 0, 0)),
              q = npu_input(g, NULL, f32(3, 4, 2, 8, 0));
    npu_value t = npu_input(g, NULL, f32(3, 4, 8, 2, 0));
    NPU_BUILDS(npu_conv1d(g, x3, w3, none, NULL), "aten.conv1d.default");
    NPU_BUILDS(npu_conv2d(g, x, w, none, &(npu_conv2d_attrs){ .stride = { 2, 2 } }), "aten.conv2d.default");
    NPU_BUILDS(npu_conv_transpose2d(g, x, wt, none, NULL), "aten.conv_transpose2d.input");
    NPU_BUILDS(npu_linear(g, a, c, none), "aten.linear.default");
    NPU_BUILDS(npu_mm(g, a, b), "aten.mm.default");
    NPU_BUILDS(npu_bmm(g, q, t), "aten.bmm.default");
    NPU_BUILDS(npu_matmul(g, a, b), "aten.matmul.default");
    NPU_BUILDS(npu_addmm(g, npu_input(g, NULL, f32(1, 5, 0, 0, 0)), a, b, NULL), "aten.addmm.default");
    NPU_BUILDS(npu_scaled_dot_product_attention(g, q, q, q, none, NULL),
               "aten.scaled_dot_product_attention.default");
    NPU_BUILDS(npu_aicf_gemm(g, a, b, NULL), "aicf.gemm");
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    npu_graph_destroy(g);
}

static void test_elementwise_builders(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, NULL, f32(2, 2, 3, 0, 0)), y = npu_input(g, NULL, f32(1, 3, 0, 0, 0));
    NPU_BUILDS(npu_relu(g, x), "aten.relu.default");
    NPU_BUILDS(npu_silu(g, x), "aten.silu.default");
    NPU_BUILDS(npu_sigmoid(g, x), "aten.sigmoid.default");
    NPU_BUILDS(npu_tanh(g, x), "aten.tanh.default");
    NPU_BUILDS(npu_hardswish(g, x), "aten.hardswish.default");
    NPU_BUILDS(npu_gelu(g, x, &(npu_gelu_attrs){ "tanh" }), "aten.gelu.default");
    NPU_BUILDS(npu_leaky_relu(g, x, NULL), "aten.leaky_relu.default");
    NPU_BUILDS(npu_hardtanh(g, x, NULL), "aten.hardtanh.default");
    NPU_BUILDS(npu_elu(g, x, NULL), "aten.elu.default");
    NPU_BUILDS(npu_add(g, x, y), "aten.add.Tensor");
    NPU_BUILDS(npu_sub(g, x, y), "aten.sub.Tensor");
    NPU_BUILDS(npu_mul(g, x, y), "aten.mul.Tensor");
    NPU_BUILDS(npu_div(g, x, y), "aten.div.Tensor");
    NPU_BUILDS(npu_pow(g, x, y), "aten.pow.Tensor_Tensor");
    NPU_BUILDS(npu_maximum(g, x, y), "aten.maximum.default");
    NPU_BUILDS(npu_minimum(g, x, y), "aten.minimum.default");
    NPU_BUILDS(npu_sqrt(g, x), "aten.sqrt.default");
    NPU_BUILDS(npu_rsqrt(g, x), "aten.rsqrt.default");
    NPU_BUILDS(npu_neg(g, x), "aten.neg.default");
    NPU_BUILDS(npu_abs(g, x), "aten.abs.default");
    NPU_BUILDS(npu_exp(g, x), "aten.exp.default");
    NPU_BUILDS(npu_log(g, x), "aten.log.default");
    NPU_BUILDS(npu_clamp(g, x, 0, 6), "aten.clamp.default");
    NPU_BUILDS(npu_eq(g, x, y), "aten.eq.Tensor");
    NPU_BUILDS(npu_ne(g, x, y), "aten.ne.Tensor");
    NPU_BUILDS(npu_lt(g, x, y), "aten.lt.Tensor");
    NPU_BUILDS(npu_le(g, x, y), "aten.le.Tensor");
    NPU_BUILDS(npu_gt(g, x, y), "aten.gt.Tensor");
    NPU_BUILDS(npu_ge(g, x, y), "aten.ge.Tensor");
    NPU_BUILDS(npu_where(g, npu_gt(g, x, y), x, y), "aten.where.self");
    NPU_BUILDS(npu_to(g, x, NPU_BF16), "aten.to.dtype");
    NPU_BUILDS(npu_clone(g, x), "aten.clone.default");
    NPU_BUILDS(npu_dropout(g, x, 0.5), "aten.dropout.default");
    NPU_BUILDS(npu_aicf_add(g, x, x), "aicf.add");
    NPU_BUILDS(npu_aicf_relu(g, x), "aicf.relu");
    NPU_BUILDS(npu_aicf_bias_add(g, x, y), "aicf.bias_add");
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    npu_graph_destroy(g);
}

static void test_shape_builders(void)
{
    static const int64_t flat[] = { 6 }, order[] = { 1, 0 }, wide[] = { 4, 2, 3 }, twice[] = { 2, 1 },
                         one[] = { 1 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, NULL, f32(2, 2, 3, 0, 0)), image = npu_input(g, NULL, f32(4, 1, 4, 8, 8)),
              c = npu_input(g, NULL, f32(1, 4, 0, 0, 0));
    npu_value both[2], index;
    int64_t dims[2] = { 2, 3 };
    both[0] = both[1] = x;
    index = npu_input(g, NULL, npu_spec_tensor(NPU_I64, 2, dims));
    NPU_BUILDS(npu_reshape(g, x, flat, 1), "aten.reshape.default");
    NPU_BUILDS(npu_permute(g, x, order, 2), "aten.permute.default");
    NPU_BUILDS(npu_transpose(g, x, 0, 1), "aten.transpose.int");
    NPU_BUILDS(npu_flatten(g, x, 0, -1), "aten.flatten.using_ints");
    NPU_BUILDS(npu_squeeze(g, x, 0), "aten.squeeze.dim");
    NPU_BUILDS(npu_unsqueeze(g, x, 0), "aten.unsqueeze.default");
    NPU_BUILDS(npu_expand(g, x, wide, 3), "aten.expand.default");
    NPU_BUILDS(npu_repeat(g, x, twice, 2), "aten.repeat.default");
    NPU_BUILDS(npu_cat(g, both, 2, 0), "aten.cat.default");
    NPU_BUILDS(npu_stack(g, both, 2, 0), "aten.stack.default");
    check_kind(g, npu_split(g, x, 2, 1), "aten.split.Tensor", __LINE__);
    check_kind(g, npu_chunk(g, x, 2, 0), "aten.chunk.default", __LINE__);
    NPU_BUILDS(npu_select(g, x, 0, 1), "aten.select.int");
    NPU_BUILDS(npu_slice(g, x, 1, 0, 2, 1), "aten.slice.Tensor");
    NPU_BUILDS(npu_sum(g, x, one, 1, false), "aten.sum.dim_IntList");
    NPU_BUILDS(npu_mean(g, x, NULL, 0, false), "aten.mean.dim");
    NPU_BUILDS(npu_amax(g, x, one, 1, true), "aten.amax.default");
    NPU_BUILDS(npu_amin(g, x, one, 1, true), "aten.amin.default");
    check_kind(g, npu_max_dim(g, x, 1, false), "aten.max.dim", __LINE__);
    NPU_BUILDS(npu_argmax(g, x, 1, false), "aten.argmax.default");
    NPU_BUILDS(npu_softmax(g, x, 1), "aten.softmax.int");
    NPU_BUILDS(npu_log_softmax(g, x, 1), "aten.log_softmax.int");
    NPU_BUILDS(npu_embedding(g, x, index), "aten.embedding.default");
    NPU_BUILDS(npu_gather(g, x, 1, index), "aten.gather.default");
    NPU_BUILDS(npu_batch_norm(g, image, c, c, c, c, 1e-5), "aten.batch_norm.default");
    NPU_BUILDS(npu_layer_norm(g, x, none, none, 1, 1e-5), "aten.layer_norm.default");
    NPU_BUILDS(npu_group_norm(g, image, 2, c, c, 1e-5), "aten.group_norm.default");
    NPU_BUILDS(npu_max_pool2d(g, image, &(npu_max_pool2d_attrs){ .kernel_size = { 2, 2 } }),
               "aten.max_pool2d.default");
    NPU_BUILDS(npu_avg_pool2d(g, image, &(npu_avg_pool2d_attrs){ .kernel_size = { 2, 2 } }),
               "aten.avg_pool2d.default");
    NPU_BUILDS(npu_adaptive_avg_pool2d(g, image, 1, 1), "aten.adaptive_avg_pool2d.default");
    NPU_BUILDS(npu_aicf_reduce_sum(g, x, 0), "aicf.reduce_sum");
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    npu_graph_destroy(g);
}

/* The builders that models of PyTorch ask for, beside those above. */
static void test_more_unary_builders(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, NULL, f32(2, 2, 6, 0, 0)), y = npu_input(g, NULL, f32(1, 6, 0, 0, 0));
    npu_value mask = npu_gt(g, x, y);
    NPU_BUILDS(npu_cos(g, x), "aten.cos.default");
    NPU_BUILDS(npu_sin(g, x), "aten.sin.default");
    NPU_BUILDS(npu_relu6(g, x), "aten.relu6.default");
    NPU_BUILDS(npu_selu(g, x), "aten.selu.default");
    NPU_BUILDS(npu_mish(g, x), "aten.mish.default");
    NPU_BUILDS(npu_hardsigmoid(g, x), "aten.hardsigmoid.default");
    NPU_BUILDS(npu_log_sigmoid(g, x), "aten.log_sigmoid.default");
    NPU_BUILDS(npu_softplus(g, x, NULL), "aten.softplus.default");
    NPU_BUILDS(npu_prelu(g, x, y), "aten.prelu.default");
    NPU_BUILDS(npu_glu(g, x, -1), "aten.glu.default");
    NPU_BUILDS(npu_logical_and(g, mask, mask), "aten.logical_and.default");
    NPU_BUILDS(npu_logical_or(g, mask, mask), "aten.logical_or.default");
    NPU_BUILDS(npu_logical_not(g, mask), "aten.logical_not.default");
    NPU_BUILDS(npu_rsub(g, x, y), "aten.rsub.Tensor");
    NPU_BUILDS(npu_lerp(g, x, x, y), "aten.lerp.Tensor");
    NPU_BUILDS(npu_addcmul(g, x, x, y, npu_scalar_float(0.5)), "aten.addcmul.default");
    NPU_BUILDS(npu_addcdiv(g, x, x, y, npu_scalar_float(0.5)), "aten.addcdiv.default");
    NPU_BUILDS(npu_masked_fill(g, x, mask, npu_scalar_float(-1e9)), "aten.masked_fill.Scalar");
    NPU_BUILDS(npu_max(g, x), "aten.max.default");
    NPU_BUILDS(npu_min(g, x), "aten.min.default");
    check_kind(g, npu_min_dim(g, x, 1, false), "aten.min.dim", __LINE__);
    NPU_BUILDS(npu_argmin(g, x, 1, false), "aten.argmin.default");
    NPU_BUILDS(npu_prod(g, x, 1, false), "aten.prod.dim_int");
    NPU_BUILDS(npu_var(g, x, (int64_t[]){ 1 }, 1, 1, true), "aten.var.correction");
    NPU_BUILDS(npu_std(g, x, (int64_t[]){ 1 }, 1, 0, true), "aten.std.correction");
    NPU_BUILDS(npu_frobenius_norm(g, x, (int64_t[]){ 1 }, 1, false), "aten.frobenius_norm.dim");
    NPU_BUILDS(npu_cumsum(g, x, 1), "aten.cumsum.default");
    check_kind(g, npu_topk(g, x, 2, -1, true), "aten.topk.default", __LINE__);
    check_kind(g, npu_sort(g, x, -1, true), "aten.sort.default", __LINE__);
    NPU_BUILDS(npu_argsort(g, x, -1, true), "aten.argsort.default");
    NPU_BUILDS(npu_cosine_similarity(g, x, x, 1, 1e-8), "aten.cosine_similarity.default");
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    npu_graph_destroy(g);
}

static void test_more_shape_builders(void)
{
    static const int64_t two[] = { 2, 3 }, pad[] = { 1, 1 }, sizes[] = { 1, 5 }, line[] = { 2 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, NULL, f32(2, 2, 6, 0, 0)), index = npu_input(g, NULL, npu_spec_tensor(NPU_I64, 1, line));
    npu_value rows = npu_input(g, NULL, f32(2, 2, 6, 0, 0)), image = npu_input(g, NULL, f32(4, 1, 4, 8, 8));
    npu_value index2 = npu_input(g, NULL, npu_spec_tensor(NPU_I64, 2, (int64_t[]){ 2, 6 })), holes[2] = { { 0 }, index };
    npu_value column = npu_input(g, NULL, f32(2, 2, 2, 0, 0));
    NPU_BUILDS(npu_flip(g, x, line, 0), "aten.flip.default");
    NPU_BUILDS(npu_roll(g, x, pad, (int64_t[]){ 0, 1 }, 2), "aten.roll.default");
    NPU_BUILDS(npu_pad(g, x, pad, 2, 0.5), "aten.pad.default");
    NPU_BUILDS(npu_pixel_shuffle(g, image, 2), "aten.pixel_shuffle.default");
    NPU_BUILDS(npu_tril(g, x, 0), "aten.tril.default");
    NPU_BUILDS(npu_triu(g, x, 1), "aten.triu.default");
    check_kind(g, npu_unbind(g, x, 0), "aten.unbind.int", __LINE__);
    check_kind(g, npu_split_with_sizes(g, x, sizes, 2, 1), "aten.split_with_sizes.default", __LINE__);
    NPU_BUILDS(npu_index(g, x, holes, 2), "aten.index.Tensor");
    NPU_BUILDS(npu_index_put(g, x, holes, 2, column, true), "aten.index_put.default");
    NPU_BUILDS(npu_index_select(g, x, 1, index), "aten.index_select.default");
    NPU_BUILDS(npu_index_copy(g, x, 0, index, rows), "aten.index_copy.default");
    NPU_BUILDS(npu_scatter_add(g, x, 1, index2, rows), "aten.scatter_add.default");
    NPU_BUILDS(npu_zeros(g, NPU_F32, 2, two), "aten.zeros.default");
    NPU_BUILDS(npu_ones(g, NPU_I64, 2, two), "aten.ones.default");
    NPU_BUILDS(npu_full(g, NPU_F16, 2, two, npu_scalar_float(7)), "aten.full.default");
    NPU_BUILDS(npu_zeros_like(g, x), "aten.zeros_like.default");
    NPU_BUILDS(npu_ones_like(g, x), "aten.ones_like.default");
    NPU_BUILDS(npu_arange(g, NPU_I64, npu_scalar_int(2), npu_scalar_int(9), npu_scalar_int(3)), "aten.arange.start_step");
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    npu_graph_destroy(g);
}

static void test_more_layer_builders(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value line = npu_input(g, NULL, f32(3, 1, 4, 8, 0)), image = npu_input(g, NULL, f32(4, 1, 4, 8, 8)),
              c = npu_input(g, NULL, f32(1, 4, 0, 0, 0)), w1 = npu_input(g, NULL, f32(3, 4, 4, 3, 0)), a, w3, volume;
    int64_t cube[5] = { 1, 4, 4, 4, 4 }, ones[2] = { 1, 1 }, zeros[2] = { 0, 0 }, two[1] = { 2 };
    npu_convolution_attrs attrs = { { ones, 2 }, { zeros, 2 }, { ones, 2 }, false, { zeros, 2 }, 1 };
    npu_value rnn[4] = { npu_input(g, NULL, f32(2, 4, 8, 0, 0)), npu_input(g, NULL, f32(2, 4, 4, 0, 0)), c, c }, gates[4];
    volume = npu_input(g, NULL, npu_spec_tensor(NPU_F32, 5, cube));
    cube[0] = 4;
    w3 = npu_input(g, NULL, npu_spec_tensor(NPU_F32, 5, cube));
    a = npu_input(g, NULL, f32(3, 2, 3, 3, 0));
    NPU_BUILDS(npu_conv3d(g, volume, w3, c, NULL), "aten.conv3d.default");
    NPU_BUILDS(npu_conv_transpose1d(g, line, w1, c, NULL), "aten.conv_transpose1d.default");
    NPU_BUILDS(npu_conv_transpose3d(g, volume, w3, c, NULL), "aten.conv_transpose3d.input");
    NPU_BUILDS(npu_convolution(g, image, npu_input(g, NULL, f32(4, 2, 4, 3, 3)), none, &attrs), "aten.convolution.default");
    NPU_BUILDS(npu_baddbmm(g, a, a, a, NULL), "aten.baddbmm.default");
    NPU_BUILDS(npu_einsum(g, "bij,bjk->bik", (npu_value[]){ a, a }, 2), "aten.einsum.default");
    NPU_BUILDS(npu_instance_norm(g, image, c, c, 1e-5), "aten.instance_norm.default");
    NPU_BUILDS(npu_rms_norm(g, line, none, 1, 1e-6), "aten.rms_norm.default");
    NPU_BUILDS(npu_max_pool1d(g, line, &(npu_max_pool1d_attrs){ .kernel_size = { two, 1 } }), "aten.max_pool1d.default");
    NPU_BUILDS(npu_avg_pool1d(g, line, &(npu_avg_pool1d_attrs){ .kernel_size = { two, 1 } }), "aten.avg_pool1d.default");
    NPU_BUILDS(npu_max_pool3d(g, volume, &(npu_max_pool3d_attrs){ .kernel_size = { 2, 2, 2 } }), "aten.max_pool3d.default");
    NPU_BUILDS(npu_avg_pool3d(g, volume, &(npu_avg_pool3d_attrs){ .kernel_size = { 2, 2, 2 } }), "aten.avg_pool3d.default");
    check_kind(g, npu_adaptive_max_pool2d(g, image, 2, 2), "aten.adaptive_max_pool2d.default", __LINE__);
    NPU_BUILDS(npu_upsample_nearest2d(g, image, 16, 16), "aten.upsample_nearest2d.default");
    NPU_BUILDS(npu_upsample_bilinear2d(g, image, 16, 16, true), "aten.upsample_bilinear2d.default");
    npu_value h = npu_input(g, NULL, f32(3, 1, 4, 4, 0)), steps = npu_input(g, NULL, f32(3, 5, 4, 8, 0));
    npu_rnn_attrs net = { true, 1, 0, false, false, false };
    check_kind(g, npu_rnn_tanh(g, steps, h, rnn, 4, &net), "aten.rnn_tanh.input", __LINE__);
    check_kind(g, npu_rnn_relu(g, steps, h, rnn, 4, &net), "aten.rnn_relu.input", __LINE__);
    for (int64_t n = 3; n <= 4; n++) {
        gates[0] = npu_input(g, NULL, f32(2, 4 * n, 8, 0, 0));
        gates[1] = npu_input(g, NULL, f32(2, 4 * n, 4, 0, 0));
        gates[2] = gates[3] = npu_input(g, NULL, f32(1, 4 * n, 0, 0, 0));
        check_kind(g, n == 3 ? npu_gru(g, steps, h, gates, 4, &net) : npu_lstm(g, steps, h, h, gates, 4, &net),
                   n == 3 ? "aten.gru.input" : "aten.lstm.input", __LINE__);
    }
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK(!npu_gru(g, steps, h, gates, 4, NULL).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_INVALID_ARGUMENT);
    npu_graph_destroy(g);
    g = npu_graph_create(NULL);
    NPU_CHECK(!npu_rms_norm(g, npu_input(g, "x", f32(2, 2, 3, 0, 0)), none, 3, 1e-6).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_RANK);
    npu_graph_destroy(g);
}

/* "aten.add_.Tensor", "torch.ops.aten.add" and "aten::add" as "add"; false = it is no ATen op, or an inner one. */
static bool base_name(const char *type, char out[64])
{
    const char *at = strstr(type, "aten");
    size_t n = 0;
    if (!at || at - type > 10) {
        return false;
    }
    at += at[4] == ':' ? 6 : 5;
    n = strcspn(at, ".\"");
    n -= n > 1 && at[n - 1] == '_';
    snprintf(out, 64, "%.*s", (int)n, at);
    return out[0] != '_';
}

/* What >>builder says of which ops have a builder, from the models. */
static void test_which_ops_have_builders(void)
{
    static const char *const other_words[] = { "view", "t", "contiguous", "detach", "copy", "fill", "zero" };
    static char header[1 << 22], line[1 << 20], name[64], wanted[128];
    FILE *file = fopen("npu_ir.h", "rb"), *models = fopen("tests/models/models.txt", "rb");
    size_t len = file ? fread(header, 1, sizeof header - 1, file) : 0;
    uint32_t num_ops = 0;
    NPU_ITEM("F56");
    NPU_CHECK(len > 0 && models);
    while (models && fgets(line, sizeof line, models)) {
        for (char *p = line; (p = strstr(p, "\"op_type\":\"")); p += 11) {
            bool is_other = !base_name(p + 11, name);
            for (size_t i = 0; i < sizeof other_words / sizeof other_words[0]; i++) {
                is_other = is_other || strcmp(name, other_words[i]) == 0;
            }
            snprintf(wanted, sizeof wanted, " npu_%s(npu_graph *g, ", name);
            num_ops += !is_other;
            NPU_CHECK_THAT(is_other || strstr(header, wanted), "models call aten.%s, and there is no npu_%s", name, name);
        }
    }
    NPU_CHECK(num_ops > 400);
    if (file) {
        fclose(file);
    }
    if (models) {
        fclose(models);
    }
}

/* ---- attrs structs ---- */

/* A member of an attrs struct; sizes and order come with it. */
typedef struct member {
    const char *op;
    size_t size, offset, has_offset;
} member;

#define NPU_MEMBER(op, type, name) { op, sizeof(type), offsetof(type, name), 0 }
#define NPU_OPTION(op, type, name) { op, sizeof(type), offsetof(type, name), offsetof(type, has_##name) }

static const member members[] = {
    NPU_MEMBER("aten.conv3d.default", npu_conv3d_attrs, stride),
    NPU_MEMBER("aten.conv3d.default", npu_conv3d_attrs, padding),
    NPU_MEMBER("aten.conv3d.default", npu_conv3d_attrs, dilation),
    NPU_MEMBER("aten.conv3d.default", npu_conv3d_attrs, groups),
    NPU_MEMBER("aten.conv_transpose1d.default", npu_conv_transpose1d_attrs, stride),
    NPU_MEMBER("aten.conv_transpose1d.default", npu_conv_transpose1d_attrs, padding),
    NPU_MEMBER("aten.conv_transpose1d.default", npu_conv_transpose1d_attrs, output_padding),
    NPU_MEMBER("aten.conv_transpose1d.default", npu_conv_transpose1d_attrs, groups),
    NPU_MEMBER("aten.conv_transpose1d.default", npu_conv_transpose1d_attrs, dilation),
    NPU_MEMBER("aten.conv_transpose3d.input", npu_conv_transpose3d_attrs, stride),
    NPU_MEMBER("aten.conv_transpose3d.input", npu_conv_transpose3d_attrs, padding),
    NPU_MEMBER("aten.conv_transpose3d.input", npu_conv_transpose3d_attrs, output_padding),
    NPU_MEMBER("aten.conv_transpose3d.input", npu_conv_transpose3d_attrs, groups),
    NPU_MEMBER("aten.conv_transpose3d.input", npu_conv_transpose3d_attrs, dilation),
    NPU_MEMBER("aten.convolution.default", npu_convolution_attrs, stride),
    NPU_MEMBER("aten.convolution.default", npu_convolution_attrs, padding),
    NPU_MEMBER("aten.convolution.default", npu_convolution_attrs, dilation),
    NPU_MEMBER("aten.convolution.default", npu_convolution_attrs, transposed),
    NPU_MEMBER("aten.convolution.default", npu_convolution_attrs, output_padding),
    NPU_MEMBER("aten.convolution.default", npu_convolution_attrs, groups),
    NPU_OPTION("aten.softplus.default", npu_softplus_attrs, beta),
    NPU_OPTION("aten.softplus.default", npu_softplus_attrs, threshold),
    NPU_OPTION("aten.baddbmm.default", npu_addmm_attrs, beta),
    NPU_OPTION("aten.baddbmm.default", npu_addmm_attrs, alpha),
    NPU_MEMBER("aten.max_pool1d.default", npu_max_pool1d_attrs, kernel_size),
    NPU_MEMBER("aten.max_pool1d.default", npu_max_pool1d_attrs, stride),
    NPU_MEMBER("aten.max_pool1d.default", npu_max_pool1d_attrs, padding),
    NPU_MEMBER("aten.max_pool1d.default", npu_max_pool1d_attrs, dilation),
    NPU_MEMBER("aten.max_pool1d.default", npu_max_pool1d_attrs, ceil_mode),
    NPU_MEMBER("aten.avg_pool1d.default", npu_avg_pool1d_attrs, kernel_size),
    NPU_MEMBER("aten.avg_pool1d.default", npu_avg_pool1d_attrs, stride),
    NPU_MEMBER("aten.avg_pool1d.default", npu_avg_pool1d_attrs, padding),
    NPU_MEMBER("aten.avg_pool1d.default", npu_avg_pool1d_attrs, ceil_mode),
    NPU_OPTION("aten.avg_pool1d.default", npu_avg_pool1d_attrs, count_include_pad),
    NPU_MEMBER("aten.max_pool3d.default", npu_max_pool3d_attrs, kernel_size),
    NPU_MEMBER("aten.max_pool3d.default", npu_max_pool3d_attrs, stride),
    NPU_MEMBER("aten.max_pool3d.default", npu_max_pool3d_attrs, padding),
    NPU_MEMBER("aten.max_pool3d.default", npu_max_pool3d_attrs, dilation),
    NPU_MEMBER("aten.max_pool3d.default", npu_max_pool3d_attrs, ceil_mode),
    NPU_MEMBER("aten.avg_pool3d.default", npu_avg_pool3d_attrs, kernel_size),
    NPU_MEMBER("aten.avg_pool3d.default", npu_avg_pool3d_attrs, stride),
    NPU_MEMBER("aten.avg_pool3d.default", npu_avg_pool3d_attrs, padding),
    NPU_MEMBER("aten.avg_pool3d.default", npu_avg_pool3d_attrs, ceil_mode),
    NPU_OPTION("aten.avg_pool3d.default", npu_avg_pool3d_attrs, count_include_pad),
    NPU_OPTION("aten.avg_pool3d.default", npu_avg_pool3d_attrs, divisor_override),
    NPU_MEMBER("aten.conv1d.default", npu_conv1d_attrs, stride),
    NPU_MEMBER("aten.conv1d.default", npu_conv1d_attrs, padding),
    NPU_MEMBER("aten.conv1d.default", npu_conv1d_attrs, dilation),
    NPU_MEMBER("aten.conv1d.default", npu_conv1d_attrs, groups),
    NPU_MEMBER("aten.conv2d.default", npu_conv2d_attrs, stride),
    NPU_MEMBER("aten.conv2d.default", npu_conv2d_attrs, padding),
    NPU_MEMBER("aten.conv2d.default", npu_conv2d_attrs, dilation),
    NPU_MEMBER("aten.conv2d.default", npu_conv2d_attrs, groups),
    NPU_MEMBER("aten.conv_transpose2d.input", npu_conv_transpose2d_attrs, stride),
    NPU_MEMBER("aten.conv_transpose2d.input", npu_conv_transpose2d_attrs, padding),
    NPU_MEMBER("aten.conv_transpose2d.input", npu_conv_transpose2d_attrs, output_padding),
    NPU_MEMBER("aten.conv_transpose2d.input", npu_conv_transpose2d_attrs, groups),
    NPU_MEMBER("aten.conv_transpose2d.input", npu_conv_transpose2d_attrs, dilation),
    NPU_OPTION("aten.addmm.default", npu_addmm_attrs, beta),
    NPU_OPTION("aten.addmm.default", npu_addmm_attrs, alpha),
    NPU_MEMBER("aten.gelu.default", npu_gelu_attrs, approximate),
    NPU_OPTION("aten.leaky_relu.default", npu_leaky_relu_attrs, negative_slope),
    NPU_OPTION("aten.hardtanh.default", npu_hardtanh_attrs, min_val),
    NPU_OPTION("aten.hardtanh.default", npu_hardtanh_attrs, max_val),
    NPU_OPTION("aten.elu.default", npu_elu_attrs, alpha),
    NPU_OPTION("aten.elu.default", npu_elu_attrs, scale),
    NPU_OPTION("aten.elu.default", npu_elu_attrs, input_scale),
    NPU_MEMBER("aten.max_pool2d.default", npu_max_pool2d_attrs, kernel_size),
    NPU_MEMBER("aten.max_pool2d.default", npu_max_pool2d_attrs, stride),
    NPU_MEMBER("aten.max_pool2d.default", npu_max_pool2d_attrs, padding),
    NPU_MEMBER("aten.max_pool2d.default", npu_max_pool2d_attrs, dilation),
    NPU_MEMBER("aten.max_pool2d.default", npu_max_pool2d_attrs, ceil_mode),
    NPU_MEMBER("aten.avg_pool2d.default", npu_avg_pool2d_attrs, kernel_size),
    NPU_MEMBER("aten.avg_pool2d.default", npu_avg_pool2d_attrs, stride),
    NPU_MEMBER("aten.avg_pool2d.default", npu_avg_pool2d_attrs, padding),
    NPU_MEMBER("aten.avg_pool2d.default", npu_avg_pool2d_attrs, ceil_mode),
    NPU_OPTION("aten.avg_pool2d.default", npu_avg_pool2d_attrs, count_include_pad),
    NPU_OPTION("aten.avg_pool2d.default", npu_avg_pool2d_attrs, divisor_override),
    NPU_MEMBER("aten.scaled_dot_product_attention.default", npu_attention_attrs, dropout_p),
    NPU_MEMBER("aten.scaled_dot_product_attention.default", npu_attention_attrs, is_causal),
    NPU_OPTION("aten.scaled_dot_product_attention.default", npu_attention_attrs, scale),
    NPU_MEMBER("aten.scaled_dot_product_attention.default", npu_attention_attrs, enable_gqa),
    NPU_MEMBER("aicf.gemm", npu_aicf_gemm_attrs, transA),
    NPU_MEMBER("aicf.gemm", npu_aicf_gemm_attrs, transB)
};

static void test_attrs_layouts(void)
{
    npu_registry *registry = NULL;
    const size_t num_members = sizeof members / sizeof members[0];
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    for (size_t i = 0; i < num_members;) {
        const npu_op_def *def = npu_registry_find(registry, members[i].op);
        npu_attr_slot slots[16];
        size_t size = 0;
        uint32_t count = def ? npu_schema_attrs_layout(def->schema, slots, 16, &size) : 0;
        NPU_CHECK(count > 0);
        NPU_CHECK_EQ(size, members[i].size);
        for (uint32_t k = 0; k < (count ? count : 1); k++, i++) {
            NPU_CHECK(i < num_members && strcmp(members[i].op, def ? def->name : "") == 0);
            NPU_CHECK_EQ(slots[k].offset, members[i].offset);
            NPU_CHECK_EQ(slots[k].has_offset, members[i].has_offset);
        }
    }
    npu_registry_destroy(registry);
}

/* A nonzero member counts; zero needs has_x where it is not the default. */
static void test_options(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(4, 1, 1, 8, 8));
    npu_leaky_relu(g, x, NULL);
    npu_leaky_relu(g, x, &(npu_leaky_relu_attrs){ .negative_slope = npu_scalar_float(0.5) });
    npu_leaky_relu(g, x, &(npu_leaky_relu_attrs){ .has_negative_slope = true });
    npu_avg_pool2d(
        g, x,
        &(npu_avg_pool2d_attrs){ .kernel_size = { 2, 2 }, .has_count_include_pad = true, .ceil_mode = true });
    npu_avg_pool2d(g, x, &(npu_avg_pool2d_attrs){ .kernel_size = { 2, 2 }, .divisor_override = 3 });
    check_text(
        g,
        "input x : f32[1,1,8,8]\n%2 = aten.leaky_relu.default(self=x) : f32[1,1,8,8]\n"
        "%3 = aten.leaky_relu.default(self=x, negative_slope=0.5) : f32[1,1,8,8]\n"
        "%4 = aten.leaky_relu.default(self=x, negative_slope=0) : f32[1,1,8,8]\n"
        "%5 = aten.avg_pool2d.default(self=x, kernel_size=[2, 2], ceil_mode=true, count_include_pad=false) : f32[1,1,4,4]\n"
        "%6 = aten.avg_pool2d.default(self=x, kernel_size=[2, 2], divisor_override=3) : f32[1,1,4,4]\n");
    npu_graph_destroy(g);
}

static void test_struct_size_is_checked(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x[3];
    npu_conv2d_attrs attrs = { { 0, 0 }, { 0, 0 }, { 0, 0 }, 0 };
    x[0] = npu_input(g, "x", f32(4, 1, 1, 8, 8));
    x[1] = npu_input(g, "w", f32(4, 1, 1, 3, 3));
    x[2] = none;
    NPU_CHECK(npu_emit_struct(g, NPU_ATEN_CONV2D, x, 3, NULL, &attrs, sizeof attrs).id);
    NPU_CHECK(!npu_emit_struct(g, NPU_ATEN_CONV2D, x, 3, NULL, &attrs, sizeof attrs - 8).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_INVALID_ARGUMENT);
    npu_graph_destroy(g);
}

/* ---- emit by name ---- */

static void test_emit_by_name(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 2, 3, 0, 0));
    npu_arg args[3];
    NPU_ITEM("S2.9");
    args[0] = npu_arg_tensor(NULL, x);
    args[1] = npu_arg_float("other", 0.5); /* a number for a tensor */
    args[2] = npu_arg_int("alpha", 2);
    NPU_CHECK(npu_emit_name(g, "aten::add.Tensor", args, 3).id);
    args[1] = npu_arg_int("dim", -1);
    NPU_CHECK(npu_emit_name(g, "torch.ops.aten.softmax.int", args, 2).id);
    NPU_CHECK(npu_emit_name(g, "relu", args, 1).id); /* a bare name is the device's */
    check_text(
        g,
        "input x : f32[2,3]\nconst %2 : f64[] wrapped {0.5}\n"
        "%3 = aten.add.Tensor(self=x, other=%2, alpha=2) : f32[2,3]\n"
        "%4 = aten.softmax.int(self=x, dim=-1) : f32[2,3]\n%5 = aicf.relu(x=x) : f32[2,3]\n");
    npu_graph_destroy(g);
}

static void test_emit_rejections(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 2, 3, 0, 0)), both[2];
    npu_arg tensor = npu_arg_tensor(NULL, x), list;
    const struct { const char *name; npu_arg first, second; uint32_t num_args; npu_status status; const char *operand; } rows[] = {
        { "aten.relu", npu_arg_none(NULL), npu_arg_none(NULL), 0, NPU_ERR_ARITY, "self" },
        { "aten.relu", tensor, npu_arg_int("slope", 1), 2, NPU_ERR_ATTRIBUTE, "slope" },
        { "aten.softmax.int", tensor, npu_arg_none(NULL), 1, NPU_ERR_ATTRIBUTE, "dim" },
        { "aten.softmax.int", tensor, npu_arg_str("dim", "last"), 2, NPU_ERR_ATTRIBUTE, "dim" },
        { "aten.softmax.int", tensor, npu_arg_int("dim", 2), 2, NPU_ERR_AXIS, "dim" },
        { "aten.relu", npu_arg_str(NULL, "x"), npu_arg_none(NULL), 1, NPU_ERR_ATTRIBUTE, "self" },
        { "aten.cat", npu_arg_int(NULL, 1), npu_arg_none(NULL), 1, NPU_ERR_ATTRIBUTE, "tensors" },
        { "aten.relu", npu_arg_tensor("input", x), npu_arg_none(NULL), 1, NPU_ERR_ARITY, "self" } /* it is called self */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_arg args[2];
        args[0] = rows[i].first;
        args[1] = rows[i].second;
        npu_graph_clear_error(g);
        NPU_CHECK(!npu_emit_name(g, rows[i].name, args, rows[i].num_args).id);
        NPU_CHECK_STATUS(npu_graph_status(g), rows[i].status);
        NPU_CHECK_STR(npu_graph_diag(g)->operand, rows[i].operand);
    }
    NPU_CHECK(strstr(npu_graph_diag(g)->message, "'self' is missing") && strstr(npu_graph_diag(g)->message, "'input'"));
    both[0] = x;
    both[1] = none;
    list = npu_arg_tensors("tensors", both, 2);
    npu_graph_clear_error(g);
    NPU_CHECK(!npu_emit_name(g, "aten.cat", &list, 1).id); /* a hole where none is allowed */
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_ARITY);
    NPU_CHECK_EQ(npu_graph_num_ops(g), 0);
    npu_graph_destroy(g);
}

static void test_emit_typed(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 2, 3, 0, 0));
    npu_arg args[2];
    npu_spec results[2], wrong = f32(2, 3, 2, 0, 0);
    npu_op op;
    NPU_ITEM("S0.2");
    args[0] = npu_arg_tensor("x", x);
    args[1] = npu_arg_str("mode", "fast");
    results[0] = f32(1, 7, 0, 0, 0);
    results[1] = f32(2, 2, 3, 0, 0);
    op = npu_emit_typed(g, "vendor.magic", args, 2, results, 2);
    NPU_CHECK_EQ(npu_op_num_results(g, op), 2);
    NPU_CHECK(npu_spec_equal(npu_value_spec(g, npu_op_result(g, op, 0)), &results[0]));
    NPU_CHECK_EQ(npu_op_kind(g, op), 0);
    NPU_CHECK_STR(npu_op_definition(g, op)->name, "vendor.magic");
    args[0].name = NULL;
    NPU_CHECK(npu_emit_typed(g, "aten.relu", args, 1, &results[1], 1).id);
    NPU_CHECK(!npu_emit_typed(g, "aten.relu", args, 1, &wrong, 1).id); /* a known op must agree with its type rule */
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_SHAPE);
    npu_graph_destroy(g);
}

/* ---- result specs ---- */

static void check_dims(npu_graph *g, npu_value v, uint32_t rank, int64_t a, int64_t b)
{
    const npu_spec *s = npu_value_spec(g, v);
    NPU_CHECK(s);
    if (s) {
        NPU_CHECK_EQ(s->rank, rank);
        NPU_CHECK_EQ(s->dims[0], a);
        NPU_CHECK_EQ(s->dims[1], b);
    }
}

/* What words say of cosine_similarity, and words that say nothing. */
static void test_compose(void)
{
#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define FOUR "neg x1; neg x1; neg x1; neg x1; "
    static const struct { const char *words; npu_status status; const char *last; uint32_t ops; } rows[] = {
        { "mul.Tensor x1 x2; sum.dim_IntList $a dim true", NPU_OK, "aten.sum.dim_IntList", 2 },
        { "clamp_min x1 eps", NPU_OK, "aten.clamp_min.default", 1 }, { "neg x1", NPU_OK, "aten.neg.default", 1 },
        { "clamp x1 - 2.5", NPU_OK, "aten.clamp.default", 1 }, { FOUR FOUR FOUR "neg x2", NPU_ERR_UNSUPPORTED, NULL, 0 },
        { "", NPU_ERR_NOT_FOUND, NULL, 0 }, { "nought x1", NPU_ERR_NOT_FOUND, NULL, 0 },
        { "neg x3", NPU_ERR_UNSUPPORTED, NULL, 0 }, { "neg $z", NPU_ERR_UNSUPPORTED, NULL, 0 },
        { "neg $", NPU_ERR_UNSUPPORTED, NULL, 0 }, { "neg %v", NPU_ERR_INVALID_ARGUMENT, NULL, 0 },
        { "neg " LONG, NPU_ERR_UNSUPPORTED, NULL, 0 }, { LONG LONG " x1", NPU_ERR_UNSUPPORTED, NULL, 0 },
        { "neg x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1 x1", NPU_ERR_UNSUPPORTED, NULL, 0 },
        { "mm x1 x1", NPU_ERR_SHAPE, NULL, 0 }
    };
#undef LONG
#undef FOUR
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_value x = npu_input(g, "x", f32(2, 3, 4, 0, 0));
    npu_value y = npu_cosine_similarity(g, x, x, 1, 1e-8);
    npu_op_storage storage;
    npu_op_info info;
    memset(&storage, 0, sizeof storage);
    NPU_CHECK_STATUS(npu_op_describe(g, npu_value_producer(g, y, NULL), &info, &storage), NPU_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_diag diag = { 0 };
        npu_graph *body = npu_op_compose(&info, rows[i].words, NULL, &diag);
        NPU_CHECK_THAT(!body == (rows[i].status != NPU_OK) && diag.status == rows[i].status, "%s: %s", rows[i].words,
                       diag.message);
        if (body && rows[i].last) {
            npu_op last = { npu_graph_num_ops(body) };
            NPU_CHECK_EQ(last.id, rows[i].ops);
            NPU_CHECK_STR(npu_op_definition(body, last)->name, rows[i].last);
        }
        npu_graph_destroy(body);
    }
    npu_op_storage_free(&storage);
    npu_graph_destroy(g);
}

static void test_broadcast(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value a = npu_input(g, "a", f32(2, 2, 1, 0, 0)), b = npu_input(g, "b", f32(1, 3, 0, 0, 0)),
              c = npu_input(g, "c", f32(1, 4, 0, 0, 0));
    NPU_ITEM("S2.46");
    NPU_ITEM("S2.47");
    check_dims(g, npu_add(g, a, b), 2, 2, 3);
    NPU_CHECK(!npu_add(g, b, c).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_SHAPE);
    npu_graph_destroy(g);
}

static void test_shape_after_reduce(void)
{
    static const int64_t first[] = { 0 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 2, 3, 0, 0));
    NPU_ITEM("S2.47");
    check_dims(g, npu_sum(g, x, first, 1, false), 1, 3, 0);
    check_dims(g, npu_sum(g, x, NULL, 0, false), 0, 0, 0);
    check_dims(g, npu_aicf_reduce_sum(g, x, 0), 1, 3, 0);
    npu_graph_destroy(g);
}

static void test_keepdim(void)
{
    static const int64_t first[] = { 0 };
    npu_graph *g = npu_graph_create(NULL);
    NPU_ITEM("S2.47");
    check_dims(g, npu_sum(g, npu_input(g, "x", f32(2, 2, 3, 0, 0)), first, 1, true), 2, 1, 3);
    npu_graph_destroy(g);
}

static void test_batch_dims(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(3, 7, 2, 3, 0)), w = npu_input(g, "w", f32(2, 3, 5, 0, 0));
    NPU_ITEM("S2.47");
    check_dims(g, npu_matmul(g, x, w), 3, 7, 2);
    npu_graph_destroy(g);
}

/* ---- layers and models ---- */

static npu_model *model_of(npu_dialect dialect)
{
    npu_model_desc desc = { .dialect = dialect };
    return npu_model_create(&desc);
}

/* The chain that the device-kind document gives. */
static void test_linear_layer(void)
{
    npu_model *m = model_of(NPU_DIALECT_AICF);
    npu_layer_linear fc = npu_layer_linear_init("fc1", 128, 256);
    npu_value x = npu_model_input(m, "x", f32(3, 4, 8, 128, 0));
    NPU_ITEM("S2.1");
    NPU_ITEM("R2.13");
    NPU_ITEM("S2.41");
    npu_model_output(m, "y", npu_model_add(m, &fc.base, x));
    check_text(
        npu_model_graph(m),
        "input x : f32[4,8,128]\nparam fc1.W : f32[256,128]\n"
        "fc1.out = aicf.gemm(a=x, b=fc1.W, transB=true) !prefer_epilogue : f32[4,8,256]\nparam fc1.b : f32[256]\n"
        "fc1.out_bias = aicf.bias_add(x=fc1.out, bias=fc1.b) !inplace_ok : f32[4,8,256]\n"
        "alias fc1.weight = fc1.W\nalias fc1.bias = fc1.b\n"
        "output y = fc1.out_bias\n");
    npu_model_destroy(m);
}

/* Parameters of a linear layer are bound by PyTorch's names, too, also where the layer is added twice. */
static void test_linear_layer_names(void)
{
    static const float weight[9], bias[3];
    npu_model *m = npu_model_create(NULL);
    npu_graph *g = npu_model_graph(m);
    npu_layer_linear fc = npu_layer_linear_init("fc", 3, 3), own = npu_layer_linear_init("own", 3, 3);
    npu_value x = npu_model_input(m, "x", f32(2, 2, 3, 0, 0)), taken = npu_param(g, "own.bias", f32(1, 5, 0, 0, 0));
    x = npu_model_add(m, &fc.base, npu_model_add(m, &fc.base, x));
    x = npu_model_add(m, &own.base, x);
    npu_layer_linear unnamed = npu_layer_linear_init(NULL, 3, 3), another = npu_layer_linear_init(NULL, 3, 3);
    npu_model_add(m, &unnamed.base, x);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    NPU_CHECK_EQ(npu_value_num_users(g, npu_graph_find(g, "fc.W")), 2);
    NPU_CHECK_EQ(npu_model_add(m, &another.base, x).id, 0); /* it would have the weights of the other */
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_DUPLICATE);
    npu_graph_clear_error(g);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "fc.weight", weight, sizeof weight), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "fc.bias", bias, sizeof bias), NPU_OK);
    NPU_CHECK(npu_value_data(g, npu_graph_find(g, "fc.W"), NULL) == weight);
    NPU_CHECK(npu_value_data(g, npu_graph_find(g, "fc.b"), NULL) == bias);
    NPU_CHECK_EQ(npu_graph_find(g, "own.bias").id, taken.id); /* no layer takes a name away */
    npu_model_destroy(m);
}

static void test_linear_layer_without_bias(void)
{
    npu_model *m = model_of(NPU_DIALECT_AICF);
    npu_layer_linear fc = npu_layer_linear_init("fc1", 3, 4);
    fc.no_bias = true;
    fc.dtype = NPU_F16;
    npu_model_add(m, &fc.base, npu_model_input(m, "x", npu_spec_tensor(NPU_F16, 2, (int64_t[]){ 2, 3 })));
    check_text(
        npu_model_graph(m),
        "input x : f16[2,3]\nparam fc1.W : f16[4,3]\n"
        "fc1.out = aicf.gemm(a=x, b=fc1.W, transB=true) !prefer_epilogue : f16[2,4]\n"
        "alias fc1.weight = fc1.W\n");
    npu_model_destroy(m);
}

static void test_relu_and_add_layers(void)
{
    npu_model *m = model_of(NPU_DIALECT_AICF);
    npu_layer_relu relu = npu_layer_relu_init("r");
    npu_layer_add add = npu_layer_add_init("a");
    npu_value x = npu_model_input(m, "x", f32(1, 3, 0, 0, 0)), y;
    NPU_ITEM("S2.13");
    NPU_ITEM("S2.42");
    NPU_ITEM("R2.14");
    relu.save_for_backward = true;
    y = npu_model_add(m, &relu.base, x);
    y = npu_model_add_list(m, &add.base, (npu_value[]){ y, y }, 2);
    check_text(
        npu_model_graph(m),
        "input x : f32[3]\nr.out = aicf.relu(x=x) : f32[3]\na.out = aicf.add(a=r.out, c=r.out) : f32[3]\n"
        "save r.out = r.out\n");
    NPU_CHECK(!npu_model_add_list(m, &add.base, (npu_value[]){ y, npu_model_input(m, "z", f32(1, 1, 0, 0, 0)) }, 2)
                   .id); /* no broadcasting here */
    NPU_CHECK_STATUS(npu_graph_status(npu_model_graph(m)), NPU_ERR_SHAPE);
    npu_model_destroy(m);
}

/* The ops that layers are by default: ATen's, as every backend lists them. A desc that is not right is refused. */
static void test_dialects(void)
{
    npu_model *m = npu_model_create(NULL);
    npu_layer_linear fc = npu_layer_linear_init("fc", 3, 4), plain = npu_layer_linear_init("plain", 4, 2);
    npu_layer_relu relu = npu_layer_relu_init("r");
    npu_layer_add add = npu_layer_add_init("a");
    npu_value x = npu_model_input(m, "x", f32(2, 2, 3, 0, 0)), z = npu_model_input(m, "z", f32(1, 1, 0, 0, 0)), y;
    NPU_ITEM("F36");
    plain.no_bias = true;
    relu.save_for_backward = true;
    y = npu_model_add(m, &fc.base, x);
    y = npu_model_add(m, &relu.base, y);
    y = npu_model_add(m, &plain.base, y);
    y = npu_model_add_list(m, &add.base, (npu_value[]){ y, z }, 2);
    check_text(npu_model_graph(m),
               "input x : f32[2,3]\ninput z : f32[1]\nparam fc.W : f32[4,3]\nparam fc.b : f32[4]\n"
               "fc.out = aten.linear.default(input=x, weight=fc.W, bias=fc.b) : f32[2,4]\n"
               "r.out = aten.relu.default(self=fc.out) : f32[2,4]\nparam plain.W : f32[2,4]\n"
               "plain.out = aten.linear.default(input=r.out, weight=plain.W) : f32[2,2]\n"
               "a.out = aten.add.Tensor(self=plain.out, other=z) : f32[2,2]\n"
               "alias fc.weight = fc.W\nalias fc.bias = fc.b\nalias plain.weight = plain.W\nsave r.out = r.out\n");
    npu_model_destroy(m);
    NPU_CHECK(npu_model_create(&(npu_model_desc){ ._canary = 1 }) == NULL);
    NPU_CHECK(npu_model_create(&(npu_model_desc){ .dialect = (npu_dialect)7 }) == NULL);
    /* names say themselves what they are, in either dialect */
    m = npu_model_create(NULL);
    x = npu_model_input(m, "x", f32(1, 3, 0, 0, 0));
    npu_arg args[] = { npu_arg_tensor("a", x), npu_arg_tensor("c", x) };
    npu_op op = npu_emit_name(npu_model_graph(m), "add", args, 2);
    NPU_CHECK_STR(op.id ? npu_op_definition(npu_model_graph(m), op)->name : "", "aicf.add");
    npu_model_destroy(m);
}

static void test_other_layers(void)
{
    npu_model *m = npu_model_create(NULL);
    npu_layer_conv2d conv = npu_layer_conv2d_init("conv", 4, 8, 3);
    npu_layer_batch_norm bn = npu_layer_batch_norm_init("bn", 8);
    npu_layer_layer_norm ln = npu_layer_layer_norm_init("ln", 6);
    npu_layer_embedding embedding = npu_layer_embedding_init("emb", 10, 6);
    npu_value x = npu_model_input(m, "x", f32(4, 1, 4, 8, 8)),
              i = npu_model_input(m, "i", npu_spec_tensor(NPU_I64, 1, (int64_t[]){ 5 }));
    conv.attrs.groups = 2;
    conv.attrs.padding[0] = conv.attrs.padding[1] = 1;
    npu_model_add(m, &bn.base, npu_model_add(m, &conv.base, x));
    npu_model_add(m, &ln.base, npu_model_add(m, &embedding.base, i));
    check_text(
        npu_model_graph(m),
        "input x : f32[1,4,8,8]\ninput i : i64[5]\nparam conv.weight : f32[8,2,3,3]\nparam conv.bias : f32[8]\n"
        "conv.out = aten.conv2d.default(input=x, weight=conv.weight, bias=conv.bias, padding=[1, 1], groups=2) : f32[1,8,8,8]\n"
        "param bn.weight : f32[8]\nparam bn.bias : f32[8]\nparam bn.running_mean : f32[8]\n"
        "param bn.running_var : f32[8]\n"
        "bn.out = aten.batch_norm.default(input=conv.out, weight=bn.weight, bias=bn.bias, running_mean=bn.running_mean, "
        "running_var=bn.running_var, training=false, momentum=0.1, eps=1e-05, cudnn_enabled=false) : f32[1,8,8,8]\n"
        "param emb.weight : f32[10,6]\nemb.out = aten.embedding.default(weight=emb.weight, indices=i) : f32[5,6]\n"
        "param ln.weight : f32[6]\nparam ln.bias : f32[6]\n"
        "ln.out = aten.layer_norm.default(input=emb.out, normalized_shape=[6], weight=ln.weight, bias=ln.bias) : f32[5,6]\n");
    npu_model_destroy(m);
}

static void test_attention_layer(void)
{
    npu_model *m = npu_model_create(NULL);
    npu_layer_attention attention = npu_layer_attention_init("att", 8, 2);
    npu_value y = npu_model_add(m, &attention.base, npu_model_input(m, "x", f32(3, 2, 5, 8, 0)));
    npu_graph *g = npu_model_graph(m);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_value_spec(g, y)->dims[2], 8);
    NPU_CHECK(npu_graph_find(g, "att.q_proj.W").id && npu_graph_find(g, "att.out_proj.b").id);
    attention.num_heads = 3;
    NPU_CHECK(!npu_model_add(m, &attention.base, y).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_SHAPE);
    npu_model_destroy(m);
}

/* What layers emit that PyTorch's numbers do not show (test_models.c has those), and names inside layers. */
static void test_more_layers(void)
{
    npu_model *m = npu_model_create(NULL);
    npu_layer_rms_norm norm = npu_layer_rms_norm_init("norm", 8), exact = norm;
    npu_layer_avg_pool2d avg = npu_layer_avg_pool2d_init("avg", 2);
    npu_layer_adaptive_avg_pool2d one = npu_layer_adaptive_avg_pool2d_init("one", 1, 1);
    npu_layer_linear fc = npu_layer_linear_init("fc", 8, 8);
    npu_layer_sequential path = npu_layer_sequential_init("path", (const npu_layer *[]){ &fc.base }, 1);
    npu_layer_residual sum = npu_layer_residual_init("block", &path.base);
    npu_value x = npu_model_input(m, "x", f32(4, 1, 4, 8, 8));
    exact.eps = 1e-6;
    exact.base.name = "exact";
    npu_model_add(m, &one.base, npu_model_add(m, &avg.base, x));
    npu_model_add(m, &exact.base, npu_model_add(m, &norm.base, x));
    sum.shortcut = &norm.base;
    npu_model_add(m, &sum.base, x);
    check_text(npu_model_graph(m),
        "input x : f32[1,4,8,8]\n"
        "avg.out = aten.avg_pool2d.default(self=x, kernel_size=[2, 2]) : f32[1,4,4,4]\n"
        "one.out = aten.adaptive_avg_pool2d.default(self=avg.out, output_size=[1, 1]) : f32[1,4,1,1]\n"
        "param norm.weight : f32[8]\n"
        "norm.out = aten.rms_norm.default(input=x, normalized_shape=[8], weight=norm.weight) : f32[1,4,8,8]\n"
        "param exact.weight : f32[8]\n"
        "exact.out = aten.rms_norm.default(input=norm.out, normalized_shape=[8], weight=exact.weight, eps=1e-06) : f32[1,4,8,8]\n"
        "param block.path.fc.W : f32[8,8]\nparam block.path.fc.b : f32[8]\n"
        "block.path.fc.out = aten.linear.default(input=x, weight=block.path.fc.W, bias=block.path.fc.b) : f32[1,4,8,8]\n"
        "param block.norm.weight : f32[8]\n"
        "block.norm.out = aten.rms_norm.default(input=x, normalized_shape=[8], weight=block.norm.weight) : f32[1,4,8,8]\n"
        "block.out = aten.add.Tensor(self=block.norm.out, other=block.path.fc.out) : f32[1,4,8,8]\n"
        "alias block.path.fc.weight = block.path.fc.W\nalias block.path.fc.bias = block.path.fc.b\n");
    npu_model_destroy(m);
}

/* One mistake each. */
static npu_value no_inner(npu_model *m, npu_value x)
{
    npu_layer_residual l = npu_layer_residual_init("r", NULL);
    return npu_model_add(m, &l.base, x);
}

static npu_value no_list(npu_model *m, npu_value x)
{
    npu_layer_sequential l = npu_layer_sequential_init("s", NULL, 2);
    return npu_model_add(m, &l.base, x);
}

static npu_value two_inputs(npu_model *m, npu_value x)
{
    npu_layer_flatten l = npu_layer_flatten_init("f");
    return npu_model_add_list(m, &l.base, (npu_value[]){ x, x }, 2);
}

static npu_value no_recurrent_kind(npu_model *m, npu_value x)
{
    npu_layer_rnn l = npu_layer_rnn_init("n", NPU_ATEN_RELU, 8, 4);
    return npu_model_add(m, &l.base, x);
}

static npu_value too_many_layers(npu_model *m, npu_value x)
{
    npu_layer_rnn l = npu_layer_rnn_init("n", NPU_ATEN_GRU, 8, 4);
    l.num_layers = NPU_MAX_RNN_LAYERS + 1;
    return npu_model_add(m, &l.base, x);
}

static npu_value no_features(npu_model *m, npu_value x)
{
    npu_layer_rnn l = npu_layer_rnn_init(NULL, NPU_ATEN_RNN_RELU, 8, 0);
    return npu_model_add(m, &l.base, x);
}

static npu_value no_layers(npu_model *m, npu_value x)
{
    npu_layer_rnn l = npu_layer_rnn_init(NULL, NPU_ATEN_RNN_TANH, 8, 4);
    l.num_layers = 0;
    return npu_model_add(m, &l.base, x);
}

/* What a model refuses, an emit function can be given. */
static npu_value rnn_of_nothing(npu_model *m, npu_value x)
{
    npu_layer_rnn l = npu_layer_rnn_init("n", NPU_ATEN_GRU, 8, 4);
    x.id = 99;
    return l.base.emit(&l.base, npu_model_graph(m), &x, 1);
}

static npu_value rnn_without_inputs(npu_model *m, npu_value x)
{
    npu_layer_rnn l = npu_layer_rnn_init("n", NPU_ATEN_GRU, 8, 4);
    return l.base.emit(&l.base, npu_model_graph(m), &x, 0);
}

static npu_value attention_of_nothing(npu_model *m, npu_value x)
{
    npu_layer_attention l = npu_layer_attention_init("a", 8, 2);
    x.id = 99;
    return l.base.emit(&l.base, npu_model_graph(m), &x, 1);
}

static npu_value attention_of_matrix(npu_model *m, npu_value x)
{
    npu_layer_attention l = npu_layer_attention_init("a", 8, 2);
    return npu_model_add(m, &l.base, npu_flatten(npu_model_graph(m), x, 0, 1));
}

static npu_value attention_without_heads(npu_model *m, npu_value x)
{
    npu_layer_attention l = npu_layer_attention_init("a", 8, 0);
    return npu_model_add(m, &l.base, x);
}

static npu_value positions_of_nothing(npu_model *m, npu_value x)
{
    npu_layer_cached_attention l = npu_layer_cached_attention_init("a", 8, 2, 16);
    return l.base.emit(&l.base, npu_model_graph(m), (npu_value[]){ x, { 99 } }, 2);
}

static npu_value list_of_two(npu_model *m, npu_value x)
{
    npu_layer_sequential l = npu_layer_sequential_init("s", NULL, 0);
    return npu_model_add_list(m, &l.base, (npu_value[]){ x, x }, 2);
}

/* The second of three: the third is not asked. */
static npu_value list_with_a_mistake(npu_model *m, npu_value x)
{
    npu_layer_relu relu = npu_layer_relu_init(NULL);
    npu_layer_rms_norm wrong = npu_layer_rms_norm_init(NULL, 7);
    const npu_layer *const list[] = { &relu.base, &wrong.base, &relu.base };
    npu_layer_sequential l = npu_layer_sequential_init("s", list, 3);
    return npu_model_add(m, &l.base, x);
}

static npu_value list_with_a_hole(npu_model *m, npu_value x)
{
    npu_layer empty = { "e", NULL };
    npu_layer_sequential l = npu_layer_sequential_init(NULL, (const npu_layer *[]){ &empty }, 1);
    return npu_model_add(m, &l.base, x);
}

static npu_value linear_of_a_number(npu_model *m, npu_value x)
{
    npu_layer_linear l = npu_layer_linear_init(NULL, 8, 4);
    (void)x;
    return npu_model_add(m, &l.base, npu_model_input(m, "one", npu_spec_tensor(NPU_F32, 0, NULL)));
}

static npu_value no_layer(npu_model *m, npu_value x) { return npu_model_add(m, NULL, x); }

static npu_value inputs_that_are_null(npu_model *m, npu_value x)
{
    npu_layer_relu l = npu_layer_relu_init("r");
    (void)x;
    return npu_model_add_list(m, &l.base, NULL, 1);
}

/* A layer that fails, and returns a value nevertheless. */
static npu_value fail_and_go_on(const npu_layer *base, npu_graph *g, const npu_value *x, uint32_t num_x)
{
    (void)base, (void)num_x;
    npu_reshape(g, x[0], (int64_t[]){ 7 }, 1);
    return npu_relu(g, x[0]);
}

static npu_value careless(npu_model *m, npu_value x)
{
    npu_layer l = { "c", fail_and_go_on };
    return npu_model_add(m, &l, x);
}

static npu_value rnn_of_matrix(npu_model *m, npu_value x)
{
    npu_layer_rnn l = npu_layer_rnn_init("n", NPU_ATEN_GRU, 8, 4);
    return npu_model_add(m, &l.base, npu_flatten(npu_model_graph(m), x, 0, 1));
}

static npu_value lstm_of_one_state(npu_model *m, npu_value x)
{
    npu_layer_rnn l = npu_layer_rnn_init("n", NPU_ATEN_LSTM, 8, 4);
    return npu_model_add_list(m, &l.base, (npu_value[]){ x, x }, 2);
}

static npu_value rnn_of_other_features(npu_model *m, npu_value x)
{
    npu_layer_rnn l = npu_layer_rnn_init("n", NPU_ATEN_GRU, 7, 4);
    return npu_model_add(m, &l.base, x);
}

static npu_value no_positions(npu_model *m, npu_value x)
{
    npu_layer_cached_attention l = npu_layer_cached_attention_init("a", 8, 2, 16);
    return npu_model_add(m, &l.base, x);
}

static npu_value positions_of_rank_3(npu_model *m, npu_value x)
{
    npu_layer_cached_attention l = npu_layer_cached_attention_init("a", 8, 2, 16);
    return npu_model_add_list(m, &l.base, (npu_value[]){ x, x }, 2);
}

static npu_value no_room(npu_model *m, npu_value x)
{
    npu_layer_cached_attention l = npu_layer_cached_attention_init("a", 8, 2, 0);
    npu_value at = npu_model_input(m, "at", npu_spec_tensor(NPU_I64, 1, (int64_t[]){ 5 }));
    return npu_model_add_list(m, &l.base, (npu_value[]){ x, at }, 2);
}

static npu_value heads_that_do_not_divide(npu_model *m, npu_value x)
{
    npu_layer_cached_attention l = npu_layer_cached_attention_init("a", 8, 3, 16);
    return npu_model_add_list(m, &l.base, (npu_value[]){ x, x }, 2);
}

static npu_value norm_of_other_features(npu_model *m, npu_value x)
{
    npu_layer_rms_norm l = npu_layer_rms_norm_init("n", 7);
    return npu_model_add(m, &l.base, x);
}

static npu_value long_name(npu_model *m, npu_value x)
{
    char name[130];
    npu_layer_rms_norm l;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    l = npu_layer_rms_norm_init(name, 8);
    return npu_model_add(m, &l.base, x);
}

static void test_layer_mistakes(void)
{
    static const struct { npu_value (*add)(npu_model *m, npu_value x); npu_status status; const char *words; } rows[] = {
        { no_inner, NPU_ERR_INVALID_ARGUMENT, "layer r: a layer inside it has no emit function" },
        { no_list, NPU_ERR_INVALID_ARGUMENT, "sequential s: the list of layers is NULL" },
        { two_inputs, NPU_ERR_ARITY, "layer f: 2 inputs, expected 1" },
        { no_recurrent_kind, NPU_ERR_INVALID_ARGUMENT, "recurrent n: kind 0x00020040" },
        { too_many_layers, NPU_ERR_INVALID_ARGUMENT, "17 layers" },
        { rnn_of_matrix, NPU_ERR_RANK, "recurrent n: x has rank 2, expected 3" },
        { lstm_of_one_state, NPU_ERR_ARITY, "layer n: 2 inputs, expected 3" },
        { rnn_of_other_features, NPU_ERR_SHAPE, "gru" },
        { no_positions, NPU_ERR_ARITY, "layer a: 1 inputs, expected 2" },
        { positions_of_rank_3, NPU_ERR_RANK, "attention a: positions have rank 3, expected 1" },
        { no_room, NPU_ERR_INVALID_ARGUMENT, "max_len is 0" },
        { heads_that_do_not_divide, NPU_ERR_SHAPE, "3 heads must divide 8 features" },
        { norm_of_other_features, NPU_ERR_SHAPE, "rms_norm" },
        { no_features, NPU_ERR_INVALID_ARGUMENT, "recurrent : kind" },
        { no_layers, NPU_ERR_INVALID_ARGUMENT, "4 features, 0 layers" },
        { rnn_of_nothing, NPU_ERR_RANK, "recurrent n: x has rank 0, expected 3" },
        { rnn_without_inputs, NPU_ERR_ARITY, "layer n: 0 inputs, expected 2" },
        { attention_of_nothing, NPU_ERR_SHAPE, "attention a: x has rank 0" },
        { attention_of_matrix, NPU_ERR_SHAPE, "attention a: x has rank 2, expected 3" },
        { attention_without_heads, NPU_ERR_SHAPE, "0 heads must divide 8 features" },
        { positions_of_nothing, NPU_ERR_INVALID_ARGUMENT, "positions have rank 0, expected 1; max_len is 16" },
        { list_of_two, NPU_ERR_ARITY, "layer s: 2 inputs, expected 1" },
        { list_with_a_mistake, NPU_ERR_SHAPE, "rms_norm" },
        { list_with_a_hole, NPU_ERR_INVALID_ARGUMENT, "layer : a layer inside it has no emit function" },
        { linear_of_a_number, NPU_ERR_SHAPE, "linear : x's last dim is 0, expected in_features 8" },
        { no_layer, NPU_ERR_INVALID_ARGUMENT, "the layer has no emit function" },
        { inputs_that_are_null, NPU_ERR_INVALID_ARGUMENT, "the list of inputs is NULL" },
        { careless, NPU_ERR_SHAPE, "reshape" },
        { long_name, NPU_ERR_OVERFLOW, "the name of 'weight' is too long" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_model *m = npu_model_create(NULL);
        npu_graph *g = npu_model_graph(m);
        NPU_CHECK(!rows[i].add(m, npu_model_input(m, "x", f32(3, 2, 5, 8, 0))).id);
        NPU_CHECK_STATUS(npu_graph_status(g), rows[i].status);
        NPU_CHECK_THAT(strstr(npu_graph_diag(g)->message, rows[i].words) != NULL, "'%s' is not in '%s'", rows[i].words,
                       npu_graph_diag(g)->message);
        npu_model_destroy(m);
    }
    NPU_CHECK(!npu_layer_param(NULL, NULL, NULL, NPU_F32, 0, NULL).id);
}

/* The model is the user's view of a graph that stays reachable: layers and builders mix. */
static void test_model_wraps_a_graph(void)
{
    npu_model *m = model_of(NPU_DIALECT_AICF);
    npu_layer_relu relu = npu_layer_relu_init("r");
    npu_value x = npu_model_input(m, "x", f32(1, 3, 0, 0, 0)), y = npu_model_add(m, &relu.base, x);
    NPU_ITEM("S2.11");
    NPU_ITEM("S2.12");
    NPU_ITEM("S2.8");
    NPU_CHECK_STATUS(npu_model_output(m, "y", npu_exp(npu_model_graph(m), y)), NPU_OK);
    check_text(
        npu_model_graph(m),
        "input x : f32[3]\nr.out = aicf.relu(x=x) : f32[3]\n%3 = aten.exp.default(self=r.out) : f32[3]\n"
        "output y = %3\n");
    npu_model_destroy(m);
}

/* A layer of the user's: own members behind the base, ops of its own kind, no change of the library. */
typedef struct scale_layer {
    npu_layer base;
    double factor;
} scale_layer;

static npu_value emit_scale(const npu_layer *base, npu_graph *g, const npu_value *x, uint32_t num_x)
{
    const scale_layer *l = (const scale_layer *)(const void *)base;
    npu_spec spec = *npu_value_spec(g, x[0]);
    npu_arg args[2];
    npu_op op;
    char name[64];
    if (num_x != 1) {
        return none;
    }
    args[0] = npu_arg_tensor("x", x[0]);
    args[1] = npu_arg_float("factor", l->factor);
    op = npu_emit_typed(g, "custom.scale", args, 2, &spec, 1);
    npu_op_set_constraints(g, op, NPU_CONSTRAINT_INPLACE_OK);
    snprintf(name, sizeof name, "%s.out", base->name);
    npu_value_set_name(g, npu_op_result(g, op, 0), name);
    return npu_op_result(g, op, 0);
}

static void test_custom_layer(void)
{
    npu_model *m = npu_model_create(NULL);
    scale_layer scale = { { "s", emit_scale }, 0.5 };
    NPU_ITEM("S2.13");
    NPU_ITEM("S2.40");
    NPU_ITEM("S2.50");
    npu_model_output(m, "y", npu_model_add(m, &scale.base, npu_model_input(m, "x", f32(1, 3, 0, 0, 0))));
    check_text(
        npu_model_graph(m),
        "input x : f32[3]\ns.out = custom.scale(x=x, factor=0.5) !inplace_ok : f32[3]\noutput y = s.out\n");
    npu_model_destroy(m);
}

static void test_model_rejections(void)
{
    npu_model *m = npu_model_create(NULL);
    npu_graph *g = npu_model_graph(m);
    npu_layer_linear fc = npu_layer_linear_init("fc", 3, 4);
    npu_layer empty = { "empty", NULL };
    npu_value x = npu_model_input(m, "x", f32(2, 2, 5, 0, 0)), missing = { 99 };
    NPU_CHECK(!npu_model_add(m, &fc.base, x).id); /* last dim is 5, not 3 */
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_SHAPE);
    npu_graph_clear_error(g);
    NPU_CHECK(!npu_model_add_list(m, &fc.base, (npu_value[]){ x, x }, 2).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_ARITY);
    npu_graph_clear_error(g);
    NPU_CHECK(!npu_model_add(m, &fc.base, missing).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_INVALID_ARGUMENT);
    npu_graph_clear_error(g);
    NPU_CHECK(!npu_model_add(m, &empty, x).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK(!npu_model_add(NULL, &fc.base, x).id);
    npu_model_destroy(m);
    npu_model_destroy(NULL);
}

/* A parameter that exists already is taken. */
static void test_shared_parameters(void)
{
    npu_model *m = npu_model_create(NULL);
    npu_layer_linear fc = npu_layer_linear_init("fc", 3, 3);
    npu_value x = npu_model_input(m, "x", f32(2, 2, 3, 0, 0));
    npu_value p = npu_param(npu_model_graph(m), "fc.W", f32(2, 3, 3, 0, 0));
    NPU_ITEM("R2.12");
    npu_model_add(m, &fc.base, x);
    NPU_CHECK_EQ(npu_value_num_users(npu_model_graph(m), p), 1);
    NPU_CHECK_STATUS(npu_graph_status(npu_model_graph(m)), NPU_OK);
    npu_model_destroy(m);
}

int main(void)
{
    NPU_RUN(test_matrix_builders);
    NPU_RUN(test_elementwise_builders);
    NPU_RUN(test_shape_builders);
    NPU_RUN(test_more_unary_builders);
    NPU_RUN(test_more_shape_builders);
    NPU_RUN(test_more_layer_builders);
    NPU_RUN(test_which_ops_have_builders);
    NPU_RUN(test_attrs_layouts);
    NPU_RUN(test_options);
    NPU_RUN(test_struct_size_is_checked);
    NPU_RUN(test_emit_by_name);
    NPU_RUN(test_emit_rejections);
    NPU_RUN(test_emit_typed);
    NPU_RUN(test_compose);
    NPU_RUN(test_broadcast);
    NPU_RUN(test_shape_after_reduce);
    NPU_RUN(test_keepdim);
    NPU_RUN(test_batch_dims);
    NPU_RUN(test_linear_layer);
    NPU_RUN(test_linear_layer_names);
    NPU_RUN(test_linear_layer_without_bias);
    NPU_RUN(test_relu_and_add_layers);
    NPU_RUN(test_dialects);
    NPU_RUN(test_other_layers);
    NPU_RUN(test_attention_layer);
    NPU_RUN(test_more_layers);
    NPU_RUN(test_layer_mistakes);
    NPU_RUN(test_model_wraps_a_graph);
    NPU_RUN(test_custom_layer);
    NPU_RUN(test_model_rejections);
    NPU_RUN(test_shared_parameters);
    return npu_test_done();
}
