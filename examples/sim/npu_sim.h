/* npu_sim.h - a simulated accelerator as a complete npu_backend, for tests, and as a model for writing one.

   It has its own memory, which the host cannot touch: a stray access crashes. It decodes attribute blobs
   itself, as firmware would, has its own kernels (plain f32 loops), its own support table, and uses types of
   npu_ir.h but none of its functions. It can be slow, asynchronous, small, broken at the nth call, and wrong
   at the nth op.

       #define NPU_SIM_IMPLEMENTATION      // in one C file; POSIX: mmap, pthreads
       #include "examples/sim/npu_sim.h"

       npu_sim *sim;
       npu_sim_create(&sim, NULL);
       const npu_backend *backends[] = { npu_sim_backend(sim), npu_ref_backend() };

   CONTENTS  device memory - blobs - support table - kernels - programs - queue - slots of the backend
*/
#ifndef NPU_SIM_H
#define NPU_SIM_H

#include "../../npu_ir.h"

/* All zero = defaults. Strings and lists are borrowed. */
typedef struct npu_sim_desc {
    const char *name;            /* NULL = "sim" */
    const char *const *allow;    /* only ops of these names; NULL = the whole table */
    uint32_t num_allow;
    const char *const *deny;     /* ops of these names are not supported */
    uint32_t num_deny;
    const char *refuse;          /* compile fails for a group with this op; NULL = none */
    const npu_backend *emulate;  /* a host backend whose op_call runs what the table cannot; NULL = none */
    bool emulate_all;            /* the table's ops too: results are bit for bit those of `emulate` */
    bool async;                  /* work with a fence is queued and done by a thread */
    bool plans_inner;            /* programs keep their inner values in memory of their own */
    bool keeps_weights;          /* and their weights, which they take from the host in compile */
    bool in_place;               /* offers results of elementwise ops the memory of operand 0 */
    bool sleeps;                 /* simulated time really passes */
    uint64_t bandwidth;          /* of transfers, bytes per second; 0 = no time */
    uint64_t transfer_ns;        /* fixed time of a transfer */
    uint64_t submit_ns;          /* fixed time of a submit */
    uint64_t capacity;           /* bytes of device memory; 0 = unlimited */
    uint64_t on_chip;            /* bytes of a second region, which is to be filled first; 0 = there is none */
    bool hides_capacity;         /* the regions do not say how large they are */
    uint32_t alignment;          /* bytes, power of two up to 4096; 0 = 64 */
    uint64_t scratch;            /* bytes that every program asks for, and overwrites before every op */
    uint64_t op_scratch;         /* the same for every op alone */
    uint64_t worker_scratch;     /* and as much again for each worker */
    /* Time is that of npu_sim_clock, to be given as npu_exec_desc.clock: it passes where something is waited for, and
       no thread is there. Work with a fence is done when it is given, or, with is_late, not before it is waited for. */
    bool virtual_time, is_late;
    uint64_t op_ns;              /* of each op of a submit */
    const char *version;         /* of the device; NULL = "1" */
    /* Values of rank 4 lie in a form of the device's own: channels last, and padded to 32 of them. The slots convert,
       or with core_converts the core does. */
    bool pads_channels, core_converts;
    bool maps;                   /* has map: the host may see a buffer until unmap */
    bool no_copy;                /* has no copy */
    bool passes_views;           /* takes dense views that are denied, too: NPU_BACKEND_VIEWS */
} npu_sim_desc;

typedef enum npu_sim_slot {
    NPU_SIM_ALLOC, NPU_SIM_UPLOAD, NPU_SIM_DOWNLOAD, NPU_SIM_COPY, NPU_SIM_COMPILE, NPU_SIM_PLACE,
    NPU_SIM_SUBMIT, NPU_SIM_WAIT, NPU_SIM_MAP, NPU_SIM_POLL, NPU_SIM_SAVE, NPU_SIM_LOAD,
    NPU_SIM_SLOTS
} npu_sim_slot;

typedef struct npu_sim_counters {
    uint64_t calls[NPU_SIM_SLOTS];
    uint64_t bytes_up, bytes_down, bytes_copied; /* of transfers that were done */
    uint64_t ops, ops_emulated;      /* run; views that needed no work are not counted */
    uint64_t live_buffers, live_bytes, live_programs;
    uint64_t busy_ns;                /* simulated time */
} npu_sim_counters;

typedef struct npu_sim npu_sim;

/* Errors: INVALID_ARGUMENT (alignment, emulate without op_call), NO_MEMORY. desc NULL = defaults. */
npu_status npu_sim_create(npu_sim **out, const npu_sim_desc *desc);
void npu_sim_destroy(npu_sim *sim); /* after the programs that use it; NULL is fine */
const npu_backend *npu_sim_backend(npu_sim *sim);
npu_sim_counters npu_sim_count(npu_sim *sim);
/* Names of the table, in no special order; NULL past the end. */
const char *npu_sim_op_name(uint32_t i);

/* Each counts from now on, happens once, and 0 takes it back. */
void npu_sim_fail(npu_sim *sim, npu_sim_slot slot, uint32_t nth_call, npu_status status);
void npu_sim_corrupt(npu_sim *sim, uint32_t nth_op); /* its first result gets a wrong first element */
void npu_sim_hang(npu_sim *sim, uint32_t nth_submit, uint64_t ns); /* takes that much longer, really */
void npu_sim_vanish(npu_sim *sim, bool is_gone); /* every call fails with BACKEND while it is gone */
/* The virtual time of all simulated devices, in nanoseconds, and the host taking some: of one thread. */
uint64_t npu_sim_clock(void);
void npu_sim_advance(uint64_t ns);

#endif /* NPU_SIM_H */

#if defined(NPU_SIM_IMPLEMENTATION) && !defined(NPU_SIM_IMPLEMENTATION_DONE)
#define NPU_SIM_IMPLEMENTATION_DONE

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- device memory ------------------------------------------------------------------------------------- */

/* A buffer is a mapping of its own, closed (PROT_NONE) whenever the device is not working on it. It ends at a
   closed page, so that what reads or writes past it crashes. */
typedef struct npu_sim__buffer {
    struct npu_sim__buffer *next;
    uint8_t *mapping, *start;
    size_t mapped;  /* bytes that open and close, whole pages */
    uint64_t bytes;
    uint32_t region;
} npu_sim__buffer;

typedef struct npu_sim__job npu_sim__job;

/* A shape whose values lie in a form of the device's own. */
typedef struct npu_sim__form {
    int64_t dims[4];    /* of the value: N C H W */
    int64_t padded[4];  /* of the form: N H W C */
    uint32_t element;   /* bytes */
    uint64_t bytes;
} npu_sim__form;

struct npu_sim {
    npu_backend backend;
    npu_region regions[2];          /* device memory, on-chip memory */
    npu_sim_desc desc;
    npu_sim_counters counters;
    struct { uint32_t left; npu_status status; } faults[NPU_SIM_SLOTS];
    uint32_t corrupt_left, hang_left;
    uint64_t hang_ns;
    npu_sim__buffer *buffers;
    pthread_mutex_t lock;           /* everything above, and the queue */
    pthread_mutex_t engine;         /* held while the device works: memory is open then */
    pthread_cond_t queued, finished;
    npu_sim__job *first, **last;
    npu_fence issued, completed;
    npu_status results[1024];       /* of the latest fences */
    npu_sim__form forms[64];        /* by npu_form.id - 1 */
    uint32_t num_forms;
    uint64_t ends[1024], free_at;   /* virtual time: of the latest fences, and when all is done */
    bool is_gone;
    pthread_t thread;
    bool has_thread, quits;
};

static size_t npu_sim__round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Maps `size` bytes of zeros. /dev/zero instead of MAP_ANONYMOUS, which strict C99 headers hide. */
static uint8_t *npu_sim__map(size_t size)
{
    int file = open("/dev/zero", O_RDWR);
    void *p = file < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (file >= 0) {
        close(file);
    }
    return p == MAP_FAILED ? NULL : p;
}

static npu_sim__buffer *npu_sim__buffer_new(uint64_t bytes, size_t slack, size_t alignment)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used;
    npu_sim__buffer *b = bytes < SIZE_MAX / 4 ? calloc(1, sizeof *b) : NULL;
    if (!b) {
        return NULL;
    }
    used = npu_sim__round_up((size_t)bytes + slack + !bytes, alignment);
    b->mapped = npu_sim__round_up(used, page);
    b->mapping = npu_sim__map(b->mapped + page);
    if (!b->mapping) {
        free(b);
        return NULL;
    }
    b->bytes = bytes;
    b->start = b->mapping + b->mapped - used;
    memset(b->mapping, 0xff, b->mapped); /* NaN in every float type: what is used before it is set shows */
    mprotect(b->mapping, b->mapped + page, PROT_NONE);
    return b;
}

static void npu_sim__buffer_free(npu_sim__buffer *b)
{
    munmap(b->mapping, b->mapped + (size_t)sysconf(_SC_PAGESIZE));
    free(b);
}

/* The buffer with that handle, which is its device address. */
static npu_sim__buffer *npu_sim__buffer_find(npu_sim *sim, const void *handle)
{
    pthread_mutex_lock(&sim->lock);
    npu_sim__buffer *b = sim->buffers;
    while (b && b->start != handle) {
        b = b->next;
    }
    pthread_mutex_unlock(&sim->lock);
    return b;
}

static void npu_sim__open(const npu_sim__buffer *b, bool open)
{
    mprotect(b->mapping, b->mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static bool npu_sim__inside(const npu_sim__buffer *b, uint64_t offset, uint64_t bytes)
{
    return b && offset <= b->bytes && bytes <= b->bytes - offset;
}

/* Zeroed blocks that are freed together. */
typedef struct npu_sim__blocks { void *first; } npu_sim__blocks;

static void *npu_sim__take(npu_sim__blocks *blocks, size_t count, size_t size)
{
    const size_t head = 16;
    if (size && count > (SIZE_MAX - head) / size) {
        return NULL;
    }
    char *block = calloc(1, head + count * size);
    if (!block) {
        return NULL;
    }
    memcpy(block, &blocks->first, sizeof blocks->first);
    blocks->first = block;
    return block + head;
}

static void *npu_sim__copy_of(npu_sim__blocks *blocks, const void *data, size_t size)
{
    void *copy = npu_sim__take(blocks, 1, size);
    if (copy && size) {
        memcpy(copy, data, size);
    }
    return copy;
}

static void npu_sim__blocks_free(npu_sim__blocks *blocks)
{
    while (blocks->first) {
        void *next;
        memcpy(&next, blocks->first, sizeof next);
        free(blocks->first);
        blocks->first = next;
    }
}

/* ---- attribute blobs ----------------------------------------------------------------------------------- */

#define NPU_SIM__ATTRS 9
#define NPU_SIM__LIST 8

/* One decoded attribute. */
typedef struct npu_sim__attr {
    bool present;
    int64_t i;
    double f;
    uint32_t len;                /* of list */
    int64_t list[NPU_SIM__LIST];
    char text[16];
} npu_sim__attr;

typedef struct npu_sim__reader {
    const uint8_t *p;
    uint32_t left;
    bool bad; /* too short, or more than an npu_sim__attr can hold */
} npu_sim__reader;

/* The next `size` bytes as a little-endian number. */
static uint64_t npu_sim__read(npu_sim__reader *r, uint32_t size)
{
    uint64_t x = 0;
    if (r->left < size) {
        r->bad = true;
        r->left = 0;
        return 0;
    }
    for (uint32_t i = 0; i < size; i++) {
        x |= (uint64_t)r->p[i] << (8 * i);
    }
    r->p += size;
    r->left -= size;
    return x;
}

static double npu_sim__read_double(npu_sim__reader *r)
{
    uint64_t bits = npu_sim__read(r, 8);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void npu_sim__read_list(npu_sim__reader *r, npu_sim__attr *a, uint64_t len)
{
    if (len > NPU_SIM__LIST) {
        r->bad = true;
        return;
    }
    a->len = (uint32_t)len;
    for (uint32_t i = 0; i < len; i++) {
        a->list[i] = (int64_t)npu_sim__read(r, 8);
    }
}

static void npu_sim__read_text(npu_sim__reader *r, npu_sim__attr *a)
{
    uint64_t len = npu_sim__read(r, 4);
    if (len >= sizeof a->text) {
        r->bad = true;
        return;
    }
    for (uint64_t i = 0; i < len; i++) {
        a->text[i] = (char)npu_sim__read(r, 1);
    }
}

/* Letters of the packed form: i int, f float, b bool, t dtype, s Scalar, S string, I list, 1 and 2 lists of
   one and two. */
static void npu_sim__read_packed(npu_sim__reader *r, char letter, npu_sim__attr *a)
{
    uint64_t tag = letter == 's' ? npu_sim__read(r, 1) : 0;
    switch (letter) {
    case 'b': case 't': a->i = (int64_t)npu_sim__read(r, 1); break;
    case 'S': npu_sim__read_text(r, a); return;
    case 'I': npu_sim__read_list(r, a, npu_sim__read(r, 4)); return;
    case '1': npu_sim__read_list(r, a, 1); return;
    case '2': npu_sim__read_list(r, a, 2); return;
    default:
        if (letter == 'f' || tag == 2) {
            a->f = npu_sim__read_double(r);
            return;
        }
        a->i = (int64_t)npu_sim__read(r, 8);
    }
    a->f = (double)a->i;
}

/* Letters of the device's form, as in npu_abi_row: only those that its table uses. */
static void npu_sim__read_device(npu_sim__reader *r, char letter, npu_sim__attr *a)
{
    a->i = letter == 'q' ? (int64_t)npu_sim__read(r, 8) : (int32_t)(uint32_t)npu_sim__read(r, 4);
}

/* Decodes a whole blob: false unless it has exactly the bytes that the letters say. '?' = optional, '<' = the
   device's form. */
static bool npu_sim__decode(const char *letters, const uint8_t *blob, uint32_t size, npu_sim__attr *attrs)
{
    npu_sim__reader r = { blob, size, false };
    bool device = *letters == '<', optional = false;
    uint32_t n = 0;
    for (letters += device; *letters && n < NPU_SIM__ATTRS; letters++) {
        if (*letters == '?' || *letters == ' ') {
            optional |= *letters == '?';
            continue;
        }
        attrs[n].present = !optional || npu_sim__read(&r, 1);
        if (attrs[n].present && device) {
            npu_sim__read_device(&r, *letters, &attrs[n]);
        } else if (attrs[n].present) {
            npu_sim__read_packed(&r, *letters, &attrs[n]);
        }
        optional = false;
        n++;
    }
    return !r.bad && r.left == 0;
}

/* True where a size is fed by a value: INT64_MIN in the blob. */
static bool npu_sim__is_fed(const npu_sim__attr *attrs)
{
    for (uint32_t i = 0; i < NPU_SIM__ATTRS; i++) {
        bool fed = attrs[i].i == INT64_MIN;
        for (uint32_t k = 0; k < attrs[i].len; k++) {
            fed |= attrs[i].list[k] == INT64_MIN;
        }
        if (fed) {
            return true;
        }
    }
    return false;
}

/* ---- ops ----------------------------------------------------------------------------------------------- */

typedef struct npu_sim__shape {
    uint32_t dtype;    /* 0 = absent */
    uint32_t rank;
    uint32_t element;  /* bytes */
    bool is_plain;     /* known dims, whole bytes, not quantised */
    bool is_number;    /* a Python number where a tensor could be: f64 or i64, rank 0 */
    int64_t dims[NPU_MAX_RANK];
    int64_t strides[NPU_MAX_RANK]; /* elements, dense */
    int64_t len;       /* elements */
} npu_sim__shape;

typedef struct npu_sim__op {
    const struct npu_sim__row *row; /* NULL = emulated */
    npu_sim__attr attrs[NPU_SIM__ATTRS];
    uint32_t id, num_in, num_out;
    npu_sim__shape *in, *out;
    const uint32_t *in_value, *out_value; /* of the group */
    npu_op_info *info;              /* a copy, for emulation */
} npu_sim__op;

/* Dtypes of a row's tensors: f32; any one; f32 looked up by i32 or i64. */
enum { NPU_SIM__F32, NPU_SIM__MOVE, NPU_SIM__LOOKUP };

/* One supported op. */
typedef struct npu_sim__row {
    const char *name;
    const char *letters;       /* of its blob */
    uint8_t required, max_in;  /* operands that must be present; most operands, 0 = any number */
    uint8_t dtypes;            /* NPU_SIM__F32 ... */
    npu_status (*run)(const npu_sim__op *op, const void *const *x, void *const *y);
    float (*fn)(float a, float b, const npu_sim__attr *attrs); /* of elementwise ops */
    const char *(*check)(const npu_sim__op *op);               /* NULL or words: what the kernel cannot do */
} npu_sim__row;

static uint32_t npu_sim__element(uint32_t dtype)
{
    switch (dtype) {
    case NPU_BOOL: case NPU_I8: case NPU_U8: return 1;
    case NPU_I16: case NPU_U16: case NPU_F16: case NPU_BF16: return 2;
    case NPU_I32: case NPU_U32: case NPU_F32: return 4;
    case NPU_I64: case NPU_U64: case NPU_F64: case NPU_C64: return 8;
    case NPU_C128: return 16;
    default: return 0;
    }
}

static void npu_sim__measure(npu_sim__shape *s)
{
    s->len = 1;
    for (uint32_t d = s->rank; d-- > 0;) {
        s->strides[d] = s->len;
        s->len *= s->dims[d];
    }
}

static void npu_sim__shape_of(npu_sim__shape *s, const npu_spec *spec)
{
    memset(s, 0, sizeof *s);
    if (!spec) {
        return;
    }
    s->dtype = spec->dtype;
    s->rank = spec->rank;
    s->element = npu_sim__element(spec->dtype);
    s->is_plain = s->element && !spec->quant && spec->cls == NPU_CLASS_TENSOR;
    s->is_number = spec->wrapped && spec->rank == 0 && (spec->dtype == NPU_F64 || spec->dtype == NPU_I64);
    for (uint32_t d = 0; d < spec->rank; d++) {
        s->dims[d] = spec->dims[d];
        s->is_plain &= spec->dims[d] >= 0;
    }
    npu_sim__measure(s);
}

static uint64_t npu_sim__bytes(const npu_sim__shape *s)
{
    return (uint64_t)s->len * s->element;
}

/* Counts index up within the dims, last dim fastest. */
static void npu_sim__next(int64_t *index, const npu_sim__shape *s)
{
    for (uint32_t d = s->rank; d-- > 0;) {
        if (++index[d] < s->dims[d]) {
            return;
        }
        index[d] = 0;
    }
}

/* Element of `s` that belongs to an index of the broadcast result. */
static int64_t npu_sim__broadcast(const npu_sim__shape *s, const int64_t *index, uint32_t rank)
{
    int64_t at = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        at += s->dims[d] == 1 ? 0 : index[rank - s->rank + d] * s->strides[d];
    }
    return at;
}

static int64_t npu_sim__axis(int64_t axis, uint32_t rank)
{
    return axis < 0 ? axis + (int64_t)rank : axis;
}

static int64_t npu_sim__min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t npu_sim__max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Product of dims from..to. */
static int64_t npu_sim__span(const npu_sim__shape *s, int64_t from, int64_t to)
{
    int64_t n = 1;
    for (int64_t d = from; d < to; d++) {
        n *= s->dims[d];
    }
    return n;
}

/* Element i of a list, of which one element may stand for all. */
static int64_t npu_sim__at(const npu_sim__attr *a, uint32_t i, int64_t fallback)
{
    return a->len == 0 ? fallback : a->len == 1 ? a->list[0] : a->list[i];
}

/* ---- kernels: elementwise ---- */

static float npu_sim__load(const npu_sim__shape *s, const void *x, int64_t i)
{
    switch (s->dtype) {
    case NPU_F64: return (float)((const double *)x)[i];
    case NPU_I64: return (float)((const int64_t *)x)[i];
    default: return ((const float *)x)[i];
    }
}

static npu_status npu_sim__run_map(const npu_sim__op *op, const void *const *x, void *const *y)
{
    uint32_t rank = op->out[0].rank;
    int64_t index[NPU_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < op->out[0].len; i++) {
        float a = npu_sim__load(&op->in[0], x[0], npu_sim__broadcast(&op->in[0], index, rank)), b = 0;
        if (op->num_in > 1) {
            b = npu_sim__load(&op->in[1], x[1], npu_sim__broadcast(&op->in[1], index, rank));
        }
        ((float *)y[0])[i] = op->row->fn(a, b, op->attrs);
        npu_sim__next(index, &op->out[0]);
    }
    return NPU_OK;
}

#define NPU_SIM__FN(name, expression) \
    static float npu_sim__fn_##name(float a, float b, const npu_sim__attr *t) \
    { \
        (void)b, (void)t; \
        return expression; \
    }

/* NaN fails every comparison: written so that it stays. */
NPU_SIM__FN(relu, a < 0 ? 0 : a)
NPU_SIM__FN(silu, a / (1 + expf(-a)))
NPU_SIM__FN(sigmoid, 1 / (1 + expf(-a)))
NPU_SIM__FN(tanh, tanhf(a))
NPU_SIM__FN(leaky_relu, a > 0 ? a : (float)(a * (float)t[0].f))
NPU_SIM__FN(hardswish, a * (a < -3 ? 0 : a > 3 ? 6 : a + 3) / 6)
NPU_SIM__FN(hardtanh, a < (float)t[0].f ? (float)t[0].f : a > (float)t[1].f ? (float)t[1].f : a)
NPU_SIM__FN(elu, a > 0 ? (float)t[1].f * a : (float)t[1].f * (float)t[0].f * expm1f((float)t[2].f * a))
NPU_SIM__FN(add, a + (float)t[0].f * b)
NPU_SIM__FN(sub, a - (float)t[0].f * b)
NPU_SIM__FN(add_scalar, a + (float)(t[1].f * t[0].f))
NPU_SIM__FN(sub_scalar, a - (float)(t[1].f * t[0].f))
NPU_SIM__FN(plus, a + b)
NPU_SIM__FN(mul, a * b)
NPU_SIM__FN(mul_scalar, a * (float)t[0].f)
NPU_SIM__FN(div, a / b)
NPU_SIM__FN(div_scalar, a / (float)t[0].f)
NPU_SIM__FN(maximum, a != a ? a : b != b ? b : a > b ? a : b)
NPU_SIM__FN(minimum, a != a ? a : b != b ? b : a < b ? a : b)
NPU_SIM__FN(sqrt, sqrtf(a))
NPU_SIM__FN(rsqrt, 1 / sqrtf(a))
NPU_SIM__FN(neg, -a)
NPU_SIM__FN(abs, fabsf(a))
NPU_SIM__FN(exp, expf(a))
NPU_SIM__FN(log, logf(a))
NPU_SIM__FN(pow, powf(a, b))
NPU_SIM__FN(pow_scalar, powf(a, (float)t[0].f))

static float npu_sim__fn_gelu(float a, float b, const npu_sim__attr *t)
{
    double x = (double)a, inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
    (void)b;
    return (float)(0.5 * x * (1 + (t[0].text[0] == 't' ? tanh(inner) : erf(x * 0.7071067811865476))));
}

static float npu_sim__fn_clamp(float a, float b, const npu_sim__attr *t)
{
    float low = (float)t[0].f, high = (float)t[1].f;
    (void)b;
    a = t[0].present && a < low ? low : a;
    return t[1].present && a > high ? high : a;
}

static float npu_sim__floor_divide(float a, float b)
{
    if (b == 0) {
        return a / b;
    }
    float mod = fmodf(a, b), quotient = (a - mod) / b;
    quotient -= mod != 0 && (b < 0) != (mod < 0) ? 1.0f : 0.0f;
    if (quotient == 0) {
        return copysignf(0.0f, a / b);
    }
    float down = floorf(quotient);
    return down + (quotient - down > 0.5f ? 1.0f : 0.0f);
}

static float npu_sim__divide(float a, float b, const npu_sim__attr *mode)
{
    if (!mode->present) {
        return a / b;
    }
    return mode->text[0] == 'f' ? npu_sim__floor_divide(a, b) : truncf(a / b);
}

NPU_SIM__FN(div_mode, npu_sim__divide(a, b, &t[0]))
NPU_SIM__FN(div_scalar_mode, npu_sim__divide(a, (float)t[0].f, &t[1]))

static const char *npu_sim__check_gelu(const npu_sim__op *op)
{
    const char *how = op->attrs[0].text;
    return strcmp(how, "none") && strcmp(how, "tanh") ? "approximate" : NULL;
}

static const char *npu_sim__check_mode(const npu_sim__op *op)
{
    const npu_sim__attr *mode = &op->attrs[op->num_in > 1 ? 0 : 1];
    bool known = !mode->present || !strcmp(mode->text, "floor") || !strcmp(mode->text, "trunc");
    return known ? NULL : "rounding_mode";
}

/* ---- kernels: matrix products and convolution ---- */

/* A matrix somewhere in memory: steps between rows and between columns. */
typedef struct npu_sim__matrix { const float *at; int64_t row, column; } npu_sim__matrix;

static void npu_sim__multiply(npu_sim__matrix a, npu_sim__matrix b, float *y, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) {
                sum += (double)a.at[i * a.row + l * a.column] * (double)b.at[l * b.row + j * b.column];
            }
            y[i * n + j] = (float)sum;
        }
    }
}

/* The last two dims of a matmul operand as a matrix; a vector is a row on the left, a column on the right. */
static npu_sim__matrix npu_sim__matrix_of(const npu_sim__shape *s, const float *at, bool left)
{
    npu_sim__matrix m = { at, 0, 0 };
    if (s->rank > 1) {
        m.row = s->dims[s->rank - 1];
        m.column = 1;
    } else if (left) {
        m.column = 1;
    } else {
        m.row = 1;
    }
    return m;
}

static npu_sim__shape npu_sim__batch_of(const npu_sim__shape *s, uint32_t matrix_dims)
{
    npu_sim__shape batch = *s;
    batch.rank -= matrix_dims < s->rank ? matrix_dims : s->rank;
    npu_sim__measure(&batch);
    return batch;
}

/* mm, bmm, matmul: batch dims broadcast. */
static npu_status npu_sim__run_matmul(const npu_sim__op *op, const void *const *x, void *const *y)
{
    const npu_sim__shape *a = &op->in[0], *b = &op->in[1];
    uint32_t matrix_dims = (uint32_t)(a->rank > 1) + (uint32_t)(b->rank > 1);
    npu_sim__shape batch = npu_sim__batch_of(&op->out[0], matrix_dims);
    npu_sim__shape batch_a = npu_sim__batch_of(a, 2), batch_b = npu_sim__batch_of(b, 2);
    int64_t m = a->rank > 1 ? a->dims[a->rank - 2] : 1, n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    int64_t k = a->dims[a->rank - 1], index[NPU_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < batch.len; i++) {
        const float *xa = (const float *)x[0] + npu_sim__broadcast(&batch_a, index, batch.rank) * m * k;
        const float *xb = (const float *)x[1] + npu_sim__broadcast(&batch_b, index, batch.rank) * k * n;
        npu_sim__multiply(npu_sim__matrix_of(a, xa, true), npu_sim__matrix_of(b, xb, false),
                          (float *)y[0] + i * m * n, m, n, k);
        npu_sim__next(index, &batch);
    }
    return NPU_OK;
}

static const char *npu_sim__check_matmul(const npu_sim__op *op)
{
    return op->in[0].rank && op->in[1].rank ? NULL : "a 0-d operand";
}

static npu_status npu_sim__run_linear(const npu_sim__op *op, const void *const *x, void *const *y)
{
    int64_t rows = npu_sim__span(&op->in[0], 0, (int64_t)op->in[0].rank - 1);
    int64_t n = op->in[1].dims[0], k = op->in[1].dims[1];
    const float *bias = op->num_in > 2 ? x[2] : NULL;
    float *out = y[0];
    npu_sim__matrix a = { x[0], k, 1 }, w = { x[1], 1, k };
    npu_sim__multiply(a, w, out, rows, n, k);
    for (int64_t i = 0; bias && i < rows * n; i++) {
        out[i] += bias[i % n];
    }
    return NPU_OK;
}

static const char *npu_sim__check_linear(const npu_sim__op *op)
{
    return op->in[1].rank == 2 && op->in[0].rank ? NULL : "weight must be a matrix";
}

static npu_status npu_sim__run_addmm(const npu_sim__op *op, const void *const *x, void *const *y)
{
    int64_t m = op->in[1].dims[0], k = op->in[1].dims[1], n = op->in[2].dims[1], index[NPU_MAX_RANK] = { 0 };
    float beta = (float)op->attrs[0].f, alpha = (float)op->attrs[1].f, *out = y[0];
    npu_sim__matrix a = { x[1], k, 1 }, b = { x[2], n, 1 };
    npu_sim__multiply(a, b, out, m, n, k);
    for (int64_t i = 0; i < m * n; i++) {
        float added = beta == 0 ? 0 : beta * ((const float *)x[0])[npu_sim__broadcast(&op->in[0], index, 2)];
        out[i] = alpha * out[i] + added;
        npu_sim__next(index, &op->out[0]);
    }
    return NPU_OK;
}

static npu_status npu_sim__run_gemm(const npu_sim__op *op, const void *const *x, void *const *y)
{
    const int64_t *a = op->in[0].dims, *b = op->in[1].dims;
    bool flip_a = op->attrs[0].i, flip_b = op->attrs[1].i;
    npu_sim__matrix ma = { x[0], flip_a ? 1 : a[1], flip_a ? a[1] : 1 };
    npu_sim__matrix mb = { x[1], flip_b ? 1 : b[1], flip_b ? b[1] : 1 };
    npu_sim__multiply(ma, mb, y[0], op->out[0].dims[0], op->out[0].dims[1], flip_a ? a[0] : a[1]);
    return NPU_OK;
}

static const char *npu_sim__check_gemm(const npu_sim__op *op)
{
    return op->in[0].rank == 2 && op->in[1].rank == 2 ? NULL : "operands must be matrices";
}

/* A convolution over three spatial dims, of which leading ones may be 1. */
typedef struct npu_sim__conv {
    int64_t batch, channels, features, groups;
    int64_t size[3], kernel[3], result[3], stride[3], pad[3], dilation[3];
} npu_sim__conv;

static double npu_sim__conv_at(const npu_sim__conv *c, const float *x, const float *w, const int64_t *at)
{
    int64_t first[3], per_group = c->channels / c->groups;
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        first[i] = at[i] * c->stride[i] - c->pad[i];
    }
    for (int64_t l = 0; l < per_group * c->kernel[0] * c->kernel[1] * c->kernel[2]; l++) {
        int64_t k2 = l % c->kernel[2], k1 = l / c->kernel[2] % c->kernel[1];
        int64_t k0 = l / (c->kernel[2] * c->kernel[1]) % c->kernel[0];
        int64_t channel = l / (c->kernel[2] * c->kernel[1] * c->kernel[0]);
        int64_t i0 = first[0] + k0 * c->dilation[0], i1 = first[1] + k1 * c->dilation[1];
        int64_t i2 = first[2] + k2 * c->dilation[2];
        if (i0 >= 0 && i0 < c->size[0] && i1 >= 0 && i1 < c->size[1] && i2 >= 0 && i2 < c->size[2]) {
            int64_t i = ((channel * c->size[0] + i0) * c->size[1] + i1) * c->size[2] + i2;
            sum += (double)x[i] * (double)w[l];
        }
    }
    return sum;
}

static void npu_sim__convolve(const npu_sim__conv *c, const float *x, const float *w, const float *bias,
                              float *y)
{
    int64_t per_group = c->channels / c->groups, plane = c->size[0] * c->size[1] * c->size[2];
    int64_t filter = per_group * c->kernel[0] * c->kernel[1] * c->kernel[2], at[3];
    for (int64_t nf = 0; nf < c->batch * c->features; nf++) {
        int64_t f = nf % c->features, group = f / (c->features / c->groups);
        const float *from = x + (nf / c->features * c->channels + group * per_group) * plane;
        for (at[0] = 0; at[0] < c->result[0]; at[0]++) {
            for (at[1] = 0; at[1] < c->result[1]; at[1]++) {
                for (at[2] = 0; at[2] < c->result[2]; at[2]++) {
                    double sum = npu_sim__conv_at(c, from, w + f * filter, at);
                    *y++ = (float)(sum + (bias ? (double)bias[f] : 0));
                }
            }
        }
    }
}

/* The padding of a dim: a number, or 'same', of which the left half is meant (rounded down). */
static int64_t npu_sim__pad(const npu_sim__attr *pad, uint32_t i, int64_t dilation, int64_t kernel)
{
    if (pad->text[0]) {
        return pad->text[0] == 's' ? dilation * (kernel - 1) / 2 : 0;
    }
    return npu_sim__at(pad, i, 0);
}

/* attrs: stride, padding, dilation, and groups at index `groups`. */
static npu_status npu_sim__run_conv_at(const npu_sim__op *op, const void *const *x, void *const *y,
                                       int groups)
{
    const npu_sim__shape *in = &op->in[0], *w = &op->in[1], *out = &op->out[0];
    uint32_t spatial = w->rank - 2;
    npu_sim__conv c;
    for (uint32_t i = 0; i < 3; i++) {
        c.size[i] = c.kernel[i] = c.result[i] = c.stride[i] = c.dilation[i] = 1;
        c.pad[i] = 0;
    }
    c.batch = in->rank == w->rank ? in->dims[0] : 1;
    c.channels = in->dims[in->rank - spatial - 1];
    c.features = w->dims[0];
    c.groups = op->attrs[groups].i;
    for (uint32_t i = 0; i < spatial; i++) {
        uint32_t to = 3 - spatial + i;
        c.size[to] = in->dims[in->rank - spatial + i];
        c.result[to] = out->dims[out->rank - spatial + i];
        c.kernel[to] = w->dims[2 + i];
        c.stride[to] = npu_sim__at(&op->attrs[0], i, 1);
        c.dilation[to] = npu_sim__at(&op->attrs[2], i, 1);
        c.pad[to] = npu_sim__pad(&op->attrs[1], i, c.dilation[to], c.kernel[to]);
    }
    npu_sim__convolve(&c, x[0], x[1], op->num_in > 2 ? x[2] : NULL, y[0]);
    return NPU_OK;
}

static npu_status npu_sim__run_conv(const npu_sim__op *op, const void *const *x, void *const *y)
{
    return npu_sim__run_conv_at(op, x, y, 3);
}

static npu_status npu_sim__run_convolution(const npu_sim__op *op, const void *const *x, void *const *y)
{
    return npu_sim__run_conv_at(op, x, y, 5);
}

static const char *npu_sim__check_conv(const npu_sim__op *op)
{
    const char *pad = op->attrs[1].text;
    if (op->in[1].rank < 3 || op->in[1].rank > 5) {
        return "more than three spatial dims";
    }
    return pad[0] && strcmp(pad, "same") && strcmp(pad, "valid") ? "padding" : NULL;
}

static const char *npu_sim__check_convolution(const npu_sim__op *op)
{
    return op->attrs[3].i ? "transposed" : npu_sim__check_conv(op);
}

/* ---- kernels: normalisation and softmax ---- */

/* y = (x - mean) / sqrt(var + eps), times scale, plus shift. */
static float npu_sim__normal(float x, double mean, double var, double eps, const float *scale,
                             const float *shift)
{
    double y = ((double)x - mean) / sqrt(var + eps);
    return (float)(y * (scale ? (double)*scale : 1) + (shift ? (double)*shift : 0));
}

static npu_status npu_sim__run_batch_norm(const npu_sim__op *op, const void *const *x, void *const *y)
{
    const float *in = x[0], *w = x[1], *b = x[2], *mean = x[3], *var = x[4];
    int64_t channels = op->in[0].dims[1], inner = npu_sim__span(&op->in[0], 2, op->in[0].rank);
    for (int64_t i = 0; i < op->in[0].len; i++) {
        int64_t c = i / inner % channels;
        ((float *)y[0])[i] = npu_sim__normal(in[i], (double)mean[c], (double)var[c], op->attrs[2].f,
                                             w ? w + c : NULL, b ? b + c : NULL);
    }
    return NPU_OK;
}

static const char *npu_sim__check_batch_norm(const npu_sim__op *op)
{
    return op->attrs[0].i || op->num_in != 5 || !op->in[3].dtype || !op->in[4].dtype ? "training" : NULL;
}

/* Mean and variance of n elements. */
static void npu_sim__moments(const float *x, int64_t n, double *mean, double *var)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i];
    }
    for (int64_t i = 0; i < n; i++) {
        squares += ((double)x[i] - sum / (double)n) * ((double)x[i] - sum / (double)n);
    }
    *mean = sum / (double)n;
    *var = squares / (double)n;
}

static npu_status npu_sim__run_layer_norm(const npu_sim__op *op, const void *const *x, void *const *y)
{
    const npu_sim__shape *s = &op->in[0];
    int64_t inner = npu_sim__span(s, (int64_t)s->rank - op->attrs[0].len, s->rank);
    const float *in = x[0], *w = op->num_in > 1 ? x[1] : NULL, *b = op->num_in > 2 ? x[2] : NULL;
    double mean = 0, var = 0;
    for (int64_t i = 0; i < s->len; i++) {
        int64_t j = i % inner;
        if (j == 0) {
            npu_sim__moments(in + i, inner, &mean, &var);
        }
        ((float *)y[0])[i] = npu_sim__normal(in[i], mean, var, op->attrs[1].f, w ? w + j : NULL,
                                             b ? b + j : NULL);
    }
    return NPU_OK;
}

static npu_status npu_sim__run_group_norm(const npu_sim__op *op, const void *const *x, void *const *y)
{
    const npu_sim__shape *s = &op->in[0];
    int64_t channels = s->dims[1], plane = npu_sim__span(s, 2, s->rank);
    int64_t inner = channels / op->attrs[0].i * plane;
    const float *in = x[0], *w = op->num_in > 1 ? x[1] : NULL, *b = op->num_in > 2 ? x[2] : NULL;
    double mean = 0, var = 0;
    for (int64_t i = 0; i < s->len; i++) {
        int64_t c = i / plane % channels;
        if (i % inner == 0) {
            npu_sim__moments(in + i, inner, &mean, &var);
        }
        ((float *)y[0])[i] = npu_sim__normal(in[i], mean, var, op->attrs[1].f, w ? w + c : NULL,
                                             b ? b + c : NULL);
    }
    return NPU_OK;
}

/* One line of n elements, `step` apart. */
static void npu_sim__softmax_line(const float *x, float *y, int64_t n, int64_t step, bool logarithm)
{
    double sum = 0, largest = n ? (double)x[0] : 0;
    for (int64_t i = 0; i < n; i++) {
        largest = (double)x[i * step] > largest ? (double)x[i * step] : largest;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += exp((double)x[i * step] - largest);
    }
    for (int64_t i = 0; i < n; i++) {
        double z = (double)x[i * step] - largest;
        y[i * step] = (float)(logarithm ? z - log(sum) : exp(z) / sum);
    }
}

static npu_status npu_sim__softmax(const npu_sim__op *op, const float *x, float *y, int64_t axis,
                                   bool logarithm)
{
    const npu_sim__shape *s = &op->in[0];
    int64_t dim = npu_sim__axis(axis, s->rank);
    int64_t n = s->rank ? s->dims[dim] : 1, step = s->rank ? s->strides[dim] : 1;
    for (int64_t i = 0; n && i < s->len / n; i++) {
        int64_t at = i / step * step * n + i % step;
        npu_sim__softmax_line(x + at, y + at, n, step, logarithm);
    }
    return NPU_OK;
}

static npu_status npu_sim__run_softmax(const npu_sim__op *op, const void *const *x, void *const *y)
{
    return npu_sim__softmax(op, x[0], y[0], op->attrs[0].i, false);
}

static npu_status npu_sim__run_log_softmax(const npu_sim__op *op, const void *const *x, void *const *y)
{
    return npu_sim__softmax(op, x[0], y[0], op->attrs[0].i, true);
}

static npu_status npu_sim__run_softmax_last(const npu_sim__op *op, const void *const *x, void *const *y)
{
    return npu_sim__softmax(op, x[0], y[0], -1, false);
}

/* ---- kernels: pooling ---- */

/* Windows over the last two dims. */
typedef struct npu_sim__pool {
    int64_t planes, size[2], result[2], kernel[2], stride[2], pad[2], dilation[2];
    bool count_pad;
    int64_t divisor; /* 0 = the window's size */
} npu_sim__pool;

static npu_sim__pool npu_sim__pool_of(const npu_sim__op *op, const npu_sim__attr *dilation)
{
    const npu_sim__shape *in = &op->in[0];
    npu_sim__pool p;
    memset(&p, 0, sizeof p);
    p.planes = npu_sim__span(in, 0, (int64_t)in->rank - 2);
    for (uint32_t i = 0; i < 2; i++) {
        p.size[i] = in->dims[in->rank - 2 + i];
        p.result[i] = op->out[0].dims[in->rank - 2 + i];
        p.kernel[i] = npu_sim__at(&op->attrs[0], i, 1);
        p.stride[i] = npu_sim__at(&op->attrs[1], i, p.kernel[i]);
        p.pad[i] = npu_sim__at(&op->attrs[2], i, 0);
        p.dilation[i] = dilation ? npu_sim__at(dilation, i, 1) : 1;
    }
    return p;
}

static float npu_sim__max_at(const npu_sim__pool *p, const float *x, int64_t row, int64_t column)
{
    float best = -INFINITY;
    for (int64_t k = 0; k < p->kernel[0] * p->kernel[1]; k++) {
        int64_t i = row * p->stride[0] - p->pad[0] + k / p->kernel[1] * p->dilation[0];
        int64_t j = column * p->stride[1] - p->pad[1] + k % p->kernel[1] * p->dilation[1];
        if (i >= 0 && i < p->size[0] && j >= 0 && j < p->size[1]) {
            best = npu_sim__fn_maximum(best, x[i * p->size[1] + j], NULL);
        }
    }
    return best;
}

/* Sum over rows i0..i1 and columns j0..j1. */
static double npu_sim__window_sum(const npu_sim__pool *p, const float *x, int64_t i0, int64_t i1, int64_t j0,
                                  int64_t j1)
{
    double sum = 0;
    for (int64_t i = i0; i < i1; i++) {
        for (int64_t j = j0; j < j1; j++) {
            sum += (double)x[i * p->size[1] + j];
        }
    }
    return sum;
}

static float npu_sim__average_at(const npu_sim__pool *p, const float *x, int64_t row, int64_t column)
{
    int64_t i0 = row * p->stride[0] - p->pad[0], j0 = column * p->stride[1] - p->pad[1];
    int64_t i1 = npu_sim__min(i0 + p->kernel[0], p->size[0] + p->pad[0]);
    int64_t j1 = npu_sim__min(j0 + p->kernel[1], p->size[1] + p->pad[1]);
    int64_t padded = (i1 - i0) * (j1 - j0);
    i0 = npu_sim__max(i0, 0);
    j0 = npu_sim__max(j0, 0);
    i1 = npu_sim__min(i1, p->size[0]);
    j1 = npu_sim__min(j1, p->size[1]);
    if (i0 >= i1 || j0 >= j1) {
        return 0;
    }
    int64_t count = p->divisor ? p->divisor : p->count_pad ? padded : (i1 - i0) * (j1 - j0);
    return (float)(npu_sim__window_sum(p, x, i0, i1, j0, j1) / (double)count);
}

static float npu_sim__adaptive_at(const npu_sim__pool *p, const float *x, int64_t row, int64_t column)
{
    int64_t i0 = row * p->size[0] / p->result[0], j0 = column * p->size[1] / p->result[1];
    int64_t i1 = ((row + 1) * p->size[0] + p->result[0] - 1) / p->result[0];
    int64_t j1 = ((column + 1) * p->size[1] + p->result[1] - 1) / p->result[1];
    return (float)(npu_sim__window_sum(p, x, i0, i1, j0, j1) / (double)((i1 - i0) * (j1 - j0)));
}

typedef float (*npu_sim__pool_at)(const npu_sim__pool *p, const float *x, int64_t row, int64_t column);

static npu_status npu_sim__pool_all(const npu_sim__pool *p, const float *x, float *y, npu_sim__pool_at at)
{
    for (int64_t i = 0; i < p->planes; i++) {
        for (int64_t j = 0; j < p->result[0] * p->result[1]; j++) {
            *y++ = at(p, x + i * p->size[0] * p->size[1], j / p->result[1], j % p->result[1]);
        }
    }
    return NPU_OK;
}

static npu_status npu_sim__run_max_pool(const npu_sim__op *op, const void *const *x, void *const *y)
{
    npu_sim__pool p = npu_sim__pool_of(op, &op->attrs[3]);
    return npu_sim__pool_all(&p, x[0], y[0], npu_sim__max_at);
}

static npu_status npu_sim__run_average_pool(const npu_sim__op *op, const void *const *x, void *const *y)
{
    npu_sim__pool p = npu_sim__pool_of(op, NULL);
    p.count_pad = op->attrs[4].i;
    p.divisor = op->attrs[5].present ? op->attrs[5].i : 0;
    return npu_sim__pool_all(&p, x[0], y[0], npu_sim__average_at);
}

static npu_status npu_sim__run_adaptive_pool(const npu_sim__op *op, const void *const *x, void *const *y)
{
    npu_sim__pool p = npu_sim__pool_of(op, NULL);
    return npu_sim__pool_all(&p, x[0], y[0], npu_sim__adaptive_at);
}

/* ---- kernels: reduction ---- */

/* A shape taken apart: dims that stay and dims that are folded, each with their steps in the operand. */
typedef struct npu_sim__fold { npu_sim__shape kept, folded; } npu_sim__fold;

static void npu_sim__fold_add(npu_sim__shape *to, const npu_sim__shape *from, uint32_t d)
{
    to->dims[to->rank] = from->dims[d];
    to->strides[to->rank++] = from->strides[d];
    to->len *= from->dims[d];
}

/* No dims = all of them. */
static npu_sim__fold npu_sim__fold_of(const npu_sim__shape *s, const int64_t *dims, uint32_t num_dims)
{
    npu_sim__fold f;
    memset(&f, 0, sizeof f);
    f.kept.len = f.folded.len = 1;
    for (uint32_t d = 0; d < s->rank; d++) {
        bool folded = num_dims == 0;
        for (uint32_t i = 0; i < num_dims; i++) {
            folded |= npu_sim__axis(dims[i], s->rank) == (int64_t)d;
        }
        npu_sim__fold_add(folded ? &f.folded : &f.kept, s, d);
    }
    return f;
}

static int64_t npu_sim__offset(const npu_sim__shape *s, const int64_t *index)
{
    int64_t at = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        at += index[d] * s->strides[d];
    }
    return at;
}

typedef double (*npu_sim__reducer)(double so_far, double x);

static double npu_sim__reduce_add(double so_far, double x)
{
    return so_far + x;
}

static double npu_sim__reduce_max(double so_far, double x)
{
    return so_far != so_far || x < so_far ? so_far : x;
}

static double npu_sim__reduce_min(double so_far, double x)
{
    return so_far != so_far || x > so_far ? so_far : x;
}

/* Each result: start, then all its elements, then divided. */
static void npu_sim__reduce(const npu_sim__fold *f, const float *x, float *y, npu_sim__reducer step,
                            double start, double divisor)
{
    int64_t kept[NPU_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < f->kept.len; i++) {
        int64_t folded[NPU_MAX_RANK] = { 0 }, base = npu_sim__offset(&f->kept, kept);
        double result = start;
        for (int64_t j = 0; j < f->folded.len; j++) {
            result = step(result, (double)x[base + npu_sim__offset(&f->folded, folded)]);
            npu_sim__next(folded, &f->folded);
        }
        y[i] = (float)(result / divisor);
        npu_sim__next(kept, &f->kept);
    }
}

static npu_status npu_sim__run_sum(const npu_sim__op *op, const void *const *x, void *const *y)
{
    npu_sim__fold f = npu_sim__fold_of(&op->in[0], op->attrs[0].list, op->attrs[0].len);
    npu_sim__reduce(&f, x[0], y[0], npu_sim__reduce_add, 0, 1);
    return NPU_OK;
}

static npu_status npu_sim__run_mean(const npu_sim__op *op, const void *const *x, void *const *y)
{
    npu_sim__fold f = npu_sim__fold_of(&op->in[0], op->attrs[0].list, op->attrs[0].len);
    npu_sim__reduce(&f, x[0], y[0], npu_sim__reduce_add, 0, (double)f.folded.len);
    return NPU_OK;
}

static npu_status npu_sim__run_amax(const npu_sim__op *op, const void *const *x, void *const *y)
{
    npu_sim__fold f = npu_sim__fold_of(&op->in[0], op->attrs[0].list, op->attrs[0].len);
    npu_sim__reduce(&f, x[0], y[0], npu_sim__reduce_max, -(double)INFINITY, 1);
    return NPU_OK;
}

static npu_status npu_sim__run_amin(const npu_sim__op *op, const void *const *x, void *const *y)
{
    npu_sim__fold f = npu_sim__fold_of(&op->in[0], op->attrs[0].list, op->attrs[0].len);
    npu_sim__reduce(&f, x[0], y[0], npu_sim__reduce_min, (double)INFINITY, 1);
    return NPU_OK;
}

static npu_status npu_sim__run_sum_axis(const npu_sim__op *op, const void *const *x, void *const *y)
{
    npu_sim__fold f = npu_sim__fold_of(&op->in[0], &op->attrs[0].i, 1);
    npu_sim__reduce(&f, x[0], y[0], npu_sim__reduce_add, 0, 1);
    return NPU_OK;
}

/* The dtype argument of a reduction or softmax, wherever it stands: absent or f32. */
static const char *npu_sim__check_dtype(const npu_sim__op *op)
{
    const char *letter = strchr(op->row->letters, 't');
    uint32_t at = 0;
    for (const char *c = op->row->letters; c < letter; c++) {
        at += *c != '?' && *c != ' ';
    }
    return op->attrs[at].present && op->attrs[at].i != NPU_F32 ? "dtype" : NULL;
}

/* ---- kernels: moving elements, of any dtype ---- */

/* Result element = operand element base + index . steps */
static void npu_sim__move(const npu_sim__shape *out, const uint8_t *x, uint8_t *y, int64_t base,
                          const int64_t *steps)
{
    int64_t index[NPU_MAX_RANK] = { 0 };
    size_t element = out->element;
    for (int64_t i = 0; i < out->len; i++) {
        int64_t from = base;
        for (uint32_t d = 0; d < out->rank; d++) {
            from += index[d] * steps[d];
        }
        memmove(y + (size_t)i * element, x + (size_t)from * element, element);
        npu_sim__next(index, out);
    }
}

static npu_status npu_sim__run_same(const npu_sim__op *op, const void *const *x, void *const *y)
{
    if (x[0] != y[0]) {
        memmove(y[0], x[0], (size_t)npu_sim__bytes(&op->out[0]));
    }
    return NPU_OK;
}

/* What was checked when the graph was made. */
static npu_status npu_sim__run_nothing(const npu_sim__op *op, const void *const *x, void *const *y)
{
    (void)op;
    (void)x;
    (void)y;
    return NPU_OK;
}

static npu_status npu_sim__run_getitem(const npu_sim__op *op, const void *const *x, void *const *y)
{
    return npu_sim__run_same(op, x + op->attrs[0].i, y);
}

static const char *npu_sim__check_getitem(const npu_sim__op *op)
{
    return op->attrs[0].i >= 0 && op->attrs[0].i < op->num_in ? NULL : "index";
}

static const char *npu_sim__check_dropout(const npu_sim__op *op)
{
    return op->attrs[1].i ? "train" : NULL;
}

static npu_status npu_sim__run_permute(const npu_sim__op *op, const void *const *x, void *const *y)
{
    int64_t steps[NPU_MAX_RANK] = { 0 };
    for (uint32_t d = 0; d < op->in[0].rank; d++) {
        steps[d] = op->in[0].strides[npu_sim__axis(op->attrs[0].list[d], op->in[0].rank)];
    }
    npu_sim__move(&op->out[0], x[0], y[0], 0, steps);
    return NPU_OK;
}

static npu_status npu_sim__run_transpose(const npu_sim__op *op, const void *const *x, void *const *y)
{
    int64_t steps[NPU_MAX_RANK] = { 0 };
    memcpy(steps, op->in[0].strides, sizeof steps);
    if (op->in[0].rank) {
        int64_t a = npu_sim__axis(op->attrs[0].i, op->in[0].rank);
        int64_t b = npu_sim__axis(op->attrs[1].i, op->in[0].rank);
        steps[a] = op->in[0].strides[b];
        steps[b] = op->in[0].strides[a];
    }
    npu_sim__move(&op->out[0], x[0], y[0], 0, steps);
    return NPU_OK;
}

static npu_status npu_sim__run_expand(const npu_sim__op *op, const void *const *x, void *const *y)
{
    const npu_sim__shape *in = &op->in[0], *out = &op->out[0];
    int64_t steps[NPU_MAX_RANK] = { 0 };
    for (uint32_t d = 0; d < in->rank; d++) {
        steps[out->rank - in->rank + d] = in->dims[d] == 1 ? 0 : in->strides[d];
    }
    npu_sim__move(out, x[0], y[0], 0, steps);
    return NPU_OK;
}

static npu_status npu_sim__run_select(const npu_sim__op *op, const void *const *x, void *const *y)
{
    const npu_sim__shape *in = &op->in[0];
    int64_t dim = npu_sim__axis(op->attrs[0].i, in->rank), steps[NPU_MAX_RANK] = { 0 };
    int64_t index = op->attrs[1].i < 0 ? op->attrs[1].i + in->dims[dim] : op->attrs[1].i;
    for (uint32_t d = 0; d < op->out[0].rank; d++) {
        steps[d] = in->strides[(int64_t)d < dim ? d : d + 1];
    }
    npu_sim__move(&op->out[0], x[0], y[0], index * in->strides[dim], steps);
    return NPU_OK;
}

static npu_status npu_sim__run_slice(const npu_sim__op *op, const void *const *x, void *const *y)
{
    const npu_sim__shape *in = &op->in[0];
    int64_t dim = npu_sim__axis(op->attrs[0].i, in->rank), steps[NPU_MAX_RANK];
    int64_t start = op->attrs[1].present ? op->attrs[1].i : 0;
    start = npu_sim__max(0, npu_sim__min(start < 0 ? start + in->dims[dim] : start, in->dims[dim]));
    memcpy(steps, in->strides, sizeof steps);
    steps[dim] *= op->attrs[3].i;
    npu_sim__move(&op->out[0], x[0], y[0], start * in->strides[dim], steps);
    return NPU_OK;
}

/* Results are consecutive parts along the dim that is attribute 1. */
static npu_status npu_sim__run_split(const npu_sim__op *op, const void *const *x, void *const *y)
{
    const npu_sim__shape *in = &op->in[0];
    int64_t dim = npu_sim__axis(op->attrs[1].i, in->rank), start = 0;
    for (uint32_t i = 0; i < op->num_out; i++) {
        npu_sim__move(&op->out[i], x[0], y[i], start * in->strides[dim], in->strides);
        start += op->out[i].dims[dim];
    }
    return NPU_OK;
}

/* cat and stack: blocks of each operand in turn, `outer` times. */
static npu_status npu_sim__join(const npu_sim__op *op, const void *const *x, void *const *y, int64_t outer)
{
    uint8_t *to = y[0];
    for (int64_t o = 0; o < outer; o++) {
        for (uint32_t i = 0; i < op->num_in; i++) {
            size_t block = (size_t)(npu_sim__bytes(&op->in[i]) / (uint64_t)outer);
            memcpy(to, (const uint8_t *)x[i] + (size_t)o * block, block);
            to += block;
        }
    }
    return NPU_OK;
}

static npu_status npu_sim__run_cat(const npu_sim__op *op, const void *const *x, void *const *y)
{
    int64_t dim = npu_sim__axis(op->attrs[0].i, op->out[0].rank);
    return npu_sim__join(op, x, y, npu_sim__span(&op->out[0], 0, dim));
}

static npu_status npu_sim__run_embedding(const npu_sim__op *op, const void *const *x, void *const *y)
{
    int64_t rows = op->in[0].dims[0];
    size_t row = rows ? (size_t)npu_sim__bytes(&op->in[0]) / (size_t)rows : 0;
    for (int64_t i = 0; i < op->in[1].len; i++) {
        int64_t index = op->in[1].dtype == NPU_I64 ? ((const int64_t *)x[1])[i] : ((const int32_t *)x[1])[i];
        if (index < 0 || index >= rows) {
            return NPU_ERR_RANGE;
        }
        memcpy((uint8_t *)y[0] + (size_t)i * row, (const uint8_t *)x[0] + (size_t)index * row, row);
    }
    return NPU_OK;
}

static const char *npu_sim__check_bias_add(const npu_sim__op *op)
{
    int64_t axis = npu_sim__axis(op->attrs[0].i, op->in[0].rank);
    return axis == (int64_t)op->in[0].rank - 1 ? NULL : "axis";
}

/* ---- support table: what is here has a kernel, and the other way round --------------------------------- */

#define NPU_SIM__MAP(name, letters, operands, fn) \
    { name, letters, operands, operands, NPU_SIM__F32, npu_sim__run_map, npu_sim__fn_##fn, NULL }
#define NPU_SIM__ROW(name, letters, required, max_in, run, check) \
    { name, letters, required, max_in, NPU_SIM__F32, npu_sim__run_##run, NULL, check }
#define NPU_SIM__ANY(name, letters, required, max_in, run, check) \
    { name, letters, required, max_in, NPU_SIM__MOVE, npu_sim__run_##run, NULL, check }

static const npu_sim__row npu_sim__rows[] = {
    NPU_SIM__ROW("aten.conv1d.default", "1 1 1 i", 2, 3, conv, npu_sim__check_conv),
    NPU_SIM__ROW("aten.conv1d.padding", "1 S 1 i", 2, 3, conv, npu_sim__check_conv),
    NPU_SIM__ROW("aten.conv2d.default", "2 2 2 i", 2, 3, conv, npu_sim__check_conv),
    NPU_SIM__ROW("aten.conv2d.padding", "2 S 2 i", 2, 3, conv, npu_sim__check_conv),
    NPU_SIM__ROW("aten.convolution.default", "I I I b I i", 2, 3, convolution, npu_sim__check_convolution),
    NPU_SIM__ROW("aten.linear.default", "", 2, 3, linear, npu_sim__check_linear),
    NPU_SIM__ROW("aten.mm.default", "", 2, 2, matmul, npu_sim__check_matmul),
    NPU_SIM__ROW("aten.bmm.default", "", 2, 2, matmul, npu_sim__check_matmul),
    NPU_SIM__ROW("aten.matmul.default", "", 2, 2, matmul, npu_sim__check_matmul),
    NPU_SIM__ROW("aten.addmm.default", "s s", 3, 3, addmm, NULL),

    NPU_SIM__MAP("aten.relu.default", "", 1, relu),
    { "aten.gelu.default", "S", 1, 1, NPU_SIM__F32, npu_sim__run_map, npu_sim__fn_gelu, npu_sim__check_gelu },
    NPU_SIM__MAP("aten.leaky_relu.default", "s", 1, leaky_relu),
    NPU_SIM__MAP("aten.silu.default", "", 1, silu),
    NPU_SIM__MAP("aten.sigmoid.default", "", 1, sigmoid),
    NPU_SIM__MAP("aten.tanh.default", "", 1, tanh),
    NPU_SIM__MAP("aten.hardswish.default", "", 1, hardswish),
    NPU_SIM__MAP("aten.hardtanh.default", "s s", 1, hardtanh),
    NPU_SIM__MAP("aten.elu.default", "s s s", 1, elu),

    NPU_SIM__ROW("aten.batch_norm.default", "b f f b", 1, 5, batch_norm, npu_sim__check_batch_norm),
    NPU_SIM__ROW("aten.layer_norm.default", "I f b", 1, 3, layer_norm, NULL),
    NPU_SIM__ROW("aten.group_norm.default", "i f b", 1, 3, group_norm, NULL),
    NPU_SIM__ROW("aten.max_pool2d.default", "2 I 2 2 b", 1, 1, max_pool, NULL),
    NPU_SIM__ROW("aten.avg_pool2d.default", "2 I 2 b b ?i", 1, 1, average_pool, NULL),
    NPU_SIM__ROW("aten.adaptive_avg_pool2d.default", "2", 1, 1, adaptive_pool, NULL),

    NPU_SIM__MAP("aten.add.Tensor", "s", 2, add),
    NPU_SIM__MAP("aten.add.Scalar", "s s", 1, add_scalar),
    NPU_SIM__MAP("aten.sub.Tensor", "s", 2, sub),
    NPU_SIM__MAP("aten.sub.Scalar", "s s", 1, sub_scalar),
    NPU_SIM__MAP("aten.mul.Tensor", "", 2, mul),
    NPU_SIM__MAP("aten.mul.Scalar", "s", 1, mul_scalar),
    NPU_SIM__MAP("aten.div.Tensor", "", 2, div),
    NPU_SIM__MAP("aten.div.Scalar", "s", 1, div_scalar),
    { "aten.div.Tensor_mode", "?S", 2, 2, NPU_SIM__F32, npu_sim__run_map, npu_sim__fn_div_mode,
      npu_sim__check_mode },
    { "aten.div.Scalar_mode", "s ?S", 1, 1, NPU_SIM__F32, npu_sim__run_map, npu_sim__fn_div_scalar_mode,
      npu_sim__check_mode },
    NPU_SIM__MAP("aten.pow.Tensor_Tensor", "", 2, pow),
    NPU_SIM__MAP("aten.pow.Tensor_Scalar", "s", 1, pow_scalar),
    NPU_SIM__MAP("aten.maximum.default", "", 2, maximum),
    NPU_SIM__MAP("aten.minimum.default", "", 2, minimum),
    NPU_SIM__MAP("aten.sqrt.default", "", 1, sqrt),
    NPU_SIM__MAP("aten.rsqrt.default", "", 1, rsqrt),
    NPU_SIM__MAP("aten.neg.default", "", 1, neg),
    NPU_SIM__MAP("aten.abs.default", "", 1, abs),
    NPU_SIM__MAP("aten.exp.default", "", 1, exp),
    NPU_SIM__MAP("aten.log.default", "", 1, log),
    NPU_SIM__MAP("aten.clamp.default", "?s ?s", 1, clamp),

    NPU_SIM__ROW("aten.mean.default", "?t", 1, 1, mean, npu_sim__check_dtype),
    NPU_SIM__ROW("aten.mean.dim", "?I b ?t", 1, 1, mean, npu_sim__check_dtype),
    NPU_SIM__ROW("aten.sum.default", "?t", 1, 1, sum, npu_sim__check_dtype),
    NPU_SIM__ROW("aten.sum.dim_IntList", "?I b ?t", 1, 1, sum, npu_sim__check_dtype),
    NPU_SIM__ROW("aten.amax.default", "I b", 1, 1, amax, NULL),
    NPU_SIM__ROW("aten.amin.default", "I b", 1, 1, amin, NULL),
    NPU_SIM__ROW("aten.max.default", "", 1, 1, amax, NULL),
    NPU_SIM__ROW("aten.softmax.int", "i ?t", 1, 1, softmax, npu_sim__check_dtype),
    NPU_SIM__ROW("aten.log_softmax.int", "i ?t", 1, 1, log_softmax, npu_sim__check_dtype),
    { "aten.embedding.default", "i b b", 2, 2, NPU_SIM__LOOKUP, npu_sim__run_embedding, NULL, NULL },

    NPU_SIM__ANY("aten.permute.default", "I", 1, 1, permute, NULL),
    NPU_SIM__ANY("aten.transpose.int", "i i", 1, 1, transpose, NULL),
    NPU_SIM__ANY("aten.expand.default", "I b", 1, 1, expand, NULL),
    NPU_SIM__ANY("aten.cat.default", "i", 1, 0, cat, NULL),
    NPU_SIM__ANY("aten.stack.default", "i", 1, 0, cat, NULL),
    NPU_SIM__ANY("aten.split.Tensor", "i i", 1, 1, split, NULL),
    NPU_SIM__ANY("aten.split.sizes", "I i", 1, 1, split, NULL),
    NPU_SIM__ANY("aten.chunk.default", "i i", 1, 1, split, NULL),
    NPU_SIM__ANY("aten.select.int", "i i", 1, 1, select, NULL),
    NPU_SIM__ANY("aten.slice.Tensor", "i ?i ?i i", 1, 1, slice, NULL),
    NPU_SIM__ANY("aten.view.default", "I", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.reshape.default", "I", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.flatten.using_ints", "i i", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.squeeze.default", "", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.squeeze.dim", "i", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.squeeze.dims", "I", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.unsqueeze.default", "i", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.clone.default", "?i", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.contiguous.default", "i", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.dropout.default", "f b", 1, 1, same, npu_sim__check_dropout),
    NPU_SIM__ANY("aten.alias.default", "", 1, 1, same, NULL),
    NPU_SIM__ANY("aten.detach.default", "", 1, 1, same, NULL),
    NPU_SIM__ANY("aten._assert_tensor_metadata.default", "?I ?I ?t ?i ?i", 1, 1, nothing, NULL),
    NPU_SIM__ANY("npu.getitem", "i", 1, 0, getitem, npu_sim__check_getitem),
    NPU_SIM__ROW("aten.to.dtype", "t b b ?i", 1, 1, same, npu_sim__check_dtype),
    NPU_SIM__ROW("aten._to_copy.default", "?t ?i ?i ?b b ?i", 1, 1, same, npu_sim__check_dtype),

    NPU_SIM__MAP("aicf.add", "<", 2, plus),
    NPU_SIM__MAP("aicf.relu", "<", 1, relu),
    NPU_SIM__ROW("aicf.gemm", "<ii", 2, 2, gemm, npu_sim__check_gemm),
    { "aicf.bias_add", "<q", 2, 2, NPU_SIM__F32, npu_sim__run_map, npu_sim__fn_plus,
      npu_sim__check_bias_add },
    NPU_SIM__ROW("aicf.reduce_sum", "<q", 1, 1, sum_axis, NULL),
    NPU_SIM__ROW("aicf.softmax", "<", 1, 1, softmax_last, NULL),
};
#define NPU_SIM__NUM_ROWS (sizeof npu_sim__rows / sizeof npu_sim__rows[0])

/* The kinds that reach the device in a form of its own. */
static const npu_abi_row npu_sim__abi_rows[] = {
    { NPU_AICF_ADD, 0, 0, "" },
    { NPU_AICF_RELU, 1, 0, "" },
    { NPU_AICF_GEMM, 2, 0, "<ii" },
    { NPU_AICF_BIAS_ADD, 3, NPU_FOURCC('B', 'A', 'D', 'D'), "<q" },
    { NPU_AICF_REDUCE_SUM, 4, NPU_FOURCC('R', 'S', 'U', 'M'), "<q" },
    { NPU_AICF_SOFTMAX, 18, 0, "" },
};
#define NPU_SIM__NUM_ABI (sizeof npu_sim__abi_rows / sizeof npu_sim__abi_rows[0])
static const npu_abi npu_sim__abi = NPU_ABI(npu_sim__abi_rows);

const char *npu_sim_op_name(uint32_t i)
{
    return i < NPU_SIM__NUM_ROWS ? npu_sim__rows[i].name : NULL;
}

static const npu_sim__row *npu_sim__row_find(const char *name)
{
    for (size_t i = 0; i < NPU_SIM__NUM_ROWS; i++) {
        if (strcmp(npu_sim__rows[i].name, name) == 0) {
            return &npu_sim__rows[i];
        }
    }
    return NULL;
}

static bool npu_sim__listed(const char *const *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool npu_sim__is_allowed(const npu_sim *sim, const char *name)
{
    const npu_sim_desc *d = &sim->desc;
    return (!d->allow || npu_sim__listed(d->allow, d->num_allow, name))
           && !npu_sim__listed(d->deny, d->num_deny, name);
}

/* ---- from an op as the core describes it to an op that runs ---- */

/* Reads the blob: the device's form where the row has one. Nothing that is not exactly right passes. */
static npu_status npu_sim__decode_op(npu_sim__op *op, const npu_op_info *info)
{
    const npu_abi_row *abi = NULL;
    for (size_t i = 0; i < NPU_SIM__NUM_ABI; i++) {
        abi = npu_sim__abi_rows[i].kind == info->kind ? &npu_sim__abi_rows[i] : abi;
    }
    if (!abi) {
        bool right = npu_sim__decode(op->row->letters, info->attrs, info->attrs_size, op->attrs);
        return right ? NPU_OK : NPU_ERR_BAD_ATTR_SIZE;
    }
    if (info->device_kind != abi->device_kind || info->device_schema != abi->attr_schema) {
        return NPU_ERR_BAD_SCHEMA;
    }
    bool right = npu_sim__decode(op->row->letters, info->device_attrs, info->device_size, op->attrs);
    return right ? NPU_OK : NPU_ERR_BAD_ATTR_SIZE;
}

/* What makes this op's tensors wrong for its row; 0 = nothing. */
static uint32_t npu_sim__check_tensors(const npu_sim__op *op, const char **words)
{
    if (op->num_in < op->row->required || (op->row->max_in && op->num_in > op->row->max_in)) {
        *words = "number of operands";
        return NPU_REASON_SHAPE;
    }
    for (uint32_t i = 0; i < op->num_in + op->num_out; i++) {
        const npu_sim__shape *s = i < op->num_in ? &op->in[i] : &op->out[i - op->num_in];
        bool is_index = op->row->dtypes == NPU_SIM__LOOKUP && i == 1;
        if (!s->dtype && i < op->num_in && i >= op->row->required) {
            continue; /* a hole */
        }
        if (s->is_number && op->row->run == npu_sim__run_map && op->out[0].dtype == NPU_F32) {
            continue;
        }
        uint32_t moved = op->num_out ? op->out[0].dtype : op->in[0].dtype;
        uint32_t dtype = op->row->dtypes == NPU_SIM__MOVE ? moved : (uint32_t)NPU_F32;
        if (!s->is_plain || (is_index ? s->dtype != NPU_I64 && s->dtype != NPU_I32 : s->dtype != dtype)) {
            *words = "f32 only";
            return NPU_REASON_DTYPE;
        }
    }
    return 0;
}

static uint32_t npu_sim__check(const npu_sim__op *op, const char **words)
{
    uint32_t reason = npu_sim__check_tensors(op, words);
    if (reason) {
        return reason;
    }
    *words = op->row->check ? op->row->check(op) : NULL;
    *words = npu_sim__is_fed(op->attrs) ? "a size that is computed" : *words;
    return *words ? NPU_REASON_ATTRIBUTE : 0;
}

/* Decodes and checks one op. status: the blob is wrong; *reason: the op is more than the kernel can do. */
static npu_status npu_sim__op_init(npu_sim__op *op, const npu_op_info *info, npu_sim__blocks *blocks,
                                   uint32_t *reason, const char **words)
{
    npu_status status = NPU_OK;
    memset(op, 0, sizeof *op);
    *words = "";
    op->row = npu_sim__row_find(info->name);
    op->id = info->op;
    op->num_in = info->num_in;
    op->num_out = info->num_out;
    op->in = npu_sim__take(blocks, info->num_in, sizeof *op->in);
    op->out = npu_sim__take(blocks, info->num_out, sizeof *op->out);
    *reason = op->row ? 0 : NPU_REASON_OP;
    if (!op->in || !op->out) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < info->num_in; i++) {
        npu_sim__shape_of(&op->in[i], info->in[i]);
    }
    for (uint32_t i = 0; i < info->num_out; i++) {
        npu_sim__shape_of(&op->out[i], info->out[i]);
    }
    if (op->row && (status = npu_sim__decode_op(op, info)) == NPU_OK) {
        *reason = npu_sim__check(op, words);
    }
    return status;
}

/* A copy of everything an emulated op needs after compile. */
static npu_op_info *npu_sim__info_copy(npu_sim__blocks *blocks, const npu_op_info *from)
{
    npu_op_info *to = npu_sim__copy_of(blocks, from, sizeof *from);
    npu_bound_arg *args = npu_sim__take(blocks, from->num_args, sizeof *args);
    const struct npu_graph **bodies = npu_sim__copy_of(blocks, (const void *)from->bodies,
                                                       from->num_bodies * sizeof *from->bodies);
    uint8_t *attrs = npu_sim__copy_of(blocks, from->attrs, from->attrs_size);
    char *name = npu_sim__copy_of(blocks, from->name, strlen(from->name) + 1);
    npu_spec *specs = npu_sim__take(blocks, from->num_in + from->num_out, sizeof *specs);
    const npu_spec **refs = npu_sim__take(blocks, from->num_in + from->num_out, sizeof *refs);
    const void **data = from->in_data ? npu_sim__copy_of(blocks, (const void *)from->in_data,
                                                         from->num_in * sizeof *from->in_data) : NULL;
    if (!to || !args || !bodies || !attrs || !name || !specs || !refs || (from->in_data && !data)) {
        return NULL;
    }
    for (uint32_t i = 0; i < from->num_args; i++) {
        args[i] = *npu_op_arg_at(from, i);
        args[i].name = npu_sim__copy_of(blocks, args[i].name, strlen(args[i].name) + 1);
        args[i].data = args[i].data ? attrs + (args[i].data - from->attrs) : NULL;
        if (!args[i].name) {
            return NULL;
        }
    }
    for (uint32_t i = 0; i < from->num_in + from->num_out; i++) {
        const npu_spec *spec = i < from->num_in ? from->in[i] : from->out[i - from->num_in];
        specs[i] = spec ? *spec : specs[i];
        refs[i] = spec ? &specs[i] : NULL;
    }
    to->name = name;
    to->args = args;
    to->attrs = attrs;
    to->in = refs;
    to->out = refs + from->num_in;
    to->in_data = data;
    to->arg_size = (uint32_t)sizeof *args;
    to->bodies = bodies;
    to->device_kind = to->kind; /* the emulating backend has no form of its own */
    to->device_schema = 0;
    to->device_attrs = attrs;
    to->device_size = to->attrs_size;
    return to;
}

/* ---- programs ------------------------------------------------------------------------------------------ */

typedef struct npu_sim__program {
    npu_sim__blocks blocks;         /* this struct too */
    uint32_t num_ops, num_values, max_tensors;
    npu_sim__op *ops;
    uint64_t *sizes;                /* bytes per value */
    bool *inner;                    /* values that live in `memory`, at offsets */
    uint64_t *offsets;
    npu_sim__buffer *memory;        /* of inner values and weights, where the program keeps them */
    uint32_t *weights;              /* those that it keeps */
    uint32_t num_weights;
    npu_inplace *pairs;
    uint32_t num_pairs;
    npu_scratch *scratches;         /* of each op, where the desc asks for any */
    npu_form *forms;
    uint32_t num_forms;
    const npu_sim__form **formed;   /* per value; NULL = dense */
} npu_sim__program;

static npu_sim__program *npu_sim__program_new(const npu_group *group)
{
    npu_sim__blocks blocks = { NULL };
    npu_sim__program *p = npu_sim__take(&blocks, 1, sizeof *p);
    if (!p) {
        return NULL;
    }
    p->ops = npu_sim__take(&blocks, group->num_ops, sizeof *p->ops);
    p->pairs = npu_sim__take(&blocks, group->num_ops, sizeof *p->pairs);
    p->sizes = npu_sim__take(&blocks, group->num_values, sizeof *p->sizes);
    p->inner = npu_sim__take(&blocks, group->num_values, sizeof *p->inner);
    p->offsets = npu_sim__take(&blocks, group->num_values, sizeof *p->offsets);
    p->weights = npu_sim__take(&blocks, group->num_values, sizeof *p->weights);
    p->scratches = npu_sim__take(&blocks, group->num_ops, sizeof *p->scratches);
    p->forms = npu_sim__take(&blocks, group->num_values, sizeof *p->forms);
    p->formed = npu_sim__take(&blocks, group->num_values, sizeof *p->formed);
    p->num_values = group->num_values;
    p->blocks = blocks;
    if (!p->ops || !p->pairs || !p->sizes || !p->inner || !p->offsets || !p->weights
        || !p->scratches || !p->forms || !p->formed) {
        npu_sim__blocks_free(&blocks);
        return NULL;
    }
    for (uint32_t i = 0; i < group->num_values; i++) {
        npu_sim__shape s;
        npu_sim__shape_of(&s, group->values[i]->spec);
        p->sizes[i] = npu_sim__bytes(&s);
    }
    return p;
}

static npu_status npu_sim__compile_op(npu_sim *sim, npu_sim__program *p, const npu_group_op *from, char *text)
{
    npu_sim__op *op = &p->ops[p->num_ops];
    bool passes = sim->desc.passes_views && (from->info->traits & NPU_VIEW);
    uint32_t reason;
    const char *words;
    npu_status status = npu_sim__op_init(op, from->info, &p->blocks, &reason, &words);
    if (status && status != NPU_ERR_NO_MEMORY && sim->desc.emulate) {
        reason = NPU_REASON_ATTRIBUTE; /* longer than the decoder takes */
        status = NPU_OK;
    }
    if (status) {
        words = status == NPU_ERR_NO_MEMORY ? "no memory" : "wrong attributes";
        snprintf(text, 96, "%.60s: %s", from->info->name, words);
        return status;
    }
    op->in_value = npu_sim__copy_of(&p->blocks, from->in, op->num_in * sizeof *from->in);
    op->out_value = npu_sim__copy_of(&p->blocks, from->out, op->num_out * sizeof *from->out);
    if (passes) { /* a copy, where it has memory of its own */
        reason = 0;
        op->row = npu_sim__row_find("aten.alias.default");
    }
    if (reason && !sim->desc.emulate) {
        snprintf(text, 96, "%.60s: %.24s", from->info->name, words);
        return NPU_ERR_NOT_IMPLEMENTED;
    }
    if (reason || (sim->desc.emulate_all && !passes)) {
        op->row = NULL;
        op->info = npu_sim__info_copy(&p->blocks, from->info);
    }
    p->max_tensors = op->num_in + op->num_out > p->max_tensors ? op->num_in + op->num_out : p->max_tensors;
    p->num_ops++;
    return op->in_value && op->out_value && (op->row || op->info) ? NPU_OK : NPU_ERR_NO_MEMORY;
}

/* The result of an elementwise op may take operand 0's memory where both have the same size. */
static void npu_sim__add_pairs(npu_sim__program *p)
{
    for (uint32_t i = 0; i < p->num_ops; i++) {
        const npu_sim__op *op = &p->ops[i];
        bool is_map = op->row && op->row->run == npu_sim__run_map && !op->in[0].is_number;
        if (is_map && op->in[0].len == op->out[0].len) {
            npu_inplace *pair = &p->pairs[p->num_pairs++];
            pair->size = (uint32_t)sizeof *pair;
            pair->op = i;
            pair->operand = pair->result = 0;
        }
    }
}

/* Gives every value that the program keeps a place of its own, and weights their data. */
/* ---- forms ---- */

/* The number of the form of a shape, from 1; 0 = there is no room for another one. */
static uint32_t npu_sim__form_id(npu_sim *sim, const npu_sim__shape *shape)
{
    npu_sim__form f = { { 0 }, { 0 }, shape->element, shape->element };
    uint32_t i = 0;
    for (uint32_t k = 0; k < 4; k++) {
        f.dims[k] = shape->dims[k];
        f.padded[k] = k == 3 ? (shape->dims[1] + 31) / 32 * 32 : shape->dims[k ? k + 1 : 0];
        f.bytes *= (uint64_t)f.padded[k];
    }
    pthread_mutex_lock(&sim->lock);
    while (i < sim->num_forms
           && (memcmp(sim->forms[i].dims, f.dims, sizeof f.dims) || sim->forms[i].element != f.element)) {
        i++;
    }
    if (i == sim->num_forms && i < 64) {
        sim->forms[sim->num_forms++] = f;
    }
    pthread_mutex_unlock(&sim->lock);
    return i < 64 ? i + 1 : 0;
}

/* Values that may have the form: those that are no weights, and that no other group has otherwise. */
static void npu_sim__choose_forms(npu_sim *sim, npu_sim__program *p, const npu_group *group)
{
    static const uint32_t order[4] = { 0, 2, 3, 1 };
    for (uint32_t i = 0; i < group->num_values; i++) {
        const npu_group_value *v = group->values[i];
        npu_form *form = &p->forms[p->num_forms];
        npu_sim__shape s;
        npu_sim__shape_of(&s, v->spec);
        if (v->role == NPU_GROUP_WEIGHT || s.rank != 4 || !s.is_plain || !s.len) {
            continue;
        }
        form->id = npu_sim__form_id(sim, &s);
        if (form->id) {
            p->formed[i] = &sim->forms[form->id - 1];
            p->sizes[i] = p->formed[i]->bytes;
            form->size = (uint32_t)sizeof *form;
            form->value = i;
            form->conversion = sim->desc.core_converts ? NPU_FORM_BY_CORE : NPU_FORM_BY_SLOTS;
            form->bytes = p->formed[i]->bytes;
            form->dims = p->formed[i]->padded;
            form->order = order;
            p->num_forms++;
        }
    }
}

/* Between dense memory and the form, whose padding is spoiled where the device writes it. */
static void npu_sim__reform(const npu_sim__form *f, void *to, const void *from, bool packs)
{
    const int64_t *d = f->dims;
    uint32_t size = f->element;
    if (packs) {
        memset(to, 0xff, (size_t)f->bytes);
    }
    for (int64_t n = 0; n < d[0]; n++) {
        for (int64_t c = 0; c < d[1]; c++) {
            for (int64_t i = 0; i < d[2] * d[3]; i++) {
                size_t dense = (size_t)((n * d[1] + c) * d[2] * d[3] + i) * size;
                size_t form = (size_t)((n * d[2] * d[3] + i) * f->padded[3] + c) * size;
                memcpy((char *)to + (packs ? form : dense), (const char *)from + (packs ? dense : form), size);
            }
        }
    }
}

static npu_status npu_sim__plan_inner(npu_sim *sim, npu_sim__program *p, const npu_group *group)
{
    uint64_t total = 0, align = sim->regions[0].alignment;
    for (uint32_t i = 0; i < group->num_values; i++) {
        bool is_weight = group->values[i]->role == NPU_GROUP_WEIGHT && sim->desc.keeps_weights;
        if (is_weight || (group->values[i]->role == NPU_GROUP_INNER && sim->desc.plans_inner)) {
            p->inner[i] = true;
            p->offsets[i] = total;
            total += (p->sizes[i] + align - 1) / align * align;
            p->weights[p->num_weights] = i;
            p->num_weights += is_weight;
        }
    }
    p->memory = npu_sim__buffer_new(total, sim->regions[0].slack, (size_t)align);
    if (!p->memory) {
        return NPU_ERR_NO_MEMORY;
    }
    npu_sim__open(p->memory, true);
    for (uint32_t k = 0; k < p->num_weights; k++) {
        uint32_t i = p->weights[k];
        if (p->sizes[i]) {
            memcpy(p->memory->start + p->offsets[i], group->values[i]->data, (size_t)p->sizes[i]);
        }
    }
    npu_sim__open(p->memory, false);
    return NPU_OK;
}

static void npu_sim__program_free(npu_sim__program *p)
{
    npu_sim__blocks blocks = p->blocks;
    if (p->memory) {
        npu_sim__buffer_free(p->memory);
    }
    npu_sim__blocks_free(&blocks);
}

/* ---- work and its queue -------------------------------------------------------------------------------- */

/* One transfer or submit. Everything it needs is copied into it: it may run after the call has returned. */
struct npu_sim__job {
    npu_sim__job *next;
    npu_fence fence;
    npu_status failure;            /* ordered by npu_sim_fail; 0 = none */
    bool is_submit;
    uint64_t ns;                   /* simulated time */
    uint64_t hang_ns;
    /* transfer: an end without a buffer is host memory */
    npu_sim__buffer *to_buffer, *from_buffer;
    uint8_t *to;
    const uint8_t *from;
    uint64_t bytes;
    const npu_sim__form *form;     /* of the buffer's side; NULL = bytes as they are */
    /* submit */
    npu_sim__blocks blocks;
    const npu_sim__program *program;
    npu_sim__buffer **buffers;     /* those to open */
    uint32_t num_buffers;
    uint8_t **values;              /* address of each */
    bool *alias;
    uint8_t *scratch;
    uint8_t **op_scratches;        /* of each op */
    uint64_t op_scratch_bytes;     /* 0 = there are none */
    void **pointers;               /* of one op: operands, then results */
    npu_tensor *tensors;           /* of one emulated op */
    const npu_tensor **tensor_pointers;
    npu_buffer *tensor_buffers;
    npu_binding binding;           /* op_done, failed_op, failed_text only, where the caller waits */
};

static void npu_sim__sleep(uint64_t ns)
{
    struct timeval time;
    time.tv_sec = (long)(ns / 1000000000u);
    time.tv_usec = (long)(ns % 1000000000u / 1000u);
    select(0, NULL, NULL, NULL, &time);
}

static npu_status npu_sim__run_emulated(npu_sim *sim, npu_sim__job *job, const npu_sim__op *op)
{
    const npu_backend *host = sim->desc.emulate;
    for (uint32_t i = 0; i < op->num_in + op->num_out; i++) {
        const npu_sim__shape *s = i < op->num_in ? &op->in[i] : &op->out[i - op->num_in];
        npu_tensor *t = &job->tensors[i];
        memset(t, 0, sizeof *t);
        memset(&job->tensor_buffers[i], 0, sizeof job->tensor_buffers[i]);
        t->size = (uint32_t)sizeof *t;
        t->dtype = s->dtype;
        t->rank = s->rank;
        memcpy(t->dims, s->dims, sizeof t->dims);
        memcpy(t->strides, s->strides, sizeof t->strides);
        t->buffer = &job->tensor_buffers[i];
        t->buffer->size = (uint32_t)sizeof *t->buffer;
        t->buffer->handle = job->pointers[i];
        t->buffer->bytes = npu_sim__bytes(s);
        job->tensor_pointers[i] = t;
    }
    npu_call call = { .size = sizeof call, .op = op->info, .in = job->tensor_pointers,
                      .out = job->tensor_pointers + op->num_in, .failed_text = job->binding.failed_text,
                      .failed_text_size = job->binding.failed_text_size };
    return host->op_call(host->ctx, &call);
}

/* True for the nth op after npu_sim_corrupt. */
static bool npu_sim__count_op(npu_sim *sim, bool emulated)
{
    pthread_mutex_lock(&sim->lock);
    sim->counters.ops++;
    sim->counters.ops_emulated += emulated;
    bool corrupt = sim->corrupt_left && --sim->corrupt_left == 0;
    pthread_mutex_unlock(&sim->lock);
    return corrupt;
}

static void npu_sim__spoil(const npu_sim__shape *s, void *y)
{
    if (s->len && s->dtype == NPU_F32) {
        *(float *)y += 1000; /* much, so that it survives a relu or softmax */
    } else if (s->len) {
        *(uint8_t *)y ^= 0x55;
    }
}

static bool npu_sim__has_work(const npu_sim__job *job, const npu_sim__op *op)
{
    for (uint32_t i = 0; i < op->num_out; i++) {
        if (!job->alias[op->out_value[i]]) {
            return true;
        }
    }
    return op->num_out == 0 && !(op->row && op->row->run == npu_sim__run_nothing);
}

/* Dense copies of what an op has in forms: operands before it runs; and afterwards results into their forms. */
static npu_status npu_sim__run_dense(npu_sim *sim, npu_sim__job *job, const npu_sim__op *op)
{
    const void *const *x = (const void *const *)job->pointers;
    void *const *y = job->pointers + op->num_in;
    npu_sim__blocks blocks = { NULL };
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < op->num_in + op->num_out && !status; i++) {
        uint32_t value = i < op->num_in ? op->in_value[i] : op->out_value[i - op->num_in];
        const npu_sim__form *f = value == NPU_NO_INDEX ? NULL : job->program->formed[value];
        if (f) {
            job->pointers[i] = npu_sim__take(&blocks, 1, (size_t)f->bytes);
            status = job->pointers[i] ? NPU_OK : NPU_ERR_NO_MEMORY;
            if (!status && i < op->num_in) {
                npu_sim__reform(f, job->pointers[i], job->values[value], false);
            }
        }
    }
    if (!status) {
        status = op->row ? op->row->run(op, x, y) : npu_sim__run_emulated(sim, job, op);
    }
    for (uint32_t i = 0; i < op->num_out && !status; i++) {
        const npu_sim__form *f = job->program->formed[op->out_value[i]];
        if (f) {
            npu_sim__reform(f, job->values[op->out_value[i]], y[i], true);
        }
    }
    npu_sim__blocks_free(&blocks);
    return status;
}

static npu_status npu_sim__run_op(npu_sim *sim, npu_sim__job *job, const npu_sim__op *op)
{
    const void *const *x = (const void *const *)job->pointers;
    void *const *y = job->pointers + op->num_in;
    for (uint32_t i = 0; i < op->num_in + op->num_out; i++) {
        uint32_t value = i < op->num_in ? op->in_value[i] : op->out_value[i - op->num_in];
        job->pointers[i] = value == NPU_NO_INDEX ? NULL : job->values[value];
    }
    if (!npu_sim__has_work(job, op)) {
        return NPU_OK;
    }
    bool corrupt = npu_sim__count_op(sim, !op->row);
    if (job->scratch) {
        memset(job->scratch, 0xa5, (size_t)sim->desc.scratch);
    }
    if (job->op_scratch_bytes) {
        memset(job->op_scratches[op - job->program->ops], 0x5a, (size_t)job->op_scratch_bytes);
    }
    npu_status status = job->program->num_forms ? npu_sim__run_dense(sim, job, op)
        : op->row ? op->row->run(op, x, y) : npu_sim__run_emulated(sim, job, op);
    if (corrupt && !status && op->num_out && !job->program->num_forms) {
        npu_sim__spoil(&op->out[0], y[0]);
    }
    return status;
}

static npu_status npu_sim__run_ops(npu_sim *sim, npu_sim__job *job)
{
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < job->program->num_ops && !status; i++) {
        const npu_sim__op *op = &job->program->ops[i];
        uint64_t begin = job->binding.op_done ? job->binding.clock() : 0;
        status = npu_sim__run_op(sim, job, op);
        if (job->binding.op_done) {
            job->binding.op_done(job->binding.op_done_ctx, op->id, begin, job->binding.clock());
        }
        if (status && job->binding.failed_op) {
            *job->binding.failed_op = op->id;
        }
    }
    return status;
}

static void npu_sim__open_all(const npu_sim__job *job, bool open)
{
    const npu_sim__buffer *ends[2] = { job->to_buffer, job->from_buffer };
    for (int i = 0; i < 2; i++) {
        if (ends[i]) {
            npu_sim__open(ends[i], open);
        }
    }
    for (uint32_t i = 0; i < job->num_buffers; i++) {
        npu_sim__open(job->buffers[i], open);
    }
}

/* Does the work of a job, in whichever thread. Memory is open only here. */
static npu_status npu_sim__execute(npu_sim *sim, npu_sim__job *job)
{
    npu_status status = job->failure;
    pthread_mutex_lock(&sim->engine);
    if (job->hang_ns || sim->desc.sleeps) {
        npu_sim__sleep(job->hang_ns + (sim->desc.sleeps ? job->ns : 0));
    }
    npu_sim__open_all(job, true);
    if (!status && job->is_submit) {
        status = npu_sim__run_ops(sim, job);
    } else if (!status && job->form) {
        npu_sim__reform(job->form, job->to, job->from, job->to_buffer != NULL);
    } else if (!status && job->bytes) {
        memmove(job->to, job->from, (size_t)job->bytes);
    }
    npu_sim__open_all(job, false);
    pthread_mutex_unlock(&sim->engine);
    pthread_mutex_lock(&sim->lock);
    sim->counters.busy_ns += job->ns + job->hang_ns;
    sim->counters.bytes_up += status || job->from_buffer ? 0 : job->bytes;
    sim->counters.bytes_down += status || job->to_buffer ? 0 : job->bytes;
    sim->counters.bytes_copied += status || !job->to_buffer || !job->from_buffer ? 0 : job->bytes;
    pthread_mutex_unlock(&sim->lock);
    npu_sim__blocks_free(&job->blocks);
    return status;
}

static void *npu_sim__worker(void *arg)
{
    npu_sim *sim = arg;
    pthread_mutex_lock(&sim->lock);
    while (sim->first || !sim->quits) {
        npu_sim__job *job = sim->first;
        if (!job) {
            pthread_cond_wait(&sim->queued, &sim->lock);
            continue;
        }
        sim->first = job->next;
        sim->last = sim->first ? sim->last : &sim->first;
        pthread_mutex_unlock(&sim->lock);
        npu_status status = npu_sim__execute(sim, job);
        pthread_mutex_lock(&sim->lock);
        sim->results[job->fence % 1024] = status;
        sim->completed = job->fence;
        pthread_cond_broadcast(&sim->finished);
        free(job);
    }
    pthread_mutex_unlock(&sim->lock);
    return NULL;
}

/* The time `ns` from now, for pthread_cond_timedwait. */
static struct timespec npu_sim__deadline(uint64_t ns)
{
    struct timeval now;
    struct timespec t;
    gettimeofday(&now, NULL);
    ns += (uint64_t)now.tv_usec * 1000u;
    t.tv_sec = now.tv_sec + (long)(ns / 1000000000u);
    t.tv_nsec = (long)(ns % 1000000000u);
    return t;
}

static npu_status npu_sim__wait_for(npu_sim *sim, npu_fence fence, uint64_t timeout_ns)
{
    const uint64_t year = 31536000u * (uint64_t)1000000000u;
    struct timespec deadline = npu_sim__deadline(timeout_ns < year ? timeout_ns : year);
    npu_status status = NPU_OK;
    pthread_mutex_lock(&sim->lock);
    while (sim->completed < fence && !status) {
        status = pthread_cond_timedwait(&sim->finished, &sim->lock, &deadline) ? NPU_ERR_TIMEOUT : NPU_OK;
    }
    status = sim->completed >= fence ? sim->results[fence % 1024] : status;
    pthread_mutex_unlock(&sim->lock);
    return status;
}

/* ---- virtual time ---- */

static uint64_t npu_sim__now;

uint64_t npu_sim_clock(void)
{
    return npu_sim__now;
}

void npu_sim_advance(uint64_t ns)
{
    npu_sim__now = ns > UINT64_MAX - npu_sim__now ? UINT64_MAX : npu_sim__now + ns;
}

static void npu_sim__advance_to(uint64_t ns)
{
    npu_sim__now = ns > npu_sim__now ? ns : npu_sim__now;
}

/* Does the work that is queued, up to a fence. */
static void npu_sim__catch_up(npu_sim *sim, npu_fence fence)
{
    while (sim->first && sim->first->fence <= fence) {
        npu_sim__job *job = sim->first;
        sim->first = job->next;
        sim->last = sim->first ? sim->last : &sim->first;
        sim->results[job->fence % 1024] = npu_sim__execute(sim, job);
        sim->completed = job->fence;
        free(job);
    }
}

static npu_status npu_sim__wait_virtually(npu_sim *sim, npu_fence fence, uint64_t timeout_ns)
{
    uint64_t end = sim->ends[fence % 1024];
    if (end > npu_sim__now && end - npu_sim__now > timeout_ns) {
        npu_sim_advance(timeout_ns);
        return NPU_ERR_TIMEOUT;
    }
    npu_sim__advance_to(end);
    npu_sim__catch_up(sim, fence);
    return sim->results[fence % 1024];
}

/* Without a fence it is waited for. */
static npu_status npu_sim__issue_virtually(npu_sim *sim, npu_sim__job *job, npu_fence *fence)
{
    npu_sim__job *queued = malloc(sizeof *queued);
    uint64_t start = sim->free_at > npu_sim__now ? sim->free_at : npu_sim__now, ns = job->ns;
    if (!queued) {
        npu_sim__blocks_free(&job->blocks);
        return NPU_ERR_NO_MEMORY;
    }
    ns = job->hang_ns > UINT64_MAX / 2 - ns ? UINT64_MAX / 2 : ns + job->hang_ns;
    sim->free_at = start > UINT64_MAX / 2 ? start : start + ns;
    *queued = *job;
    queued->next = NULL;
    queued->hang_ns = 0;
    queued->fence = ++sim->issued;
    sim->ends[queued->fence % 1024] = sim->free_at;
    *sim->last = queued;
    sim->last = &queued->next;
    if (!fence) {
        return npu_sim__wait_virtually(sim, sim->issued, UINT64_MAX);
    }
    *fence = sim->issued;
    if (!sim->desc.is_late) {
        npu_sim__catch_up(sim, *fence);
    }
    return NPU_OK;
}

static npu_fence npu_sim__enqueue(npu_sim *sim, npu_sim__job *job)
{
    pthread_mutex_lock(&sim->lock);
    npu_fence fence = job->fence = ++sim->issued; /* read before the worker can free the job */
    job->next = NULL;
    *sim->last = job;
    sim->last = &job->next;
    pthread_cond_signal(&sim->queued);
    pthread_mutex_unlock(&sim->lock);
    return fence;
}

/* Runs the job now, or queues a copy of it. The job's blocks go with it. */
static npu_status npu_sim__issue(npu_sim *sim, npu_sim__job *job, npu_fence *fence)
{
    if (fence) {
        *fence = 0;
    }
    if (sim->desc.virtual_time) {
        return npu_sim__issue_virtually(sim, job, fence);
    }
    if (!sim->desc.async) {
        return npu_sim__execute(sim, job);
    }
    npu_sim__job *queued = malloc(sizeof *queued);
    if (!queued) {
        npu_sim__blocks_free(&job->blocks);
        return NPU_ERR_NO_MEMORY;
    }
    *queued = *job;
    if (fence) {
        queued->binding.op_done = NULL; /* their owner may be gone when the work is done */
        queued->binding.failed_op = NULL;
        queued->binding.failed_text = NULL;
        *fence = npu_sim__enqueue(sim, queued);
        return NPU_OK;
    }
    return npu_sim__wait_for(sim, npu_sim__enqueue(sim, queued), UINT64_MAX);
}

/* Counts a call; the status that npu_sim_fail ordered for it, or 0. */
static npu_status npu_sim__call(npu_sim *sim, npu_sim_slot slot)
{
    pthread_mutex_lock(&sim->lock);
    sim->counters.calls[slot]++;
    bool fails = sim->faults[slot].left && --sim->faults[slot].left == 0;
    npu_status status = sim->is_gone ? NPU_ERR_BACKEND : fails ? sim->faults[slot].status : NPU_OK;
    pthread_mutex_unlock(&sim->lock);
    return status;
}

/* ---- slots of the backend ------------------------------------------------------------------------------ */

/* What no kernel here or there is given: dtypes that it has no bytes for, and calls, which a compiler takes apart. */
static bool npu_sim__is_strange(const npu_op_info *info)
{
    for (uint32_t i = 0; i < info->num_in + info->num_out; i++) {
        const npu_spec *spec = i < info->num_in ? info->in[i] : info->out[i - info->num_in];
        if (spec && !npu_sim__element(spec->dtype)) {
            return true;
        }
    }
    return info->kind == NPU_NPU_CALL;
}

static npu_status npu_sim__supports(void *ctx, const npu_op_info *info, npu_support *answer)
{
    npu_sim *sim = ctx;
    const npu_backend *host = sim->desc.emulate;
    npu_sim__blocks blocks = { NULL };
    npu_sim__op op;
    const char *words = "";
    uint32_t reason = NPU_REASON_OP;
    if (npu_sim__is_allowed(sim, info->name) && !npu_sim__is_strange(info)) {
        bool name_only = info->num_out == 0;
        npu_status status = name_only ? NPU_OK : npu_sim__op_init(&op, info, &blocks, &reason, &words);
        npu_sim__blocks_free(&blocks);
        if (status == NPU_ERR_NO_MEMORY) {
            return status;
        }
        reason = name_only && npu_sim__row_find(info->name) ? 0 : status ? NPU_REASON_ATTRIBUTE : reason;
        if (host && (reason || sim->desc.emulate_all)) {
            return host->supports(host->ctx, info, answer);
        }
    }
    answer->reason = reason;
    snprintf(answer->text, sizeof answer->text, "%s", words);
    return NPU_OK;
}

static uint64_t npu_sim__transfer_time(const npu_sim *sim, uint64_t bytes)
{
    const npu_sim_desc *d = &sim->desc;
    return d->transfer_ns + (d->bandwidth ? (uint64_t)((double)bytes * 1e9 / (double)d->bandwidth) : 0);
}

static uint64_t npu_sim__live_bytes(const npu_sim *sim, uint32_t region)
{
    uint64_t bytes = 0;
    for (const npu_sim__buffer *b = sim->buffers; b; b = b->next) {
        bytes += b->region == region ? b->bytes : 0;
    }
    return bytes;
}

static npu_status npu_sim__alloc(void *ctx, const npu_allocation *what, npu_buffer *out)
{
    npu_sim *sim = ctx;
    npu_status status = npu_sim__call(sim, NPU_SIM_ALLOC);
    uint64_t bytes = what->bytes;
    if (status || what->region >= sim->backend.num_regions || what->alignment > 4096) {
        return status ? status : NPU_ERR_INVALID_ARGUMENT;
    }
    size_t align = what->alignment > sim->regions[0].alignment ? (size_t)what->alignment : sim->regions[0].alignment;
    pthread_mutex_lock(&sim->lock);
    uint64_t capacity = what->region ? sim->desc.on_chip : sim->desc.capacity;
    bool full = capacity && bytes > capacity - npu_sim__live_bytes(sim, what->region);
    npu_sim__buffer *b = full ? NULL : npu_sim__buffer_new(bytes, sim->regions[0].slack, align);
    if (b) {
        b->next = sim->buffers;
        b->region = what->region;
        sim->buffers = b;
        sim->counters.live_buffers++;
        sim->counters.live_bytes += bytes;
        out->handle = b->start;
        out->region = what->region;
        out->bytes = bytes;
    }
    pthread_mutex_unlock(&sim->lock);
    return b ? NPU_OK : NPU_ERR_NO_MEMORY;
}

/* Work that timed out may still be running: what it uses must not go away under it. */
static void npu_sim__drain(npu_sim *sim)
{
    if (sim->desc.virtual_time) {
        npu_sim__catch_up(sim, sim->issued);
        return;
    }
    pthread_mutex_lock(&sim->lock);
    while (sim->completed < sim->issued) {
        pthread_cond_wait(&sim->finished, &sim->lock);
    }
    pthread_mutex_unlock(&sim->lock);
}

static void npu_sim__free(void *ctx, npu_buffer *buffer)
{
    npu_sim *sim = ctx;
    npu_sim__drain(sim);
    pthread_mutex_lock(&sim->lock);
    npu_sim__buffer **link = &sim->buffers, *b;
    while (*link && (*link)->start != buffer->handle) {
        link = &(*link)->next;
    }
    b = *link;
    if (b) {
        *link = b->next;
        sim->counters.live_buffers--;
        sim->counters.live_bytes -= b->bytes;
        npu_sim__buffer_free(b);
    }
    buffer->handle = NULL;
    pthread_mutex_unlock(&sim->lock);
}

/* A transfer between host memory and a buffer or between two buffers; `job` has its ends. */
static npu_status npu_sim__transfer(npu_sim *sim, npu_sim_slot slot, npu_sim__job *job, npu_fence *fence)
{
    job->failure = npu_sim__call(sim, slot);
    job->ns = npu_sim__transfer_time(sim, job->bytes);
    return npu_sim__issue(sim, job, fence);
}

static const npu_sim__form *npu_sim__form_of(npu_sim *sim, const npu_transfer *t)
{
    return t->form && t->form <= sim->num_forms ? &sim->forms[t->form - 1] : NULL;
}

static npu_status npu_sim__upload(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_sim__job job;
    memset(&job, 0, sizeof job);
    job.to_buffer = npu_sim__buffer_find(ctx, t->to->handle);
    job.form = npu_sim__form_of(ctx, t);
    if (!npu_sim__inside(job.to_buffer, t->to_offset, job.form ? job.form->bytes : t->bytes)) {
        return NPU_ERR_RANGE;
    }
    job.to = job.to_buffer->start + t->to_offset;
    job.from = t->from_host;
    job.bytes = t->bytes;
    return npu_sim__transfer(ctx, NPU_SIM_UPLOAD, &job, fence);
}

static npu_status npu_sim__download(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_sim__job job;
    memset(&job, 0, sizeof job);
    job.from_buffer = npu_sim__buffer_find(ctx, t->from->handle);
    job.form = npu_sim__form_of(ctx, t);
    if (!npu_sim__inside(job.from_buffer, t->from_offset, job.form ? job.form->bytes : t->bytes)) {
        return NPU_ERR_RANGE;
    }
    job.to = t->to_host;
    job.from = job.from_buffer->start + t->from_offset;
    job.bytes = t->bytes;
    return npu_sim__transfer(ctx, NPU_SIM_DOWNLOAD, &job, fence);
}

static npu_status npu_sim__copy(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_sim__job job;
    memset(&job, 0, sizeof job);
    job.to_buffer = npu_sim__buffer_find(ctx, t->to->handle);
    job.from_buffer = npu_sim__buffer_find(ctx, t->from->handle);
    if (!npu_sim__inside(job.to_buffer, t->to_offset, t->bytes)
        || !npu_sim__inside(job.from_buffer, t->from_offset, t->bytes)) {
        return NPU_ERR_RANGE;
    }
    job.to = job.to_buffer->start + t->to_offset;
    job.from = job.from_buffer->start + t->from_offset;
    job.bytes = t->bytes;
    return npu_sim__transfer(ctx, NPU_SIM_COPY, &job, fence);
}

/* Memory is open to the host until unmap, when all work that was queued is done. */
static void *npu_sim__map_buffer(void *ctx, npu_buffer *buffer)
{
    npu_sim__buffer *b = npu_sim__call(ctx, NPU_SIM_MAP) ? NULL : npu_sim__buffer_find(ctx, buffer->handle);
    if (b) {
        npu_sim__drain(ctx);
        npu_sim__open(b, true);
    }
    return b ? b->start : NULL;
}

static void npu_sim__unmap_buffer(void *ctx, npu_buffer *buffer)
{
    npu_sim__buffer *b = npu_sim__buffer_find(ctx, buffer->handle);
    if (b) {
        npu_sim__open(b, false);
    }
}

static npu_status npu_sim__refused(const npu_sim *sim, const npu_group *group, char *text)
{
    for (uint32_t i = 0; sim->desc.refuse && i < group->num_ops; i++) {
        if (strcmp(group->ops[i]->info->name, sim->desc.refuse) == 0) {
            snprintf(text, 96, "told to refuse %.60s", sim->desc.refuse);
            return NPU_ERR_NOT_IMPLEMENTED;
        }
    }
    return NPU_OK;
}

static npu_status npu_sim__compile_group(npu_sim *sim, npu_sim__program *p, const npu_group *group,
                                         char *text)
{
    npu_status status = npu_sim__refused(sim, group, text);
    if (sim->desc.pads_channels) {
        npu_sim__choose_forms(sim, p, group);
    }
    for (uint32_t i = 0; i < group->num_ops && !status; i++) {
        status = npu_sim__compile_op(sim, p, group->ops[i], text);
    }
    if (!status && sim->desc.in_place) {
        npu_sim__add_pairs(p);
    }
    return !status && (sim->desc.plans_inner || sim->desc.keeps_weights) ? npu_sim__plan_inner(sim, p, group) : status;
}

static void npu_sim__ask_scratch(const npu_sim *sim, npu_sim__program *p, npu_compiled *out)
{
    for (uint32_t i = 0; i < p->num_ops; i++) {
        npu_scratch of_op = { .size = sizeof of_op, .op = i, .alignment = sim->regions[0].alignment,
                              .bytes = sim->desc.op_scratch, .worker_bytes = sim->desc.worker_scratch };
        p->scratches[i] = of_op;
    }
    out->scratches = p->scratches;
    out->num_scratches = sim->desc.op_scratch || sim->desc.worker_scratch ? p->num_ops : 0;
}

/* Bytes of an op's scratch for so many workers, as they were asked for: only what parts follow is rounded up. */
static uint64_t npu_sim__scratch_bytes(const npu_sim *sim, uint32_t workers)
{
    size_t alignment = sim->regions[0].alignment, worker = npu_sim__round_up((size_t)sim->desc.worker_scratch, alignment);
    uint64_t rounded = npu_sim__round_up((size_t)sim->desc.op_scratch, alignment);
    return worker ? rounded + (uint64_t)worker * workers : sim->desc.op_scratch;
}

static void npu_sim__answer(npu_sim *sim, npu_sim__program *p, npu_compiled *out)
{
    out->program = p;
    out->scratch = sim->desc.scratch;
    out->scratch_alignment = sim->regions[0].alignment;
    npu_sim__ask_scratch(sim, p, out);
    out->plans_inner = sim->desc.plans_inner;
    out->num_own_weights = p->num_weights;
    out->own_weights = p->weights;
    out->prepared = p->memory ? p->memory->bytes : 0;
    out->num_forms = p->num_forms;
    out->forms = p->num_forms ? p->forms : NULL;
    out->num_inplace = p->num_pairs;
    out->inplace = p->pairs;
    pthread_mutex_lock(&sim->lock);
    sim->counters.live_programs++;
    pthread_mutex_unlock(&sim->lock);
}

static npu_status npu_sim__compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    npu_sim *sim = ctx;
    npu_status status = npu_sim__call(sim, NPU_SIM_COMPILE);
    npu_sim__program *p = status ? NULL : npu_sim__program_new(group);
    if (!p) {
        return status ? status : NPU_ERR_NO_MEMORY;
    }
    status = npu_sim__compile_group(sim, p, group, out->text);
    if (status) {
        npu_sim__program_free(p);
        return status;
    }
    npu_sim__answer(sim, p, out);
    return NPU_OK;
}

/* What the device was told to do, an op each: its kernel, by number, and how many tensors it has. */
#define NPU_SIM__SAVED_OP 12

static void npu_sim__saved_op(const npu_sim__op *op, uint8_t bytes[NPU_SIM__SAVED_OP])
{
    uint32_t row = op->row ? (uint32_t)(op->row - npu_sim__rows) : UINT32_MAX;
    const uint32_t words[3] = { row, op->num_in, op->num_out };
    for (int i = 0; i < NPU_SIM__SAVED_OP; i++) {
        bytes[i] = (uint8_t)(words[i / 4] >> (8 * (i % 4)));
    }
}

static npu_status npu_sim__save_program(void *ctx, void *program, void *bytes, uint64_t *size)
{
    const npu_sim__program *p = program;
    npu_status status = npu_sim__call(ctx, NPU_SIM_SAVE);
    uint64_t needed = (uint64_t)p->num_ops * NPU_SIM__SAVED_OP;
    if (!status && bytes && *size < needed) {
        return NPU_ERR_RANGE;
    }
    for (uint32_t i = 0; i < p->num_ops && bytes && !status; i++) {
        npu_sim__saved_op(&p->ops[i], (uint8_t *)bytes + (size_t)i * NPU_SIM__SAVED_OP);
    }
    *size = needed;
    return status;
}

/* Takes a program only if it is the one that compile would make. */
static npu_status npu_sim__load_program(void *ctx, const npu_group *group, const void *bytes, uint64_t size, npu_compiled *out)
{
    npu_sim *sim = ctx;
    npu_status status = npu_sim__call(sim, NPU_SIM_LOAD);
    npu_sim__program *p = status ? NULL : npu_sim__program_new(group);
    if (!p) {
        return status ? status : NPU_ERR_NO_MEMORY;
    }
    status = npu_sim__compile_group(sim, p, group, out->text);
    status = status ? status : size == (uint64_t)p->num_ops * NPU_SIM__SAVED_OP ? NPU_OK : NPU_ERR_BACKEND;
    for (uint32_t i = 0; i < p->num_ops && !status; i++) {
        uint8_t op[NPU_SIM__SAVED_OP];
        npu_sim__saved_op(&p->ops[i], op);
        status = memcmp(op, (const uint8_t *)bytes + (size_t)i * sizeof op, sizeof op) ? NPU_ERR_BACKEND : NPU_OK;
    }
    if (status) {
        npu_sim__program_free(p);
        return status;
    }
    npu_sim__answer(sim, p, out);
    return NPU_OK;
}

static void npu_sim__release(void *ctx, void *program)
{
    npu_sim *sim = ctx;
    if (program) {
        npu_sim__drain(sim);
        npu_sim__program_free(program);
        pthread_mutex_lock(&sim->lock);
        sim->counters.live_programs--;
        pthread_mutex_unlock(&sim->lock);
    }
}

/* Refuses places that the device could not address. */
static npu_status npu_sim__place(void *ctx, void *program, const npu_places *places)
{
    npu_sim *sim = ctx;
    const npu_sim__program *p = program;
    npu_status status = npu_sim__call(sim, NPU_SIM_PLACE);
    if (!status && places->num_values != p->num_values) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < p->num_values && !status; i++) {
        const npu_place *place = npu_place_at(places, i);
        bool nowhere = place->buffer == NPU_NO_INDEX;
        if ((nowhere && !p->inner[i] && p->sizes[i])
            || (!nowhere && !place->alias && place->offset % sim->regions[0].alignment)) {
            status = NPU_ERR_INVALID_ARGUMENT;
        }
    }
    return status;
}

/* The address of a place; NULL, and no longer ok, where it is not inside a buffer of this device. What has no
   bytes may lie in a buffer that was never made. */
static uint8_t *npu_sim__address(npu_sim__job *job, const npu_place *place, uint64_t bytes, bool *ok)
{
    static uint8_t nothing[1];
    if (bytes == 0) {
        return nothing;
    }
    const npu_sim__buffer *b = place->buffer < job->num_buffers ? job->buffers[place->buffer] : NULL;
    *ok = *ok && npu_sim__inside(b, place->offset, bytes);
    return *ok ? b->start + place->offset : NULL;
}

static npu_status npu_sim__resolve(npu_sim *sim, npu_sim__job *job, const npu_binding *binding)
{
    const npu_sim__program *p = job->program;
    bool ok = true;
    for (uint32_t i = 0; i < p->num_values; i++) {
        const npu_place *place = npu_place_at(binding->places, i);
        job->alias[i] = place->alias != 0;
        job->values[i] = p->inner[i] ? p->memory->start + p->offsets[i]
                                     : npu_sim__address(job, place, p->sizes[i], &ok);
    }
    if (sim->desc.scratch) {
        job->scratch = npu_sim__address(job, binding->places->scratch, sim->desc.scratch, &ok);
    }
    if (binding->places->num_scratches) {
        job->op_scratch_bytes = npu_sim__scratch_bytes(sim, binding->parallel ? binding->parallel->width : 1);
    }
    for (uint32_t i = 0; i < binding->places->num_scratches; i++) {
        job->op_scratches[i] = npu_sim__address(job, npu_place_scratch_at(binding->places, i), job->op_scratch_bytes, &ok);
    }
    return ok ? NPU_OK : NPU_ERR_RANGE;
}

/* Takes the memory of a submit and finds the buffers; those that the binding leaves empty stay NULL. */
static npu_status npu_sim__job_init(npu_sim *sim, npu_sim__job *job, const npu_sim__program *p,
                                    const npu_binding *binding)
{
    npu_sim__blocks *blocks = &job->blocks;
    job->is_submit = true;
    job->program = p;
    job->ns = sim->desc.submit_ns + p->num_ops * sim->desc.op_ns;
    job->buffers = npu_sim__take(blocks, binding->num_buffers + 1, sizeof *job->buffers);
    job->values = npu_sim__take(blocks, p->num_values, sizeof *job->values);
    job->alias = npu_sim__take(blocks, p->num_values, sizeof *job->alias);
    job->op_scratches = npu_sim__take(blocks, p->num_ops, sizeof *job->op_scratches);
    job->pointers = npu_sim__take(blocks, p->max_tensors, sizeof *job->pointers);
    job->tensors = npu_sim__take(blocks, p->max_tensors, sizeof *job->tensors);
    job->tensor_pointers = npu_sim__take(blocks, p->max_tensors, sizeof *job->tensor_pointers);
    job->tensor_buffers = npu_sim__take(blocks, p->max_tensors, sizeof *job->tensor_buffers);
    if (!job->buffers || !job->values || !job->alias || !job->op_scratches || !job->pointers || !job->tensors
        || !job->tensor_pointers || !job->tensor_buffers) {
        return NPU_ERR_NO_MEMORY;
    }
    job->num_buffers = binding->num_buffers;
    for (uint32_t i = 0; i < binding->num_buffers; i++) {
        const npu_buffer *b = binding->buffers[i];
        job->buffers[i] = b && b->handle ? npu_sim__buffer_find(sim, b->handle) : NULL;
    }
    job->binding.op_done = binding->op_done;
    job->binding.op_done_ctx = binding->op_done_ctx;
    job->binding.clock = binding->clock;
    job->binding.failed_op = binding->failed_op;
    if (NPU_HAS(binding, failed_text_size)) {
        job->binding.failed_text = binding->failed_text;
        job->binding.failed_text_size = binding->failed_text_size;
    }
    return npu_sim__resolve(sim, job, binding);
}

/* Leaves only the buffers that exist, and the program's own, to be opened. */
static void npu_sim__pack_buffers(npu_sim__job *job)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < job->num_buffers; i++) {
        if (job->buffers[i]) {
            job->buffers[n++] = job->buffers[i];
        }
    }
    if (job->program->memory) {
        job->buffers[n++] = job->program->memory;
    }
    job->num_buffers = n;
}

static npu_status npu_sim__submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    npu_sim *sim = ctx;
    npu_sim__job job;
    memset(&job, 0, sizeof job);
    job.failure = npu_sim__call(sim, NPU_SIM_SUBMIT);
    npu_status status = npu_sim__job_init(sim, &job, program, binding);
    if (status) {
        npu_sim__blocks_free(&job.blocks);
        return status;
    }
    npu_sim__pack_buffers(&job);
    pthread_mutex_lock(&sim->lock);
    job.hang_ns = sim->hang_left && --sim->hang_left == 0 ? sim->hang_ns : 0;
    pthread_mutex_unlock(&sim->lock);
    return npu_sim__issue(sim, &job, fence);
}

static npu_status npu_sim__wait(void *ctx, npu_fence fence, uint64_t timeout_ns)
{
    npu_status status = npu_sim__call(ctx, NPU_SIM_WAIT);
    if (status || !fence) {
        return status;
    }
    return ((npu_sim *)ctx)->desc.virtual_time ? npu_sim__wait_virtually(ctx, fence, timeout_ns)
                                               : npu_sim__wait_for(ctx, fence, timeout_ns);
}

static npu_status npu_sim__poll(void *ctx, npu_fence fence, uint32_t *done)
{
    npu_sim *sim = ctx;
    npu_status status = npu_sim__call(sim, NPU_SIM_POLL);
    pthread_mutex_lock(&sim->lock);
    *done = sim->desc.virtual_time ? sim->ends[fence % 1024] <= npu_sim__now : sim->completed >= fence;
    pthread_mutex_unlock(&sim->lock);
    return status;
}

static npu_status npu_sim__cost(void *ctx, const npu_op_info *info, npu_cost *answer)
{
    const npu_sim *sim = ctx;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < info->num_in + info->num_out; i++) {
        npu_sim__shape s;
        npu_sim__shape_of(&s, i < info->num_in ? info->in[i] : info->out[i - info->num_in]);
        bytes += s.is_plain ? npu_sim__bytes(&s) : 0;
    }
    answer->ns = (uint64_t)((double)bytes * 1e9 / (double)sim->desc.bandwidth);
    return NPU_OK;
}

/* Compiles, submits and releases a group of one op; place i is in buffer i, the last is for scratch. */
static npu_status npu_sim__run_group(npu_sim *sim, const npu_group *group, npu_buffer **buffers,
                                     npu_place *places, uint64_t stream)
{
    uint32_t num = group->num_values;
    npu_buffer scratch = { .size = sizeof scratch };
    npu_compiled compiled = { .size = sizeof compiled };
    npu_allocation what = { .size = sizeof what, .bytes = sim->desc.scratch };
    npu_places where = { sizeof where, num, sizeof *places, 0, places, places + num, NULL };
    npu_binding binding = { .size = sizeof binding, .num_buffers = num + 1, .buffers = buffers, .places = &where,
                            .stream = stream };
    npu_status status = npu_sim__compile(sim, group, &compiled);
    status = status ? status : npu_sim__alloc(sim, &what, &scratch);
    if (!status) {
        buffers[num] = &scratch;
        places[num].buffer = num;
        status = npu_sim__submit(sim, compiled.program, &binding, NULL);
    }
    npu_sim__free(sim, &scratch);
    npu_sim__release(sim, compiled.program);
    return status;
}

/* One op is a program of one op: its tensors become values, each in a buffer of its own. */
static npu_status npu_sim__op_call(void *ctx, const npu_call *call)
{
    const npu_op_info *info = call->op;
    uint32_t n = info->num_in + info->num_out;
    npu_sim__blocks blocks = { NULL };
    npu_group_value *values = npu_sim__take(&blocks, n, sizeof *values);
    const npu_group_value **pointers = npu_sim__take(&blocks, n, sizeof *pointers);
    npu_place *places = npu_sim__take(&blocks, n + 1, sizeof *places);
    npu_buffer **buffers = npu_sim__take(&blocks, n + 1, sizeof *buffers);
    uint32_t *indices = npu_sim__take(&blocks, n, sizeof *indices);
    npu_status status = values && pointers && places && buffers && indices ? NPU_OK : NPU_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < n && !status; i++) {
        const npu_tensor *t = i < info->num_in ? call->in[i] : call->out[i - info->num_in];
        values[i].size = sizeof values[i];
        values[i].role = i < info->num_in ? NPU_GROUP_INPUT : NPU_GROUP_OUTPUT;
        values[i].spec = i < info->num_in ? info->in[i] : info->out[i - info->num_in];
        pointers[i] = &values[i];
        buffers[i] = t->buffer;
        places[i].buffer = i;
        places[i].offset = t->offset;
        indices[i] = values[i].spec ? i : NPU_NO_INDEX;
    }
    if (!status) {
        npu_group_op op = { sizeof op, 0, info, indices, indices + info->num_in };
        const npu_group_op *ops = &op;
        npu_group group = { sizeof group, 1, n, 0, &ops, pointers, NULL };
        status = npu_sim__run_group(ctx, &group, buffers, places, call->stream);
    }
    npu_sim__blocks_free(&blocks);
    return status;
}

/* ---- the device ---------------------------------------------------------------------------------------- */

static void npu_sim__fill(npu_sim *sim)
{
    npu_backend *b = &sim->backend;
    sim->regions[0].size = (uint32_t)sizeof sim->regions[0];
    sim->regions[0].name = "device";
    sim->regions[0].capacity = sim->desc.capacity;
    sim->regions[0].alignment = sim->desc.alignment ? sim->desc.alignment : 64;
    sim->regions[0].slack = sim->desc.emulate ? sim->desc.emulate->regions[0].slack : 0;
    sim->regions[1] = sim->regions[0];
    sim->regions[1].id = sim->regions[1].priority = 1;
    sim->regions[1].name = "on-chip";
    sim->regions[1].capacity = sim->desc.on_chip;
    if (sim->desc.hides_capacity) {
        sim->regions[0].capacity = sim->regions[1].capacity = 0;
    }
    b->size = (uint32_t)sizeof *b;
    b->api_version = NPU_BACKEND_API;
    b->name = sim->desc.name ? sim->desc.name : "sim";
    b->ctx = sim;
    b->num_regions = sim->desc.on_chip ? 2 : 1;
    b->regions = sim->regions;
    b->abi = &npu_sim__abi;
    b->traits = sim->desc.passes_views ? NPU_BACKEND_VIEWS : 0;
    b->supports = npu_sim__supports;
    b->cost = sim->desc.bandwidth ? npu_sim__cost : NULL;
    b->alloc = npu_sim__alloc;
    b->free = npu_sim__free;
    b->upload = npu_sim__upload;
    b->download = npu_sim__download;
    b->copy = sim->desc.no_copy ? NULL : npu_sim__copy;
    b->map = sim->desc.maps ? npu_sim__map_buffer : NULL;
    b->unmap = sim->desc.maps ? npu_sim__unmap_buffer : NULL;
    b->compile = npu_sim__compile;
    b->place = npu_sim__place;
    b->submit = npu_sim__submit;
    b->release = npu_sim__release;
    b->save = npu_sim__save_program;
    b->load = npu_sim__load_program;
    b->version = sim->desc.version ? sim->desc.version : "1";
    b->wait = npu_sim__wait;
    b->poll = npu_sim__poll;
    b->op_call = npu_sim__op_call;
}

npu_status npu_sim_create(npu_sim **out, const npu_sim_desc *desc)
{
    npu_sim *sim = calloc(1, sizeof *sim);
    *out = NULL;
    if (!sim) {
        return NPU_ERR_NO_MEMORY;
    }
    if (desc) {
        sim->desc = *desc;
    }
    npu_sim__fill(sim);
    if (sim->regions[0].alignment > 4096 || (sim->regions[0].alignment & (sim->regions[0].alignment - 1))
        || (sim->desc.emulate && !sim->desc.emulate->op_call)) {
        free(sim);
        return NPU_ERR_INVALID_ARGUMENT;
    }
    pthread_mutex_init(&sim->lock, NULL);
    pthread_mutex_init(&sim->engine, NULL);
    pthread_cond_init(&sim->queued, NULL);
    pthread_cond_init(&sim->finished, NULL);
    sim->last = &sim->first;
    sim->has_thread = sim->desc.async && pthread_create(&sim->thread, NULL, npu_sim__worker, sim) == 0;
    if (sim->desc.async && !sim->has_thread) {
        npu_sim_destroy(sim);
        return NPU_ERR_NO_MEMORY;
    }
    *out = sim;
    return NPU_OK;
}

void npu_sim_destroy(npu_sim *sim)
{
    if (!sim) {
        return;
    }
    if (sim->has_thread) {
        pthread_mutex_lock(&sim->lock);
        sim->quits = true;
        pthread_cond_signal(&sim->queued);
        pthread_mutex_unlock(&sim->lock);
        pthread_join(sim->thread, NULL);
    }
    while (sim->buffers) {
        npu_sim__buffer *b = sim->buffers;
        sim->buffers = b->next;
        npu_sim__buffer_free(b);
    }
    pthread_cond_destroy(&sim->finished);
    pthread_cond_destroy(&sim->queued);
    pthread_mutex_destroy(&sim->engine);
    pthread_mutex_destroy(&sim->lock);
    free(sim);
}

const npu_backend *npu_sim_backend(npu_sim *sim)
{
    return &sim->backend;
}

npu_sim_counters npu_sim_count(npu_sim *sim)
{
    pthread_mutex_lock(&sim->lock);
    npu_sim_counters counters = sim->counters;
    pthread_mutex_unlock(&sim->lock);
    return counters;
}

void npu_sim_fail(npu_sim *sim, npu_sim_slot slot, uint32_t nth_call, npu_status status)
{
    pthread_mutex_lock(&sim->lock);
    sim->faults[slot].left = nth_call;
    sim->faults[slot].status = status;
    pthread_mutex_unlock(&sim->lock);
}

void npu_sim_corrupt(npu_sim *sim, uint32_t nth_op)
{
    pthread_mutex_lock(&sim->lock);
    sim->corrupt_left = nth_op;
    pthread_mutex_unlock(&sim->lock);
}

void npu_sim_vanish(npu_sim *sim, bool is_gone)
{
    pthread_mutex_lock(&sim->lock);
    sim->is_gone = is_gone;
    pthread_mutex_unlock(&sim->lock);
}

void npu_sim_hang(npu_sim *sim, uint32_t nth_submit, uint64_t ns)
{
    pthread_mutex_lock(&sim->lock);
    sim->hang_left = nth_submit;
    sim->hang_ns = ns;
    pthread_mutex_unlock(&sim->lock);
}

#endif /* NPU_SIM_IMPLEMENTATION */
