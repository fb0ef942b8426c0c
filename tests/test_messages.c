/* What a user reads when something goes wrong, or takes its time: messages, NULL handles, the commands of the Makefile. */
#include "npu_test.h"

/* Runs a command of the shell, its output in `out`; false where there is no shell, or it fails. */
static bool run(const char *command, char *out, size_t size)
{
    char line[512], path[256];
    const char *build = getenv("BUILD");
    FILE *file;
    size_t n;
    snprintf(path, sizeof path, "%s/messages.out", build ? build : "build");
    snprintf(line, sizeof line, "%s > %s 2> /dev/null", command, path);
    if (system(line) != 0 || (file = fopen(path, "rb")) == NULL) {
        return false;
    }
    n = fread(out, 1, size - 1, file);
    out[n] = 0;
    fclose(file);
    return true;
}

/* make says what takes long before it begins, and in a line each; a result is shown before the next one is there. */
static void test_commands(void)
{
    static char out[1 << 16];
    char *slow, *quick;
    NPU_ITEM("F43");
    if (!run("make -n -B run", out, sizeof out)) {
        NPU_SKIP("no make here");
        return;
    }
    NPU_CHECK(strstr(out, "echo \"CC examples/02_digits.c (with both headers: about half a minute"));
    NPU_CHECK(run("make -n -B V=1 run", out, sizeof out) && !strstr(out, "echo \"CC"));
    NPU_CHECK(run("make -n -B OP=conv ops", out, sizeof out) && strstr(out, "/ops -o \"conv\""));
    NPU_CHECK(run("env BUILD=${BUILD:-build}/messages RUN= JOBS=2 sh -c 'mkdir -p $BUILD && sh tests/run.sh "
                  "\"sleep 1\" \"echo 3 passed, 0 failed, 1 skipped\"; :'", out, sizeof out));
    slow = strstr(out, "FAIL sleep 1 ("); /* says nothing */
    quick = strstr(out, "ok   echo 3 passed");
    NPU_CHECK(quick && slow && quick < slow);
    NPU_CHECK(strstr(out, "\n3 passed, 1 failed, 1 skipped\n"));
}

/* A compiler of another make is named before any of its headers can fail. Files without the implementation are quiet. */
static void test_compilers(void)
{
    static char out[1 << 16];
    NPU_ITEM("F41");
    NPU_ITEM("F42");
    if (!run("gcc --version", out, sizeof out)) {
        NPU_SKIP("no gcc here");
        return;
    }
    run("gcc -U__GNUC__ -D_MSC_VER=1930 -fsyntax-only tests/npu_impl.c 2>&1 | grep -m 1 error", out, sizeof out);
    NPU_CHECK(strstr(out, "MSVC cannot compile the implementation"));
    run("gcc -U__GNUC__ -fsyntax-only tests/npu_impl.c 2>&1 | grep -m 1 error", out, sizeof out);
    NPU_CHECK(strstr(out, "this compiler cannot compile the implementation"));
    NPU_CHECK(run("gcc -DNPU_IR_STATIC -std=c99 -Wall -Wextra -Wconversion -Wsign-conversion -fsyntax-only "
                  "tests/compile/types_only.c 2>&1", out, sizeof out));
    NPU_CHECK_STR(out, "");
}

int main(void)
{
    NPU_RUN(test_commands);
    NPU_RUN(test_compilers);
    return npu_test_done();
}
