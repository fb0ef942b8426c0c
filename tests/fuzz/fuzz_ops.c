/* Random graphs of all ops, taken through everything that the library does with a graph. Run in the root of the
   repository; the same seed is the same graph.

       fuzz_ops [-n count] [-t seconds] [-s first_seed] [-o part of op names] [-v] [seeds ...]
       fuzz_ops -r seed                   one graph: prints it and each step

   Ends with 1 where there is a finding; a crash names its seed. -v lists how often each op was tried, taken and run. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#include "ops_world.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { OPS_SECONDS = 30 }; /* of the processor, that one graph may take */

/* ---- the seed of a crash ---- */

static void say_where(void)
{
    char text[160];
    int n = snprintf(text, sizeof text, "CRASH seed %llu, %s\n", (unsigned long long)ops_now.seed, ops_now.stage);
    if (write(2, text, (size_t)n) < 0) {
        _exit(3);
    }
}

static void on_signal(int number)
{
    say_where();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_time(int number)
{
    static const char text[] = "HANG\n";
    (void)number;
    if (write(2, text, sizeof text - 1) > 0) {
        abort();
    }
}

#if defined(__GNUC__)
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
#endif

static void watch(void)
{
    signal(SIGPROF, on_time);
    signal(SIGABRT, on_signal);
#if defined(__GNUC__)
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(say_where);
        return;
    }
#endif
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    signal(SIGFPE, on_signal);
    signal(SIGILL, on_signal);
}

static void limit(int seconds)
{
    struct itimerval timer;
    memset(&timer, 0, sizeof timer);
    timer.it_value.tv_sec = seconds;
    setitimer(ITIMER_PROF, &timer, NULL);
}

/* ---- what was tried ---- */

static bool has_kernel(npu_kind kind)
{
    uint32_t num_tables = 0;
    const npu_kernel_table *tables = npu_ref_kernels(&num_tables);
    for (uint32_t i = 0; i < num_tables; i++) {
        for (uint32_t k = 0; k < tables[i].num_kernels; k++) {
            if (tables[i].kernels[k].kind == kind) {
                return true;
            }
        }
    }
    return false;
}

static void print_counts(const ops_world *w, bool all)
{
    uint32_t num = 0, ran = 0;
    for (uint32_t i = 0; i < w->num_ops; i++) {
        const npu_op_def *def = npu_registry_op(w->registry, i);
        bool runs = has_kernel(def->kind);
        num += runs;
        ran += runs && w->ran[i];
        if (all || (runs && !w->ran[i])) {
            printf("  %-50s tried %llu, taken %llu, run %llu\n", def->name, (unsigned long long)w->tried[i],
                   (unsigned long long)w->accepted[i], (unsigned long long)w->ran[i]);
        }
    }
    printf("%u of %u ops with kernels ran\n", (unsigned)ran, (unsigned)num);
}

int main(int argc, char **argv)
{
    static ops_world w;
    uint64_t first = 1, count = 0, done = 0;
    bool counts = false;
    int seconds = 0, letter;
    while ((letter = getopt(argc, argv, "n:t:s:o:r:v")) != -1) {
        switch (letter) {
        case 'n': count = strtoull(optarg, NULL, 0); break;
        case 't': seconds = atoi(optarg); break;
        case 's': first = strtoull(optarg, NULL, 0); break;
        case 'o': w.only = optarg; break;
        case 'r': first = strtoull(optarg, NULL, 0); count = 1; w.verbose = true; break;
        case 'v': counts = true; break;
        default: return 2;
        }
    }
    count = count || seconds || optind < argc ? count : 1000;
    if (!ops_world_make(&w)) {
        fprintf(stderr, "out of memory\n");
        return 3;
    }
    watch();
    for (int i = optind; i < argc; i++, done++) {
        limit(OPS_SECONDS);
        ops_one(&w, strtoull(argv[i], NULL, 0));
    }
    time_t end = time(NULL) + seconds;
    for (uint64_t i = 0; seconds ? time(NULL) < end && (!count || i < count) : i < count; i++, done++) {
        limit(OPS_SECONDS);
        ops_one(&w, first + i);
    }
    limit(0);
    if (!w.verbose) {
        print_counts(&w, counts);
    }
    printf("%llu graphs from seed %llu, %llu findings\n", (unsigned long long)done, (unsigned long long)first,
           (unsigned long long)ops_now.num_findings);
    ops_world_end(&w);
    return ops_now.num_findings != 0;
}
