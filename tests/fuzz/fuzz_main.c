/* fuzz_main.c - a driver for the fuzz targets where libFuzzer is not at hand.

       fuzz_graph [-t SECONDS] [-s FILE] FILE...

   Replays the files, then mutates them for that many seconds. NPU_SEED repeats a run; the input being tried lies in the file
   given with -s: replay it with `fuzz_graph FILE`. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz.h"
#include "../npu_test.h"
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define FUZZ_MAX_FILES 256
#define FUZZ_MAX_SIZE 4096u

typedef struct fuzz_input { uint8_t data[FUZZ_MAX_SIZE]; size_t size; } fuzz_input;
static fuzz_input corpus[FUZZ_MAX_FILES];
static size_t num_inputs;

static void read_input(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || num_inputs == FUZZ_MAX_FILES) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    fuzz_input *input = &corpus[num_inputs++];
    input->size = fread(input->data, 1, FUZZ_MAX_SIZE, file);
    fclose(file);
}

static size_t below(uint64_t *random, size_t n)
{
    return n ? (size_t)(npu_test_random(random) % n) : 0;
}

/* A stretch of `from` replaces a stretch of `to`; lengths may be 0. */
static void splice(fuzz_input *to, size_t at, size_t old_len, const uint8_t *from, size_t len)
{
    size_t rest = to->size - at - old_len;
    if (at + len + rest > FUZZ_MAX_SIZE) {
        return;
    }
    memmove(to->data + at + len, to->data + at + old_len, rest);
    memcpy(to->data + at, from, len);
    to->size = at + len + rest;
}

static void mutate(fuzz_input *input, uint64_t *random)
{
    static const char *const words[] = { "-1", "0", "9223372036854775807", "-9223372036854775808", "4294967296", "(", ")", "[", "]", "=",
                                         "\"", ",", "\n", "%1", "nan", "inf", "1e999", "none", "f32", "Tensor", "?", "...", "*", "\xff" };
    size_t at = below(random, input->size + 1), left = input->size - at;
    const fuzz_input *other = &corpus[below(random, num_inputs)];
    switch (below(random, 6)) {
    case 0:
        if (left) {
            input->data[at] ^= (uint8_t)(1u << below(random, 8));
        }
        break;
    case 1:
        if (left) {
            input->data[at] = (uint8_t)npu_test_random(random);
        }
        break;
    case 2: splice(input, at, below(random, (left < 16 ? left : 16) + 1), other->data, 0); break;
    case 3: {
        const char *word = words[below(random, sizeof words / sizeof words[0])];
        splice(input, at, below(random, (left < 3 ? left : 3) + 1), (const uint8_t *)word, strlen(word));
        break;
    }
    case 4: {
        size_t begin = below(random, other->size), len = below(random, other->size - begin + 1);
        splice(input, at, 0, other->data + begin, len);
        break;
    }
    default: input->size = at; break;
    }
}

/* Two cheap calls per input, and the input is in the file when the program dies. */
static void save_input(int fd, const fuzz_input *input)
{
    if (fd >= 0 && (pwrite(fd, input->data, input->size, 0) < 0 || ftruncate(fd, (off_t)input->size) != 0)) {
        fprintf(stderr, "the input cannot be saved\n");
    }
}

static uint64_t mutate_for(int seconds, const char *path)
{
    static fuzz_input input;
    uint64_t random = npu_test_seed(), rounds = 0;
    int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
    for (time_t end = time(NULL) + seconds; num_inputs && time(NULL) < end; rounds++) {
        input = corpus[below(&random, num_inputs)];
        for (size_t n = below(&random, 6) + 1; n; n--) {
            mutate(&input, &random);
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
    const char *path = NULL;
    while ((letter = getopt(argc, argv, "t:s:")) != -1) {
        if (letter == 't') {
            seconds = atoi(optarg);
        } else if (letter == 's') {
            path = optarg;
        } else {
            return 2;
        }
    }
    for (int i = optind; i < argc; i++) {
        read_input(argv[i]);
    }
    for (size_t i = 0; i < num_inputs; i++) {
        LLVMFuzzerTestOneInput(corpus[i].data, corpus[i].size);
    }
    uint64_t rounds = mutate_for(seconds, path);
    printf("%d inputs, %llu mutations, %llu a second, no failure\n", (int)num_inputs, (unsigned long long)rounds,
           (unsigned long long)rounds / (seconds ? (unsigned)seconds : 1));
    return 0;
}
