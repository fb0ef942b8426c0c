/* Every fast variant of a kernel against the plain one, on sizes around the limits of strips, lanes and parts, with and
   without NaN and infinities, under every instruction set. The plain variants themselves are held against PyTorch by the
   conformance vectors. */
#include "isa.h"
#include "npu_test.h"
#include <float.h>

enum { MAX_INPUTS = 5 };
static uint32_t isa; /* number of the instruction set, as isa_cpu counts */
#define COUNT(a) (sizeof a / sizeof a[0])

/* '@' is the dtype under test; x is the operand that gets NaN and infinities. */
typedef struct row {
    const char *inputs, *op;
    uint32_t num_outputs; /* named y, z, w */
} row;

#define X(dims) "input x : @" dims "\n"
#define PARAMS(n) "input a : @[" n "]\ninput b : @[" n "]\n"

static const row softmax_rows[] = {
    { X("[40,2500]"), "y = aten.softmax.int(x, 1)", 1 },
    { X("[300,1024]"), "y = aten.softmax.int(x, -1)", 1 },
    { X("[40,1000]"), "y = aten._safe_softmax.default(x, 1)", 1 },
    { X("[9,7,30]"), "y = aten._safe_softmax.default(x, 1)", 1 },
    { X("[9,30]"), "f = aten.full_like.default(x, -inf)\ny = aten._safe_softmax.default(f, 1)", 1 },
    { X("[9,7,30]"), "f = aten.full_like.default(x, -inf)\ny = aten._safe_softmax.default(f, 1)", 1 },
    { X("[7,31]"), "y = aten.softmax.int(x, 1)", 1 },
    { X("[400,5]"), "y = aten.softmax.int(x, 1)", 1 },
    { X("[90,49]"), "y = aten.softmax.int(x, 1)", 1 },
    { X("[9,256]"), "y = aten.softmax.int(x, 1)", 1 },
    { X("[90,700]"), "y = aten.softmax.int(x, 0)", 1 },
    { X("[6,50,257]"), "y = aten.softmax.int(x, 1)", 1 },
    { X("[5,40,3]"), "y = aten.softmax.int(x, 1)", 1 },
    { X("[3,1,2]"), "y = aten.softmax.int(x, 1)", 1 },
    { X("[40,2500]"), "y = aten.log_softmax.int(x, 1)", 1 },
    { X("[6,50,257]"), "y = aten.log_softmax.int(x, 1)", 1 },
    { X("[]"), "y = aten.log_softmax.int(x, 0)", 1 },
    { X("[33,1000]"), "y = aicf.softmax(x)", 1 }
};

static const row reduction_rows[] = {
    { X("[40,3000]"), "y = aten.sum.dim_IntList(x, [1])", 1 },
    { X("[3000,300]"), "y = aten.sum.dim_IntList(x, [0])", 1 },
    { X("[6,70,5,90]"), "y = aten.sum.dim_IntList(x, [1, 3])", 1 },
    { X("[6,70,5,90]"), "y = aten.sum.dim_IntList(x, [0, 2], true)", 1 },
    { X("[2,3,4,5]"), "y = aten.sum.dim_IntList(x, none)", 1 },
    { X("[150000]"), "y = aten.sum.default(x)", 1 },
    { X("[700,65]"), "y = aicf.reduce_sum(x, axis=0)", 1 },
    { X("[2,512,7,7]"), "y = aten.mean.dim(x, [2, 3])", 1 },
    { X("[20,1025]"), "y = aten.mean.dim(x, [-1])", 1 },
    { X("[33,35]"), "y = aten.mean.default(x)", 1 },
    { X("[5000,3]"), "y = aten.sum.dim_IntList(x, [0])", 1 },
    { X("[300,33]"), "y = aten.sum.dim_IntList(x, [1])", 1 },
    { X("[20,30,100]"), "y = aten.mean.dim(x, [0, 2])", 1 },
    { X("[0,5]"), "y = aten.mean.dim(x, [0])", 1 },
    { X("[0,5]"), "y = aten.sum.dim_IntList(x, [0])", 1 },
    { X("[4,7,300]"), "y = aten.amax.default(x, [1])", 1 },
    { X("[40,3000]"), "y = aten.amax.default(x, [1])", 1 },
    { X("[40,3000]"), "y = aten.amin.default(x, [0])", 1 },
    { X("[40,30,11]"), "y = aten.amin.default(x, [0, 2])", 1 },
    { X("[45001]"), "y = aten.max.default(x)", 1 },
    { X("[300,49]"), "y = aten.amax.default(x, [1])", 1 },
    { X("[300,20]"), "y = aten.amin.default(x, [1])", 1 },
    { X("[2001,4]"), "y = aten.amax.default(x, [0])", 1 },
    { X("[30,1500]"), "y, z = aten.max.dim(x, 1)", 2 },
    { X("[600,300]"), "y, z = aten.max.dim(x, 0)", 2 },
    { X("[5,60,7]"), "y, z = aten.max.dim(x, 1, true)", 2 },
    { X("[30,70]"), "y = aten.argmax.default(x, 1)", 1 },
    { X("[6,70,600]"), "y = aten.argmax.default(x, 1)", 1 },
    { X("[30,70]"), "y = aten.argmax.default(x)", 1 },
    { X("[30,1500]"), "y, z = aten.min.dim(x, 1)", 2 },
    { X("[600,300]"), "y, z = aten.min.dim(x, 0)", 2 },
    { X("[60,700]"), "y = aten.argmin.default(x, 0)", 1 },
    { X("[30,70]"), "y, z = aten.aminmax.default(x)", 2 },
    { X("[3,5,700]"), "y = aten.prod.dim_int(x, 1)", 1 },
    { X("[700,9]"), "y = aten.prod.dim_int(x, 1)", 1 },
    { X("[500,33]"), "y = aten.prod.dim_int(x, 1)", 1 },
    { X("[60,7]"), "y = aten.prod.dim_int(x, 0)", 1 },
    { X("[300,1500]"), "y = aten.any.dim(x, 1)", 1 },
    { X("[300,1500]"), "y = aten.all.dim(x, 0)", 1 },
    { X("[300,700]"), "y = aten.count_nonzero.dim_IntList(x, [0])", 1 },
    { X("[45001]"), "y = aten.count_nonzero.default(x)", 1 },
    { X("[40,3000]"), "y = aten.nansum.default(x, [1])", 1 },
    { X("[3000,300]"), "y = aten.nanmean.default(x, [0])", 1 },
    { X("[40,3000]"), "y = aten.logsumexp.default(x, [1])", 1 },
    { X("[6,70,5,90]"), "y = aten.logsumexp.default(x, [0, 2])", 1 },
    { X("[40,3000]"), "y = aten.var.dim(x, [1])", 1 },
    { X("[300,700]"), "y = aten.std.dim(x, [0])", 1 },
    { X("[2,3,1,5]"), "y = aten.var.correction(x, [1], correction=3)", 1 },
    { X("[50,700]"), "y, z = aten.var_mean.dim(x, [1])", 2 },
    { X("[50,700]"), "y = aten.linalg_vector_norm.default(x, 2, [1])", 1 },
    { X("[500,70]"), "y = aten.linalg_vector_norm.default(x, 1, [0])", 1 },
    { X("[500,70]"), "y = aten.linalg_vector_norm.default(x, 0, [0])", 1 },
    { X("[33,35]"), "y = aten.norm.Scalar(x)", 1 }
};

/* Reductions that doubles and integers have a variant of. */
static const row wide_rows[] = {
    { X("[40,3000]"), "y = aten.sum.dim_IntList(x, [1])", 1 },
    { X("[300,1025]"), "y = aten.sum.dim_IntList(x, [0])", 1 },
    { X("[6,70,5,90]"), "y = aten.sum.dim_IntList(x, [1, 3])", 1 },
    { X("[6,70,5,90]"), "y = aten.sum.dim_IntList(x, [0, 2], true)", 1 },
    { X("[15001]"), "y = aten.sum.default(x)", 1 },
    { X("[]"), "y = aten.sum.default(x)", 1 },
    { X("[0,5]"), "y = aten.sum.dim_IntList(x, [0])", 1 },
    { X("[30,3]"), "y = aten.sum.dim_IntList(x, [1])", 1 },
    { X("[50,700]"), "y = aten.sum.dim_IntList(x, [0], dtype=f64)", 1 },
    { X("[50,700]"), "y = aten.mean.dim(x, [1], dtype=f64)", 1 },
    { X("[4,7,300]"), "y = aten.amax.default(x, [1])", 1 },
    { X("[40,3000]"), "y = aten.amax.default(x, [1])", 1 },
    { X("[40,3000]"), "y = aten.amin.default(x, [0])", 1 },
    { X("[40,30,11]"), "y = aten.amin.default(x, [0, 2])", 1 },
    { X("[15001]"), "y = aten.max.default(x)", 1 },
    { X("[65]"), "y = aten.min.default(x)", 1 },
    { X("[2001,4]"), "y = aten.sum.dim_IntList(x, [0])", 1 },
    { X("[2001,3]"), "y = aten.amin.default(x, [0])", 1 },
    { X("[7,9,5]"), "y = aten.amax.default(x, [1])", 1 },
    { X("[300,49]"), "y = aten.amax.default(x, [1])", 1 },
    { X("[30,70]"), "y, z = aten.aminmax.default(x)", 2 },
    { X("[3,5,700]"), "y = aten.prod.dim_int(x, 1)", 1 },
    { X("[700,9]"), "y = aten.prod.dim_int(x, 1)", 1 }
};

static const row scan_rows[] = {
    { X("[7,300]"), "y = aten.cumsum.default(x, 1)", 1 },
    { X("[1030]"), "y = aten.cumsum.default(x, 0)", 1 },
    { X("[1000,2]"), "y = aten.cumsum.default(x, 0)", 1 },
    { X("[5,130,7]"), "y = aten.cumsum.default(x, 1)", 1 },
    { X("[5,40,16]"), "y = aten.cumsum.default(x, -2)", 1 },
    { X("[3,20,700]"), "y = aten.cumsum.default(x, 1)", 1 },
    { X("[200,9]"), "y = aten.cumsum.default(x, 1, dtype=f64)", 1 },
    { X("[6,1,3]"), "y = aten.cumsum.default(x, 1)", 1 },
    { X("[]"), "y = aten.cumsum.default(x, 0)", 1 },
    { X("[4,0]"), "y = aten.cumsum.default(x, 1)", 1 },
    { X("[4,0]"), "y = aten.cumsum.default(x, 0)", 1 },
    { X("[90,31]"), "y = aten.cumprod.default(x, 1)", 1 },
    { X("[31,300]"), "y = aten.cumprod.default(x, 0)", 1 },
    { X("[30,3]"), "y = aten.cumprod.default(x, 0)", 1 },
    { X("[7,1300]"), "y, z = aten.cummax.default(x, 1)", 2 },
    { X("[5,60,7]"), "y, z = aten.cummax.default(x, 1)", 2 },
    { X("[90,300]"), "y, z = aten.cummax.default(x, 0)", 2 },
    { X("[7,1300]"), "y, z = aten.cummin.default(x, 1)", 2 },
    { X("[5,60,70]"), "y, z = aten.cummin.default(x, 1)", 2 },
    { X("[]"), "y, z = aten.cummin.default(x, 0)", 2 }
};

static const row norm_rows[] = {
    { X("[30,1500]") PARAMS("1500"), "y = aten.layer_norm.default(x, [1500], a, b)", 1 },
    { X("[30,768]") PARAMS("768"), "y = aten.layer_norm.default(x, [768], a)", 1 },
    { X("[50,5,7]"), "y = aten.layer_norm.default(x, [5, 7], eps=0.1)", 1 },
    { X("[30,257]") PARAMS("257"), "y, z, w = aten.native_layer_norm.default(x, [257], none, b, 1e-05)", 3 },
    { X("[3,40,30,30]") PARAMS("40") "input m : @[40]\ninput v : @[40]\n",
      "y = aten.batch_norm.default(x, a, b, m, v, false, 0.1, 10.0, true)", 1 },
    { X("[50,300]") "input m : @[300]\ninput v : @[300]\n",
      "y = aten.batch_norm.default(x, none, none, m, v, false, 0.1, 10.0, true)", 1 },
    { X("[9,300,1]") PARAMS("300") "input m : @[300]\ninput v : @[300]\n",
      "y = aten.batch_norm.default(x, a, b, m, v, false, 0.1, 10.0, true)", 1 },
    { X("[50,70]") PARAMS("70"), "y, z, w = aten.native_batch_norm.default(x, a, b, none, none, true, 0.1, 1e-05)", 3 },
    { X("[5,12,33]") PARAMS("12"), "y = aten.batch_norm.default(x, a, b, none, none, true, 0.1, 1e-05, true)", 1 },
    { X("[0]") PARAMS("0") "input m : @[0]\ninput v : @[0]\n", /* no channels either */
      "y = aten.batch_norm.default(x, a, b, m, v, false, 0.1, 1e-05, true)", 1 },
    { X("[2,12,40,50]") PARAMS("12"), "y = aten.group_norm.default(x, 3, a, b)", 1 },
    { X("[9,6,11]"), "y = aten.group_norm.default(x, 6)", 1 },
    { X("[40,600]") PARAMS("600"), "y, z, w = aicf.layernorm_fwd(x, a, b)", 3 },
    { X("[4,6,9,10]") PARAMS("6"), "y, z, w = aicf.batchnorm_fwd(x, a, b)", 3 },
    { X("[70,300]") "input g : @[70,300]\n" PARAMS("300"),
      "u, m, r = aten.native_layer_norm.default(x, [300], none, none, 1e-05)\n"
      "y, z, w = aten.native_layer_norm_backward.default(g, x, [300], m, r, a, b, [true, true, true])", 3 },
    { X("[9,5,7]") "input g : @[9,5,7]\n",
      "u, m, r = aten.native_layer_norm.default(x, [5, 7], none, none, 1e-05)\n"
      "y, z, w = aten.native_layer_norm_backward.default(g, x, [5, 7], m, r, none, none, [true, false, false])", 1 },
    { X("[3,6,17,19]") "input g : @[3,6,17,19]\ninput a : @[6]\n",
      "u, m, r = aten.native_group_norm.default(x, none, none, 3, 6, 323, 2, 1e-05)\n"
      "y, z, w = aten.native_group_norm_backward.default(g, x, m, r, a, 3, 6, 323, 2, [true, true, true])", 3 },
    { X("[2,4,33]") "input g : @[2,4,33]\n",
      "u, m, r = aten.native_group_norm.default(x, none, none, 2, 4, 33, 4, 1e-05)\n"
      "y, z, w = aten.native_group_norm_backward.default(g, x, m, r, none, 2, 4, 33, 4, [true, true, true])", 3 }
};

#define XA(x, a) X(x) "input a : @" a "\n"

/* Strips and what is left of them; operands that are repeated along dims, or are not there. */
static const row loss_rows[] = {
    { XA("[33,70]", "[33,70]"), "y = aten.mse_loss.default(x, a)", 1 },
    { XA("[5,3,70]", "[3,1]"), "y = aten.mse_loss.default(x, a, 0)", 1 },
    { XA("[1,3000]", "[7,1]"), "y = aten.l1_loss.default(x, a, 0)", 1 },
    { XA("[33,71]", "[33,71]"), "y = aten.l1_loss.default(x, a, 2)", 1 },
    { XA("[]", "[]"), "y = aten.l1_loss.default(x, a)", 1 }, { XA("[0,3]", "[3]"), "y = aten.mse_loss.default(x, a, 2)", 1 },
    { XA("[2000]", "[2000]"), "y = aten.smooth_l1_loss.default(x, a, 0, 0.7)", 1 },
    { XA("[300]", "[300]"), "y = aten.smooth_l1_loss.default(x, a, 0, 0.0)", 1 },
    { XA("[2000]", "[2000]"), "y = aten.huber_loss.default(x, a, 1, 1.5)", 1 },
    { XA("[2000]", "[2000]"), "t = aten.relu.default(a)\ny = aten.kl_div.default(x, t, 0)", 1 },
    { XA("[2000]", "[2000]"), "y = aten.kl_div.default(a, x, 0)", 1 },
    { XA("[40,50]", "[40,50]"), "y = aten.kl_div.default(x, a, 2, log_target=true)", 1 },
    { XA("[40,50]", "[40,50]") "input b : @[50]\n",
      "t = aten.sigmoid.default(a)\ny = aten.binary_cross_entropy.default(t, x, b, 0)", 1 },
    { XA("[40,50]", "[40,50]"), "t = aten.hardsigmoid.default(a)\ny = aten.binary_cross_entropy.default(t, x)", 1 },
    { XA("[40,50]", "[40,50]") "input b : @[40,1]\ninput c : @[50]\n",
      "y = aten.binary_cross_entropy_with_logits.default(x, a, b, c, 0)", 1 },
    { XA("[40,50]", "[40,50]"), "y = aten.binary_cross_entropy_with_logits.default(x, a, none, none, 2)", 1 },
    { XA("[2000]", "[2000]"), "y = aten.soft_margin_loss.default(x, a, 0)", 1 },
    { XA("[2000]", "[2000]"), "y = aten.poisson_nll_loss.default(x, a, true, true, 1e-08, 0)", 1 },
    { XA("[2000]", "[2000]"), "y = aten.poisson_nll_loss.default(x, a, false, false, 0.1, 0)", 1 },
    { XA("[2000]", "[2000]"), "t = aten.sign.default(a)\ny = aten.hinge_embedding_loss.default(x, t, 1.5, 0)", 1 },
    { XA("[2000]", "[2000]") "input b : @[2000]\n", "y = aten.margin_ranking_loss.default(x, a, b, 0.5, 0)", 1 },
    { XA("[40,300]", "[40,300]"), "t = aten.argmax.default(a, 1)\ny = aten.cross_entropy_loss.default(x, t, none, 0)", 1 },
    { XA("[7,2500]", "[7,2500]"), "t = aten.argmax.default(a, 1)\ny = aten.cross_entropy_loss.default(x, t)", 1 },
    { XA("[3,7,300]", "[3,7,300]") "input b : @[7]\n",
      "t = aten.argmax.default(a, 1)\ny = aten.cross_entropy_loss.default(x, t, b, 0, 3)", 1 },
    { XA("[2,5,9,40]", "[2,5,9,40]"),
      "t = aten.argmax.default(a, 1)\ny = aten.cross_entropy_loss.default(x, t, none, 1, -100, 0.1)", 1 },
    { XA("[30,9]", "[30,9]"), "y = aten.cross_entropy_loss.default(x, a, none, 0)", 1 },
    { XA("[33,70]", "[33,70]"), "y = aten.cosine_similarity.default(x, a)", 1 },
    { XA("[33,1,70]", "[9,70]"), "y = aten.cosine_similarity.default(x, a, -1)", 1 },
    { XA("[9,1,70]", "[1,33,70]"), "y = aten.cosine_similarity.default(x, a, 2)", 1 },
    { XA("[33,70]", "[33,1]"), "y = aten.cosine_similarity.default(x, a)", 1 },
    { XA("[3,70]", "[3,70]"), "z = aten.zeros_like.default(a)\ny = aten.cosine_similarity.default(x, z)", 1 },
    { XA("[33,70]", "[33,70]"), "y = aten.pairwise_distance.default(x, a)", 1 },
    { XA("[33,70]", "[70]"), "y = aten.pairwise_distance.default(x, a, 1.0, 1e-06, true)", 1 },
    { XA("[33,70]", "[1]"), "y = aten.dist.default(x, a, 3)", 1 }, { XA("[]", "[]"), "y = aten.dist.default(x, a)", 1 },
    { XA("[33,70]", "[33,70]") "input b : @[33,70]\n", "y = aten.triplet_margin_loss.default(x, a, b)", 1 },
    { XA("[33,70]", "[33,70]") "input b : @[33,70]\n",
      "y = aten.triplet_margin_loss.default(x, a, b, 2.0, 1.0, 1e-06, true, 0)", 1 },
    { XA("[33,70]", "[33,70]") "input b : @[33,70]\n",
      "y = aten.triplet_margin_loss.default(x, a, b, 0.5, 3.0, 1e-06, false, 0)", 1 }
};

/* Transposed ones by phases of the stride, of which some have no output; two that read one weight by other strides. */
#define NUMBERS_8 "1.0, -2.0, 0.5, 3.0, -1.5, 2.5, 0.25, -0.75"
static const row conv_rows[] = {
    { X("[5,1,1,1]") "const w : @[1,2,1,1] {2.0, 3.0}\n", "y = aten.conv_transpose2d.input(x, w, none, [5, 4])", 1 },
    { X("[3,2,1,4]") "const w : @[2,1,1,2] {2.0, 3.0, -1.0, 0.5}\n",
      "y = aten.conv_transpose2d.input(x, w, none, [4, 3])", 1 },
    { X("[2,1,2,1,2]") "const w : @[1,1,1,2,1] {2.0, 3.0}\n", "y = aten.conv_transpose3d.input(x, w, none, [3, 5, 2])", 1 },
    { X("[4,1,3]") "const w : @[1,3,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}\n",
      "y = aten.conv_transpose1d.default(x, w, none, [7])", 1 },
    { X("[1,2,3]") "const w : @[2,4,4] {" NUMBERS_8 ", " NUMBERS_8 ", 1.25, " NUMBERS_8 ", -0.5, 4.0, 0.125, 2.0, -3.0, 0.625, 1.75}\n",
      "y = aten.conv_transpose1d.default(x, w, none, [2])\nz = aten.conv_transpose1d.default(x, w, none, [3])", 2 }
};
#undef NUMBERS_8

static const row pool_rows[] = {
    { X("[2,20,60,70]"), "y = aten.max_pool2d.default(x, [3, 3], [2, 2], [1, 1])", 1 },
    { X("[20,33,301]"), "y = aten.max_pool2d.default(x, [2, 2])", 1 },
    { X("[3,20,21]"), "y = aten.max_pool2d.default(x, [3, 4], [1, 3], [1, 2], [2, 1], true)", 1 },
    { X("[3,20,21]"), "y = aten.max_pool2d.default(x, [5, 1], [3, 1], [2, 0], [1, 1], true)", 1 },
    { X("[2,2,3,1100]"), "y = aten.max_pool2d.default(x, [2, 3])", 1 },
    { X("[2,20,60,70]"), "y = aten.avg_pool2d.default(x, [3, 3], [1, 1], [1, 1])", 1 },
    { X("[20,33,30]"), "y = aten.avg_pool2d.default(x, [3, 2], [2, 2], [1, 1], true, false)", 1 },
    { X("[33,14,14]"), "y = aten.max_pool2d.default(x, [3, 3], [1, 1], [1, 1])", 1 },
    { X("[9,7,5]"), "y = aten.max_pool2d.default(x, [7, 5], [1, 1], [3, 2])", 1 },
    { X("[2,3,20,21]"), "y = aten.max_pool2d.default(x, [5, 1], [1, 1], [2, 0])", 1 },
    { X("[9,7,6]"), "y = aten.avg_pool2d.default(x, [3, 5], [1, 1], [1, 2], false, false)", 1 },
    { X("[9,7,6]"), "y = aten.avg_pool2d.default(x, [3, 3], [1, 1], [1, 1], divisor_override=5)", 1 },
    { X("[3,20,43]"), "y = aten.max_pool2d.default(x, [5, 5], [1, 1], [2, 2])", 1 },
    { X("[5,9,1]"), "y = aten.max_pool2d.default(x, [4, 3], [1, 1], [2, 1])", 1 },
    { X("[3,13,28]"), "y = aten.max_pool2d.default(x, [3, 3], [2, 1], [0, 0])", 1 },
    { X("[3,13,65]"), "y = aten.max_pool2d.default(x, [6, 2], [1, 2], [3, 1], [1, 1], true)", 1 },
    { X("[3,8,28]"), "y = aten.max_pool2d.default(x, [3, 3], [2, 2], [0, 0], [1, 1], true)", 1 },
    { X("[3,13,66]"), "y = aten.avg_pool2d.default(x, [3, 3], [2, 2], [1, 1], true, true)", 1 },
    { X("[3,12,35]"), "y = aten.avg_pool2d.default(x, [3, 3], [1, 1], [1, 1], true, false)", 1 },
    { X("[3,11,31]"), "y = aten.avg_pool2d.default(x, [2, 3], [2, 2], [0, 1], true, true, 7)", 1 },
    { X("[3,2,1500]"), "y = aten.max_pool1d.default(x, [3], [2], [1])", 1 },
    { X("[3,4,5,1500]"), "y = aten.avg_pool3d.default(x, [3, 3, 3], [1, 1, 1], [1, 1, 1])", 1 },
    { X("[20,33,30]"), "y = aten.avg_pool2d.default(x, [3, 2], [2, 2], [1, 1], true, true)", 1 },
    { X("[20,9,30]"), "y = aten.avg_pool2d.default(x, [2, 2], divisor_override=3)", 1 },
    { X("[2,7,20,37]"), "y, z = aten.max_pool2d_with_indices.default(x, [3, 3], [2, 2], [1, 1])", 2 },
    { X("[7,20,37]"), "y, z = aten.max_pool2d_with_indices.default(x, [5, 5], [1, 1], [2, 2])", 2 },
    { X("[3,20,21]"), "y, z = aten.max_pool2d_with_indices.default(x, [3, 4], [1, 3], [1, 2], [2, 1], true)", 2 },
    { X("[3,2,1500]"), "y, z = aten.max_pool1d_with_indices.default(x, [3], [2], [1])", 2 },
    { X("[2,3,4,9,15]"), "y, z = aten.max_pool3d_with_indices.default(x, [3, 3, 3], [2, 2, 2], [1, 1, 1])", 2 },
    { X("[2,3,20,37]"), "y, z = aten.adaptive_max_pool2d.default(x, [6, 38])", 2 },
    { X("[3,20,37]"), "y, z = aten.adaptive_max_pool2d.default(x, [20, 5])", 2 },
    { X("[2,3,30,37]"), "y, z = aten.adaptive_max_pool2d.default(x, [3, 2])", 2 },
    { X("[3,20,137]"), "y, z = aten.max_pool2d_with_indices.default(x, [3, 12], [2, 7], [1, 5], [1, 3], true)", 2 },
    { X("[2,300,7,7]"), "y = aten.adaptive_avg_pool2d.default(x, [1, 1])", 1 },
    { X("[5,13,40]"), "y = aten.adaptive_avg_pool2d.default(x, [7, 9])", 1 },
    { X("[5,3,4]"), "y = aten.adaptive_avg_pool2d.default(x, [5, 6])", 1 }
};

static const row resize_rows[] = {
    { X("[2,3,20,21]"), "y = aten.upsample_nearest2d.default(x, [40, 42])", 1 },
    { X("[2,3,20,21]"), "y = aten.upsample_nearest2d.default(x, [33, 50])", 1 },
    { X("[2,3,20,21]"), "y = aten._upsample_nearest_exact2d.vec(x, [41, 10])", 1 },
    { X("[3,4,33]"), "y = aten.upsample_nearest1d.default(x, [66])", 1 },
    { X("[2,3,5,6,7]"), "y = aten.upsample_nearest3d.default(x, [10, 6, 20])", 1 },
    { X("[2,3,20,21]"), "y = aten.upsample_bilinear2d.default(x, [40, 42], false)", 1 },
    { X("[2,3,20,21]"), "y = aten.upsample_bilinear2d.default(x, [47, 61], true)", 1 },
    { X("[2,3,60,61]"), "y = aten.upsample_bilinear2d.default(x, [20, 61], false)", 1 },
    { X("[2,3,1,21]"), "y = aten.upsample_bilinear2d.default(x, [9, 1], true)", 1 },
    { X("[2,3,20,21]"), "y = aten.upsample_bilinear2d.default(x, [50, 50], false, 2.4, 2.1)", 1 },
    { X("[5,3,70]"), "y = aten.upsample_linear1d.default(x, [133], false)", 1 },
    { X("[2,3,5,6,9]"), "y = aten.upsample_trilinear3d.default(x, [10, 6, 20], false)", 1 },
    { X("[1,2,7,6,9]"), "y = aten.upsample_trilinear3d.default(x, [3, 13, 40], true)", 1 },
    { X("[2,3,20,21]"), "y = aten.upsample_bicubic2d.default(x, [33, 50], false)", 1 },
    { X("[2,3,20,21]"), "y = aten.upsample_bicubic2d.default(x, [9, 64], true)", 1 },
    { X("[1,1,3,2000]"), "y = aten.upsample_bicubic2d.default(x, [7, 3001], false)", 1 },
    { X("[2,5,9,8]") "input g : @[2,7,11,2]\n", "y = aten.grid_sampler_2d.default(x, g, 0, 0, false)", 1 },
    { X("[1,3,9,8]") "input g : @[1,13,13,2]\n", "y = aten.grid_sampler_2d.default(x, g, 2, 1, true)", 1 },
    { X("[1,3,9,8]") "input g : @[1,13,13,2]\n", "y = aten.grid_sampler_2d.default(x, g, 1, 2, false)", 1 },
    { X("[2,3,4,9,8]") "input g : @[2,5,6,7,3]\n", "y = aten.grid_sampler_3d.default(x, g, 0, 0, true)", 1 },
    { X("[2,3,4,7]") "input g : @[2,0,3,2]\n", "y = aten.grid_sampler_2d.default(x, g, 0, 0, true)", 1 }
};

#define QKV(q, kv, v) "input x : @" q "\ninput k : @" kv "\ninput v : @" v "\n"

#define EINSUM(x, a, equation) \
    { X(x) "input a : @" a "\n", "y = aten.einsum.default('" equation "', [x, a])", 1 }

#define CONV_SIDES(x, g, a) X(x) "input a : @" a "\ninput g : @" g "\n"
#define CONV_BACK(x, g, a, rest) \
    { CONV_SIDES(x, g, a), "y, z, w = aten.convolution_backward.default(g, x, a, " rest ")", 3 }

/* Sums of products, around the sides of the tiles of every set. */
static const row product_rows[] = {
    { X("[33,70]") "input a : @[70,37]\n", "y = aten.mm.default(x, a)", 1 },
    { X("[5,300]") "input a : @[300,65]\n", "y = aten.mm.default(x, a)", 1 },
    { X("[1,70]") "input a : @[70,37]\n", "y = aten.mm.default(x, a)", 1 },
    { X("[1,90]") "input a : @[90,4301]\n", "y = aten.mm.default(x, a)", 1 },
    { X("[1,2070]") "input a : @[19,2070]\n", "y = aten.linear.default(x, a)", 1 },
    { X("[37,70]") "input a : @[70]\n", "y = aten.mv.default(x, a)", 1 },
    { X("[70,33]") "input a : @[37,70]\n",
      "t = aten.t.default(x)\nu = aten.t.default(a)\ny = aten.mm.default(t, u)", 1 },
    { X("[3,17,20]") "input a : @[3,20,19]\n", "y = aten.bmm.default(x, a)", 1 },
    /* Contractions: rows, columns, batches, sums each of one, several or no axes, in any order, along a diagonal. */
    EINSUM("[3,5,17,20]", "[3,5,21,20]", "bhid,bhjd->bhij"), EINSUM("[3,17,5,20]", "[3,21,5,20]", "bihd,bjhd->bhij"),
    EINSUM("[3,4,40]", "[3,4,50]", "bci,bcj->bij"), EINSUM("[3,4,40]", "[3,4,50]", "bci,bcj->bji"),
    EINSUM("[9,33]", "[33,4,10]", "bd,dhk->bhk"), EINSUM("[5,4,33]", "[4,3,33]", "abk,bck->acb"),
    EINSUM("[5,6,7,3]", "[7,4,5]", "akcb,cda->dbk"), EINSUM("[9,9,8]", "[8,9]", "iik,ki->i"),
    EINSUM("[30]", "[20]", "i,j->ij"), EINSUM("[30]", "[30]", "i,i->"), EINSUM("[7,30]", "[7,30]", "...i,...i"),
    EINSUM("[5,1,6,20]", "[3,20,9]", "...ij,...jk->...ik"), EINSUM("[4,7]", "[5,6]", "ab,cd->ca"),
    EINSUM("[4,0,3]", "[5,0]", "aib,ci->cab"), EINSUM("[4,5,0]", "[4,5,0]", "abc,abc->"),
    EINSUM("[0,5]", "[5,3]", "ab,bc->ac"),
    { X("[3,37,50]") "input a : @[1,33,50]\n", "y = aten._cdist_forward.default(x, a, 2.0, none)", 1 },
    { X("[7,5]") "input a : @[2,70,5]\n", "y = aten.cdist.default(x, a, 1.0)", 1 },
    { X("[7,5]") "input a : @[9,5]\n", "y = aten.cdist.default(x, a, 3.0)", 1 },
    { X("[7,0]") "input a : @[9,0]\n", "y = aten.cdist.default(x, a)", 1 },
    { X("[4,5,6,7]") "input a : @[6,5,3]\n", "y = aten.tensordot.default(x, a, [1, 2], [1, 0])", 1 },
    { X("[4,5,6]") "input a : @[3,6]\n", "y = aten.inner.default(x, a)", 1 },
    { X("[9,48]") "input a : @[35,48]\ninput b : @[35]\n", "y = aten.linear.default(x, a, b)", 1 },
    { X("[5,300]") "input a : @[11,300]\n", "y = aten.linear.default(x, a)", 1 },
    { X("[35]") "input a : @[9,20]\ninput b : @[20,35]\n", "y = aten.addmm.default(x, a, b, beta=0.5, alpha=2.0)", 1 },
    { X("[2,5,13,17]") "input a : @[9,5,3,3]\ninput b : @[9]\n",
      "y = aten.conv2d.default(x, a, b, [1, 1], [1, 1])", 1 },
    { X("[2,6,13,17]") "input a : @[4,3,3,2]\n",
      "y = aten.conv2d.default(x, a, none, [2, 1], [0, 1], [1, 2], 2)", 1 },
    { X("[1,16,9,9]") "input a : @[20,16,1,1]\n", "y = aten.conv2d.default(x, a)", 1 },
    { X("[2,7,11,12]") "input a : @[7,1,3,3]\n", "y = aten.conv2d.default(x, a, none, [1, 1], [1, 1], [1, 1], 7)", 1 },
    { X("[0,5,6,7]") "input a : @[4,5,3,3]\n", "y = aten.conv2d.default(x, a)", 1 },
    /* Their gradients; a border of zeros beside a gradient that is not finite would be NaN. */
    CONV_BACK("[3,4,9,11]", "[3,6,9,11]", "[6,4,3,3]", "[6], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, true, true]"),
    CONV_BACK("[2,6,9,12]", "[2,4,5,4]", "[4,3,3,2]", "[4], [2, 3], [2, 0], [2, 1], false, [0, 0], 2, [true, true, true]"),
    CONV_BACK("[2,5,8,9]", "[2,5,6,7]", "[5,1,3,3]", "[5], [1, 1], [0, 0], [1, 1], false, [0, 0], 5, [true, true, true]"),
    CONV_BACK("[2,4,5,6]", "[2,6,11,13]", "[4,6,3,3]", "[6], [2, 2], [0, 0], [1, 1], true, [0, 0], 1, [true, true, true]"),
    CONV_BACK("[2,4,5,6]", "[2,6,10,13]", "[4,3,2,3]", "[6], [2, 2], [0, 0], [1, 1], true, [0, 0], 2, [true, true, true]"),
    /* Small images of many channels: all in one step, and two by two. */
    CONV_BACK("[3,4,2,2]", "[3,16,2,2]", "[16,4,3,3]", "[16], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, true, true]"),
    CONV_BACK("[4,8,3,3]", "[4,36,3,3]", "[36,4,3,3]", "[36], [1, 1], [1, 1], [1, 1], false, [0, 0], 2, [true, true, true]"),
    CONV_BACK("[4,24,2,2]", "[4,8,5,5]", "[24,4,3,3]", "[8], [2, 2], [0, 0], [1, 1], true, [0, 0], 2, [true, true, true]"),
    { CONV_SIDES("[2,3,7,7]", "[2,4,3,3]", "[4,3,3,3]"), "z, y, w = aten.convolution_backward.default(g, x, a, [4], "
      "[2, 2], [0, 0], [1, 1], false, [0, 0], 1, [false, true, false])", 1 },
    { CONV_SIDES("[2,3,7,7]", "[2,4,3,3]", "[4,3,3,3]"), "z, w, y = aten.convolution_backward.default(g, x, a, [4], "
      "[2, 2], [0, 0], [1, 1], false, [0, 0], 1, [false, false, true])", 1 },
    { X("[3,0]") "input a : @[0,4]\n", "y = aten.mm.default(x, a)", 1 },
    /* By those of faster ops, and what these do not say. */
    { X("[70]") "input a : @[300]\n", "y = aten.outer.default(x, a)", 1 },
    { X("[0]") "input a : @[3]\n", "y = aten.outer.default(x, a)", 1 },
    { X("[5,7]") "input a : @[3,40]\n", "y = aten.kron.default(x, a)", 1 },
    { X("[5,7,2]") "input a : @[40]\n", "y = aten.kron.default(x, a)", 1 },
    { X("[33,70]") "input a : @[33]\ninput b : @[70]\n", "y = aten.addr.default(x, a, b, alpha=0.5)", 1 },
    { X("[70]") "input a : @[33]\ninput b : @[70]\n", "y = aten.addr.default(x, a, b, beta=0, alpha=0.5)", 1 },
    { X("[70]") "input a : @[5,33,9]\ninput b : @[5,9,70]\n",
      "y = aten.addbmm.default(x, a, b, alpha=2)", 1 },
    { X("[33,70]") "input a : @[33,70]\n", "y = aten.linalg_vecdot.default(x, a, dim=0)", 1 },
    { X("[5,1,70]") "input a : @[33,70]\n", "y = aten.linalg_vecdot.default(x, a)", 1 },
    { X("[33,17]") "input a : @[33,9]\ninput b : @[5,17,9]\n", "y = aten.bilinear.default(x, a, b)", 1 },
    { X("[2,33,17]") "input a : @[2,33,9]\ninput b : @[5,17,9]\ninput c : @[5]\n",
      "y = aten.bilinear.default(x, a, b, c)", 1 },
    { X("[33,70]"), "y = aten.cov.default(x, correction=2)", 1 }, { X("[70]"), "y = aten.cov.default(x)", 1 },
    { X("[3,2]"), "y = aten.cov.default(x, correction=2)", 1 }, { X("[33,70]"), "y = aten.corrcoef.default(x)", 1 },
    { X("[3,1]"), "y = aten.cov.default(x)", 1 }, { X("[1,70]"), "y = aten.corrcoef.default(x)", 1 },
    { X("[33,70]") "input g : @[33,70]\n", "y = aten._softmax_backward_data.default(g, x, 1, @)", 1 },
    { X("[33,70]") "input g : @[33,70]\n", "y = aten._log_softmax_backward_data.default(g, x, 0, @)", 1 },
    { X("[2,5,6,7]") "input a : @[5,4,3,3]\n", "y = aten.conv_transpose2d.input(x, a, none, [2, 2])", 1 },
    { QKV("[2,3,9,8]", "[2,3,21,8]", "[2,3,21,5]"), "y = aten.scaled_dot_product_attention.default(x, k, v)", 1 },
    { QKV("[2,3,21,8]", "[2,3,21,8]", "[2,3,21,8]"),
      "y = aten.scaled_dot_product_attention.default(x, k, v, none, 0.0, true)", 1 },
    { QKV("[2,3,9,8]", "[2,3,21,8]", "[2,3,21,8]") "input m : @[9,21]\n",
      "y = aten.scaled_dot_product_attention.default(x, k, v, m)", 1 },
    { QKV("[1,2,70,16]", "[1,2,150,16]", "[1,2,150,16]") "input m : @[70,150]\n",
      "c = aten.gt.Scalar(m, -3.0)\ny = aten.scaled_dot_product_attention.default(x, k, v, c, scale=0.25)", 1 }
};

/* Products of integers, whose columns are at least a strip's and fewer, and sums over more than one block. */
static const row whole_rows[] = {
    { X("[33,70]") "input a : @[70,137]\n", "y = aten.mm.default(x, a)", 1 },
    { X("[1,70]") "input a : @[70,64]\n", "y = aten.mm.default(x, a)", 1 },
    { X("[9,3]") "input a : @[3,7]\n", "y = aten.mm.default(x, a)", 1 },
    { X("[9,0]") "input a : @[0,70]\n", "y = aten.mm.default(x, a)", 1 },
    { X("[3,17,20]") "input a : @[3,20,19]\n", "y = aten.bmm.default(x, a)", 1 },
    { X("[5,1,17,20]") "input a : @[3,20,19]\n", "y = aten.matmul.default(x, a)", 1 },
    { X("[70,33]") "input a : @[37,70]\n",
      "t = aten.t.default(x)\nu = aten.t.default(a)\ny = aten.mm.default(t, u)", 1 },
    { X("[9,48]") "input a : @[35,48]\ninput b : @[35]\n", "y = aten.linear.default(x, a, b)", 1 },
    { X("[5,300]") "input a : @[11,300]\n", "y = aten.linear.default(x, a)", 1 },
    { X("[35]") "input a : @[9,20]\ninput b : @[20,35]\n", "y = aten.addmm.default(x, a, b, beta=3, alpha=-2)", 1 },
    { X("[9,1]") "input a : @[9,20]\ninput b : @[20,35]\n", "y = aten.addmm.default(x, a, b, beta=0)", 1 },
    { X("[37,70]") "input a : @[70]\n", "y = aten.mv.default(x, a)", 1 },
    { X("[70]") "input a : @[300]\n", "y = aten.outer.default(x, a)", 1 },
    { X("[5,7]") "input a : @[3,40]\n", "y = aten.kron.default(x, a)", 1 }
};

/* Places among sorted numbers, many and few, NaN among both, and among numbers that are not sorted. */
static const row search_rows[] = {
    { X("[5,70]") "input a : @[80]\n", "s, i = aten.sort.default(a)\ny = aten.searchsorted.Tensor(s, x)", 1 },
    { X("[5000]") "input a : @[5,70]\n",
      "s, i = aten.sort.default(x)\ny = aten.bucketize.Tensor(a, s, out_int32=true, right=true)", 1 },
    { X("[70]") "input a : @[5,70]\n", "s, i = aten.sort.default(x)\ny = aten.bucketize.Tensor(a, s, right=true)", 1 },
    { X("[700]") "input a : @[7]\n", "s, i = aten.sort.default(a)\ny = aten.bucketize.Tensor(s, x)", 1 },
    { X("[700]") "input a : @[0]\n", "y = aten.bucketize.Tensor(x, a)", 1 },
    { X("[700]") "input a : @[70]\n", "y = aten.bucketize.Tensor(x, a)", 1 },
    { X("[7,30]") "input a : @[7,50]\n",
      "s, i = aten.sort.default(a)\ny = aten.searchsorted.Tensor(s, x, right=true)", 1 },
    { X("[700]") "input a : @[300]\n", "s, i = aten.sort.default(x)\ny = aten.searchsorted.Tensor(x, a, sorter=i)", 1 }
};

/* What is stored transposed, by squares of a cache line and what is left at their edges. */
static const row transposed_rows[] = {
    { X("[70,130]"), "t = aten.t.default(x)\ny = aten.cat.default([t, t], 0)", 1 },
    { X("[128,64]"), "t = aten.t.default(x)\ny = aten.cat.default([t, t], 1)", 1 },
    { X("[3,65,66]"), "t = aten.permute.default(x, [2, 0, 1])\ny = aten.cat.default([t, t], 0)", 1 }
};

static uint64_t seed;
static npu_backend *plain;

/* ---- running ----------------------------------------------------------------------------------------------- */

static npu_graph *build(const row *r, const char *dtype)
{
    static const char names[] = "yzw";
    npu_text text = npu_text_init(NULL);
    npu_diag diag;
    npu_graph *g = NULL;
    npu_text_printf(&text, "npu_ir 1\ngraph main\n");
    for (uint32_t i = 0; i < 2; i++) {
        for (const char *c = i ? r->op : r->inputs; *c; c++) {
            npu_text_printf(&text, *c == '@' ? "%s" : "%.1s", *c == '@' ? dtype : c);
        }
    }
    npu_text_printf(&text, "\n");
    for (uint32_t i = 0; i < r->num_outputs; i++) {
        npu_text_printf(&text, "output %c = %c\n", names[i], names[i]);
    }
    memset(&diag, 0, sizeof diag);
    NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), &diag), NPU_OK);
    if (!g) {
        fprintf(stderr, "%s\n%s\n", text.data, diag.message);
    }
    npu_text_free(&text);
    return g;
}

/* Element i as the dtype has it. */
static void put(uint8_t *data, npu_dtype dtype, size_t i, float x, int32_t whole)
{
    double wide = (double)x;
    int64_t longest = whole;
    uint16_t half = dtype == NPU_F16 ? npu_f32_to_f16(x) : npu_f32_to_bf16(x);
    switch (dtype) {
    case NPU_F32: memcpy(data + 4 * i, &x, 4); break;
    case NPU_F64: memcpy(data + 8 * i, &wide, 8); break;
    case NPU_I32: memcpy(data + 4 * i, &whole, 4); break;
    case NPU_I64: memcpy(data + 8 * i, &longest, 8); break;
    case NPU_U8: data[i] = (uint8_t)whole; break;
    case NPU_BOOL: data[i] = whole & 1; break;
    default: memcpy(data + 2 * i, &half, 2); break;
    }
}

/* Numbers in [-4, 4), those of `poisoned` with a few that are not finite; integers of 24 bits. */
static void *random_data(npu_dtype dtype, size_t len, bool poisoned)
{
    uint8_t *data = (uint8_t *)malloc(len * 8 + 8);
    for (size_t i = 0; i < len && data; i++) {
        uint64_t bits = npu_test_random(&seed);
        float x = (float)(bits & 0xffff) / 8192.0f - 4.0f;
        if (poisoned && (bits >> 16) % 997 == 0) {
            x = (bits >> 40 & 3) == 0 ? NAN : (bits >> 40 & 3) == 1 ? INFINITY : -INFINITY;
        }
        put(data, dtype, i, x, (int32_t)(bits >> 16 & 0xffffff) - 0x800000);
    }
    return data;
}

/* data[i] is what input i gets. */
static void make_data(const npu_graph *g, npu_dtype dtype, bool poisoned, void **data)
{
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        size_t len = 0;
        npu_spec_len(npu_value_spec(g, npu_graph_input(g, i)), &len);
        data[i] = random_data(dtype, len, poisoned && i == 0);
    }
}

/* The graph after a run on the backend; NULL = it failed. */
static npu_exec *run(const npu_graph *g, const npu_backend *backend, void **data)
{
    npu_exec *e = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&e, g, &backend, 1, NULL), NPU_OK);
    for (uint32_t i = 0; e && i < npu_graph_num_inputs(g); i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &size);
        NPU_CHECK_STATUS(npu_test_input_at(e, i, data[i], size), NPU_OK);
    }
    if (e) {
        NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
    }
    return e;
}

static double element(const void *data, npu_dtype dtype, size_t i)
{
    switch (dtype) {
    case NPU_F32: return (double)((const float *)data)[i];
    case NPU_F16: return (double)npu_f16_to_f32(((const uint16_t *)data)[i]);
    case NPU_BF16: return (double)npu_bf16_to_f32(((const uint16_t *)data)[i]);
    case NPU_F64: return ((const double *)data)[i];
    case NPU_I32: return ((const int32_t *)data)[i];
    case NPU_BOOL: case NPU_U8: return ((const uint8_t *)data)[i];
    default: return (double)((const int64_t *)data)[i];
    }
}

/* Indices must be equal; numbers within a few units of the rounding of their dtype, of the sum of what they are made from.
   A sum of `terms` random products is off by as many roundings of a running sum that grows as their root: eps * terms.
   Of a probability near 1, which sets of instructions may round otherwise, 16 bits leave what is missing few: of 0.98 one
   unit more or less is a fortieth of it, times a weight of up to 4. A loss of logits adds terms of up to 80, which f32
   rounds. */
static void compare(const row *r, double terms, const npu_spec *spec, const void *got, const void *expected)
{
    npu_dtype dtype = (npu_dtype)spec->dtype;
    double unit = dtype == NPU_F32 ? 4e-6
                : dtype == NPU_F64 ? 1e-12 : dtype == NPU_F16 ? 1.5e-3 : dtype == NPU_BF16 ? 1.2e-2 : 0;
    bool product = r >= product_rows && r < product_rows + COUNT(product_rows), adds = product || strstr(r->op, "sum");
    double rounded = product && dtype == NPU_F32 ? 6e-7 * terms : 0;
    bool few = unit > 1e-3 && strstr(r->op, "t = aten.sigmoid"), cancels = dtype == NPU_F32 && strstr(r->op, "with_logits");
    double spread = adds || cancels ? 20 : strstr(r->op, "norm") ? 4 : few ? 16 : 1;
    size_t len = 0;
    npu_spec_len(spec, &len);
    for (size_t i = 0; i < len; i++) {
        double a = element(got, dtype, i), b = element(expected, dtype, i);
        bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= unit * (spread + fabs(b)) + rounded;
        if (!same) {
            NPU_CHECK_THAT(same, "%s%s: set %s: element %u is %.9g, expected %.9g", r->inputs, r->op, npu_ref_isa(isa),
                           (unsigned)i, a, b);
            return;
        }
    }
}

/* Terms of each sum in a product of the first two inputs, m k and k n to m n; of a convolution fewer than there are. */
static double num_terms(const npu_graph *g)
{
    size_t len[3] = { 0 };
    for (uint32_t i = 0; i < 2 && i < npu_graph_num_inputs(g); i++) {
        npu_spec_len(npu_value_spec(g, npu_graph_input(g, i)), &len[i]);
    }
    npu_spec_len(npu_value_spec(g, npu_graph_output(g, 0)), &len[2]);
    return len[2] ? sqrt((double)len[0] * (double)len[1] / (double)len[2]) : 0;
}

static void check_row(const row *r, npu_dtype dtype, bool poisoned)
{
    npu_graph *g = build(r, npu_dtype_name(dtype));
    void *data[MAX_INPUTS] = { NULL };
    if (!g) {
        return;
    }
    make_data(g, dtype, poisoned, data);
    npu_exec *slow = run(g, plain, data);
    for (isa = 0; isa_cpu(isa); isa++) {
        npu_exec *fast = run(g, isa_cpu(isa), data);
        for (uint32_t i = 0; i < r->num_outputs && fast && slow; i++) {
            const npu_spec *spec = npu_value_spec(g, npu_graph_output(g, i));
            compare(r, num_terms(g), spec, npu_exec_output(fast, i, NULL), npu_exec_output(slow, i, NULL));
        }
        npu_exec_destroy(fast);
    }
    npu_exec_destroy(slow);
    npu_graph_destroy(g);
    for (size_t i = 0; i < MAX_INPUTS; i++) {
        free(data[i]);
    }
}

static void check_rows(const row *rows, size_t n, const npu_dtype *dtypes, size_t num_dtypes)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t t = 0; t < num_dtypes; t++) {
            check_row(&rows[i], dtypes[t], false);
            check_row(&rows[i], dtypes[t], true);
        }
    }
}

static const npu_dtype floats[] = { NPU_F32, NPU_F16, NPU_BF16 };
static const npu_dtype wides[] = { NPU_F64, NPU_I64, NPU_I32, NPU_U8, NPU_BOOL };
#define CHECK_ROWS(rows) check_rows(rows, COUNT(rows), floats, COUNT(floats))

static void test_softmax(void)
{
    NPU_ITEM("F59");
    CHECK_ROWS(softmax_rows);
    check_rows(softmax_rows, COUNT(softmax_rows), wides, 1);
}

/* Scores that a mask of -100 takes down, as windows of attention have them: their weights are 0 or normal numbers, since
   processors take a hundred times longer for others. */
static void test_far_scores(void)
{
    static const row rows[] = {
        { X("[90,49]"), "y = aten.softmax.int(x, 1)", 1 },   { X("[3,2500]"), "y = aten.softmax.int(x, 1)", 1 },
        { X("[49,90]"), "y = aten.softmax.int(x, 0)", 1 },   { X("[5,40,3]"), "y = aten.softmax.int(x, 1)", 1 },
        { X("[1,2,49,49]"), "z = aten.full.default([1, 2, 49, 49], 0.0)\ni = aten.eye.default(49)\n"
                            "v = aten.expand.default(i, [1, 2, 49, 49])\n"
                            "y = aten.scaled_dot_product_attention.default(z, z, v, x)", 1 }
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        npu_graph *g = build(&rows[k], "f32");
        void *data[MAX_INPUTS] = { NULL };
        size_t len = 0;
        make_data(g, NPU_F32, false, data);
        npu_spec_len(npu_value_spec(g, npu_graph_input(g, 0)), &len);
        for (size_t i = 0; i < len; i++) {
            ((float *)data[0])[i] = i % 50 ? -90.0f - (float)(i % 17) : 0.0f;
        }
        npu_exec *slow = run(g, plain, data);
        for (isa = 0; isa_cpu(isa); isa++) {
            npu_exec *fast = run(g, isa_cpu(isa), data);
            const float *y = fast ? npu_exec_output(fast, 0, NULL) : NULL;
            const float *expected = slow ? npu_exec_output(slow, 0, NULL) : NULL;
            bool is_base = strcmp(npu_ref_isa(isa), "base") == 0;
            for (size_t i = 0; y && expected && i < len; i++) {
                NPU_CHECK_NEAR(y[i], expected[i], 1e-6f);
                NPU_CHECK_THAT(is_base || y[i] == 0 || y[i] >= FLT_MIN, "%s: set %s: %g", rows[k].op, npu_ref_isa(isa), (double)y[i]);
            }
            npu_exec_destroy(fast);
        }
        npu_exec_destroy(slow);
        npu_graph_destroy(g);
        free(data[0]);
    }
}

/* Functions of doubles: units in the last place of the result by which variants may differ, or of the largest operand
   where what is near 1 cancels. */
static const struct { const char *op; double units, cancels; } double_rows[] = {
    { "y = aten.exp.default(x)", 3, 0 }, { "y = aten.expm1.default(x)", 4, 0 }, { "y = aten.log.default(x)", 3, 0 },
    { "y = aten.sin.default(x)", 4, 0 }, { "y = aten.cos.default(x)", 4, 0 }, { "y = aten.tanh.default(x)", 5, 0 },
    { "y = aten.sigmoid.default(x)", 5, 0 }, { "y = aten.silu.default(x)", 5, 0 }, { "y = aten.elu.default(x)", 6, 0 },
    { "y = aten.log1p.default(x)", 3, 0 }, { "y = aten.softplus.default(x)", 4, 0 },
    { "y = aten.log_sigmoid.default(x)", 4, 0 }, { "y = aten.sinh.default(x)", 5, 0 },
    { "y = aten.cosh.default(x)", 5, 0 }, { "y = aten.tan.default(x)", 5, 0 }, { "y = aten.atan.default(x)", 3, 0 },
    { "r = aten.flip.default(x, [0])\ny = aten.atan2.default(x, r)", 3, 0 },
    { "y = aten.atan2.default(x, x)", 3, 0 },
    { "y = aten.sqrt.default(x)", 0, 0 }, { "y = aten.rsqrt.default(x)", 0, 0 }, { "y = aten.round.default(x)", 0, 0 },
    { "y = aten.floor.default(x)", 0, 0 }, { "y = aten.trunc.default(x)", 0, 0 }, { "y = aten.sign.default(x)", 0, 0 },
    { "y = aten.clamp.default(x, -0.5, 20.0)", 0, 0 }, { "y = aten.reciprocal.default(x)", 0, 0 },
    { "y = aten.hardswish.default(x)", 1, 0 }, { "y = aten.gelu.default(x, approximate='tanh')", 4, 4 },
    { "y = aten.gelu.default(x)", 4, 4 }, { "y = aten.erf.default(x)", 3, 0 },
    { "r = aten.flip.default(x, [0])\ny = aten.lerp.Scalar(x, r, 0.3)", 0, 0 },
    { "r = aten.flip.default(x, [0])\ny = aten.lerp.Scalar(x, r, 0.7)", 0, 0 },
    { "r = aten.flip.default(x, [0])\ny = aten.addcmul.default(x, r, x, value=3)", 0, 0 },
    { "r = aten.flip.default(x, [0])\ny = aten.addcdiv.default(x, r, x, value=3)", 0, 0 }
};

/* Ends of ranges, of precision and of what is computed fast; then all magnitudes, and more of the usual ones. */
static double double_operand(size_t i)
{
    static const double special[] = {
        0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, -1e-300, 1e-17, -1e-17, 0.5, -0.5, 1.5, 2.5,
        0.70710678118654746, 0.70710678118654757, 1, -1, 1.5707963267948966, 3.1415926535897931, -6.2831853071795862,
        355, 19.999, 20, -20, 36.7, 37, -37, 40, -40, 709.78271289338397, 709.78271289338409, 710, -708.4, -745.13,
        -745.14, -746, -1000, 1000, 999999999.5, -1e9, 1e9, 1e15, 4503599627370497.5, 9007199254740993.0, 1e22, -1e22,
        DBL_MAX, -DBL_MAX, (double)INFINITY, -(double)INFINITY, (double)NAN
    };
    double u = (double)(npu_test_random(&seed) >> 11) / 9007199254740992.0 - 0.5;
    return i < COUNT(special) ? special[i] : i % 2 ? 16 * u : ldexp(u, (int)(npu_test_random(&seed) % 2200) - 1100);
}

static void check_doubles(size_t k, const double *x, const double *y, const double *expected, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        double a = y[i], b = expected[i];
        double cancels = double_rows[k].cancels ? double_rows[k].cancels * fabs(x[i]) : 0;
        double size = double_rows[k].units * fabs(b) + cancels;
        bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= DBL_EPSILON * size + 2 * 5e-324;
        NPU_CHECK_THAT(same, "%s: set %s: of %.17g: %.17g, expected %.17g", double_rows[k].op, npu_ref_isa(isa), x[i], a, b);
    }
}

static void test_doubles(void)
{
    enum { LEN = 5000 };
    static double x[LEN];
    for (size_t i = 0; i < LEN; i++) {
        x[i] = double_operand(i);
    }
    for (size_t k = 0; k < COUNT(double_rows); k++) {
        const row r = { "input x : @[5000]\n", double_rows[k].op, 1 };
        npu_graph *g = build(&r, "f64");
        void *data[] = { x };
        npu_exec *slow = run(g, plain, data);
        for (isa = 0; isa_cpu(isa); isa++) {
            npu_exec *fast = run(g, isa_cpu(isa), data);
            check_doubles(k, x, npu_exec_output(fast, 0, NULL), npu_exec_output(slow, 0, NULL), LEN);
            npu_exec_destroy(fast);
        }
        npu_exec_destroy(slow);
        npu_graph_destroy(g);
    }
}

static void test_reduction(void) { CHECK_ROWS(reduction_rows); }
static void test_wide_reduction(void) { check_rows(wide_rows, COUNT(wide_rows), wides, COUNT(wides)); }
static void test_scan(void)
{
    CHECK_ROWS(scan_rows);
    check_rows(scan_rows, COUNT(scan_rows), wides, COUNT(wides));
}

/* Fast where the quotient is a number that float holds, by 0 as well; other divisors go one by one. */
static void test_division(void)
{
    static const row rows[] = {
        { X("[2000]"), "d = aten.round.default(x)\ny = aten.fmod.Tensor(x, d)", 1 },
        { X("[2000]"), "d = aten.round.default(x)\ny = aten.remainder.Tensor(x, d)", 1 },
        { X("[2000]"), "d = aten.round.default(x)\ny = aten.div.Tensor_mode(x, d, rounding_mode='floor')", 1 },
        { X("[2000]"), "d = aten.mul.Scalar(x, 1e-7)\ny = aten.fmod.Tensor(x, d)", 1 }
    };
    check_rows(rows, COUNT(rows), floats, 1);
}

/* topk of few keeps them in order, of more it sorts the row: the same elements, of equal ones the first. */
static void test_topk_of_few(void)
{
    static const row r = { X("[40,300]"), "a, few = aten.topk.default(x, 128, 1)\n"
                           "b, more = aten.topk.default(x, 129, 1)\ncut = aten.slice.Tensor(more, 1, 0, 128)\n"
                           "same = aten.eq.Tensor(few, cut)\ny = aten.all.default(same)", 1 };
    static const npu_dtype dtypes[] = { NPU_F32, NPU_F64, NPU_I32, NPU_U8 };
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        npu_graph *g = build(&r, npu_dtype_name(dtypes[i]));
        void *data[MAX_INPUTS] = { NULL };
        make_data(g, dtypes[i], true, data);
        npu_exec *e = run(g, npu_ref_backend(), data);
        if (e) {
            NPU_CHECK(*(const uint8_t *)npu_exec_output(e, 0, NULL) == 1);
        }
        npu_exec_destroy(e);
        npu_graph_destroy(g);
        free(data[0]);
    }
}

/* Short rows are merged, long ones sorted by counting: in order, NaN last, and equal elements in the order they had. */
static void test_sort(void)
{
    static const size_t lengths[] = { 1, 127, 128, 129, 1000 };
    static const npu_dtype dtypes[] = { NPU_F32, NPU_F64, NPU_F16, NPU_I32, NPU_I64, NPU_U8 };
    for (size_t k = 0; k < COUNT(lengths) * COUNT(dtypes) * 2; k++) {
        const size_t n = lengths[k / 2 % COUNT(lengths)];
        const bool descending = k % 2;
        const npu_dtype dtype = dtypes[k / 2 / COUNT(lengths)];
        row r = { "", descending ? "y, z = aten.sort.stable(x, stable=true, dim=1, descending=true)"
                                 : "y, z = aten.sort.stable(x, stable=true, dim=1)", 2 };
        char input[64];
        void *data[MAX_INPUTS] = { NULL };
        snprintf(input, sizeof input, "input x : @[3,%d]\n", (int)n);
        r.inputs = input;
        npu_graph *g = build(&r, npu_dtype_name(dtype));
        make_data(g, dtype, true, data);
        npu_exec *e = run(g, npu_ref_backend(), data);
        const int64_t *from = e ? (const int64_t *)npu_exec_output(e, 1, NULL) : NULL;
        size_t wrong = 0;
        for (size_t i = 0; from && i < 3 * n; i++) {
            const size_t row_begin = i / n * n, next = i + 1 < row_begin + n ? i + 1 : i;
            double a = element(data[0], dtype, row_begin + (size_t)from[i]);
            double b = element(data[0], dtype, row_begin + (size_t)from[next]);
            double y = element(npu_exec_output(e, 0, NULL), dtype, i);
            bool ahead = isnan(a) ? descending && !isnan(b) : isnan(b) ? !descending : descending ? a > b : a < b;
            bool even = (a == b || (isnan(a) && isnan(b))) && from[i] < from[next];
            wrong += !(a == y || (isnan(a) && isnan(y))) || (next != i && !ahead && !even);
        }
        NPU_CHECK_THAT(from && wrong == 0, "%s[3,%d], descending %d: %d are wrong", npu_dtype_name(dtype), (int)n,
                       (int)descending, (int)wrong);
        npu_exec_destroy(e);
        npu_graph_destroy(g);
        free(data[0]);
    }
}

static void test_products(void)
{
    NPU_ITEM("F59");
    CHECK_ROWS(product_rows);
    check_rows(product_rows, COUNT(product_rows), wides, 1);
}

static void test_whole_products(void)
{
    static const npu_dtype dtypes[] = { NPU_I64, NPU_I32, NPU_U8 };
    check_rows(whole_rows, COUNT(whole_rows), dtypes, COUNT(dtypes));
}

static void test_search(void)
{
    static const npu_dtype dtypes[] = { NPU_F64, NPU_I64, NPU_I32, NPU_U8 };
    CHECK_ROWS(search_rows);
    check_rows(search_rows, COUNT(search_rows), dtypes, COUNT(dtypes));
}

static void test_transposed(void)
{
    CHECK_ROWS(transposed_rows);
    check_rows(transposed_rows, COUNT(transposed_rows), wides, COUNT(wides));
}

/* Every element where a plain loop puts it: squares, those left at both edges, and the tiles that go side by side. */
static void test_transposed_elements(void)
{
    static const struct { const char *dtype; size_t size; } dtypes[] = {
        { "u8", 1 }, { "i16", 2 }, { "f32", 4 }, { "i64", 8 }, { "c128", 16 }
    };
    static const size_t dims[][2] = { { 300, 413 }, { 64, 64 }, { 33, 1000 }, { 500, 17 } };
    for (size_t k = 0; k < COUNT(dtypes) * COUNT(dims); k++) {
        const size_t rows = dims[k % COUNT(dims)][0], cols = dims[k % COUNT(dims)][1];
        const size_t size = dtypes[k / COUNT(dims)].size, len = rows * cols * size;
        row r = { "", "y = aten.t.default(x)", 1 };
        char input[64];
        uint8_t *x = (uint8_t *)malloc(len);
        void *data[MAX_INPUTS] = { NULL };
        snprintf(input, sizeof input, "input x : @[%d,%d]\n", (int)rows, (int)cols);
        r.inputs = input;
        npu_graph *g = build(&r, dtypes[k / COUNT(dims)].dtype);
        for (size_t i = 0; i < len; i++) {
            x[i] = (uint8_t)npu_test_random(&seed);
        }
        data[0] = x;
        for (isa = 0; g && isa_cpu(isa); isa++) {
            npu_exec *e = run(g, isa_cpu(isa), data);
            const uint8_t *y = e ? (const uint8_t *)npu_exec_output(e, 0, NULL) : NULL;
            size_t wrong = 0;
            for (size_t i = 0; y && i < rows * cols; i++) {
                wrong += memcmp(y + (i % cols * rows + i / cols) * size, x + i * size, size) != 0;
            }
            NPU_CHECK_THAT(y && wrong == 0, "%d x %d of %d bytes: set %s: %d are wrong", (int)rows, (int)cols,
                           (int)size, npu_ref_isa(isa), (int)wrong);
            npu_exec_destroy(e);
        }
        npu_graph_destroy(g);
        free(x);
    }
}

/* ---- convolution ------------------------------------------------------------------------------------------- */

typedef struct conv_case {
    int64_t images, in, out, groups, size[2], kernel[2], stride, pad, dilation; /* in and out of one group */
    bool transposed;
} conv_case;

/* Winograd's squares are of so many results each way: 2 by default, 4 where the desc says so; 0 = no squares. */
static npu_backend *square_cpus[5][ISA_MAX];
static const npu_backend *square_cpu(int64_t tile)
{
    npu_backend **cpu = &square_cpus[tile][isa];
    npu_ref_desc desc = { .isa = npu_ref_isa(isa), .variant = tile == 4 ? "winograd4" : NULL,
                          .without = tile ? NULL : "winograd" };
    if (tile == 2 || !desc.isa) {
        return isa_cpu(isa);
    }
    if (!*cpu) {
        NPU_CHECK_STATUS(npu_ref_create(cpu, &desc), NPU_OK);
    }
    return *cpu;
}

static int64_t pick(int64_t low, int64_t high)
{
    return low + (int64_t)(npu_test_random(&seed) % (uint64_t)(high - low + 1));
}

/* Shapes of all kinds, every third of them one that Winograd's takes: 3 x 3 at every pixel, with many channels. */
static conv_case random_conv(bool is_winograd)
{
    conv_case c = { pick(1, 2), pick(1, 24), pick(1, 50), pick(0, 3) ? 1 : pick(2, 3), { pick(9, 19), pick(9, 31) },
                    { pick(1, 4), pick(1, 5) }, pick(1, 3), pick(0, 2), pick(1, 2), false };
    if (is_winograd) {
        conv_case w = { pick(1, 2), pick(32, 36), pick(32, 48), 1, { pick(13, 16), pick(13, 23) }, { 3, 3 }, 1, 0, 1,
                        false };
        w.pad = pick(0, 3);
        if (pick(0, 1)) { /* enough squares of 4 x 4 */
            w.images = 1, w.size[0] += 10, w.size[1] += 12;
        }
        return w;
    }
    c.pad = c.dilation == 1 && pick(0, 3) == 0 ? 0 : c.pad;
    if (pick(0, 3) == 0) { /* one tap, every second time of a large image with many channels */
        c.kernel[0] = c.kernel[1] = 1, c.pad = 0, c.dilation = 1;
        if (pick(0, 1) == 0) {
            c.in = pick(32, 40), c.out = pick(60, 64), c.groups = 1;
            c.stride = 1, c.size[0] = 19, c.size[1] = pick(16, 31);
        }
    } else if (pick(0, 1) == 0) { /* depthwise */
        c.groups = pick(2, 40), c.in = 1, c.out = pick(1, 2);
        c.kernel[0] = pick(0, 1) ? 3 : c.kernel[0], c.kernel[1] = pick(0, 1) ? 3 : c.kernel[1];
        c.size[1] = pick(9, 70); /* some vectors of a row */
        if (pick(0, 2) == 0) { /* or less than one */
            c.size[1] = pick(3, 9), c.kernel[1] = 3, c.dilation = 1;
        }
    }
    return c;
}

/* Several bands; few pixels of many channels, which are packed: of images and groups, in bands, and some more, which are not; planes with taps of
   other numbers than 3 x 3, copied at once and a part at a time; groups of few channels; rows of
   weights that are multiples of a KiB; images of less than the weights, which are copied for all parts at once; squares
   of taps on planes of few and of many columns, of which two planes are taken together or the last one is left; dilated
   and other kernels with taps that meet padding alone: at the sides of an image, of rows, of columns, or everywhere, all
   of them as well; transposed ones, whose phases have one tap or some, with channels that fill vectors, or half of
   one; a long row; planes that are halved; parts by channels of two bands; one pixel; sums of few planes by rows, whole
   and in halves of vectors, of every and every second pixel, with rows and channels that are left over. */
static const conv_case given_convs[] = {
    { 2, 1, 1, 9, { 14, 14 }, { 5, 5 }, 1, 2, 1, false }, { 1, 1, 2, 5, { 29, 61 }, { 5, 7 }, 2, 3, 1, false },
    { 1, 1, 1, 2, { 40, 140 }, { 7, 7 }, 1, 3, 1, false }, { 1, 1, 1, 4, { 16, 7 }, { 9, 9 }, 1, 4, 1, false },
    { 2, 1, 42, 3, { 10, 13 }, { 3, 4 }, 2, 0, 1, false }, { 1, 1, 24, 1, { 12, 20 }, { 3, 3 }, 2, 1, 1, false },
    { 1, 1, 1, 4, { 57, 90 }, { 6, 5 }, 2, 0, 3, false }, { 1, 1, 1, 2, { 30, 120 }, { 17, 17 }, 1, 8, 1, false },
    { 1, 32, 33, 1, { 37, 149 }, { 3, 3 }, 1, 1, 1, false }, { 2, 130, 140, 2, { 7, 7 }, { 1, 1 }, 1, 0, 1, false },
    { 1, 600, 128, 1, { 15, 16 }, { 1, 1 }, 1, 0, 1, false }, { 1, 128, 128, 1, { 1, 3 }, { 1, 1 }, 1, 0, 1, false },
    { 1, 8, 8, 5, { 7, 15 }, { 3, 3 }, 1, 1, 1, false }, { 2, 5, 23, 2, { 9, 31 }, { 3, 3 }, 2, 1, 1, false },
    { 1, 16, 16, 3, { 14, 15 }, { 3, 3 }, 1, 1, 1, false }, { 1, 20, 40, 1, { 23, 31 }, { 5, 5 }, 2, 2, 1, false },
    { 2, 256, 20, 1, { 17, 19 }, { 1, 1 }, 1, 0, 1, false }, { 1, 512, 20, 1, { 8, 41 }, { 1, 1 }, 1, 0, 1, false },
    { 2, 20, 64, 2, { 7, 7 }, { 3, 3 }, 1, 1, 1, false }, { 1, 24, 64, 1, { 15, 13 }, { 3, 5 }, 2, 1, 2, false },
    { 1, 20, 128, 1, { 28, 28 }, { 3, 3 }, 2, 1, 1, false }, { 2, 160, 64, 1, { 14, 11 }, { 1, 1 }, 2, 0, 1, false },
    { 1, 1, 1, 5, { 7, 7 }, { 5, 5 }, 1, 2, 1, false }, { 3, 1, 3, 3, { 14, 14 }, { 5, 5 }, 2, 2, 1, false },
    { 1, 1, 1, 7, { 16, 16 }, { 3, 3 }, 2, 1, 1, false }, { 2, 1, 2, 3, { 9, 8 }, { 3, 3 }, 1, 1, 1, false },
    { 1, 1, 1, 3, { 7, 6 }, { 7, 7 }, 1, 3, 1, false }, { 1, 1, 1, 6, { 5, 17 }, { 5, 5 }, 2, 0, 1, false },
    { 2, 1, 1, 3, { 28, 33 }, { 5, 5 }, 1, 2, 1, false }, { 1, 1, 2, 3, { 31, 90 }, { 5, 5 }, 2, 2, 1, false },
    { 1, 1, 1, 3, { 20, 47 }, { 7, 7 }, 1, 3, 1, false }, { 1, 1, 1, 3, { 6, 20 }, { 5, 5 }, 1, 4, 1, false },
    { 2, 20, 64, 1, { 14, 14 }, { 3, 3 }, 1, 12, 12, false }, { 1, 20, 32, 2, { 14, 15 }, { 3, 3 }, 1, 24, 24, false },
    { 1, 20, 32, 1, { 33, 19 }, { 3, 5 }, 1, 18, 12, false }, { 1, 20, 64, 2, { 40, 6 }, { 3, 3 }, 1, 5, 5, false },
    { 2, 24, 32, 1, { 7, 44 }, { 4, 3 }, 2, 6, 4, false }, { 1, 64, 64, 1, { 2, 2 }, { 5, 5 }, 1, 2, 1, false },
    { 1, 30, 64, 1, { 1, 1 }, { 3, 3 }, 1, 1, 1, false }, { 1, 16, 32, 1, { 3, 2 }, { 2, 2 }, 1, 7, 9, false },
    { 1, 130, 64, 1, { 4, 5 }, { 4, 4 }, 2, 1, 1, true }, { 2, 40, 32, 2, { 17, 9 }, { 2, 2 }, 2, 0, 1, true },
    { 1, 33, 48, 1, { 7, 30 }, { 3, 3 }, 2, 1, 1, true }, { 1, 20, 64, 1, { 9, 8 }, { 3, 4 }, 3, 2, 2, true },
    { 1, 300, 64, 1, { 1, 1 }, { 4, 4 }, 1, 0, 1, true }, { 2, 12, 3, 1, { 20, 12 }, { 4, 4 }, 2, 1, 1, true },
    { 2, 20, 64, 1, { 1, 1500 }, { 1, 5 }, 2, 0, 3, false }, { 1, 12, 3, 2, { 3, 1100 }, { 3, 4 }, 1, 0, 1, false },
    { 1, 40, 32, 1, { 1, 1300 }, { 1, 1 }, 1, 0, 1, false }, { 1, 20, 64, 1, { 1, 300 }, { 1, 4 }, 3, 0, 1, true },
    { 2, 16, 8, 4, { 1, 3 }, { 1, 1 }, 2, 0, 2, true }, { 2, 1, 2, 3, { 61, 57 }, { 3, 3 }, 1, 1, 1, false },
    { 1, 1, 1, 3, { 125, 111 }, { 5, 5 }, 2, 2, 1, false }, { 2, 1, 1, 5, { 113, 115 }, { 3, 3 }, 2, 0, 1, false },
    { 1, 160, 160, 1, { 14, 14 }, { 1, 1 }, 1, 0, 1, false }, { 2, 300, 400, 1, { 1, 1 }, { 1, 1 }, 1, 0, 1, false },
    { 1, 1, 1, 3, { 1, 4000 }, { 3, 3 }, 1, 1, 1, false }, { 1, 3, 30, 1, { 67, 63 }, { 3, 3 }, 2, 1, 1, false },
    { 2, 16, 16, 3, { 27, 28 }, { 3, 3 }, 2, 1, 1, false }, { 1, 12, 16, 5, { 14, 14 }, { 3, 3 }, 2, 1, 1, false },
    { 2, 16, 16, 2, { 9, 7 }, { 3, 3 }, 1, 1, 1, false }, { 1, 5, 45, 2, { 30, 15 }, { 3, 3 }, 1, 2, 1, false },
    { 1, 50, 16, 1, { 33, 67 }, { 3, 3 }, 2, 0, 1, false }, { 1, 8, 64, 1, { 21, 31 }, { 3, 3 }, 1, 0, 1, false },
    { 1, 3, 16, 1, { 2, 500 }, { 3, 3 }, 2, 1, 1, false }, { 2, 260, 95, 1, { 17, 17 }, { 1, 1 }, 1, 0, 1, false }
};

static int64_t conv_size(const conv_case *c, int i)
{
    int64_t reach = c->dilation * (c->kernel[i] - 1) + 1;
    return c->transposed ? (c->size[i] - 1) * c->stride - 2 * c->pad + reach
                         : (c->size[i] + 2 * c->pad - reach) / c->stride + 1;
}

static npu_graph *conv_graph(const conv_case *c, const char *role)
{
    npu_text t = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_diag diag;
    npu_text_printf(&t, "npu_ir 1\ngraph main\ninput x : f32[%d,%d,%d,%d]\n", (int)c->images, (int)(c->in * c->groups),
                    (int)c->size[0], (int)c->size[1]);
    npu_text_printf(&t, "%s w : f32[%d,%d,%d,%d]\n%s b : f32[%d]\n", role,
                    (int)((c->transposed ? c->in : c->out) * c->groups), (int)(c->transposed ? c->out : c->in),
                    (int)c->kernel[0], (int)c->kernel[1], role, (int)(c->out * c->groups));
    npu_text_printf(&t, "y = aten.convolution.default(x, w, b, [%d, %d], [%d, %d], [%d, %d], %s, [0, 0], %d)\n",
                    (int)c->stride, (int)c->stride, (int)c->pad, (int)c->pad, (int)c->dilation, (int)c->dilation,
                    c->transposed ? "true" : "false", (int)c->groups);
    npu_text_printf(&t, "output y = y\n");
    NPU_CHECK_STATUS(npu_graph_parse(&g, t.data, t.len, npu_test_graph_desc(), &diag), NPU_OK);
    npu_text_free(&t);
    return g;
}

/* A run of the graph, whose parameters, where it has some, are data[1] and data[2]. */
static npu_exec *conv_run(npu_graph *g, const npu_backend *cpu, void **data)
{
    const char *names[] = { "w", "b" };
    for (uint32_t i = 0; i < 2 && npu_graph_num_inputs(g) == 1; i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(g, npu_graph_find(g, names[i])), &size);
        NPU_CHECK_STATUS(npu_graph_bind_param(g, names[i], data[i + 1], size), NPU_OK);
    }
    return run(g, cpu, data);
}

static double sum_of_magnitudes(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += fabs((double)x[i]);
    }
    return sum;
}

/* Holds results against the plain ones: an error of a sum of n products is at most n roundings of the sum of their
   magnitudes, all pixels taken as the largest; of Winograd's, 6 times as much, of 4 x 4 results 36 times. What is not
   finite must not become so, and, but in Winograd's squares, the other way round. */
static void conv_compare(const conv_case *c, const float *got, const float *expected, const float *w, int64_t tile)
{
    int64_t taps = c->in * c->kernel[0] * c->kernel[1], channels = c->out * c->groups, size[2], plane, wrong = 0;
    for (int i = 0; i < 2; i++) {
        size[i] = conv_size(c, i);
    }
    plane = size[0] * size[1];
    for (int64_t i = 0; i < c->images * channels * plane; i++) {
        double weights = c->transposed ? 4.0 * (double)taps
                                       : sum_of_magnitudes(w + i / plane % channels * taps, taps);
        double magnitude = 4 * weights + 4;
        double bound = 0x1p-24 * (double)(taps + 2) * magnitude * (tile == 4 ? 36 : tile ? 6 : 1);
        bool both = isfinite(got[i]) && isfinite(expected[i]);
        bool equal = got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i]));
        bool same = both ? fabs((double)got[i] - (double)expected[i]) <= bound
                         : !isfinite(got[i]) && (tile || equal);
        wrong += !same;
    }
    NPU_CHECK_THAT(wrong == 0, "set %s, squares %d: %d wrong: %d x %d to %d channels of %d groups, %d x %d, kernel "
                   "%d x %d, stride %d, padding %d, dilation %d", npu_ref_isa(isa), (int)tile, (int)wrong,
                   (int)c->images, (int)c->in, (int)c->out, (int)c->groups, (int)c->size[0], (int)c->size[1],
                   (int)c->kernel[0], (int)c->kernel[1], (int)c->stride, (int)c->pad, (int)c->dilation);
}

/* One set: weights that are known and weights that are fed give the same bits, near the plain variant's. */
static void conv_check(const conv_case *c, void **data, const float *expected, int64_t tile, bool is_winograd)
{
    const npu_backend *cpu = square_cpu(tile);
    npu_graph *known = conv_graph(c, "param"), *fed = conv_graph(c, "input");
    npu_exec *a = conv_run(known, cpu, data), *b = conv_run(fed, cpu, data);
    size_t size = 0;
    const float *y = (const float *)npu_exec_output(a, 0, &size), *z = (const float *)npu_exec_output(b, 0, NULL);
    int64_t wrong = 0;
    for (size_t i = 0; y && z && i < size / sizeof *y; i++) {
        wrong += isnan(y[i]) || isnan(z[i]) ? isnan(y[i]) != isnan(z[i]) : memcmp(&y[i], &z[i], sizeof *y) != 0;
    }
    NPU_CHECK_THAT(y && z && wrong == 0, "set %s, squares %d: %d differ: %d x %d to %d channels of %d groups, %d x %d, "
                   "kernel %d x %d, stride %d, padding %d, dilation %d", npu_ref_isa(isa), (int)tile, (int)wrong,
                   (int)c->images, (int)c->in, (int)c->out, (int)c->groups, (int)c->size[0], (int)c->size[1],
                   (int)c->kernel[0], (int)c->kernel[1], (int)c->stride, (int)c->pad, (int)c->dilation);
    if (y) {
        conv_compare(c, y, expected, (const float *)data[1], is_winograd ? tile : 0);
    }
    npu_exec_destroy(a), npu_exec_destroy(b);
    npu_graph_destroy(known), npu_graph_destroy(fed);
}

static npu_graph *product_graph(const int *sizes, const char *role)
{
    npu_text t = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_text_printf(&t, "npu_ir 1\ngraph main\ninput x : f32[%d,%d]\n%s w : f32[%d,%d]\n", sizes[0], sizes[1], role,
                    sizes[1], sizes[2]);
    npu_text_printf(&t, "t = aten.mm.default(x, w)\ny = aten.relu.default(t)\noutput y = y\n");
    NPU_CHECK_STATUS(npu_graph_parse(&g, t.data, t.len, npu_test_graph_desc(), NULL), NPU_OK);
    npu_text_free(&t);
    return g;
}

/* A matrix that is known is packed before, and columns are taken many at a time: the bits are those of a fed one. */
static void test_known_products(void)
{
    static const int sizes[][3] = { /* m, k, n */
        { 7, 70, 2100 }, { 100, 300, 1100 }, { 230, 257, 300 }, { 3, 1, 1040 }, { 1, 40, 700 }
    };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        npu_graph *fed = product_graph(sizes[i], "input"), *known = product_graph(sizes[i], "param");
        size_t weights = sizeof(float) * (size_t)sizes[i][1] * (size_t)sizes[i][2], size = 0;
        void *data[MAX_INPUTS] = { NULL };
        make_data(fed, NPU_F32, 0, data);
        NPU_CHECK_STATUS(npu_graph_bind_param(known, "w", data[1], weights), NPU_OK);
        for (isa = 0; isa_cpu(isa); isa++) {
            npu_exec *a = run(fed, isa_cpu(isa), data), *b = run(known, isa_cpu(isa), data);
            const void *y = npu_exec_output(a, 0, &size), *z = npu_exec_output(b, 0, NULL);
            NPU_CHECK_THAT(y && z && memcmp(y, z, size) == 0, "set %s: %d x %d x %d differ", npu_ref_isa(isa),
                           sizes[i][0], sizes[i][1], sizes[i][2]);
            npu_exec_destroy(a), npu_exec_destroy(b);
        }
        npu_graph_destroy(fed), npu_graph_destroy(known);
        for (size_t j = 0; j < MAX_INPUTS; j++) {
            free(data[j]);
        }
    }
}

/* Random shapes under every set, with Winograd's and without it. */
static void test_convolution(void)
{
    for (int i = 0; i < (int)COUNT(given_convs) + 20; i++) {
        bool is_given = i < (int)COUNT(given_convs);
        bool is_winograd = is_given ? given_convs[i].kernel[0] == 3 && !given_convs[i].transposed : i % 3 == 0;
        conv_case c = is_given ? given_convs[i] : random_conv(is_winograd);
        npu_graph *g = conv_graph(&c, "input");
        void *data[MAX_INPUTS] = { NULL };
        make_data(g, NPU_F32, i % 2, data);
        npu_exec *slow = run(g, plain, data);
        const float *expected = (const float *)npu_exec_output(slow, 0, NULL);
        for (isa = 0; isa_cpu(isa) && expected; isa++) {
            for (int64_t tile = 0; tile <= (is_winograd ? 4 : 0); tile += 2) {
                conv_check(&c, data, expected, tile, is_winograd);
            }
        }
        npu_exec_destroy(slow);
        npu_graph_destroy(g);
        for (size_t j = 0; j < MAX_INPUTS; j++) {
            free(data[j]);
        }
    }
}

/* A convolution, what follows it by elements, and an op more, so that the result before may lie where it likes; where
   `is_apart`, the convolution's result is wanted too. Operands x, q like the result, w, b. */
static npu_graph *followed_graph(const conv_case *c, const char *role, const char *tail, bool is_apart)
{
    npu_text t = npu_text_init(NULL);
    npu_graph *g = NULL, *optimised = NULL;
    const npu_backend *cpu = isa_cpu(isa);
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_diag diag;
    int64_t size[2];
    for (int i = 0; i < 2; i++) {
        size[i] = conv_size(c, i);
    }
    npu_text_printf(&t, "npu_ir 1\ngraph main\ninput x : f32[%d,%d,%d,%d]\ninput q : f32[%d,%d,%d,%d]\n",
                    (int)c->images, (int)(c->in * c->groups), (int)c->size[0], (int)c->size[1], (int)c->images,
                    (int)(c->out * c->groups), (int)size[0], (int)size[1]);
    npu_text_printf(&t, "%s w : f32[%d,%d,%d,%d]\n%s b : f32[%d]\nr = aten.cumsum.default(q, 1)\n", role,
                    (int)(c->out * c->groups), (int)c->in, (int)c->kernel[0], (int)c->kernel[1], role,
                    (int)(c->out * c->groups));
    npu_text_printf(&t, "y = aten.conv2d.default(x, w, b, [%d, %d], [%d, %d], [%d, %d], %d)\n%s\n", (int)c->stride,
                    (int)c->stride, (int)c->pad, (int)c->pad, (int)c->dilation, (int)c->dilation, (int)c->groups, tail);
    npu_text_printf(&t, "u = aten.cumsum.default(z, 3)\noutput u = u\n%s", is_apart ? "output y = y\n" : "");
    NPU_CHECK_STATUS(npu_graph_parse(&g, t.data, t.len, npu_test_graph_desc(), &diag), NPU_OK);
    npu_text_free(&t);
    NPU_CHECK_STATUS(npu_graph_optimize(&optimised, g, &desc, NULL, &diag), NPU_OK);
    npu_graph_destroy(g);
    return optimised;
}

/* Ops that the profile of a run names; the result is copied to *y. */
static uint32_t followed_run(npu_graph *g, int64_t tile, void **data, npu_parallel *parallel, float **y, size_t *size)
{
    const npu_backend *cpu = square_cpu(tile);
    npu_plan_desc how = { .backends = &cpu, .num_backends = 1 };
    npu_exec_desc desc = { .parallel = parallel, .profile = true };
    const char *names[] = { "w", "b" };
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *e = NULL;
    uint32_t count = 0, ops = 0;
    for (uint32_t i = 0; i < 2 && npu_graph_num_inputs(g) == 2; i++) {
        npu_spec_size(npu_value_spec(g, npu_graph_find(g, names[i])), size);
        NPU_CHECK_STATUS(npu_graph_bind_param(g, names[i], data[i + 2], *size), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &how, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&program, plan, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&e, program, &desc, NULL), NPU_OK);
    for (uint32_t i = 0; e && i < npu_graph_num_inputs(g); i++) {
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), size);
        NPU_CHECK_STATUS(npu_test_input_at(e, i, data[i], *size), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
    const npu_profile_step *steps = npu_exec_profile(e, &count);
    for (uint32_t i = 0; i < count; i++) {
        ops += steps[i].op != 0;
    }
    const void *from = npu_exec_output(e, 0, size);
    *y = (float *)malloc(*size + 1);
    memcpy(*y, from, *size);
    npu_exec_destroy(e);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    return ops;
}

/* Ops that follow a convolution run on pieces of its result, one call less, and give the same bits as by themselves, on
   one thread and on three. */
static void test_epilogue(void)
{
    static const char *const tails[] = {
        "z = aten.hardtanh.default(y, -0.25, 0.5)", "z = aten.relu.default(y)", "z = aten.silu.default(y)",
        "z = aten.relu6.default(y)",
        "z = aten.add.Tensor(y, r, alpha=0.5)", "z = aten.sub.Tensor(r, y)",
        "t = aten.add.Tensor(r, y)\nz = aten.relu.default(t)", "z = aten.add.Tensor(y, r)",
        "t = aten.add.Tensor(q, y)\nz = aten.relu.default(t)", "z = aten.add.Tensor(r, y)\noutput r = r",
        "t = aten.add.Tensor(y, r)\nz = aten.hardtanh.default(t, -0.25, 0.5)",
        "s = aten.sin.default(r)\nt = aten.add.Tensor(s, y)\nz = aten.relu.default(t)"
    };
    /* one tap, pixels that fill whole tiles: sums in one slice, and in two, and more; a long row; tiles that are cut
       off; planes that are halved; parts by channels; sums by rows, and by pairs of them */
    static const conv_case pointwise[] = {
        { 2, 64, 50, 1, { 16, 20 }, { 1, 1 }, 1, 0, 1, false }, { 1, 300, 20, 1, { 16, 32 }, { 1, 1 }, 1, 0, 1, false },
        { 1, 24, 40, 1, { 1, 2500 }, { 1, 3 }, 2, 0, 1, false }, { 1, 600, 20, 1, { 28, 28 }, { 1, 1 }, 1, 0, 1, false },
        { 1, 64, 40, 1, { 30, 31 }, { 1, 1 }, 1, 0, 1, false }, { 2, 1, 2, 4, { 57, 56 }, { 3, 3 }, 1, 1, 1, false },
        { 1, 160, 160, 1, { 14, 14 }, { 1, 1 }, 1, 0, 1, false }, { 1, 3, 40, 1, { 90, 93 }, { 3, 3 }, 2, 1, 1, false },
        { 2, 16, 16, 3, { 14, 13 }, { 3, 3 }, 2, 1, 1, false }
    };
    npu_threads_desc how = { .width = 3 };
    npu_parallel *threads = NULL;
    uint32_t led = 0, all = 0;
    npu_threads_create(&threads, &how);
    for (int i = 0; i < 55; i++) {
        conv_case c = i == 6 ? given_convs[0] : i % 5 > 2 ? pointwise[(i / 5 + i) % (int)COUNT(pointwise)] : random_conv(i % 3 == 0);
        int64_t tile = i / 6 % 2 ? 4 : 2;
        for (isa = 0; isa_cpu(isa); isa++) {
            const char *role = i % 2 ? "param" : "input", *tail = tails[(i + (int)isa) % (int)COUNT(tails)];
            npu_graph *pieces = followed_graph(&c, role, tail, false), *apart = followed_graph(&c, role, tail, true);
            npu_graph *fed = followed_graph(&c, "input", tail, true); /* whose inputs are all four */
            float *y = NULL, *z = NULL;
            void *data[MAX_INPUTS] = { NULL };
            size_t size = 0, len, wrong = 0;
            make_data(fed, NPU_F32, i % 5 == 0, data);
            uint32_t few = followed_run(pieces, tile, data, i % 4 ? threads : NULL, &y, &size);
            uint32_t many = followed_run(apart, tile, data, NULL, &z, &len);
            for (size_t k = 0; k < size / sizeof *y; k++) {
                wrong += isnan(y[k]) || isnan(z[k]) ? isnan(y[k]) != isnan(z[k]) : memcmp(&y[k], &z[k], sizeof *y) != 0;
            }
            NPU_CHECK_THAT(wrong == 0 && size == len && few <= many, "set %s: %d wrong of %d, %u ops of %u: %s",
                           npu_ref_isa(isa), (int)wrong, (int)(size / sizeof *y), (unsigned)few, (unsigned)many, tail);
            led += many - few, all++;
            free(y), free(z);
            for (size_t k = 0; k < MAX_INPUTS; k++) {
                free(data[k]);
            }
            npu_graph_destroy(pieces), npu_graph_destroy(apart), npu_graph_destroy(fed);
        }
    }
    NPU_CHECK_THAT(led == all, "%u of %u ran in pieces", (unsigned)led, (unsigned)all);
    npu_threads_destroy(threads);
}

/* Which variant runs a convolution of 3 x 3, by what the desc asks for: one of 4 x 4 results only where it is named. */
static void test_squares(void)
{
    static const struct { const char *variant, *without; int64_t size; const char *runs; } rows[] = {
        { NULL, NULL, 24, "winograd" }, { NULL, "winograd", 24, "blocked" }, { NULL, "winograd4", 24, "winograd" },
        { "winograd4", NULL, 24, "winograd4" }, { "winograd4", "winograd4", 24, "winograd" },
        { "winograd4", "winograd", 24, "blocked" }, { "winograd", NULL, 24, "winograd" },
        { "winograd4", NULL, 16, "winograd" }, { "winograd4", NULL, 8, "blocked" }, { "plain", NULL, 24, "plain" },
        { NULL, "", 24, "winograd" }
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        conv_case c = { 1, 32, 32, 1, { rows[i].size, rows[i].size }, { 3, 3 }, 1, 1, 1, false };
        npu_ref_desc desc = { .variant = rows[i].variant, .without = rows[i].without };
        npu_graph *g = conv_graph(&c, "input");
        npu_backend *cpu = NULL;
        npu_exec *e = NULL;
        NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
        const npu_backend *backend = cpu;
        NPU_CHECK_STATUS(npu_exec_create_simple(&e, g, &backend, 1, NULL), NPU_OK);
        NPU_CHECK_STR(npu_program_op_variant(npu_exec_program(e), npu_value_producer(g, npu_graph_find(g, "y"), NULL)),
                      rows[i].runs);
        npu_exec_destroy(e);
        npu_graph_destroy(g);
        npu_ref_destroy(cpu);
    }
}

/* What a kernel is told of the op behind it, and with or without being asked to do it. */
static struct { bool takes; uint32_t led, sums; float low, high; } told;

static npu_status told_prepare(npu_prepare *p)
{
    p->takes_epilogue = told.takes;
    return NPU_OK;
}

static npu_status told_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu_epilogue *e = l->epilogue;
    bool adds = e && e->addend;
    float *y = (float *)l->y[0];
    (void)part, (void)parts;
    if (l->out[0].dtype != NPU_F32) {
        memset(y, 0, 40 * sizeof(uint16_t));
        told.led += e != NULL;
        return NPU_OK;
    }
    told.led += e != NULL, told.sums += adds;
    for (int i = 0; i < 40; i++) {
        float x = (float)(i % 7 - 3) / 4, *to = adds ? (float *)e->launch.y[0] : y;
        if (adds) {
            told.low = e->bounds[0], told.high = e->bounds[1];
            x += e->addend[i];
            x = told.low > x ? told.low : x;
            x = told.high < x ? told.high : x;
        }
        to[i] = x;
    }
    if (!adds) {
        npu_epilogue_run(e, y, 40);
    }
    return NPU_OK;
}

/* The result u of a convolution by the kernel above, the tail and an op more, of 40 numbers. */
static void told_run(const npu_backend *cpu, const char *dtype, const char *tail, bool takes, float *u)
{
    npu_text t = npu_text_init(NULL);
    npu_graph *g = NULL, *optimised = NULL;
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_exec *e = NULL;
    npu_diag diag;
    float q[40];
    size_t len = 0;
    memset(&told, 0, sizeof told);
    told.takes = takes;
    npu_text_printf(&t, "npu_ir 1\ngraph main\ninput x : %s[1,2,4,5]\ninput w : %s[2,2,1,1]\ninput q : f32[1,2,4,5]\n"
                    "input p : f32[2,1,1]\nr = aten.cumsum.default(q, 3)\ny = aten.conv2d.default(x, w)\n%s\n"
                    "u = aten.cumsum.default(z, 3)\noutput u = u\n", dtype, dtype, tail);
    NPU_CHECK_STATUS(npu_graph_parse(&g, t.data, t.len, npu_test_graph_desc(), &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_optimize(&optimised, g, &desc, NULL, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&e, optimised, &cpu, 1, &diag), NPU_OK);
    for (int i = 0; i < 40; i++) {
        q[i] = i % 9 == 4 ? NAN : i % 9 == 5 ? -0.0f : (float)(i % 5) - 2;
    }
    for (uint32_t i = 0; e && i < npu_graph_num_inputs(optimised); i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(optimised, npu_graph_input(optimised, i)), &size);
        NPU_CHECK_STATUS(npu_test_input_at(e, i, q, size), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
    const void *from = npu_exec_output(e, 0, &len);
    memset(u, 0, sizeof q);
    memcpy(u, from, len < sizeof q ? len : sizeof q);
    npu_exec_destroy(e);
    npu_graph_destroy(g), npu_graph_destroy(optimised);
    npu_text_free(&t);
}

/* A sum with what lies as the result does is told as such, with the bounds of a clamp behind it; all else is not. */
static void test_residual(void)
{
    static const struct { const char *dtype, *tail; uint32_t led, sums; float low, high; bool is_fast; } rows[] = {
        { "f32", "z = aten.add.Tensor(y, r)", 1, 1, -INFINITY, INFINITY, false },
        { "f32", "z = aten.add.Tensor(q, y)", 1, 1, -INFINITY, INFINITY, false },
        { "f32", "t = aten.add.Tensor(r, y)\nz = aten.relu.default(t)", 1, 1, 0, INFINITY, false },
        { "f32", "t = aten.add.Tensor(y, r)\nz = aten.hardtanh.default(t, -0.25, 0.5)", 1, 1, -0.25f, 0.5f, true },
        { "f32", "t = aten.add.Tensor(y, r)\nz = aten.relu6.default(t)", 1, 1, 0, 6, false },
        { "f32", "t = aten.add.Tensor(y, r)\nz = aten.silu.default(t)", 1, 0, 0, 0, false },
        { "f32", "t = aten.add.Tensor(y, r)\ns = aten.relu.default(t)\nz = aten.add.Tensor(s, r)", 1, 0, 0, 0, false },
        { "f32", "z = aten.relu.default(y)", 1, 0, 0, 0, false },
        { "f32", "z = aten.add.Tensor(y, r, alpha=2)", 1, 0, 0, 0, false },
        { "f32", "z = aten.sub.Tensor(y, r)", 1, 0, 0, 0, false },
        { "f32", "z = aten.add.Tensor(y, p)", 0, 0, 0, 0, false },
        { "f32", "z = aten.add.Tensor(y, y)", 0, 0, 0, 0, false },
        { "f32", "z = aten.add.Tensor(y, r)\noutput y = y", 0, 0, 0, 0, false },
        { "f32", "k = aten._to_copy.default(r, dtype=i32)\nz = aten.add.Tensor(y, k)", 0, 0, 0, 0, false },
        { "f16", "k = aten._to_copy.default(r, dtype=f16)\nz = aten.add.Tensor(y, k)", 0, 0, 0, 0, false },
    };
    npu_kernel kernels[] = { { NPU_ATEN_CONV2D, "told", 0, NULL, told_prepare, told_launch, NULL, 0, 0 } };
    npu_kernel_table table = NPU_KERNEL_TABLE(kernels);
    for (isa = 0; isa_cpu(isa); isa++) {
        npu_ref_desc desc = { .tables = &table, .num_tables = 1, .with_built_in = true };
        npu_backend *cpu = NULL;
        desc.isa = npu_ref_isa(isa);
        NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
        for (size_t i = 0; i < COUNT(rows); i++) {
            float u[40], v[40];
            bool is_left = rows[i].is_fast && strcmp(npu_ref_isa(isa), "base") == 0; /* it has no loop for clamps */
            size_t wrong = 0;
            told_run(cpu, rows[i].dtype, rows[i].tail, false, v);
            told_run(cpu, rows[i].dtype, rows[i].tail, true, u);
            for (size_t k = 0; k < COUNT(u); k++) {
                wrong += isnan(u[k]) || isnan(v[k]) ? isnan(u[k]) != isnan(v[k]) : memcmp(&u[k], &v[k], 4) != 0;
            }
            NPU_CHECK_THAT(told.led == rows[i].led && told.sums == (is_left ? 0 : rows[i].sums) && wrong == 0 &&
                           (is_left || (told.low == rows[i].low && told.high == rows[i].high)),
                           "%s %s: set %s: %u led, %u sums, bounds %g and %g, %u wrong", rows[i].dtype, rows[i].tail,
                           npu_ref_isa(isa), (unsigned)told.led, (unsigned)told.sums, (double)told.low,
                           (double)told.high, (unsigned)wrong);
        }
        npu_ref_destroy(cpu);
    }
}

#define CONV3(x, w) "aten.conv2d.default(" x ", " w ", none, [1, 1], [1, 1])\n"
#define CONV1(x, w) "aten.conv2d.default(" x ", " w ")\n"
#define RELU(y, x) y " = aten.relu.default(" x ")\n"
#define SUM(y, a, b) y " = aten.add.Tensor(" a ", " b ")\n"
#define PARAM(name, dims) "param " name " : f32[" dims "]\n"
static const struct { const char *params, *ops; char last; } block_rows[] = {
    { PARAM("w1", "64,64,3,3") PARAM("w2", "64,64,3,3") PARAM("w3", "32,64,3,3") PARAM("w4", "32,32,3,3")
      PARAM("w5", "32,64,1,1"),
      "a = " CONV3("x", "w1") RELU("b", "a") "c = " CONV3("b", "w2") SUM("d", "c", "x") RELU("e", "d")
      "f = " CONV3("e", "w3") RELU("g", "f") "h = " CONV3("g", "w4") "i = " CONV1("e", "w5") SUM("j", "h", "i")
      RELU("z", "j"), 'j' },
    { PARAM("w1", "32,64,1,1") PARAM("w2", "32,32,3,3") PARAM("w3", "64,32,1,1") PARAM("w4", "16,64,1,1")
      PARAM("w5", "16,16,3,3") PARAM("w6", "64,16,1,1"),
      "a = " CONV1("x", "w1") RELU("b", "a") "c = " CONV3("b", "w2") RELU("d", "c") "e = " CONV1("d", "w3")
      SUM("f", "e", "x") RELU("g", "f") "h = " CONV1("g", "w4") RELU("i", "h") "j = " CONV3("i", "w5") RELU("k", "j")
      "l = " CONV1("k", "w6") SUM("m", "g", "l") RELU("z", "m"), 'm' },
};

/* The result of a block. Optimised or not, but not where every value is an output, ops run with those behind them. */
static float *block_run(size_t block, int64_t size, bool optimises, bool is_apart, npu_parallel *parallel,
                        size_t *bytes)
{
    const npu_backend *cpu = isa_cpu(isa);
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_plan_desc how = { .backends = &cpu, .num_backends = 1 };
    npu_exec_desc exec_desc = { .parallel = parallel };
    npu_text t = npu_text_init(NULL);
    npu_graph *g = NULL, *optimised = NULL;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *e = NULL;
    npu_diag diag;
    uint64_t numbers = 5;
    float *data[8], *y = NULL;
    uint32_t num = 0;
    npu_text_printf(&t, "npu_ir 1\ngraph main\ninput x : f32[1,64,%d,%d]\n%s%soutput z = z\n", (int)size, (int)size,
                    block_rows[block].params, block_rows[block].ops);
    for (char c = 'a'; is_apart && c <= block_rows[block].last; c++) {
        npu_text_printf(&t, "output %c = %c\n", c, c);
    }
    NPU_CHECK_STATUS(npu_graph_parse(&g, t.data, t.len, npu_test_graph_desc(), &diag), NPU_OK);
    for (uint32_t id = 1; id <= npu_graph_num_values(g); id++) {
        npu_value v = { id };
        npu_role role = npu_value_role(g, v);
        size_t len = 0;
        if (role != NPU_ROLE_PARAM && role != NPU_ROLE_INPUT) {
            continue;
        }
        npu_spec_len(npu_value_spec(g, v), &len);
        data[num] = (float *)malloc(len * sizeof **data);
        for (size_t i = 0; i < len; i++) {
            data[num][i] = (float)((int64_t)(npu_test_random(&numbers) % 2001) - 1000) / 1e4f;
        }
        if (role == NPU_ROLE_PARAM) {
            NPU_CHECK_STATUS(npu_graph_bind_param(g, npu_value_name(g, v), data[num], len * sizeof **data), NPU_OK);
        }
        num++;
    }
    NPU_CHECK_STATUS(optimises ? npu_graph_optimize(&optimised, g, &desc, NULL, &diag) : NPU_OK, NPU_OK);
    NPU_CHECK_STATUS(npu_plan_create(&plan, optimises ? optimised : g, &how, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&program, plan, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&e, program, &exec_desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_at(e, 0, data[0], (size_t)(64 * size * size) * sizeof **data), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
    const void *from = npu_exec_output(e, 0, bytes);
    y = (float *)malloc(*bytes);
    memcpy(y, from, *bytes);
    npu_exec_destroy(e);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    npu_graph_destroy(g), npu_graph_destroy(optimised);
    npu_text_free(&t);
    while (num > 0) {
        free(data[--num]);
    }
    return y;
}

/* Blocks of ResNets, whose shortcut dies in the sum: the same bits as all ops by themselves. */
static void test_blocks(void)
{
    npu_threads_desc how = { .width = 3 };
    npu_parallel *threads = NULL;
    npu_threads_create(&threads, &how);
    for (size_t block = 0; block < COUNT(block_rows); block++) {
        for (int64_t size = 7; size <= 21; size += 7) {
            for (isa = 0; isa_cpu(isa); isa++) {
                size_t bytes[4];
                float *apart = block_run(block, size, false, true, NULL, &bytes[0]);
                for (uint32_t i = 1; i < 4; i++) {
                    float *y = block_run(block, size, i > 1, false, i > 2 ? threads : NULL, &bytes[i]);
                    NPU_CHECK_THAT(bytes[i] == bytes[0] && memcmp(y, apart, bytes[0]) == 0,
                                   "block %u, size %d, way %u, set %s", (unsigned)block, (int)size, (unsigned)i,
                                   npu_ref_isa(isa));
                    free(y);
                }
                free(apart);
            }
        }
    }
    npu_threads_destroy(threads);
}

static void test_normalization(void) { CHECK_ROWS(norm_rows); }
static void test_losses(void) { CHECK_ROWS(loss_rows); }
static void test_pooling(void) { CHECK_ROWS(pool_rows); }

static void test_resize(void) { CHECK_ROWS(resize_rows); }
static void test_transposed_convolution(void) { CHECK_ROWS(conv_rows); }


/* Numbers whose squares float does not hold, and bounds that it rounds: `scale` times the usual ones. */
static const struct { row r; double scale; } magnitude_rows[] = {
    { { X("[40,300]"), "y = aten.std.dim(x, [1])", 1 }, 1e20 },
    { { X("[40,300]"), "y = aten.std.dim(x, [0])", 1 }, 1e-25 },
    { { X("[40,300]"), "y = aten.std.correction(x, [1], correction=0)", 1 }, 5e37 },
    { { X("[1000]"), "y = aten.var.default(x)", 1 }, 2e18 },
    { { X("[40,300]"), "y, z = aten.var_mean.dim(x, [1])", 2 }, 3e18 },
    { { X("[40,300]"), "y, z = aten.std_mean.dim(x, [1])", 2 }, 1e30 },
    { { X("[40,300]"), "y = aten.linalg_vector_norm.default(x, 2, [1])", 1 }, 1e25 },
    { { X("[40,300]"), "y = aten.linalg_vector_norm.default(x, 2, [0])", 1 }, 1e-30 },
    { { X("[1000]"), "y = aten.norm.Scalar(x)", 1 }, 1e22 },
    { { X("[40,300]"), "y = aten.layer_norm.default(x, [300])", 1 }, 1e21 },
    { { X("[4,6,50]"), "y = aten.group_norm.default(x, 2)", 1 }, 1e21 },
    { { X("[4,6,50]"), "y = aten.instance_norm.default(x, none, none, none, none, true, 0.1, 1e-05, false)", 1 }, 1e21 },
    { { X("[4,6,50]"), "y = aten.batch_norm.default(x, none, none, none, none, true, 0.1, 1e-05, false)", 1 }, 1e21 },
    { { X("[40,300]"), "y = aten.rms_norm.default(x, [300])", 1 }, 1e21 },
    { { X("[3000]"), "y = aten.logit.default(x, 1e-08)", 1 }, 1 },
    { { X("[3000]"), "y = aten.logit.default(x, 1e-03)", 1 }, 1 },
    { { X("[3000]"), "y = aten.cos.default(x)", 1 }, 1e37 },
    { { X("[3000]"), "y = aten.sin.default(x)", 1 }, 1e9 },
    { { X("[3000]"), "y = aten.tan.default(x)", 1 }, 1e37 }
};

/* Results are equal within the rounding of the largest of them, infinities where the others have them. */
static void check_magnitudes(size_t k, const float *y, const float *expected, size_t len)
{
    double most = 0;
    for (size_t i = 0; i < len; i++) {
        most = isfinite(expected[i]) ? fmax(most, (double)fabsf(expected[i])) : most;
    }
    for (size_t i = 0; i < len; i++) {
        double a = (double)y[i], b = (double)expected[i];
        if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= 2e-5 * most)) {
            fprintf(stderr, "%s: set %s: element %u is %.9g, expected %.9g\n", magnitude_rows[k].r.op, npu_ref_isa(isa),
                    (unsigned)i, a, b);
            NPU_CHECK(a == b);
            return;
        }
    }
}

static void test_magnitudes(void)
{
    NPU_ITEM("F9");
    NPU_ITEM("F10");
    NPU_ITEM("F11");
    for (size_t k = 0; k < COUNT(magnitude_rows); k++) {
        const row *r = &magnitude_rows[k].r;
        npu_graph *g = build(r, "f32");
        void *data[MAX_INPUTS] = { NULL };
        size_t len = 0;
        make_data(g, NPU_F32, false, data);
        npu_spec_len(npu_value_spec(g, npu_graph_input(g, 0)), &len);
        for (size_t i = 0; i < len; i++) {
            ((float *)data[0])[i] *= (float)magnitude_rows[k].scale;
        }
        npu_exec *slow = run(g, plain, data);
        for (isa = 0; isa_cpu(isa); isa++) {
            npu_exec *fast = run(g, isa_cpu(isa), data);
            for (uint32_t i = 0; i < r->num_outputs && fast && slow; i++) {
                npu_spec_len(npu_value_spec(g, npu_graph_output(g, i)), &len);
                check_magnitudes(k, npu_exec_output(fast, i, NULL), npu_exec_output(slow, i, NULL), len);
            }
            npu_exec_destroy(fast);
        }
        npu_exec_destroy(slow);
        npu_graph_destroy(g);
        free(data[0]);
    }
}

/* ---- recurrent layers --------------------------------------------------------------------------------------- */

/* kind 1: of tanh, 2: of relu, 3: GRU, 4: LSTM; sizes of a whole sequence. */
typedef struct rnn_case {
    int kind;
    int64_t steps, batch, in, cell, state, layers;
    bool bidirectional, batch_first, has_biases;
} rnn_case;

/* Blocks of steps, whole and not; parts of the batch and of two directions; a projection; rows of an item apart. */
static const rnn_case rnn_cases[] = {
    { 4, 70, 1, 20, 40, 40, 1, true, false, true },  { 4, 9, 8, 33, 48, 48, 2, false, false, true },
    { 4, 5, 17, 16, 40, 24, 2, true, true, true },   { 4, 3, 70, 30, 33, 33, 1, true, true, false },
    { 3, 66, 1, 12, 20, 20, 3, true, true, true },   { 3, 9, 9, 40, 64, 64, 1, true, false, true },
    { 3, 1, 5, 7, 20, 20, 1, false, false, false },  { 2, 8, 12, 24, 70, 70, 2, true, true, true },
    { 1, 9, 16, 40, 80, 80, 1, false, false, true }, { 1, 1, 1, 1, 1, 1, 1, false, false, true }
};

/* Weights between -0.1 and 0.1, so that states neither settle nor blow up, as constants or as values of an op. */
static npu_graph *rnn_graph(const rnn_case *c, npu_dtype dtype, bool is_known)
{
    int64_t ways = c->bidirectional ? 2 : 1, gates = c->kind < 3 ? 1 : c->kind;
    npu_rnn_attrs net = { c->has_biases, c->layers, 0, false, c->bidirectional, c->batch_first };
    npu_graph *g = npu_graph_create(NULL);
    npu_value w[64], h[2], x = npu_input(g, "x", npu_spec_tensor(dtype, 3, (int64_t[]){
        c->batch_first ? c->batch : c->steps, c->batch_first ? c->steps : c->batch, c->in }));
    uint32_t n = 0;
    for (int i = 0; i < 2; i++) {
        int64_t dims[] = { c->layers * ways, c->batch, i ? c->cell : c->state };
        h[i] = npu_input(g, NULL, npu_spec_tensor(dtype, 3, dims));
    }
    for (int64_t cell = 0; cell < c->layers * ways; cell++) {
        const int64_t dims[][2] = { { gates * c->cell, cell < ways ? c->in : ways * c->state }, { gates * c->cell, c->state },
                                    { gates * c->cell, 0 }, { gates * c->cell, 0 }, { c->state, c->cell } };
        for (int i = 0; i < 5; i++) {
            size_t len = (size_t)(dims[i][0] * (dims[i][1] ? dims[i][1] : 1));
            if (i == 4 ? c->state == c->cell : i > 1 && !c->has_biases) {
                continue;
            }
            uint8_t *data = (uint8_t *)malloc(len * 4);
            for (size_t k = 0; k < len; k++) {
                put(data, dtype, k, (float)(npu_test_random(&seed) % 601) / 3000.0f - 0.1f, 0);
            }
            w[n] = npu_constant(g, NULL, npu_spec_tensor(dtype, dims[i][1] ? 2 : 1, dims[i]), data);
            w[n] = is_known ? w[n] : npu_neg(g, npu_neg(g, w[n]));
            n++;
            free(data);
        }
    }
    npu_op op = c->kind == 4 ? npu_lstm(g, x, h[0], h[1], w, n, &net)
              : c->kind == 3 ? npu_gru(g, x, h[0], w, n, &net)
              : c->kind == 2 ? npu_rnn_relu(g, x, h[0], w, n, &net) : npu_rnn_tanh(g, x, h[0], w, n, &net);
    for (uint32_t i = 0; i < (c->kind == 4 ? 3 : 2); i++) {
        NPU_CHECK_STATUS(npu_output(g, NULL, npu_op_result(g, op, i)), NPU_OK);
    }
    return g;
}

typedef struct rnn_result {
    void *y[3];
    size_t size[3];
} rnn_result;

static rnn_result rnn_run(const npu_graph *g, const npu_backend *cpu, npu_parallel *threads, void **data)
{
    npu_plan_desc how = { .backends = &cpu, .num_backends = 1 };
    npu_exec_desc desc = { .parallel = threads };
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *e = NULL;
    rnn_result r = { { NULL }, { 0 } };
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &how, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&program, plan, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&e, program, &desc, NULL), NPU_OK);
    for (uint32_t i = 0; e && i < npu_graph_num_inputs(g); i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &size);
        NPU_CHECK_STATUS(npu_test_input_at(e, i, data[i], size), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
    for (uint32_t i = 0; e && i < npu_graph_num_outputs(g); i++) {
        const void *y = npu_exec_output(e, i, &r.size[i]);
        r.y[i] = malloc(r.size[i]);
        memcpy(r.y[i], y, r.size[i]);
    }
    npu_exec_destroy(e), npu_program_destroy(program), npu_plan_destroy(plan);
    return r;
}

/* The same bits, or results that are off by no more than 256 roundings. */
static void rnn_compare(size_t at, npu_dtype dtype, const rnn_result *got, const rnn_result *expected, bool is_near)
{
    double unit = dtype == NPU_F32 ? 0x1p-16 : dtype == NPU_F16 ? 0x1p-8 : 0x1p-5;
    for (uint32_t i = 0; i < 3 && expected->y[i]; i++) {
        size_t wrong = got->size[i] != expected->size[i];
        for (size_t k = 0; wrong == 0 && is_near && k < got->size[i] / (dtype == NPU_F32 ? 4 : 2); k++) {
            double x = element(got->y[i], dtype, k), y = element(expected->y[i], dtype, k);
            wrong += !(fabs(x - y) <= unit * (1 + fabs(y)));
        }
        wrong += wrong == 0 && !is_near && memcmp(got->y[i], expected->y[i], got->size[i]) != 0;
        NPU_CHECK_THAT(wrong == 0, "case %d of %s, set %s, output %u: %d wrong", (int)at, npu_dtype_name(dtype),
                       npu_ref_isa(isa), (unsigned)i, (int)wrong);
    }
}

static void rnn_free(rnn_result *r)
{
    for (uint32_t i = 0; i < 3; i++) {
        free(r->y[i]);
    }
}

/* Near the plain variant's, and the same bits whether weights are packed before or not, on one thread and on three. */
static void test_recurrent(void)
{
    npu_threads_desc how = { .width = 3 };
    npu_parallel *threads = NULL;
    npu_threads_create(&threads, &how);
    for (size_t at = 0; at < COUNT(rnn_cases) * COUNT(floats); at++) {
        const rnn_case *c = &rnn_cases[at / COUNT(floats)];
        npu_dtype dtype = floats[at % COUNT(floats)]; /* of 16 bits, one for some */
        if (dtype != NPU_F32 && at / COUNT(floats) % COUNT(floats) != at % COUNT(floats)) {
            continue;
        }
        uint64_t weights = seed;
        void *data[MAX_INPUTS] = { NULL };
        npu_graph *known = rnn_graph(c, dtype, true);
        seed = weights;
        npu_graph *fed = rnn_graph(c, dtype, false);
        make_data(known, dtype, false, data);
        rnn_result expected = rnn_run(known, plain, NULL, data);
        for (isa = 0; isa_cpu(isa); isa++) {
            rnn_result one = rnn_run(known, isa_cpu(isa), NULL, data), three = rnn_run(known, isa_cpu(isa), threads, data);
            rnn_result apart = rnn_run(fed, isa_cpu(isa), NULL, data);
            rnn_compare(at / COUNT(floats), dtype, &one, &expected, true);
            rnn_compare(at / COUNT(floats), dtype, &three, &one, false);
            rnn_compare(at / COUNT(floats), dtype, &apart, &one, false);
            rnn_free(&one), rnn_free(&three), rnn_free(&apart);
        }
        rnn_free(&expected);
        npu_graph_destroy(known), npu_graph_destroy(fed);
        for (size_t i = 0; i < MAX_INPUTS; i++) {
            free(data[i]);
        }
    }
    npu_threads_destroy(threads);
}

/* ---- choosing ---------------------------------------------------------------------------------------------- */

static npu_status launch_one(const npu_launch *l, float number)
{
    float *y = (float *)l->y[0];
    y[0] = number;
    return NPU_OK;
}
static npu_status launch_first(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)part;
    (void)parts;
    return launch_one(l, 1);
}
static npu_status launch_second(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)part;
    (void)parts;
    return launch_one(l, 2);
}
static npu_status launch_plain(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)part;
    (void)parts;
    return launch_one(l, 3);
}
static bool is_long(const npu_op_info *op) { return op->in[0]->dims[0] > 1; }

/* The first of the highest priority that takes the op, or the one that was asked for by name; a name that the kind
   does not have is no obstacle. */
static void test_choice(void)
{
    static const npu_kernel kernels[] = {
        { NPU_ATEN_RELU, "first", 20, is_long, NULL, launch_first, NULL, NPU_KERNEL_NUMBERS, 0 },
        { NPU_ATEN_RELU, "second", 10, NULL, NULL, launch_second, NULL, NPU_KERNEL_NUMBERS, 0 },
        { NPU_ATEN_RELU, "same", 10, NULL, NULL, launch_plain, NULL, NPU_KERNEL_NUMBERS, 0 },
        { NPU_ATEN_RELU, "plain", 0, NULL, NULL, launch_plain, NULL, NPU_KERNEL_NUMBERS, 0 },
        { NPU_ATEN_RELU, "named", -1, NULL, NULL, launch_second, NULL, NPU_KERNEL_NUMBERS, 0 },
        { NPU_ATEN_NEG, "named", -1, NULL, NULL, launch_second, NULL, NPU_KERNEL_NUMBERS, 0 }
    };
    static const npu_kernel unsorted[] = {
        { NPU_ATEN_RELU, "plain", 0, NULL, NULL, launch_plain, NULL, NPU_KERNEL_NUMBERS, 0 },
        { NPU_ATEN_RELU, "first", 20, NULL, NULL, launch_first, NULL, NPU_KERNEL_NUMBERS, 0 }
    };
    static const struct { const char *variant; int64_t len; float number; } rows[] = {
        { NULL, 2, 1 }, { NULL, 1, 2 }, { "plain", 2, 3 }, { "second", 2, 2 }, { "avx9", 2, 1 }, { "first", 1, 2 },
        { "named", 2, 2 }
    };
    npu_kernel_table table = NPU_KERNEL_TABLE(kernels), bad = NPU_KERNEL_TABLE(unsorted);
    npu_ref_desc desc;
    npu_backend *backend = NULL;
    NPU_ITEM("R2.8");
    memset(&desc, 0, sizeof desc);
    desc.num_tables = 1;
    desc.tables = &bad;
    NPU_CHECK_STATUS(npu_ref_create(&backend, &desc), NPU_ERR_INVALID_ARGUMENT);
    desc.tables = &table;
    for (size_t i = 0; i < COUNT(rows); i++) {
        float x[2] = { 5, 6 }, y[2] = { 0 };
        npu_buffer buffers[2];
        npu_tensor in, out;
        desc.variant = rows[i].variant;
        NPU_CHECK_STATUS(npu_ref_create(&backend, &desc), NPU_OK);
        npu_tensor_set_host(&in, &buffers[0], NPU_F32, 1, &rows[i].len, x);
        npu_tensor_set_host(&out, &buffers[1], NPU_F32, 1, &rows[i].len, y);
        NPU_CHECK_STATUS(npu_op_call(backend, NPU_TEST_CALL(NPU_ATEN_RELU, &in, 1, &out, 1, 0, NULL, 0), NULL), NPU_OK);
        NPU_CHECK_NEAR(y[0], rows[i].number, 0);
        NPU_CHECK_STATUS(npu_op_call(backend, NPU_TEST_CALL(NPU_ATEN_NEG, &in, 1, &out, 1, 0, NULL, 0), NULL),
                         rows[i].variant && strcmp(rows[i].variant, "named") == 0 ? NPU_OK : NPU_ERR_NOT_IMPLEMENTED);
        npu_ref_destroy(backend);
    }
}

static npu_status prepare_mode(npu_prepare *p)
{
    p->state = npu_prepare_alloc(p, sizeof(float));
    *(float *)p->state = (float)p->mode;
    return NPU_OK;
}
static npu_status launch_mode(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)part;
    (void)parts;
    return launch_one(l, *(const float *)l->state);
}

/* Kinds that share functions differ in the mode of their rows, variants of one kind in theirs. */
static void test_mode(void)
{
    static const npu_kernel kernels[] = {
        { NPU_ATEN_RELU, "long", 1, is_long, prepare_mode, launch_mode, NULL, NPU_KERNEL_NUMBERS, 9 },
        { NPU_ATEN_RELU, "plain", 0, NULL, prepare_mode, launch_mode, NULL, NPU_KERNEL_NUMBERS, 7 },
        { NPU_ATEN_NEG, "plain", 0, NULL, prepare_mode, launch_mode, NULL, NPU_KERNEL_NUMBERS, 0 }
    };
    static const struct { npu_kind kind; int64_t len; float number; } rows[] = {
        { NPU_ATEN_RELU, 2, 9 }, { NPU_ATEN_RELU, 1, 7 }, { NPU_ATEN_NEG, 1, 0 }
    };
    npu_kernel_table table = NPU_KERNEL_TABLE(kernels);
    npu_ref_desc desc = { 0 };
    npu_backend *backend = NULL;
    NPU_ITEM("F49");
    desc.tables = &table, desc.num_tables = 1;
    NPU_CHECK_STATUS(npu_ref_create(&backend, &desc), NPU_OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        float x[2] = { 5, 6 }, y[2] = { -1, -1 };
        npu_buffer buffers[2];
        npu_tensor in, out;
        npu_tensor_set_host(&in, &buffers[0], NPU_F32, 1, &rows[i].len, x);
        npu_tensor_set_host(&out, &buffers[1], NPU_F32, 1, &rows[i].len, y);
        NPU_CHECK_STATUS(npu_op_call(backend, NPU_TEST_CALL(rows[i].kind, &in, 1, &out, 1, 0, NULL, 0), NULL), NPU_OK);
        NPU_CHECK_NEAR(y[0], rows[i].number, 0);
    }
    npu_ref_destroy(backend);
}

static uint32_t num_prepared;
static npu_status prepare_counted(npu_prepare *p)
{
    (void)p;
    num_prepared++;
    return NPU_OK;
}
static npu_status launch_counted(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)part;
    (void)parts;
    return launch_one(l, *(const float *)l->x[0]);
}

static npu_value scaled(npu_graph *g, const char *name, npu_value a, npu_value b, double alpha)
{
    return npu_op_result(g, npu_emit_name(g, name, (npu_arg[]){ npu_arg_tensor("self", a), npu_arg_tensor("other", b),
                                                                npu_arg_float("alpha", alpha) }, 3), 0);
}

/* y = x, then so often: y + x or y + 2 * x, y - x / 2, y * x, |y|; y * x by a kernel of the test, if it is there.
   Returns bytes that the program keeps. */
static uint64_t repeat_ops(const npu_backend *cpu, uint32_t num, float expected)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, (const int64_t[]){ 1 })), y = x;
    const float one = 1;
    float out = 0;
    npu_exec *exec = NULL;
    npu_memory m = { 0 };
    for (uint32_t i = 0; i < num; i++) {
        y = scaled(g, "aten.add.Tensor", y, x, 1 + i % 2);
        y = scaled(g, "aten.sub.Tensor", y, x, 0.5);
        y = npu_abs(g, npu_mul(g, y, x));
    }
    npu_output(g, "y", y);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(exec, "x", &one, sizeof one), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    if (npu_exec_output(exec, 0, NULL)) {
        memcpy(&out, npu_exec_output(exec, 0, NULL), sizeof out);
    }
    NPU_CHECK_NEAR(out, expected, 0);
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(npu_exec_program(exec)), 0, &m), NPU_OK);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    return m.prepared;
}

/* Ops of one kind, with the same types and attributes, are prepared once, by kernels of the library; those of others
   for each op. */
static void test_alike(void)
{
    static const npu_kernel kernels[] = {
        { NPU_ATEN_MUL, "counted", 0, NULL, prepare_counted, launch_counted, NULL, NPU_KERNEL_NUMBERS, 0 }
    };
    npu_kernel_table table = NPU_KERNEL_TABLE(kernels);
    npu_ref_desc desc = { 0 };
    npu_backend *backend = NULL;
    desc.tables = &table, desc.num_tables = 1, desc.with_built_in = true;
    NPU_CHECK_STATUS(npu_ref_create(&backend, &desc), NPU_OK);
    uint64_t few = repeat_ops(npu_ref_backend(), 2, 3);
    NPU_CHECK(few > 0);
    NPU_CHECK_EQ(repeat_ops(npu_ref_backend(), 1000, 1001), few);
    few = repeat_ops(backend, 2, 3);
    num_prepared = 0;
    NPU_CHECK_EQ(repeat_ops(backend, 1000, 1001), few);
    NPU_CHECK_EQ(num_prepared, 1000);
    npu_ref_destroy(backend);
}

static npu_status launch_dtype(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)part;
    (void)parts;
    *(float *)l->y[0] = l->in[0].dtype == NPU_F32 ? *(const float *)l->x[0] : -1;
    return NPU_OK;
}

/* What casts its operand first uses the kernels of the backend it is in: one of the program's own, without a prepare, or
   none. */
static void test_cast_first(void)
{
    static const char text[] = "graph main\ninput x : f64[2]\ny = aten.sum.default(x, dtype=f32)\noutput y = y\n";
    static const npu_kernel own[] = { { NPU_ATEN_SUM, "own", 0, NULL, NULL, launch_dtype, NULL, NPU_KERNEL_NUMBERS, 0 } };
    static const double x[] = { 0.1, 5 };
    uint32_t num = 0;
    const npu_kernel_table *built_in = npu_ref_kernels(&num);
    npu_kernel_table tables[2] = { { NULL, 0, NPU_IR_VERSION }, { own, 1, NPU_IR_VERSION } };
    npu_graph *g = NULL;
    npu_diag diag;
    for (uint32_t i = 0; i < num; i++) {
        tables[0] = strcmp(built_in[i].kernels[0].variant, "cast") == 0 ? built_in[i] : tables[0];
    }
    NPU_CHECK(tables[0].num_kernels);
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), &diag), NPU_OK);
    for (uint32_t count = 1; count <= 2; count++) {
        npu_ref_desc desc;
        npu_backend *cpu = NULL;
        npu_exec *exec = NULL;
        float y = 0;
        memset(&desc, 0, sizeof desc);
        desc.tables = tables;
        desc.num_tables = count;
        NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
        const npu_backend *backend = cpu;
        NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &backend, 1, &diag), count == 1 ? NPU_ERR_NOT_IMPLEMENTED : NPU_OK);
        if (exec) {
            npu_test_input(exec, "x", x, sizeof x);
            npu_exec_set_output(exec, "y", &y, sizeof y);
            NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
            NPU_CHECK_NEAR(y, 0.1f, 0);
        } else {
            NPU_CHECK(strstr(diag.message, "no kernel for f32") != NULL);
        }
        npu_exec_destroy(exec);
        npu_ref_destroy(cpu);
    }
    npu_graph_destroy(g);
}

/* A set that this machine lacks is refused, by a message that lists those it has. */
static void check_isa(const char *name)
{
    npu_ref_desc desc = { 0 };
    npu_backend *cpu = NULL;
    npu_diag diag;
    bool found = false;
    for (uint32_t i = 0; npu_ref_isa(i); i++) {
        found = found || strcmp(npu_ref_isa(i), name) == 0;
    }
    desc.isa = name;
    desc.diag = &diag;
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), found ? NPU_OK : NPU_ERR_UNSUPPORTED);
    NPU_CHECK(found || strstr(diag.message, npu_ref_isa(0)));
    npu_ref_destroy(cpu);
    if (!found) {
        NPU_SKIP("this machine does not have it");
    }
}

static void test_base(void)
{
    uint32_t last = 0;
    NPU_ITEM("F50");
    while (npu_ref_isa(last + 1)) {
        last++;
    }
    NPU_CHECK_STR(npu_ref_isa(last), "base");
    NPU_CHECK(!npu_ref_isa(last + 2));
    check_isa("base");
}

static void test_avx2(void) { check_isa("avx2"); }
static void test_avx512(void) { check_isa("avx512"); }
static void test_avx2_vnni(void) { check_isa("avx2_vnni"); }
static void test_avx512_vnni(void) { check_isa("avx512_vnni"); }
static void test_avx512_bf16(void) { check_isa("avx512_bf16"); }
static void test_amx(void) { check_isa("amx"); }
static void test_neon(void) { check_isa("neon"); }

/* Products of bf16 under each set, beside sums in double: within the bound of "amx", then a step of bf16. The
   first element of row 0 is the least number times 2^100, alone in its row: 0 where small numbers count as none. */
static void check_bf16(const npu_backend *cpu, const char *set, const int sizes[3], bool is_linear, bool is_known)
{
    const int64_t m = sizes[0], k = sizes[1], n = sizes[2];
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_exec *exec = NULL;
    npu_diag diag;
    uint16_t *a = (uint16_t *)calloc((size_t)(m * k), 2), *b = (uint16_t *)calloc((size_t)(k * n), 2);
    uint16_t *bias = (uint16_t *)calloc((size_t)n, 2);
    const bool has_bias = is_linear && k % 64 == 0;
    npu_spec bs = npu_spec_tensor(NPU_BF16, 2, is_linear ? (int64_t[]){ n, k } : (int64_t[]){ k, n });
    uint64_t rng = (uint64_t)(m * 1000 + k * 10 + n);
    size_t size = 0, wrong = 0;
    for (int64_t i = 0; i < m * k; i++) {
        a[i] = npu_f32_to_bf16(i < k ? 0.0f : (float)(int)(npu_test_random(&rng) % 2001) / 512.0f - 2.0f);
    }
    for (int64_t i = 0; i < k * n; i++) {
        b[i] = npu_f32_to_bf16((float)(int)(npu_test_random(&rng) % 2001) / 512.0f - 2.0f);
    }
    for (int64_t i = 1; i < n && has_bias; i++) {
        bias[i] = npu_f32_to_bf16((float)(int)(npu_test_random(&rng) % 2001) / 64.0f - 16.0f);
    }
    a[0] = 1;
    b[0] = npu_f32_to_bf16(0x1p100f);
    npu_value x = npu_input(g, "a", npu_spec_tensor(NPU_BF16, 2, (int64_t[]){ m, k }));
    npu_value w = is_known ? npu_constant(g, NULL, bs, b) : npu_input(g, "b", bs);
    npu_value more = { 0 };
    if (has_bias) {
        more = npu_constant(g, NULL, npu_spec_tensor(NPU_BF16, 1, &n), bias);
    }
    npu_output(g, "y", is_linear ? npu_linear(g, x, w, more) : npu_mm(g, x, w));
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), NPU_OK);
    npu_test_input(exec, "a", a, (size_t)(m * k) * 2);
    if (!is_known) {
        npu_test_input(exec, "b", b, (size_t)(k * n) * 2);
    }
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    const uint16_t *y = (const uint16_t *)npu_exec_output(exec, 0, &size);
    for (int64_t i = 0; i < m * n && size; i++) {
        double sum = (double)npu_bf16_to_f32(bias[i % n]), all = fabs(sum);
        for (int64_t q = 0; q < k; q++) {
            double p = (double)npu_bf16_to_f32(a[i / n * k + q]) *
                       (double)npu_bf16_to_f32(b[is_linear ? i % n * k + q : q * n + i % n]);
            sum += p;
            all += fabs(p);
        }
        double error = fabs((double)npu_bf16_to_f32(y[i]) - sum);
        wrong += i && error > all * (double)k * 0x1p-23 + fabs(sum) * 0x1p-8 + 0x1p-125;
    }
    NPU_CHECK_THAT(size == (size_t)(m * n) * 2 && wrong == 0, "%s: %d x %d x %d: %lu wrong", set, sizes[0],
                   sizes[1], sizes[2], (unsigned long)wrong);
    NPU_CHECK_EQ((uintptr_t)y % 64, 0); /* results begin a line of the cache, which tiles and vectors are written in */
    if (m > 1 && n > 1) {
        double least = strcmp(set, "avx512_bf16") == 0 || strcmp(set, "amx") == 0 ? 0.0 : ldexp(1.0, -33);
        NPU_CHECK_NEAR(npu_bf16_to_f32(y[0]), least, 0);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    free(a);
    free(b);
    free(bias);
}

static void test_bf16_products(void)
{
    static const int sizes[][3] = {
        { 1, 7, 5 },    { 2, 1, 2 },     { 3, 2, 33 },    { 13, 31, 32 },   { 12, 512, 64 }, { 40, 513, 31 },
        { 97, 515, 70 }, { 5, 1030, 129 }, { 100, 64, 300 }, { 25, 1025, 1 },   { 33, 128, 47 },  { 1, 64, 40 },
    };
    for (uint32_t set = 0; npu_ref_isa(set); set++) {
        npu_ref_desc desc = { .isa = npu_ref_isa(set), .with_built_in = true };
        npu_backend *cpu = NULL;
        NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
        for (size_t i = 0; i < 4 * sizeof sizes / sizeof sizes[0]; i++) {
            check_bf16(cpu, npu_ref_isa(set), sizes[i / 4], i % 2, i / 2 % 2);
        }
        npu_ref_destroy(cpu);
    }
}

static void test_unknown_isa(void)
{
    npu_ref_desc desc = { 0 };
    npu_backend *cpu = NULL;
    npu_diag diag;
    NPU_ITEM("F50");
    desc.isa = "avx9";
    desc.diag = &diag;
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_ERR_UNSUPPORTED);
    NPU_CHECK(strstr(diag.message, "avx9") && strstr(diag.message, "base"));
}

/* Where threads are looked at, only what has some is run: the rest would take minutes. */
#ifdef __SANITIZE_THREAD__
enum { LOOKS_AT_THREADS = true };
#else
enum { LOOKS_AT_THREADS = false };
#endif

int main(void)
{
    npu_ref_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.variant = "plain";
    seed = npu_test_seed();
    if (npu_ref_create(&plain, &desc)) {
        return 1;
    }
    NPU_RUN(test_epilogue);
    NPU_RUN(test_blocks);
    if (!LOOKS_AT_THREADS) {
        NPU_RUN(test_softmax);
        NPU_RUN(test_far_scores);
        NPU_RUN(test_doubles);
        NPU_RUN(test_reduction);
        NPU_RUN(test_wide_reduction);
        NPU_RUN(test_scan);
        NPU_RUN(test_topk_of_few);
        NPU_RUN(test_sort);
        NPU_RUN(test_division);
        NPU_RUN(test_products);
        NPU_RUN(test_known_products);
        NPU_RUN(test_whole_products);
        NPU_RUN(test_search);
        NPU_RUN(test_transposed);
        NPU_RUN(test_transposed_elements);
        NPU_RUN(test_normalization);
        NPU_RUN(test_losses);
        NPU_RUN(test_magnitudes);
        NPU_RUN(test_pooling);
        NPU_RUN(test_resize);
        NPU_RUN(test_transposed_convolution);
        NPU_RUN(test_convolution);
        NPU_RUN(test_recurrent);
        NPU_RUN(test_squares);
        NPU_RUN(test_residual);
        NPU_RUN(test_choice);
        NPU_RUN(test_mode);
        NPU_RUN(test_alike);
        NPU_RUN(test_cast_first);
        NPU_RUN(test_base);
        NPU_RUN(test_avx2);
        NPU_RUN(test_avx512);
        NPU_RUN(test_neon);
        NPU_RUN(test_avx2_vnni);
        NPU_RUN(test_avx512_vnni);
        NPU_RUN(test_avx512_bf16);
        NPU_RUN(test_amx);
        NPU_RUN(test_bf16_products);
        NPU_RUN(test_unknown_isa);
    }
    for (size_t i = 0; i < 5 * ISA_MAX; i++) {
        npu_ref_destroy(square_cpus[i / ISA_MAX][i % ISA_MAX]);
    }
    isa_free();
    npu_ref_destroy(plain);
    return npu_test_done();
}
