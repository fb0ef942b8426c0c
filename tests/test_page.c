/* The page of a plan: what is in it, that names cannot break it, and that it needs nothing else. How a browser builds it
   is a step of make check. */
#include "rig.h"
#include "../examples/report/npu_report.h"

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (text = strstr(text, what); text; text = strstr(text + 1, what)) {
        n++;
    }
    return n;
}

/* relu on the accelerator, neg beside it, their sum; one name is what could end the script. */
static rig page_rig(void)
{
    static const char *const deny[] = { "aten.neg.default" };
    npu_sim_desc desc = { .name = "npu<0>", .deny = deny, .num_deny = 1, .capacity = 1 << 20 };
    rig r = rig_start(&desc, 1);
    npu_value x = npu_input(r.graph, "x", F32(4, 4)), y = npu_relu(r.graph, x);
    npu_value_set_name(r.graph, y, "</script>\"\\&");
    npu_output(r.graph, "y", npu_add(r.graph, y, npu_neg(r.graph, x)));
    r.exec_desc.profile = true;
    return r;
}

static void test_parts(void)
{
    rig r = page_rig();
    npu_advice advice[4];
    npu_report_desc desc = { .advice = advice, .title = "a <b> & c" };
    npu_text page = npu_text_init(NULL);
    float x[16];
    fill(x, 16, 1);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_advise(r.graph, &r.desc, advice, 4, &desc.num_advice, NULL), NPU_OK);
    desc.plan = npu_program_plan(r.program);
    desc.exec = r.exec;
    NPU_CHECK_STATUS(npu_report_print(&desc, &page), NPU_OK);
    const char *data = strstr(page.data, "id=\"data\">"), *end = data ? strstr(data, "</script>") : NULL;
    NPU_CHECK(data && end);
    NPU_CHECK_EQ(count(page.data, "<script"), 2);
    NPU_CHECK_EQ(count(page.data, "</script>"), 2);
    NPU_CHECK_EQ(count(page.data, "<title>a &lt;b> &amp; c</title>"), 1);
    NPU_CHECK(strstr(data, "\\u003c/script\\u003e") && strstr(data, "\"kind\": \"aten.neg.default\", \"count\": 1"));
    NPU_CHECK(strstr(data, "op not supported") && strstr(data, "\"capacity\": 1048576"));
    NPU_CHECK(strstr(data, "\"reads\": {\"1\": [], \"2\": [], \"3\": [1, 2]}"));
    NPU_CHECK(strstr(data, "\"results\": {\"1\": ["));
    NPU_CHECK(count(data, "\"begin\": ") >= 4); /* three groups, a transfer, and the inputs */
    NPU_CHECK_EQ(count(page.data, "http"), 1); /* the name of SVG, which nobody looks up */
    NPU_CHECK_EQ(count(page.data, " src=") + count(page.data, "@import") + count(page.data, "fetch("), 0);
    npu_text_free(&page);
    rig_end(&r);
}

/* Without a run, advice or title; and what is refused. */
static void test_less(void)
{
    rig r = page_rig();
    npu_report_desc desc = { 0 };
    npu_text page = npu_text_init(NULL);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_report_print(NULL, &page), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_report_print(&desc, &page), NPU_ERR_INVALID_ARGUMENT);
    desc.plan = r.plan;
    NPU_CHECK_STATUS(npu_report_print(&desc, NULL), NPU_ERR_INVALID_ARGUMENT);
    desc.num_advice = 1;
    NPU_CHECK_STATUS(npu_report_print(&desc, &page), NPU_ERR_INVALID_ARGUMENT);
    desc.num_advice = 0;
    NPU_CHECK_EQ(page.len, 0);
    NPU_CHECK_STATUS(npu_report_print(&desc, &page), NPU_OK);
    NPU_CHECK(strstr(page.data, "\"profile\": []") && strstr(page.data, "\"advice\": []"));
    rig other = page_rig();
    NPU_CHECK_STATUS(rig_make(&other), NPU_OK);
    desc.exec = other.exec;
    NPU_CHECK_STATUS(npu_report_print(&desc, &page), NPU_ERR_INVALID_ARGUMENT);
    npu_text_free(&page);
    rig_end(&other);
    rig_end(&r);
}

int main(void)
{
    NPU_RUN(test_parts);
    NPU_RUN(test_less);
    return npu_test_done();
}
