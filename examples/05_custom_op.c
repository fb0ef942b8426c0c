/* 05_custom_op: an op of your own. One row (kind, schema, type rule), one kernel; it is then packed, printed, parsed,
   partitioned and run like any built-in op. Here: my.scale_shift(x, scale, shift) = x * scale + shift.
   cc -O2 -I.. 05_custom_op.c -lm -lpthread */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include <stdio.h>

enum { MY_SCALE_SHIFT = NPU_NS_USER << 16 | 1 };

/* The result has the spec of x, which must be f32. */
static npu_status type_scale_shift(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "x");
    if (x->dtype != NPU_F32) {
        return npu_deduce_fail(d, NPU_ERR_DTYPE, "x", "x is %s, expected f32", npu_dtype_name((npu_dtype)x->dtype));
    }
    return npu_deduce_add_result(d, x);
}

static const npu_op_row my_rows[] = {
    { MY_SCALE_SHIFT, NPU_ELEMENTWISE | NPU_INPLACE, type_scale_shift, "scale_shift(Tensor x, *, float scale=1.0, float shift=0.0) -> Tensor", "x scale + shift", NULL }
};

typedef struct scale_shift {
    float scale, shift;
} scale_shift;

/* Once per op: read the attributes by name into the kernel's own state. */
static npu_status prepare_scale_shift(npu_prepare *p)
{
    scale_shift *s = npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->scale = (float)npu_op_float(p->op, "scale", 1.0);
    s->shift = (float)npu_op_float(p->op, "shift", 0.0);
    p->state = s;
    return NPU_OK;
}

static npu_status run_scale_shift(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const scale_shift *s = l->state;
    const float *x = l->x[0];
    float *y = l->y[0];
    int64_t len = 1;
    (void)part;
    (void)parts;
    for (uint32_t i = 0; i < l->in[0].rank; i++) {
        len *= l->in[0].dims[i];
    }
    for (int64_t i = 0; i < len; i++) {
        y[i] = x[i] * s->scale + s->shift;
    }
    return NPU_OK;
}

static const npu_kernel my_kernels[] = {
    { .kind = MY_SCALE_SHIFT, .variant = "plain", .prepare = prepare_scale_shift, .launch = run_scale_shift }
};

int main(void)
{
    npu_registry *registry = NULL;
    npu_backend *mine = NULL;
    npu_diag diag = { 0 };
    npu_kernel_table table = NPU_KERNEL_TABLE(my_kernels);
    npu_ref_desc ref_desc = { .tables = &table, .num_tables = 1, .with_built_in = true };
    float in[4] = { 1, 2, 3, 4 }, out[4];

    if (npu_registry_create(&registry, NULL, &diag) || npu_registry_add(registry, "my", &my_rows[0], &diag) || npu_ref_create(&mine, &ref_desc)) {
        fprintf(stderr, "%s\n", diag.message);
        return 1;
    }
    npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry });
    npu_spec four = npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 4 });
    npu_value x = npu_input(g, "x", four);
    npu_arg args[] = { npu_arg_tensor("x", x), npu_arg_float("scale", 10), npu_arg_float("shift", -1) };
    npu_output(g, "y", npu_relu(g, npu_op_result(g, npu_emit_name(g, "my.scale_shift", args, 3), 0)));

    /* Its own kernels and the built-in ones make one backend. */
    const npu_backend *cpu = mine;
    npu_exec *exec = NULL;
    if (npu_exec_create_simple(&exec, g, &cpu, 1, &diag)) {
        fprintf(stderr, "%s\n", diag.message);
        return 1;
    }
    npu_text text = npu_text_init(NULL);
    npu_graph_print(g, &text);
    npu_plan_print(npu_program_plan(npu_exec_program(exec)), &text);
    npu_exec_set_input(exec, &(npu_array){ "x", four, in });
    npu_exec_set_output(exec, "y", out, sizeof out);
    if (npu_exec_run(exec)) {
        fprintf(stderr, "%s\n", npu_exec_diag(exec)->message);
        return 1;
    }
    printf("%s\nrelu(10 x - 1) = %g %g %g %g\n", text.data, (double)out[0], (double)out[1], (double)out[2], (double)out[3]);
    npu_text_free(&text);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    npu_ref_destroy(mine);
    npu_registry_destroy(registry);
    return out[0] != 9 || out[3] != 39;
}
