/* 10_lowering: a graph as structured loops, and a pattern of your own. A layer (conv, gelu, pool) is lowered by
   "convert-aten-to-linalg" after a pattern has replaced gelu by something cheaper; both graphs run and agree.
   cc -O2 -I.. 10_lowering.c -lm -lpthread */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include <math.h>
#include <stdio.h>

enum { IN = 1 * 3 * 8 * 8, OUT = 1 * 4 * 2 * 2 };

static npu_graph *build(void)
{
    static float weights[4 * 3 * 3 * 3];
    npu_graph *g = npu_graph_create(NULL);
    npu_value none = { 0 };
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 3, 8, 8 })), w, y;
    for (int i = 0; i < 4 * 3 * 3 * 3; i++) {
        weights[i] = (float)(i % 7) * 0.1f - 0.3f;
    }
    w = npu_param(g, "w", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 4, 3, 3, 3 }));
    npu_graph_bind_param(g, "w", weights, sizeof weights);
    y = npu_conv2d(g, x, w, none, &(npu_conv2d_attrs){ .stride = { 2, 2 }, .padding = { 1, 1 } });
    y = npu_gelu(g, y, NULL);
    npu_output(g, "y", npu_adaptive_avg_pool2d(g, y, 2, 2));
    return g;
}

/* gelu(x) -> x sigmoid(1.702 x). Operands come through npu_rewrite_operand: they are converted already. Attributes
   are those of the old op: a gelu that is an approximation is left alone. */
static npu_status cheaper_gelu(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    npu_graph *to = npu_rewrite_target(rw);
    const npu_op_info *info = npu_rewrite_info(rw, op);
    npu_value x = npu_rewrite_operand(rw, op, 0);
    (void)ctx;
    if (!info || !npu_op_str_is(info, "approximate", "none")) {
        return npu_rewrite_no_match(rw, "it is an approximation already");
    }
    x = npu_mul(to, x, npu_sigmoid(to, npu_mul(to, x, npu_number(to, npu_scalar_float(1.702)))));
    npu_rewrite_replace(rw, npu_op_result(from, op, 0), x);
    return NPU_OK;
}

static npu_status run_cheaper_gelu(void *ctx, npu_graph **out, const npu_graph *g, npu_diag *diag)
{
    static const npu_pattern pattern = { "cheaper-gelu", NPU_ATEN_GELU, NULL, 0, cheaper_gelu, NULL };
    (void)ctx;
    return npu_graph_apply_patterns(out, g, &pattern, 1, NULL, NULL, diag);
}

static void tell(void *ctx, const npu_pass *pass, bool is_after, const npu_graph *g)
{
    (void)ctx;
    printf("%s %s: %u ops\n", is_after ? "after " : "before", pass->name, (unsigned)npu_graph_num_ops(g));
}

static npu_status run(const npu_graph *g, const float *in, float *out)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_exec_create_simple(&exec, g, &cpu, 1, &diag);
    status = status ? status : npu_exec_set_input(exec, &(npu_array){ "x", *npu_value_spec(g, npu_graph_input(g, 0)), in });
    status = status ? status : npu_exec_set_output(exec, "y", out, OUT * sizeof *out);
    status = status ? status : npu_exec_run(exec);
    npu_exec_destroy(exec);
    return status;
}

int main(void)
{
    npu_pass passes[2] = { { "cheaper-gelu", NULL, run_cheaper_gelu, NULL } };
    npu_pass_options options = { .dump = tell, .validate = true };
    npu_graph *g = build(), *loops = NULL;
    npu_text text = npu_text_init(NULL);
    npu_diag diag = { 0 };
    float in[IN], before[OUT], after[OUT], worst = 0;
    for (int i = 0; i < IN; i++) {
        in[i] = sinf((float)i);
    }
    passes[1] = *npu_conversion_pass("convert-aten-to-linalg");
    if (npu_graph_run_passes(&loops, g, passes, 2, &options, &diag)) {
        fprintf(stderr, "%s\n", diag.message);
        return 1;
    }
    npu_graph_print(loops, &text);
    printf("\n%s\n", text.data);
    if (run(g, in, before) || run(loops, in, after)) {
        return 1;
    }
    for (int i = 0; i < OUT; i++) {
        worst = fabsf(before[i] - after[i]) > worst ? fabsf(before[i] - after[i]) : worst;
    }
    printf("largest difference %.4f\n", (double)worst);
    npu_text_free(&text);
    npu_graph_destroy(loops);
    npu_graph_destroy(g);
    return worst < 0.02f ? 0 : 1;
}
