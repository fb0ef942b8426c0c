/* npu.if and npu.while: child graphs that the core runs, each with a plan of its own on the backends of the plan. */
#include "rig.h"

static const char branches[] =
    "graph main\n"
    "child yes\ninput a : f32[2,3]\ninput b : f32[2,3]\ns = aten.add.Tensor(a, b)\ny = aten.relu.default(s)\noutput y = y\noutput s = s\nend\n"
    "child no\ninput a : f32[2,3]\ninput b : f32[2,3]\ny = aten.neg.default(b)\noutput y = y\noutput a = a\nend\n"
    "input c : bool[]\ninput x : f32[2,3]\ninput w : f32[2,3]\n"
    "z = aten.mul.Tensor(x, x)\n"
    "r, t = npu.if(c, [z, w], then_body=graph 0, else_body=graph 1)\n"
    "o = aten.add.Tensor(r, z)\noutput o = o\noutput t = t\n";

/* x = 2 x + w, n times. */
#define REPEAT                                                                                                         \
    "child more\ninput i : i64[]\ninput x : f32[4]\ninput n : i64[]\ninput w : f32[4]\nc = aten.lt.Tensor(i, n)\noutput c = c\nend\n" \
    "child turn\ninput i : i64[]\ninput x : f32[4]\ninput n : i64[]\ninput w : f32[4]\n"                               \
    "j = aten.add.Scalar(i, 1)\nd = aten.add.Tensor(x, x)\ny = aten.add.Tensor(d, w)\noutput j = j\noutput y = y\nend\n" \
    "input n : i64[]\ninput x : f32[4]\ninput w : f32[4]\nconst zero : i64[] {0}\nv = aten.relu.default(x)\n"
static const char loop[] = "graph main\n" REPEAT
    "i, y = npu.while([zero, v], [n, w], condition=graph 0, body=graph 1)\n"
    "z = aten.neg.default(y)\noutput z = z\noutput i = i\n";
static const char short_loop[] = "graph main\n" REPEAT
    "i, y = npu.while([zero, v], [n, w], condition=graph 0, body=graph 1, max_iterations=3)\n"
    "z = aten.neg.default(y)\noutput z = z\noutput i = i\n";

/* An if in a while: x is halved where it is large, else tripled. */
static const char nested[] =
    "graph main\n"
    "child more\ninput i : i64[]\ninput x : f32[1]\nc = aten.lt.Scalar(i, 6)\noutput c = c\nend\n"
    "child turn\n"
    "child large\ninput a : f32[1]\ny = aten.mul.Scalar(a, 0.5)\noutput y = y\nend\n"
    "child small\ninput a : f32[1]\ny = aten.mul.Scalar(a, 3)\noutput y = y\nend\n"
    "input i : i64[]\ninput x : f32[1]\nj = aten.add.Scalar(i, 1)\nc = aten.gt.Scalar(x, 4)\n"
    "y = npu.if(c, [x], then_body=graph 0, else_body=graph 1)\noutput j = j\noutput y = y\nend\n"
    "input x : f32[1]\nconst zero : i64[] {0}\n"
    "i, y = npu.while([zero, x], [], condition=graph 0, body=graph 1)\noutput y = y\n";

static npu_graph *parse(const char *text)
{
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_graph_parse(&g, text, strlen(text), NULL, &diag);
    NPU_CHECK_THAT(status == NPU_OK, "line %d: %s", (int)diag.line, diag.message);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    return g;
}

/* How a graph is run: the CPU alone, with an accelerator, synchronous or not, overlapped, one that takes few ops, placed by
   cost. */
enum { CPU, SIM, ASYNC, OVERLAP, SPLIT, COST, WAYS };

static rig start(const char *text, int way)
{
    static const char *const deny[] = { "aten.add.Tensor", "aten.neg.default" };
    static const npu_rates fast = { .launch_ns = 1, .num_rows = 1, .rows = { { NULL, 1, 0.001, 0.001 } } };
    static const npu_rates *const rates[2] = { &fast, NULL };
    npu_sim_desc desc;
    rig r;
    memset(&desc, 0, sizeof desc);
    desc.async = way == ASYNC || way == OVERLAP;
    desc.deny = deny;
    desc.num_deny = way == SPLIT ? 2 : 0;
    r = rig_start(&desc, way != CPU);
    npu_graph_destroy(r.graph);
    r.graph = parse(text);
    r.desc.rates = way == COST ? rates : NULL;
    r.desc.overlap = r.exec_desc.overlap = way == OVERLAP;
    return r;
}

static void bind(npu_exec *e, const char *name, const void *data)
{
    npu_array in = { name, *npu_value_spec(npu_plan_graph(npu_program_plan(npu_exec_program(e))),
                                           npu_graph_find(npu_plan_graph(npu_program_plan(npu_exec_program(e))), name)), data };
    NPU_CHECK_STATUS(npu_exec_set_input(e, &in), NPU_OK);
}

static void check_branch(npu_exec *e, const float *x, const float *w, bool is_true)
{
    const float *o = (const float *)npu_exec_output(e, 0, NULL), *t = (const float *)npu_exec_output(e, 1, NULL);
    for (int i = 0; o && t && i < 6; i++) {
        float z = x[i] * x[i], s = z + w[i], y = s > 0 ? s : 0;
        NPU_CHECK_THAT(o[i] == (is_true ? y : -w[i]) + z, "o[%d] is %g", i, (double)o[i]);
        NPU_CHECK_THAT(t[i] == (is_true ? s : z), "t[%d] is %g", i, (double)t[i]);
    }
    NPU_CHECK(o && t);
}

/* Either branch, changing from run to run, and in a replay, which reads the condition anew. */
static void test_if(void)
{
    static const float x[6] = { 1, 2, 3, -1, 0.5f, 0 }, w[6] = { -2, 1, -20, 4, 0.25f, 7 };
    for (int way = 0; way < WAYS; way++) {
        bool condition = false;
        rig r = start(branches, way);
        npu_capture *capture = NULL;
        NPU_CHECK_THAT(rig_make(&r) == NPU_OK, "%s", r.diag.message);
        bind(r.exec, "c", &condition);
        bind(r.exec, "x", x);
        bind(r.exec, "w", w);
        for (int k = 0; k < 4; k++) {
            condition = k % 3 != 0;
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            check_branch(r.exec, x, w, condition);
        }
        NPU_CHECK_STATUS(npu_capture_create(&capture, r.exec), NPU_OK);
        for (int k = 0; k < 2; k++) {
            condition = k == 1;
            NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_OK);
            check_branch(r.exec, x, w, condition);
        }
        npu_capture_destroy(capture);
        rig_end(&r);
    }
}

static void check_loop(npu_exec *e, const float *x, const float *w, int64_t n)
{
    const float *z = (const float *)npu_exec_output(e, 0, NULL);
    for (int i = 0; z && i < 4; i++) {
        float y = x[i] > 0 ? x[i] : 0;
        for (int64_t k = 0; k < n; k++) {
            y = y + y + w[i];
        }
        NPU_CHECK_THAT(z[i] == -y, "%d iterations: z[%d] is %g", (int)n, i, (double)z[i]);
    }
    NPU_CHECK(z && *(const int64_t *)npu_exec_output(e, 1, NULL) == (n > 0 ? n : 0));
}

static void test_while(void)
{
    static const float x[4] = { 1, -2, 0.5f, 3 }, w[4] = { 0.25f, 1, 0, -1 };
    static const int64_t counts[] = { 0, 5, 1, -3, 12 };
    for (int way = 0; way < WAYS; way++) {
        npu_parallel *threads = NULL;
        rig r = start(loop, way);
        npu_capture *capture = NULL;
        NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 2 }), NPU_OK);
        r.exec_desc.parallel = threads;
        r.desc.num_workers = 2;
        NPU_CHECK_THAT(rig_make(&r) == NPU_OK, "%s", r.diag.message);
        bind(r.exec, "x", x);
        bind(r.exec, "w", w);
        for (int k = 0; k < 5; k++) {
            bind(r.exec, "n", &counts[k]);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            check_loop(r.exec, x, w, counts[k]);
        }
        NPU_CHECK_STATUS(npu_capture_create(&capture, r.exec), NPU_ERR_UNSUPPORTED);
        NPU_CHECK(!capture && strstr(npu_exec_diag(r.exec)->message, "how often an npu.while repeats"));
        rig_end(&r);
        npu_threads_destroy(threads);
    }
}

static bool poll_twice(void *ctx, uint32_t step)
{
    (void)step;
    return (*(int *)ctx)-- > 0;
}

/* Too many iterations are an error of the run, and a run can be cancelled between them; the exec can be run again. */
static void test_while_ends(void)
{
    static const float x[4] = { 1, -2, 0.5f, 3 }, w[4] = { 0.25f, 1, 0, -1 };
    const int64_t three = 3, four = 4;
    int polls;
    for (int way = 0; way < 4; way++) {
        bool is_cancelled = way % 2;
        rig r = start(is_cancelled ? loop : short_loop, CPU);
        r.exec_desc.overlap = r.desc.overlap = way / 2; /* it is said by the loop then, too */
        r.exec_desc.poll = is_cancelled ? poll_twice : NULL;
        r.exec_desc.poll_ctx = &polls;
        polls = 5;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        bind(r.exec, "x", x);
        bind(r.exec, "w", w);
        bind(r.exec, "n", &four);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), is_cancelled ? NPU_ERR_CANCELLED : NPU_ERR_RANGE);
        NPU_CHECK_THAT(strstr(npu_exec_diag(r.exec)->message, is_cancelled ? "cancelled" : "more than max_iterations, which is 3"),
                       "%s", npu_exec_diag(r.exec)->message);
        NPU_CHECK(is_cancelled || npu_exec_diag(r.exec)->op != 0);
        polls = 100;
        bind(r.exec, "n", &three);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_loop(r.exec, x, w, 3);
        rig_end(&r);
    }
}

/* The CPU's work before and after a loop takes a launch each, and overlapped more: still no plan is predicted to be
   slower than that with each op on the last backend. */
static void test_prediction(void)
{
    static const char text[] = "graph main\n" REPEAT
        "s = aten.reshape.default(x, shape=[4])\nu = aten.abs.default(w)\n"
        "i, y = npu.while([zero, s], [n, w], condition=graph 0, body=graph 1)\n"
        "z = aten.softmax.int(y, dim=-1)\noutput z = z\noutput u = u\n";
    static const npu_rates dear = { .launch_ns = 200, .transfer_ns = 200, .num_rows = 1,
                                    .rows = { { NULL, 1, 0.5, 0 } } };
    static const npu_rates *const rates[2] = { &dear, &dear };
    for (int way = 0; way < 4; way++) {
        rig r = start(text, SIM);
        npu_prediction p = { 0 };
        r.desc.rates = rates;
        r.desc.overlap = way & 1;
        r.desc.contiguous = way & 2;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_plan_predict(r.plan, &p), NPU_OK);
        NPU_CHECK_THAT(p.ns > 0 && p.ns <= p.last_ns, "way %d: %g, last %g", way, p.ns, p.last_ns);
        rig_end(&r);
    }
}

/* Values without elements have no memory where nothing else is planned. */
static void test_empty(void)
{
    static const char text[] =
        "npu_ir 1\ngraph main\n"
        "child then\n  input a : f32[0]\n  y = aten.abs.default(a)\n  output r = y\nend\n"
        "child else\n  input a : f32[0]\n  output r = a\nend\n"
        "param c : bool[]\nparam p : f32[0,1]\nx = aten.reshape.default(p, shape=[0])\n"
        "y = npu.if(c, [x], then_body=graph 0, else_body=graph 1)\noutput y = y\n";
    for (uint8_t is_true = 0; is_true < 2; is_true++) {
        rig r = start(text, CPU);
        NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "c", &is_true, 1), NPU_OK);
        NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "p", "", 0), NPU_OK);
        NPU_CHECK_THAT(rig_make(&r) == NPU_OK, "%s", r.diag.message);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        rig_end(&r);
    }
}

static void test_nested(void)
{
    for (int way = 0; way < WAYS; way++) {
        rig r = start(nested, way);
        float x = 1, y = 1;
        NPU_CHECK_THAT(rig_make(&r) == NPU_OK, "%s", r.diag.message);
        bind(r.exec, "x", &x);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        for (int i = 0; i < 6; i++) {
            y = y > 4 ? y * 0.5f : y * 3;
        }
        NPU_CHECK(*(const float *)npu_exec_output(r.exec, 0, NULL) == y);
        rig_end(&r);
    }
}

/* Child graphs are planned on the backends of the plan; what is written reads back to the same. */
static void test_forms(void)
{
    rig r = start(loop, SIM);
    npu_text text = npu_text_init(NULL), again = npu_text_init(NULL), plan = npu_text_init(NULL);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_op op = { 2 };
    const npu_plan *body = npu_plan_body(npu_program_plan(r.program), op, 1);
    NPU_CHECK(body && npu_plan_graph(body) == npu_graph_child(r.graph, 1) && npu_plan_op_backend(body, (npu_op){ 2 }, NULL, NULL) == 0);
    NPU_CHECK(npu_plan_body(r.plan, op, 0) && !npu_plan_body(r.plan, op, 2) && !npu_plan_body(r.plan, (npu_op){ 1 }, 0) &&
              !npu_plan_body(NULL, op, 0));
    NPU_CHECK_EQ(npu_plan_num_backends(r.plan), 3);
    NPU_CHECK_STR(npu_plan_backend(r.plan, 2)->name, "control");
    npu_plan_print(r.plan, &plan);
    NPU_CHECK(strstr(plan.data, "op 2, npu.while, graph 1:\nplan of turn:"));
    plan.len = 0;
    npu_plan_print_json(r.plan, &plan);
    NPU_CHECK(strstr(plan.data, "\"bodies\": [") && strstr(plan.data, "{\"op\": 2, \"graph\": 0, \"plan\": {\"graph\": \"more\""));
    NPU_CHECK_STATUS(npu_graph_print(r.graph, &text), NPU_OK);
    npu_graph *g = parse(text.data);
    NPU_CHECK_STATUS(npu_graph_print(g, &again), NPU_OK);
    NPU_CHECK_STR(again.data, text.data);
    npu_graph_destroy(g);
    npu_text_free(&text);
    npu_text_free(&again);
    npu_text_free(&plan);
    rig_end(&r);
}

/* JSON holds child graphs as documents of its form, and is read to what runs the same. */
static void test_json(void)
{
    static const char *const texts[] = { branches, loop, nested };
    for (int i = 0; i < 3; i++) {
        npu_text first = npu_text_init(NULL), second = npu_text_init(NULL);
        npu_graph *g = parse(texts[i]), *again = NULL;
        npu_diag diag = { 0 };
        NPU_CHECK_STATUS(npu_graph_print_json(g, &first), NPU_OK);
        NPU_CHECK_THAT(npu_graph_parse_json(&again, first.data, first.len, NULL, &diag) == NPU_OK, "%s", diag.message);
        NPU_CHECK_STATUS(npu_graph_validate(again, NULL, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_graph_print_json(again, &second), NPU_OK);
        NPU_CHECK_STR(second.data, first.data);
        NPU_CHECK_EQ(npu_graph_num_children(again), npu_graph_num_children(g));
        npu_graph_destroy(g);
        npu_graph_destroy(again);
        npu_text_free(&first);
        npu_text_free(&second);
    }
}

#define J_T(name, dtype, shape) "{\"name\": \"" name "\", \"shape\": " shape ", \"dtype\": \"" dtype "\"}"
#define J_X J_T("x", "float32", "[2]")
#define J_CHILD(node, out) \
    "{\"graph_inputs\": [" J_X "], \"weights\": [], \"graph_outputs\": [" out "], \"nodes\": [" node "]}"
#define J_NODE(name, op, out) \
    "{\"name\": \"" name "\", \"op_type\": \"" op "\", \"inputs\": [" J_X "], \"outputs\": [" out "], \"attrs\": {}}"
#define J_RELU J_CHILD(J_NODE("r", "aten.relu.default", J_T("r", "float32", "[2]")), J_T("r", "float32", "[2]"))
#define J_COND(first, second)                                                                                          \
    "{\"graph_inputs\": [" J_T("c", "bool", "[]") ", " J_X "], \"weights\": [], \"graph_outputs\": [" J_T("y", "float32", "[2]") \
    "], \"nodes\": [\n{\"name\": \"y\", \"op_type\": \"torch.ops.higher_order.cond\", \"inputs\": [" J_T("c", "bool", "[]") ", " J_X  \
    "], \"outputs\": [" J_T("y", "float32", "[2]") "], \"attrs\": {\"true_graph\": " first ", \"false_graph\": " second "}}]}"

/* As torch.export names them; and child graphs that are wrong. */
static void test_json_of_torch(void)
{
    static const struct { npu_status status; const char *words, *text; } rows[] = {
        { NPU_OK, "", J_COND(J_RELU, J_CHILD("", J_X)) },
        { NPU_ERR_NOT_FOUND, "node 'r': 'q'", J_COND("{\"graph_inputs\": [], \"weights\": [], \"graph_outputs\": [], \"nodes\": ["
          "{\"name\": \"r\", \"op_type\": \"aten.relu\", \"inputs\": [{\"name\": \"q\"}], \"outputs\": [], \"attrs\": {}}]}", J_RELU) },
        { NPU_ERR_PARSE, "\"weights\" is missing", J_COND("{\"graph_inputs\": [], \"graph_outputs\": [], \"nodes\": []}", J_RELU) },
        { NPU_ERR_INVALID_ARGUMENT, "graph 3, but there are 1 child graphs", J_COND("3", J_RELU) },
        { NPU_ERR_ARITY, "has 0 outputs, expected 1", J_COND(J_RELU, J_CHILD("", "")) },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_graph *g = NULL;
        npu_diag diag = { 0 };
        npu_status status = npu_graph_parse_json(&g, rows[i].text, strlen(rows[i].text), NULL, &diag);
        NPU_CHECK_THAT(status == rows[i].status && strstr(diag.message, rows[i].words), "%d: %s: %s", (int)i,
                       npu_status_name(status), diag.message);
        NPU_CHECK(status || strcmp(npu_op_definition(g, (npu_op){ 1 })->name, "npu.if") == 0);
        npu_graph_destroy(g);
    }
}

#define CHILD(name, in, out) "child " name "\n" in out "end\n"
#define IF(condition, then, other) \
    "graph main\n" then other "input c : " condition "\ninput x : f32[2]\ny = npu.if(c, [x], then_body=graph 0, else_body=graph 1)\noutput y = y\n"
#define GOOD CHILD("good", "input x : f32[2]\n", "y = aten.relu.default(x)\noutput y = y\n")
#define WHILE(carried, condition, body) \
    "graph main\n" condition body "input x : f32[2]\ny = npu.while([" carried "], [], condition=graph 0, body=graph 1)\noutput y = y\n"
#define GOING CHILD("going", "input x : f32[2]\n", "s = aten.sum.default(x)\nc = aten.gt.Scalar(s, 0)\noutput c = c\n")

static void test_refused(void)
{
    static const struct { npu_status status; const char *words, *text; } rows[] = {
        { NPU_OK, "", IF("bool[1]", GOOD, GOOD) },
        { NPU_ERR_DTYPE, "the condition is no single bool", IF("i64[]", GOOD, GOOD) },
        { NPU_ERR_SHAPE, "the condition is no single bool", IF("bool[2]", GOOD, GOOD) },
        { NPU_ERR_SHAPE, "operand 1 is not the input 'x' of 'long'", IF("bool[]", GOOD, CHILD("long", "input x : f32[3]\n", "output x = x\n")) },
        { NPU_ERR_ARITY, "1 operands, but 'two' has 2 inputs", IF("bool[]", CHILD("two", "input x : f32[2]\ninput y : f32[2]\n", "output x = x\n"), GOOD) },
        { NPU_ERR_ARITY, "'none' has 0 outputs, expected 1", IF("bool[]", GOOD, CHILD("none", "input x : f32[2]\n", "")) },
        { NPU_ERR_SHAPE, "output 0 of 'sum' has another type",
          IF("bool[]", GOOD, CHILD("sum", "input x : f32[2]\n", "y = aten.sum.default(x)\noutput y = y\n")) },
        { NPU_ERR_DYNAMIC_SHAPE, "dims that are not known",
          IF("bool[]", CHILD("data", "input x : f32[2]\n", "y = aten.nonzero.default(x)\noutput y = y\n"), GOOD) },
        { NPU_ERR_GRAPH, "'own' has parameters or states",
          IF("bool[]", GOOD, CHILD("own", "input x : f32[2]\nparam w : f32[2]\n", "y = aten.add.Tensor(x, w)\noutput y = y\n")) },
        { NPU_ERR_GRAPH, "'own' has parameters or states",
          IF("bool[]", GOOD, CHILD("own", "input x : f32[2]\nstate w : f32[2]\n", "y = aten.add.Tensor(x, w)\noutput y = y\n")) },
        { NPU_ERR_CLASS, "'scalar' is no graph of level tensor",
          IF("bool[]", "child scalar scalar\ninput x : scalar f32[]\noutput x = x\nend\n", GOOD) },
        { NPU_OK, "", WHILE("x", GOING, GOOD) },
        { NPU_ERR_ARITY, "nothing is carried", WHILE("", GOING, GOOD) },
        { NPU_ERR_DTYPE, "the condition is no single bool", WHILE("x", GOOD, GOOD) },
        { NPU_ERR_ARITY, "'none' has 0 outputs, expected 1", WHILE("x", CHILD("none", "input x : f32[2]\n", ""), GOOD) },
        { NPU_ERR_ARITY, "'twice' has 2 outputs, expected 1",
          WHILE("x", GOING, CHILD("twice", "input x : f32[2]\n", "output x = x\noutput y = x\n")) },
        { NPU_ERR_SHAPE, "the condition is no single bool", WHILE("x", CHILD("two", "input x : f32[2]\n", "c = aten.gt.Scalar(x, 0)\noutput c = c\n"), GOING) },
        { NPU_ERR_SHAPE, "output 0 of 'going' has another type", WHILE("x", GOING, GOING) },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_graph *g = NULL;
        npu_diag diag = { 0 };
        npu_status status = npu_graph_parse(&g, rows[i].text, strlen(rows[i].text), NULL, &diag);
        NPU_CHECK_THAT(status == rows[i].status && strstr(diag.message, rows[i].words), "%d: %s: %s", (int)i,
                       npu_status_name(status), diag.message);
        npu_graph_destroy(g);
    }
}

/* What fails in a child graph is said with the op that runs it. */
static void test_child_fails(void)
{
    static const char text[] =
        "graph main\n"
        "child pick\ninput x : f32[4]\ninput i : i64[2]\ny = aten.index_select.default(x, 0, i)\noutput y = y\nend\n"
        "child first\ninput x : f32[4]\ninput i : i64[2]\ny = aten.slice.Tensor(x, 0, 0, 2)\noutput y = y\nend\n"
        "input c : bool[]\ninput x : f32[4]\ninput i : i64[2]\n"
        "y = npu.if(c, [x, i], then_body=graph 0, else_body=graph 1)\noutput y = y\n";
    static const float x[4] = { 1, 2, 3, 4 };
    static const int64_t far[2] = { 1, 9 };
    bool condition = true;
    rig r = start(text, CPU);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    bind(r.exec, "c", &condition);
    bind(r.exec, "x", x);
    bind(r.exec, "i", far);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_RANGE);
    NPU_CHECK_THAT(strstr(npu_exec_diag(r.exec)->message, "npu.if: in pick: ") && npu_exec_diag(r.exec)->op == 1, "%s",
                   npu_exec_diag(r.exec)->message);
    condition = false;
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_BYTES(npu_exec_output(r.exec, 0, NULL), x, 8);
    rig_end(&r);
}

/* An op without a kernel in a branch is named where the program is made. */
static void test_child_unknown(void)
{
    static const char text[] = IF("bool[]", GOOD, CHILD("odd", "input x : f32[2]\n", "y = my.op([x]) : f32[2]\noutput y = y\n"));
    rig r = start(text, CPU);
    NPU_CHECK_STATUS(rig_make(&r), NPU_ERR_NOT_IMPLEMENTED);
    NPU_CHECK(strstr(r.diag.message, "my.op"));
    rig_end(&r);
}

/* Out of memory at any place leaves nothing behind. */
static void test_memory(void)
{
    static const float x[4] = { 1, -2, 0.5f, 3 }, w[4] = { 0.25f, 1, 0, -1 };
    const int64_t n = 3;
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = parse(loop);
    for (uint64_t fail_at = 1, failed = 1; failed; fail_at += 1 + fail_at / 32) {
        npu_alloc_counter counter;
        memset(&counter, 0, sizeof counter);
        npu_allocator a = npu_allocator_counting(&counter);
        npu_plan_desc desc = { .backends = &cpu, .num_backends = 1, .allocator = &a };
        npu_plan *plan = NULL;
        npu_program *program = NULL;
        npu_exec *exec = NULL;
        counter.fail_at = fail_at;
        npu_status status = npu_plan_create(&plan, g, &desc, NULL);
        status = status ? status : npu_program_create(&program, plan, NULL);
        status = status ? status : npu_exec_create(&exec, program, NULL, NULL);
        if (status == NPU_OK) {
            uint64_t before = counter.num_calls;
            bind(exec, "n", &n);
            bind(exec, "x", x);
            bind(exec, "w", w);
            NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
            NPU_CHECK_EQ(counter.num_calls, before); /* runs allocate nothing */
            check_loop(exec, x, w, n);
        }
        failed = counter.num_calls >= fail_at;
        NPU_CHECK_THAT(status == (failed ? NPU_ERR_NO_MEMORY : NPU_OK), "%s", npu_status_name(status));
        npu_exec_destroy(exec);
        npu_program_destroy(program);
        npu_plan_destroy(plan);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
    npu_graph_destroy(g);
}

/* ---- random graphs, on devices that are ever smaller ------------------------------------------------------------- */

enum { LEN = 16, MOST_TURNS = 3 }; /* elements of each value; turns of each loop */

static uint32_t pick(uint64_t *seed, uint32_t n) { return (uint32_t)(npu_test_random(seed) % n); }

static void random_children(npu_text *t, uint64_t *seed, uint32_t depth, uint32_t num);

/* Ops on v0 .. v<num - 1>, `num_children` of them of control flow; returns how many values there are then. */
static uint32_t random_ops(npu_text *t, uint64_t *seed, uint32_t num, uint32_t num_children)
{
    static const char *const unary[] = { "relu", "neg", "tanh", "abs", "sigmoid" };
    for (uint32_t child = 0, left = 1 + pick(seed, 5); left || child < num_children; num++) {
        uint32_t a = pick(seed, num), b = pick(seed, num);
        if (child < num_children && (!left || pick(seed, 2))) {
            bool loops = child % 2;
            npu_text_printf(t, loops ? "t%u, v%u = npu.while([zero, v%u], [v%u, c], condition=graph %u, body=graph %u)\n"
                                     : "w%u, v%u = npu.if(c, [v%u, v%u, c], then_body=graph %u, else_body=graph %u)\n",
                            num, num, a, b, 2 * child, 2 * child + 1);
            child++;
            continue;
        }
        switch (pick(seed, 4)) {
        case 0: npu_text_printf(t, "v%u = aten.add.Tensor(v%u, v%u)\n", num, a, b); break;
        case 1: npu_text_printf(t, "v%u = aten.mul.Tensor(v%u, k)\n", num, a); break;
        case 2: npu_text_printf(t, "m%u = aten.cat.default([v%u, v%u], 0)\nv%u = aten.slice.Tensor(m%u, 0, 3, %d)\n", num, a, b, num, num, LEN + 3); break;
        default: npu_text_printf(t, "v%u = aten.%s.default(v%u)\n", num, unary[pick(seed, 5)], a);
        }
        left -= left != 0;
    }
    return num;
}

static void random_weight(npu_text *t, uint64_t *seed)
{
    npu_text_printf(t, "const zero : i64[] {0}\nconst k : f32[%d] {0.5", LEN);
    for (int i = 1; i < LEN; i++) {
        npu_text_printf(t, ", %d.25", (int)pick(seed, 3) - 1);
    }
    npu_text_printf(t, "}\n");
}

/* Two branches, or the condition and the body of a loop, for each of `num` ops, which are an if, then a while. */
static void random_children(npu_text *t, uint64_t *seed, uint32_t depth, uint32_t num)
{
    for (uint32_t i = 0; i < 2 * num; i++) {
        bool loops = i / 2 % 2;
        uint32_t inner = depth ? 0 : pick(seed, 2), last;
        if (loops && i % 2 == 0) { /* its name says how often */
            uint32_t turns = pick(seed, MOST_TURNS + 1);
            npu_text_printf(t, "child f%u\ninput i : i64[]\ninput x : f32[%d]\ninput y : f32[%d]\ninput c : bool[]\n"
                               "m = aten.lt.Scalar(i, %u)\noutput m = m\nend\n", turns, LEN, LEN, turns);
            continue;
        }
        npu_text_printf(t, "child g\n");
        random_children(t, seed, depth + 1, inner);
        npu_text_printf(t, "%sinput v0 : f32[%d]\ninput v1 : f32[%d]\ninput c : bool[]\n", loops ? "input i : i64[]\n" : "", LEN, LEN);
        random_weight(t, seed);
        npu_text_printf(t, loops ? "j = aten.add.Scalar(i, 1)\noutput j = j\n" : "");
        last = random_ops(t, seed, 2, inner);
        if (!loops) {
            npu_text_printf(t, "output z = v%u\n", pick(seed, last));
        }
        npu_text_printf(t, "output y = v%u\nend\n", last - 1);
    }
}

static npu_graph *random_graph(uint64_t *seed)
{
    npu_text t = npu_text_init(NULL);
    uint32_t num = 1 + pick(seed, 3), last;
    npu_graph *g;
    npu_text_printf(&t, "graph main\n");
    random_children(&t, seed, 0, num);
    npu_text_printf(&t, "input v0 : f32[%d]\ninput v1 : f32[%d]\ninput c : bool[]\n", LEN, LEN);
    random_weight(&t, seed);
    last = random_ops(&t, seed, 2, num);
    npu_text_printf(&t, "output y = v%u\noutput z = v%u\n", last - 1, pick(seed, last));
    g = parse(t.data);
    npu_text_free(&t);
    return g;
}

/* Each of the plans within the regions; before compile says what it takes, none is slower than the last backend. */
static void check_rooms(const npu_plan *plan)
{
    npu_region_memory m;
    npu_memory all;
    npu_prediction p;
    npu_diag diag;
    NPU_CHECK_STATUS(npu_plan_memory(plan, 0, &all), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_predict(plan, &p), NPU_OK);
    NPU_CHECK_THAT(all.exact || !p.has_times || p.ns <= p.last_ns * 1.00001, "%g ns, on the last backend %g", p.ns, p.last_ns);
    NPU_CHECK_THAT(npu_plan_validate(plan, &diag) == NPU_OK, "%s", diag.message);
    for (uint32_t b = 0; b < npu_plan_num_backends(plan); b++) {
        for (uint32_t r = 0; npu_plan_region_memory(plan, b, r, &m) == NPU_OK; r++) {
            NPU_CHECK_THAT(!m.capacity || m.required <= m.capacity, "%s needs %llu of %llu", m.name,
                           (unsigned long long)m.required, (unsigned long long)m.capacity);
        }
    }
    for (uint32_t op = 1; op <= npu_graph_num_ops(npu_plan_graph(plan)); op++) {
        for (uint32_t k = 0; k < 2; k++) {
            const npu_plan *body = npu_plan_body(plan, (npu_op){ op }, k);
            if (body) {
                check_rooms(body);
            }
        }
    }
}

/* What a run moves, from the plans and how often each of them is run. */
static void add_moved(const npu_plan *plan, bool condition, uint64_t times, uint64_t moved[2])
{
    const npu_graph *g = npu_plan_graph(plan);
    npu_prediction p;
    NPU_CHECK_STATUS(npu_plan_predict(plan, &p), NPU_OK);
    moved[0] += times * p.up_bytes;
    moved[1] += times * p.down_bytes;
    for (npu_op op = { 1 }; op.id <= npu_graph_num_ops(g); op.id++) {
        const npu_plan *first = npu_plan_body(plan, op, 0), *second = npu_plan_body(plan, op, 1);
        if (first && npu_graph_name(npu_plan_graph(first))[0] == 'f') {
            uint64_t turns = (uint64_t)(npu_graph_name(npu_plan_graph(first))[1] - '0');
            add_moved(first, condition, times * (turns + 1), moved);
            add_moved(second, condition, times * turns, moved);
        } else if (first) {
            add_moved(condition ? first : second, condition, times, moved);
        }
    }
}

static void check_moved(const rig *r, const npu_sim_counters before[2], bool condition)
{
    uint64_t moved[2] = { 0, 0 };
    add_moved(npu_program_plan(r->program), condition, 1, moved);
    for (int i = 0; i < 2 && r->sims[i]; i++) {
        npu_sim_counters after = npu_sim_count(r->sims[i]);
        moved[0] -= after.bytes_up - before[i].bytes_up;
        moved[1] -= after.bytes_down - before[i].bytes_down;
    }
    NPU_CHECK_EQ(moved[0], 0);
    NPU_CHECK_EQ(moved[1], 0);
}

/* Returns how long it took. */
static uint64_t run_random(const rig *r, npu_exec *e, uint32_t run, float out[2][LEN])
{
    npu_sim_counters before[2];
    float in[2][LEN];
    bool condition = run % 2;
    uint64_t start = npu_sim_clock();
    fill(in[0], LEN, run);
    fill(in[1], LEN, run + 5);
    for (uint32_t i = 0; i < 2; i++) {
        NPU_CHECK_STATUS(npu_test_input_at(e, i, in[i], sizeof in[i]), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_test_input_at(e, 2, &condition, 1), NPU_OK);
    for (int i = 0; i < 2 && r->sims[i]; i++) {
        before[i] = npu_sim_count(r->sims[i]);
    }
    NPU_CHECK_THAT(npu_exec_run(e) == NPU_OK, "%s", npu_exec_diag(e)->message);
    check_moved(r, before, condition);
    for (uint32_t i = 0; i < 2; i++) {
        memcpy(out[i], npu_exec_output(e, i, NULL), sizeof out[i]);
    }
    return npu_sim_clock() - start;
}

static rig start_random(npu_graph *g, uint64_t *seed, uint64_t capacity)
{
    static const char *const deny[] = { "aten.tanh.default", "aten.cat.default", "aten.mul.Tensor" };
    static const npu_rates fast = { .launch_ns = 40, .transfer_ns = 20, .num_rows = 1, .rows = { { NULL, 1, 0.1, 0 } } };
    static const npu_rates slow = { .num_rows = 1, .rows = { { NULL, 50, 0.5, 0 } } };
    static const npu_rates *const rates[3] = { &fast, &fast, &slow };
    npu_sim_desc descs[2];
    rig r;
    memset(descs, 0, sizeof descs);
    for (int i = 0; i < 2; i++) {
        descs[i].emulate = npu_ref_backend();
        descs[i].emulate_all = true;
        descs[i].deny = deny + i;
        descs[i].num_deny = pick(seed, 3);
        descs[i].virtual_time = true;
        descs[i].is_late = pick(seed, 2);
        descs[i].op_ns = 1000;
        descs[i].transfer_ns = 300;
        descs[i].in_place = pick(seed, 2);
        descs[i].op_scratch = pick(seed, 3) ? 0 : pick(seed, 300);
        descs[i].on_chip = pick(seed, 3) ? 0 : capacity / 3 + 1;
        descs[i].capacity = i ? capacity / 2 : capacity;
    }
    r = rig_start(descs, capacity ? 2 : 0);
    npu_graph_destroy(r.graph);
    r.graph = g;
    r.desc.rates = capacity && pick(seed, 2) ? rates : NULL;
    r.desc.num_execs = 2;
    r.desc.stream_weights = pick(seed, 2);
    r.desc.overlap = pick(seed, 2);
    r.exec_desc.clock = npu_sim_clock;
    return r;
}

/* Whatever devices have, plans of child graphs fit beside that of their parent, execs get their memory, runs move what
   plans say, and take no longer overlapped than in order, and results keep their bits. */
static void test_random(void)
{
    uint64_t seed = npu_test_seed();
    for (int round = 0; round < 12; round++) {
        float expected[4][2][LEN], out[2][LEN];
        npu_graph *g = random_graph(&seed);
        for (uint64_t capacity = 0; capacity == 0 || capacity > 100; capacity = capacity ? capacity * 3 / 5 : 4096) {
            rig r = start_random(g, &seed, capacity);
            npu_exec *execs[2] = { NULL, NULL }; /* in order, overlapped */
            NPU_CHECK_THAT(rig_plan(&r) == NPU_OK, "%s", r.diag.message);
            check_rooms(r.plan);
            NPU_CHECK_THAT(npu_program_create(&r.program, r.plan, &r.diag) == NPU_OK, "%s", r.diag.message);
            check_rooms(npu_program_plan(r.program));
            for (uint32_t i = 0; r.program && i < 2; i++) {
                r.exec_desc.overlap = i;
                NPU_CHECK_THAT(npu_exec_create(&execs[i], r.program, &r.exec_desc, &r.diag) == NPU_OK, "capacity %u: %s",
                               (unsigned)capacity, r.diag.message);
            }
            for (uint32_t run = 0; execs[1] && run < 4; run++) {
                uint64_t ns = run_random(&r, execs[0], run, capacity ? out : expected[run]), overlapped;
                NPU_CHECK_BYTES(out, capacity ? expected[run] : out, sizeof out);
                overlapped = run_random(&r, execs[1], run, out);
                NPU_CHECK_BYTES(out, expected[run], sizeof out);
                NPU_CHECK_THAT(overlapped <= ns, "overlapped %u ns, in order %u", (unsigned)overlapped, (unsigned)ns);
            }
            npu_exec_destroy(execs[0]);
            npu_exec_destroy(execs[1]);
            r.graph = NULL;
            rig_end(&r);
        }
        npu_graph_destroy(g);
    }
}

int main(void)
{
    NPU_RUN(test_if);
    NPU_RUN(test_while);
    NPU_RUN(test_while_ends);
    NPU_RUN(test_empty);
    NPU_RUN(test_prediction);
    NPU_RUN(test_nested);
    NPU_RUN(test_forms);
    NPU_RUN(test_json);
    NPU_RUN(test_json_of_torch);
    NPU_RUN(test_refused);
    NPU_RUN(test_child_fails);
    NPU_RUN(test_child_unknown);
    NPU_RUN(test_memory);
    NPU_RUN(test_random);
    return npu_test_done();
}
