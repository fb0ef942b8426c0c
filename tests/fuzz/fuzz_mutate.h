/* fuzz_mutate.h - the inputs of a fuzz target, and mutations of them: bits, bytes, words that matter, stretches of others. */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include "../npu_test.h"
#include "fuzz.h"

#define FUZZ_MAX_FILES 256
#define FUZZ_MAX_SIZE 4096u

typedef struct fuzz_input { uint8_t data[FUZZ_MAX_SIZE]; size_t size; } fuzz_input;
static fuzz_input fuzz_corpus[FUZZ_MAX_FILES];
static size_t fuzz_num_inputs;

static void fuzz_read_input(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fuzz_num_inputs == FUZZ_MAX_FILES) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    fuzz_input *input = &fuzz_corpus[fuzz_num_inputs++];
    input->size = fread(input->data, 1, FUZZ_MAX_SIZE, file);
    fclose(file);
}

static size_t fuzz_below(uint64_t *random, size_t n)
{
    return n ? (size_t)(npu_test_random(random) % n) : 0;
}

/* A stretch of `from` replaces a stretch of `to`; lengths may be 0. */
static void fuzz_splice(fuzz_input *to, size_t at, size_t old_len, const uint8_t *from, size_t len)
{
    size_t rest = to->size - at - old_len;
    if (at + len + rest > FUZZ_MAX_SIZE) {
        return;
    }
    memmove(to->data + at + len, to->data + at + old_len, rest);
    memcpy(to->data + at, from, len);
    to->size = at + len + rest;
}

static void fuzz_mutate(fuzz_input *input, uint64_t *random)
{
    static const char *const words[] = { "-1", "0", "9223372036854775807", "-9223372036854775808", "4294967296", "(", ")", "[", "]", "=",
                                         "\"", ",", "\n", "%1", "nan", "inf", "1e999", "none", "f32", "Tensor", "?", "...", "*", "\xff" };
    size_t at = fuzz_below(random, input->size + 1), left = input->size - at;
    const fuzz_input *other = &fuzz_corpus[fuzz_below(random, fuzz_num_inputs)];
    switch (fuzz_below(random, 6)) {
    case 0:
        if (left) {
            input->data[at] ^= (uint8_t)(1u << fuzz_below(random, 8));
        }
        break;
    case 1:
        if (left) {
            input->data[at] = (uint8_t)npu_test_random(random);
        }
        break;
    case 2: fuzz_splice(input, at, fuzz_below(random, (left < 16 ? left : 16) + 1), other->data, 0); break;
    case 3: {
        const char *word = words[fuzz_below(random, sizeof words / sizeof words[0])];
        fuzz_splice(input, at, fuzz_below(random, (left < 3 ? left : 3) + 1), (const uint8_t *)word, strlen(word));
        break;
    }
    case 4: {
        size_t begin = fuzz_below(random, other->size), len = fuzz_below(random, other->size - begin + 1);
        fuzz_splice(input, at, 0, other->data + begin, len);
        break;
    }
    default: input->size = at; break;
    }
}

#endif
