/* The node tests of the ONNX project, which Debian packages (libonnx-testdata): each folder has a model of one op, inputs and
   the outputs that it must give. An input is given as known where the op must know it while it is read.

       make onnx [NODES=dir]      prints what fails, then how many passed, failed, and were refused by name

   -v names all that is refused; NAME... runs only these. Debian's are of ONNX 1.12, without floats of 8 bits and integers
   of 4: onnx_runtime.py has cases of those. */
#define _FILE_OFFSET_BITS 64 /* places in a folder have as many on some file systems */
#define NPU_ONNX_IMPLEMENTATION
#include "../examples/onnx/npu_onnx.h"
#include "../npu_ir_backend_ref.h"
#include <dirent.h>

enum { MAX_TENSORS = 16 };

typedef struct node_case {
    npu_text model, files[MAX_TENSORS];
    npu_array in[MAX_TENSORS], out[MAX_TENSORS];
    uint32_t num_in, num_out;
    npu_graph *holder; /* of the tensors */
    onnx_reader reader; /* of their names */
    npu_diag diag;
} node_case;

typedef struct counts { int passed, failed, refused, known; bool is_verbose; } counts;

/* A TensorProto; an absent file ends a list. False = it is none that can be read, a sequence or strings. */
static bool read_tensor(node_case *c, npu_text *file, npu_array *out)
{
    static const npu_onnx_desc desc;
    onnx_reader *r = &c->reader;
    onnx_span message;
    r->desc = &desc;
    r->g = c->holder;
    r->diag = &c->diag;
    r->allocator.resize = onnx_resize_block;
    r->status = NPU_OK;
    r->file = r->at = message.at = (const uint8_t *)file->data;
    message.end = message.at + file->len;
    npu_value v = onnx_widened(r, onnx_tensor(r, message));
    out->name = onnx_str(r, onnx_member(r, message, ONNX_TENSOR_NAME));
    if (v.id) {
        out->spec = *npu_value_spec(c->holder, v);
        out->data = npu_value_data(c->holder, v, NULL);
    }
    return v.id != 0;
}

static bool read_list(node_case *c, const char *folder, const char *what, npu_array *out, uint32_t *count, uint32_t first_file)
{
    for (*count = 0; *count < MAX_TENSORS / 2; ++*count) {
        char path[512];
        npu_text *file = &c->files[first_file + *count];
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%u.pb", folder, what, (unsigned)*count);
        *file = npu_text_init(NULL);
        if (npu_text_load(file, path)) {
            return true;
        }
        if (!read_tensor(c, file, &out[*count])) {
            return false;
        }
    }
    return true;
}

/* The files have no type for bf16 and hold its bits as u16. */
static void name_bf16(const char *folder, npu_array *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count && strstr(folder, "BFLOAT16"); i++) {
        arrays[i].spec.dtype = arrays[i].spec.dtype == NPU_U16 ? NPU_BF16 : arrays[i].spec.dtype;
    }
}

/* Gives inputs whose files have no names those of the model's, in order; what is an initializer, too, is no input. */
static void name_inputs(node_case *c)
{
    onnx_span graph = { (const uint8_t *)c->model.data, (const uint8_t *)c->model.data + c->model.len };
    onnx_field f, g;
    uint32_t i = 0;
    graph = onnx_member(&c->reader, graph, 7);
    for (onnx_span inputs = graph; i < c->num_in && onnx_next(&c->reader, &inputs, &f);) {
        onnx_span name = f.number == 11 ? onnx_member(&c->reader, f.bytes, 1) : f.bytes;
        bool is_wanted = f.number == 11;
        for (onnx_span weights = graph; is_wanted && onnx_next(&c->reader, &weights, &g);) {
            is_wanted = g.number != 5
                        || !onnx_same(onnx_member(&c->reader, g.bytes, ONNX_TENSOR_NAME), name);
        }
        if (is_wanted) {
            c->in[i].name = c->in[i].name && c->in[i].name[0] ? c->in[i].name : onnx_str(&c->reader, name);
            i++;
        }
    }
}

/* What sums of f32 leave of numbers that cancel each other is measured by it; 0 of other dtypes. */
static double largest(const npu_array *x)
{
    size_t len = 0;
    double most = 0;
    npu_spec_len(&x->spec, &len);
    for (size_t i = 0; i < len && x->spec.dtype == NPU_F32; i++) {
        double now = fabs((double)((const float *)x->data)[i]);
        most = now > most && now < HUGE_VAL ? now : most;
    }
    return most;
}

/* Runs the model with the inputs from `first` to `last` known. */
static npu_status run_once(node_case *c, uint32_t first, uint32_t last)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_onnx_desc desc;
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    memset(&desc, 0, sizeof desc);
    memset(&c->diag, 0, sizeof c->diag);
    desc.backend = cpu;
    desc.inputs = c->in + first;
    desc.num_inputs = last - first;
    npu_status status = npu_onnx_read(&g, c->model.data, c->model.len, &desc, &c->diag);
    status = status ? status : npu_exec_create_simple(&exec, g, &cpu, 1, &c->diag);
    for (uint32_t i = 0; i < c->num_in && status == NPU_OK; i++) {
        if (npu_graph_find(g, c->in[i].name).id && (i < first || i >= last)) {
            status = npu_exec_set_input(exec, &c->in[i]);
        }
    }
    status = status ? status : npu_exec_run(exec);
    if (status && exec && !c->diag.status) {
        c->diag = *npu_exec_diag(exec);
    }
    for (uint32_t i = 0; i < c->num_out && status == NPU_OK; i++) {
        bool is_cut = c->out[i].spec.dtype == NPU_BF16; /* the files cut bits off where rounding is right */
        const npu_tolerance t = { .rtol = is_cut ? 1.0 / 128 : 1e-3, .has_rtol = true, .has_atol = true,
                                  .atol = 1e-7 + 1e-6 * largest(&c->out[i]), .equal_nan = true };
        npu_difference d;
        npu_array got = { NULL, *npu_exec_output_spec(exec, i), npu_exec_output(exec, i, NULL) };
        memset(&d, 0, sizeof d);
        if (got.spec.dtype != c->out[i].spec.dtype) {
            status = NPU_ERR_DTYPE;
            snprintf(c->diag.message, sizeof c->diag.message, "output %u is %s, expected %s", (unsigned)i,
                     npu_dtype_name((npu_dtype)got.spec.dtype), npu_dtype_name((npu_dtype)c->out[i].spec.dtype));
        } else if ((status = npu_array_compare(&got, &c->out[i], &t, &d)) != NPU_OK) {
            snprintf(c->diag.message, sizeof c->diag.message, "output %u, element %llu: %g, expected %g (%s)", (unsigned)i,
                     (unsigned long long)d.worst, d.got, d.want, npu_status_name(status));
        }
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    return status;
}

static bool is_refused(npu_status status) { return status == NPU_ERR_NOT_FOUND || status == NPU_ERR_UNSUPPORTED; }

static void run_case(const char *folder, const char *name, counts *n)
{
    static node_case c;
    char path[600];
    npu_status status = NPU_ERR_UNSUPPORTED;
    memset(&c, 0, sizeof c);
    c.holder = npu_graph_create(NULL);
    c.model = npu_text_init(NULL);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    if (npu_text_load(&c.model, path)) {
        return;
    }
    if (read_list(&c, folder, "input", c.in, &c.num_in, 0) && read_list(&c, folder, "output", c.out, &c.num_out, MAX_TENSORS / 2)) {
        name_inputs(&c);
        name_bf16(name, c.in, c.num_in);
        name_bf16(name, c.out, c.num_out);
        status = run_once(&c, 0, 0);
        if (status && status != NPU_ERR_NOT_FOUND && c.num_in > 1) {
            npu_diag first = c.diag;
            status = run_once(&c, 1, c.num_in);
            n->known += status == NPU_OK;
            c.diag = status ? first : c.diag;
        }
        if (status && status != NPU_ERR_NOT_FOUND && c.num_in) {
            npu_diag first = c.diag;
            status = run_once(&c, 0, c.num_in);
            n->known += status == NPU_OK;
            c.diag = status ? first : c.diag;
        }
    } else {
        npu_diag words = c.diag;
        npu_graph *g = NULL;
        status = npu_onnx_read(&g, c.model.data, c.model.len, NULL, &c.diag);
        status = status ? status : NPU_ERR_UNSUPPORTED;
        c.diag = is_refused(status) && c.diag.message[0] ? c.diag : words;
        npu_graph_destroy(g);
    }
    n->passed += status == NPU_OK;
    n->refused += is_refused(status);
    n->failed += status != NPU_OK && !is_refused(status);
    if (status && (n->is_verbose || !is_refused(status))) {
        printf("%s %s: %s: %s\n", is_refused(status) ? "refused" : "FAIL", name, npu_status_name(status), c.diag.message);
    }
    for (uint32_t i = 0; i < MAX_TENSORS; i++) {
        npu_text_free(&c.files[i]);
    }
    npu_text_free(&c.model);
    npu_graph_destroy(c.holder);
    onnx_free_blocks(&c.reader);
}

/* Corners of sizes that are fractions: PyTorch, where such models come from, and ONNX Runtime align those of whole ones. */
static bool is_passed_over(const char *name)
{
    return strcmp(name, "test_resize_downsample_scales_cubic_align_corners") == 0 ||
           strcmp(name, "test_resize_downsample_scales_linear_align_corners") == 0;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

int main(int argc, char **argv)
{
    static char *names[4096];
    int num = 0, first = 2;
    counts n;
    memset(&n, 0, sizeof n);
    DIR *dir = argc > 1 ? opendir(argv[1]) : NULL;
    if (!dir) {
        printf("SKIP: the node tests of ONNX: %s is not there (Debian: libonnx-testdata)\n", argc > 1 ? argv[1] : "a folder");
        return 0;
    }
    n.is_verbose = argc > 2 && strcmp(argv[2], "-v") == 0;
    first += n.is_verbose;
    for (struct dirent *e; (e = readdir(dir)) != NULL && num < 4096;) {
        bool is_wanted = argc <= first;
        for (int i = first; i < argc; i++) {
            is_wanted = is_wanted || strcmp(argv[i], e->d_name) == 0;
        }
        if (is_wanted && e->d_name[0] != '.' && !is_passed_over(e->d_name)) {
            names[num] = (char *)malloc(strlen(e->d_name) + 1);
            strcpy(names[num++], e->d_name);
        }
    }
    closedir(dir);
    qsort(names, (size_t)num, sizeof *names, compare_names);
    for (int i = 0; i < num; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/%s", argv[1], names[i]);
        run_case(folder, names[i], &n);
        free(names[i]);
    }
    printf("%d passed (%d with inputs that had to be known), %d failed, %d refused by name\n", n.passed, n.known, n.failed, n.refused);
    return n.failed != 0;
}
