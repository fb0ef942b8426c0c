/* rig.h - a graph on backends, for tests of the partitioner, the memory planner and the executor: simulated
   accelerators by falling priority, the CPU last, and everything made from the graph. rig_end checks that nothing is
   left on the accelerators. */
#ifndef NPU_RIG_H
#define NPU_RIG_H

#define NPU_SIM_IMPLEMENTATION
#include "../examples/sim/npu_sim.h"
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }
#define NUM(...) (uint32_t)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))
#define F32(...) npu_spec_tensor(NPU_F32, NUM(__VA_ARGS__), DIMS(__VA_ARGS__))

enum { RIG_MAX_SIMS = 3 };

typedef struct rig {
    npu_sim *sims[RIG_MAX_SIMS];
    const npu_backend *backends[RIG_MAX_SIMS + 1]; /* the accelerators, then the CPU */
    npu_graph *graph;
    npu_plan_desc desc;      /* of rig_plan: set more before it */
    npu_exec_desc exec_desc; /* of rig_make */
    npu_plan *plan;
    npu_program *program;
    npu_exec *exec;
    npu_diag diag;
} rig;

/* descs NULL = all defaults. */
static inline rig rig_start(const npu_sim_desc *descs, uint32_t num_sims)
{
    rig r;
    memset(&r, 0, sizeof r);
    for (uint32_t i = 0; i < num_sims; i++) {
        NPU_CHECK_STATUS(npu_sim_create(&r.sims[i], descs ? &descs[i] : NULL), NPU_OK);
        r.backends[i] = npu_sim_backend(r.sims[i]);
    }
    r.backends[num_sims] = npu_ref_backend();
    r.desc.num_backends = num_sims + 1;
    r.graph = npu_graph_create(npu_test_graph_desc());
    return r;
}

static inline npu_status rig_plan(rig *r)
{
    npu_status status;
    r->desc.backends = r->backends;
    status = npu_plan_create(&r->plan, r->graph, &r->desc, &r->diag);
    if (status == NPU_OK) {
        npu_diag wrong;
        npu_status valid = npu_plan_validate(r->plan, &wrong);
        NPU_CHECK_THAT(valid == NPU_OK || valid == NPU_ERR_NO_MEMORY, "%s", wrong.message);
    }
    return status;
}

/* Plan, program, exec. */
static inline npu_status rig_make(rig *r)
{
    npu_status status = rig_plan(r);
    status = status ? status : npu_program_create(&r->program, r->plan, &r->diag);
    return status ? status : npu_exec_create(&r->exec, r->program, &r->exec_desc, &r->diag);
}

static inline void rig_unmake(rig *r)
{
    npu_exec_destroy(r->exec);
    npu_program_destroy(r->program);
    npu_plan_destroy(r->plan);
    r->exec = NULL;
    r->program = NULL;
    r->plan = NULL;
    memset(&r->diag, 0, sizeof r->diag);
}

static inline void rig_end(rig *r)
{
    rig_unmake(r);
    for (int i = 0; i < RIG_MAX_SIMS && r->sims[i]; i++) {
        npu_sim_counters c = npu_sim_count(r->sims[i]);
        NPU_CHECK_EQ(c.live_buffers, 0);
        NPU_CHECK_EQ(c.live_bytes, 0);
        NPU_CHECK_EQ(c.live_programs, 0);
        npu_sim_destroy(r->sims[i]);
    }
    npu_graph_destroy(r->graph);
}

/* Numbers between -2 and 2, the same in every run, no two alike for a while. */
static inline void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((i * 2654435761u + seed * 40503u) % 4001u) / 1000.0f - 2.0f;
    }
}

static inline npu_value weights(npu_graph *g, uint32_t rank, const int64_t *dims)
{
    static float data[4096];
    npu_spec spec = npu_spec_tensor(NPU_F32, rank, dims);
    size_t n = 0;
    npu_spec_len(&spec, &n);
    fill(data, n, 7 + rank);
    return npu_constant(g, NULL, spec, data);
}
#define W(...) weights(g, NUM(__VA_ARGS__), DIMS(__VA_ARGS__))

/* The example of the partitioning document: conv, relu, matmul, add, relu, concat, softmax. */
enum { EXAMPLE_IN = 1 * 3 * 8 * 8, EXAMPLE_OUT = 1 * 8 * 6 * 5 };
static const char *const deny_cat[] = { "aten.cat.default" };

static inline void build_example(npu_graph *g)
{
    npu_value none = { 0 };
    npu_value x = npu_input(g, "x", F32(1, 3, 8, 8));
    npu_value y = npu_relu(g, npu_conv2d(g, x, W(4, 3, 3, 3), none, NULL));
    y = npu_relu(g, npu_add(g, npu_matmul(g, y, W(6, 5)), W(5)));
    npu_value_set_name(g, y, "relu2_output");
    npu_value both[2] = { y, y };
    npu_value joined = npu_cat(g, both, 2, 1);
    npu_value_set_name(g, joined, "concat_output");
    npu_output(g, "y", npu_softmax(g, joined, -1));
}

#endif
