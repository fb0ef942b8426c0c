/* Printed plans, profiles and traces. The clock is a counter, so their text is always the same. */
#define NPU_SIM_IMPLEMENTATION
#include "../examples/sim/npu_sim.h"
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

static const char *const model =
    "graph classifier\ninput image : f32[1,3,16,16]\nparam w1 : f32[8,3,3,3]\nparam b1 : f32[8]\n"
    "param fc : f32[10,512]\n"
    "features = aten.conv2d.default(image, w1, b1, padding=[1, 1]) @conv\n%6 = aten.relu.default(features)\n"
    "%7 = aten.max_pool2d.default(%6, [2, 2]) @\"the \\\"pool\\\"\"\n%8 = aten.flatten.using_ints(%7, 1)\n"
    "%9 = aten.linear.default(%8, fc) @fc\n"
    "p = aten.softmax.int(%9, 1)\noutput p = p\n";

typedef struct rig {
    npu_sim *sim;
    const npu_backend *backends[2];
    npu_graph *graph;
    npu_plan *plan;
    npu_program *program;
    npu_exec *exec;
    npu_text text;
} rig;

static float weights[10 * 512];

static rig rig_start(const char *const *deny, uint32_t num_deny)
{
    rig r;
    npu_sim_desc sim = { 0 };
    npu_plan_desc desc = { 0 };
    memset(&r, 0, sizeof r);
    sim.name = "npu0";
    sim.deny = deny;
    sim.num_deny = num_deny;
    NPU_CHECK_STATUS(npu_sim_create(&r.sim, &sim), NPU_OK);
    r.backends[0] = npu_sim_backend(r.sim);
    r.backends[1] = npu_ref_backend();
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, model, strlen(model), NULL, NULL), NPU_OK);
    desc.backends = r.backends;
    desc.num_backends = 2;
    NPU_CHECK_STATUS(npu_plan_create(&r.plan, r.graph, &desc, NULL), NPU_OK);
    r.text = npu_text_make(NULL);
    return r;
}

static void rig_end(rig *r)
{
    npu_text_free(&r->text);
    npu_exec_destroy(r->exec);
    npu_program_destroy(r->program);
    npu_plan_destroy(r->plan);
    npu_graph_destroy(r->graph);
    npu_sim_destroy(r->sim);
}

static uint64_t ticks;
static uint64_t tick(void) { return ticks += 1500; }

static void rig_run(rig *r)
{
    static float image[3 * 16 * 16];
    npu_exec_desc desc = { 0 };
    desc.profile = true;
    desc.clock = tick;
    ticks = 0;
    NPU_CHECK_STATUS(npu_param_bind(r->graph, "w1", weights, 8 * 3 * 3 * 3 * sizeof(float)), NPU_OK);
    NPU_CHECK_STATUS(npu_param_bind(r->graph, "b1", weights, 8 * sizeof(float)), NPU_OK);
    NPU_CHECK_STATUS(npu_param_bind(r->graph, "fc", weights, 10 * 512 * sizeof(float)), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&r->program, r->plan, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&r->exec, r->program, &desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_input(r->exec, "image", image, sizeof image), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r->exec), NPU_OK);
}

static const char *const denied[] = { "aten.max_pool2d.default", "aten.softmax.int" };

static void test_plan(void)
{
    rig r = rig_start(denied, 2);
    npu_plan_print(r.plan, &r.text);
    NPU_CHECK_GOLDEN("plan.txt", r.text.data);
    rig_end(&r);
}

static void test_plan_ops(void)
{
    rig r = rig_start(denied, 2);
    npu_plan_print_ops(r.plan, &r.text);
    NPU_CHECK_GOLDEN("plan_ops.txt", r.text.data);
    rig_end(&r);
}

static void test_plan_memory(void)
{
    rig r = rig_start(denied, 2);
    rig_run(&r);
    npu_plan_print_memory(npu_program_plan(r.program), &r.text);
    NPU_CHECK(!strstr(r.text.data, "after compile"));
    rig_end(&r);
}

/* Nothing refused: nothing is said about it. */
static void test_plan_all_claimed(void)
{
    npu_plan_desc desc = { 0 };
    rig r = rig_start(NULL, 0);
    npu_plan_destroy(r.plan);
    desc.backends = r.backends + 1;
    desc.num_backends = 1;
    NPU_CHECK_STATUS(npu_plan_create(&r.plan, r.graph, &desc, NULL), NPU_OK);
    npu_plan_print(r.plan, &r.text);
    NPU_CHECK(strstr(r.text.data, "6 ops in 1 step on cpu"));
    NPU_CHECK(!strstr(r.text.data, "not on"));
    rig_end(&r);
}

static void test_plan_dot(void)
{
    rig r = rig_start(denied, 2);
    npu_plan_print_dot(r.plan, &r.text);
    NPU_CHECK_GOLDEN("plan.dot", r.text.data);
    rig_end(&r);
}

static void test_profile(void)
{
    rig r = rig_start(denied, 2);
    rig_run(&r);
    npu_exec_print_profile(r.exec, &r.text);
    NPU_CHECK_GOLDEN("profile.txt", r.text.data);
    rig_end(&r);
}

/* ---- trace: valid JSON ---- */

static const char *skip_json(const char *s, int depth);

static const char *skip_blank(const char *s)
{
    while (s && (*s == ' ' || *s == '\n')) {
        s++;
    }
    return s;
}

static const char *skip_string(const char *s)
{
    if (*s++ != '"') {
        return NULL;
    }
    while (*s && *s != '"') {
        if ((unsigned char)*s < 0x20 || (*s == '\\' && !strchr("\"\\u", s[1]))) {
            return NULL;
        }
        s += *s == '\\' ? 2 : 1;
    }
    return *s == '"' ? s + 1 : NULL;
}

static const char *skip_list(const char *s, char close, int depth)
{
    s = skip_blank(s + 1);
    while (s && *s != close) {
        if (close == '}') {
            s = skip_blank(skip_string(s));
            if (!s || *s++ != ':') {
                return NULL;
            }
        }
        s = skip_blank(skip_json(skip_blank(s), depth + 1));
        if (s && *s == ',') {
            s = skip_blank(s + 1);
            if (*s == close) {
                return NULL;
            }
        } else if (s && *s != close) {
            return NULL;
        }
    }
    return s ? s + 1 : NULL;
}

/* Past one JSON value; NULL = there is none. */
static const char *skip_json(const char *s, int depth)
{
    char *end;
    if (!s || depth > 20) {
        return NULL;
    }
    if (*s == '{' || *s == '[') {
        return skip_list(s, *s == '{' ? '}' : ']', depth);
    }
    if (*s == '"') {
        return skip_string(s);
    }
    strtod(s, &end);
    return end == s ? NULL : end;
}

static void test_trace(void)
{
    rig r = rig_start(denied, 2);
    const char *end;
    rig_run(&r);
    npu_exec_print_trace(r.exec, &r.text);
    NPU_CHECK_GOLDEN("trace.json", r.text.data);
    end = skip_blank(skip_json(r.text.data, 0));
    NPU_CHECK(end && *end == 0);
    rig_end(&r);
}

static void test_no_profile(void)
{
    npu_exec_desc desc = { 0 };
    rig r = rig_start(denied, 2);
    rig_run(&r);
    npu_exec_destroy(r.exec);
    NPU_CHECK_STATUS(npu_exec_create(&r.exec, r.program, &desc, NULL), NPU_OK);
    npu_exec_print_profile(r.exec, &r.text);
    NPU_CHECK(strstr(r.text.data, "no profile"));
    npu_text_free(&r.text);
    npu_exec_print_trace(r.exec, &r.text);
    NPU_CHECK(skip_json(r.text.data, 0));
    rig_end(&r);
}

int main(void)
{
    NPU_RUN(test_plan);
    NPU_RUN(test_plan_ops);
    NPU_RUN(test_plan_memory);
    NPU_RUN(test_plan_all_claimed);
    NPU_RUN(test_plan_dot);
    NPU_RUN(test_profile);
    NPU_RUN(test_trace);
    NPU_RUN(test_no_profile);
    return npu_test_done();
}
