/* Planned models: heads with a right checksum and the work that their steps ask for, whatever else they say. What opens
   runs inside its file and its arena, to the end or to a status, and does no more work than it said. */
#define NPU_IR_RUNTIME_ONLY
#define NPU_IR_STATIC
#define NPU_IR_IMPLEMENTATION
#include "../../npu_ir_backend_ref.h"
#include "fuzz.h"

enum { MOST_WORK = 1 << 20, MOST_ARENA = 1 << 20 };

static const npu_planned_kernel kernels[] = {
#define NPU_X(id, name) NPU_PLANNED_KERNEL(name)
    NPU_IR_PLANNED_KERNELS(NPU_X)
#undef NPU_X
};

/* Control flow that says of itself what open wants to hear, whatever its steps are: in which it is, what was done
   before, where it counts. */
static void make_flow_right(const npu_planned *m, npu_planned_head *h)
{
    uint32_t *words = (uint32_t *)(void *)h, counts[2] = { 0, 0 }, depth = 0;
    for (uint32_t at = h->steps; at < h->end && words[at] >> 16 < h->end - at; at += 1 + (words[at] >> 16)) {
        npu_planned_control_words *s = (npu_planned_control_words *)(void *)(words + at + 1), *open;
        bool is_control = words[at] == (NPU_PLANNED_control | (uint32_t)(sizeof *s / 4) << 16);
        if (is_control) {
            depth += s->kind == NPU_PLANNED_LOOP;
            s->open = counts[1];
            s->work = counts[0];
            s->counter = (NPU_PLANNED_ARENA | h->arena_size) - 4 * depth;
            open = (npu_planned_control_words *)(void *)(words + s->open + 1);
            if (s->open && s->kind != NPU_PLANNED_IF && s->kind != NPU_PLANNED_LOOP) {
                open->jump = at + 1 + (uint32_t)sizeof *s / 4 - s->open;
            }
            if (s->open && s->kind == NPU_PLANNED_END_LOOP) {
                s->jump = open->open + 1 + (uint32_t)sizeof *s / 4 - at;
            }
            depth -= s->kind == NPU_PLANNED_END_LOOP && depth;
        }
        if (npu__planned_call(m, words + at, counts)) {
            return;
        }
    }
}

/* Makes the head's sizes and sums right, where they can be; the steps are counted as open counts them. */
static void make_right(npu_planned_head *h, size_t size, uint8_t *arena)
{
    npu_planned m;
    h->magic = NPU_PLANNED_MAGIC;
    h->version = NPU_PLANNED_VERSION;
    h->order = NPU_PLANNED_ORDER;
    h->size = (uint32_t)size;
    h->head_size = h->head_size < 64 || h->head_size > size ? (uint32_t)size & ~3u : h->head_size & ~3u;
    h->arena_size %= MOST_ARENA;
    h->counters = h->counters > h->arena_size ? h->arena_size / 4 * 4 : h->counters;
    h->work = 0;
    m.head = h;
    m.arena = arena;
    m.kernels = kernels;
    m.num_kernels = sizeof kernels / sizeof kernels[0];
    if (h->end <= h->head_size / 4 && h->steps <= h->end && h->steps >= 16) {
        make_flow_right(&m, h);
        (void)npu__planned_check_steps(&m, &h->work);
    }
    h->head_crc = npu__planned_crc((const uint8_t *)h + 28, h->head_size - 28);
}

/* One step; *work: what it said that it would do. */
static npu_status do_step(npu_planned *m, uint64_t *work)
{
    const uint32_t *step = (const uint32_t *)(const void *)m->head + m->next;
    uint32_t own = 0;
    if ((step[0] & 0xffff) != NPU_PLANNED_control) {
        FUZZ_REQUIRE(npu__planned_call(m, step, &own) == NPU_OK);
    }
    *work += (step[0] & 0xffff) == NPU_PLANNED_control ? 1 : own;
    return npu_planned_step(m);
}

/* Opened once with all that it has, in memory of exactly its size. */
static void open_and_run(const uint8_t *file, size_t size, uint8_t *arena, uint32_t arena_size)
{
    npu_planned_desc d = { NULL, 0, NULL, 0, kernels, sizeof kernels / sizeof kernels[0], MOST_WORK, 0 };
    npu_planned m;
    d.file = file;
    d.size = size;
    d.arena = arena;
    d.arena_size = arena_size;
    if (npu_planned_open(&m, &d) == NPU_OK) {
        npu_status status = NPU_OK;
        FUZZ_REQUIRE(m.head->work <= MOST_WORK);
        for (int run = 0; run < 2; run++) {
            uint64_t work = 0;
            npu_planned_start(&m);
            while (status == NPU_OK && !npu_planned_is_done(&m)) {
                status = do_step(&m, &work);
                FUZZ_REQUIRE(work <= m.head->work);
            }
            FUZZ_REQUIRE(status == NPU_OK || status == NPU_ERR_RANGE || status == NPU_ERR_NUMERICAL);
        }
        for (uint32_t i = 0; npu_planned_port_at(&m, i); i++) {
            FUZZ_REQUIRE(npu_planned_data(&m, i) && strlen((const char *)file + npu_planned_port_at(&m, i)->name) < size);
        }
    } else {
        FUZZ_REQUIRE(m.head == NULL && npu_planned_run(&m) == NPU_ERR_STATE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t looked_at[MOST_ARENA / 8]; /* allocating it each time takes a sanitizer longer than all else */
    uint8_t *file = NULL, *arena;
    uint32_t arena_size = 8;
    if (size < sizeof(npu_planned_head) || size > (1 << 16)) {
        return 0;
    }
    file = (uint8_t *)malloc(size);
    FUZZ_REQUIRE(file);
    memcpy(file, data, size);
    open_and_run(file, size, file, 0); /* as it came: at most its checksum is wrong */
    make_right((npu_planned_head *)(void *)file, size, (uint8_t *)looked_at);
    arena_size = ((const npu_planned_head *)(const void *)file)->arena_size;
    arena = (uint8_t *)malloc(arena_size ? arena_size : 1);
    FUZZ_REQUIRE(arena);
    memset(arena, 0x3c, arena_size);
    open_and_run(file, size, arena, arena_size);
    free(arena);
    free(file);
    return 0;
}
