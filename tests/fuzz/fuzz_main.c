/* fuzz_main.c - a driver for the fuzz targets where libFuzzer is not at hand.

       fuzz_graph [-t SECONDS | -n TIMES] [-s FILE] FILE...

   Replays the files, then mutates them for that many seconds, or that many times. NPU_SEED repeats a run; the input
   being tried lies in the file given with -s: replay it with `fuzz_graph FILE`. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_mutate.h"
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/* Two cheap calls per input, and the input is in the file when the program dies. */
static void save_input(int fd, const fuzz_input *input)
{
    if (fd >= 0 && (pwrite(fd, input->data, input->size, 0) < 0 || ftruncate(fd, (off_t)input->size) != 0)) {
        fprintf(stderr, "the input cannot be saved\n");
    }
}

static uint64_t mutate_for(int seconds, uint64_t times, const char *path)
{
    static fuzz_input input;
    uint64_t random = npu_test_seed(), rounds = 0;
    int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
    for (time_t end = time(NULL) + seconds; fuzz_num_inputs && (rounds < times || time(NULL) < end); rounds++) {
        input = fuzz_corpus[fuzz_below(&random, fuzz_num_inputs)];
        for (size_t n = fuzz_below(&random, 6) + 1; n; n--) {
            fuzz_mutate(&input, &random);
        }
        save_input(fd, &input);
        LLVMFuzzerTestOneInput(input.data, input.size);
    }
    if (fd >= 0) {
        close(fd);
    }
    return rounds;
}

int main(int argc, char **argv)
{
    int seconds = 0, letter;
    uint64_t times = 0;
    time_t begin;
    const char *path = NULL;
    while ((letter = getopt(argc, argv, "t:n:s:")) != -1) {
        if (letter == 't') {
            seconds = atoi(optarg);
        } else if (letter == 'n') {
            times = strtoull(optarg, NULL, 10);
        } else if (letter == 's') {
            path = optarg;
        } else {
            return 2;
        }
    }
    for (int i = optind; i < argc; i++) {
        fuzz_read_input(argv[i]);
    }
    for (size_t i = 0; i < fuzz_num_inputs; i++) {
        LLVMFuzzerTestOneInput(fuzz_corpus[i].data, fuzz_corpus[i].size);
    }
    begin = time(NULL);
    uint64_t rounds = mutate_for(seconds, times, path);
    time_t took = time(NULL) - begin;
    printf("%d inputs, %llu mutations, %llu a second, no failure\n", (int)fuzz_num_inputs, (unsigned long long)rounds,
           (unsigned long long)rounds / (took > 0 ? (unsigned long long)took : 1));
    return 0;
}
