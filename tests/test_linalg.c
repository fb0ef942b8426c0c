/* Linear algebra, statistics, special functions, margins and fractional pools by hand-computed rows: values that show
   what an op means, and what singular and wrong data give at run time, which vectors cannot hold. */
#include "isa.h"
#include "npu_test.h"

#define NO_NUMBER ((double)NAN)
enum { MAX_NUMBERS = 24 };

typedef struct row {
    const char *inputs; /* "f64[2,2] i64[2]": a, b and c */
    const char *call;   /* the line of the text form that makes y */
    npu_status status;
    double in[MAX_NUMBERS], want[MAX_NUMBERS]; /* of all inputs; of the first result */
} row;

/* The graph of a row: its inputs, the call, and y. */
static npu_graph *build(const row *r)
{
    char text[512];
    npu_graph *g = NULL;
    npu_diag diag;
    size_t len = (size_t)snprintf(text, sizeof text, "npu_ir 1\ngraph main\n");
    const char *at = r->inputs;
    memset(&diag, 0, sizeof diag);
    for (char name = 'a'; *at; name++) {
        size_t spec = strcspn(at, " ");
        len += (size_t)snprintf(text + len, sizeof text - len, "input %c : %.*s\n", name, (int)spec, at);
        at += spec + (at[spec] == ' ');
    }
    at = strstr(r->call, "= ") + 2; /* ops are aten's */
    len += (size_t)snprintf(text + len, sizeof text - len, "%.*saten.%s\noutput y = y\n", (int)(at - r->call),
                            r->call, at);
    NPU_CHECK_THAT(npu_graph_parse(&g, text, len, npu_test_graph_desc(), &diag) == NPU_OK, "%s: %s", r->call, diag.message);
    return g;
}

/* Inputs are doubles or int64; each takes its numbers from the list. */
static npu_status bind(npu_exec *exec, const npu_graph *g, const double *in, int64_t memory[][MAX_NUMBERS])
{
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < npu_graph_num_inputs(g) && !status; i++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
        size_t len = 0;
        char name[2] = { 0 };
        name[0] = (char)('a' + i);
        npu_spec_len(spec, &len);
        for (size_t k = 0; k < len; k++) {
            int64_t whole = spec->dtype == NPU_I64 ? (int64_t)in[k] : 0;
            memcpy(&memory[i][k], spec->dtype == NPU_I64 ? (const void *)&whole : (const void *)&in[k], 8);
        }
        status = npu_test_input(exec, name, memory[i], len * 8);
        in += len;
    }
    return status;
}

/* words: what the message of a run that fails holds, too; "" = any. */
static void check_row(const row *r, const char *words)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = build(r);
    npu_exec *exec = NULL;
    int64_t memory[3][MAX_NUMBERS];
    npu_status status = g ? npu_exec_create_simple(&exec, g, &cpu, 1, NULL) : NPU_ERR_PARSE;
    status = status ? status : bind(exec, g, r->in, memory);
    status = status ? status : npu_exec_run(exec);
    NPU_CHECK_THAT(status == r->status, "%s: %s, expected %s", r->call, npu_status_name(status),
                   npu_status_name(r->status));
    NPU_CHECK_THAT(!*words || strstr(npu_exec_diag(exec)->message, words), "%s: \"%s\", expected \"%s\"", r->call,
                   npu_exec_diag(exec)->message, words);
    if (status == NPU_OK && r->status == NPU_OK) {
        size_t size = 0;
        const double *y = npu_exec_output(exec, 0, &size);
        for (size_t i = 0; i < size / sizeof *y; i++) {
            double got = y[i], want = r->want[i];
            bool near = got == want || fabs(got - want) < 1e-12 || (got != got && want != want);
            NPU_CHECK_THAT(near, "%s: element %u is %.17g, expected %.17g", r->call, (unsigned)i, got, want);
        }
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

static void check_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_row(&rows[i], "");
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void test_solving(void)
{
    static const row rows[] = {
        { "f64[2,2] f64[2,1]", "y = linalg_solve_triangular(a, b, upper=true)", NPU_OK,
          { 2, 1, 9, 4, 5, 8 }, { 1.5, 2 } },
        { "f64[2,2] f64[2,1]", "y = linalg_solve_triangular(a, b, upper=false)", NPU_OK,
          { 2, 9, 1, 4, 4, 8 }, { 2, 1.5 } },
        { "f64[2,2] f64[1,2]", "y = linalg_solve_triangular(a, b, upper=true, left=false)", NPU_OK,
          { 2, 1, 9, 4, 4, 10 }, { 2, 2 } },
        { "f64[2,2] f64[2,1]", "y = linalg_solve_triangular(a, b, upper=true, unitriangular=true)", NPU_OK,
          { 7, 1, 9, 7, 5, 3 }, { 2, 3 } },
        { "f64[2,1] f64[2,2]", "y = cholesky_solve(a, b)", NPU_OK, { 8, 10, 2, 9, 1, 2 }, { 1.25, 1.5 } },
        { "f64[2,1] f64[2,2]", "y = cholesky_solve(a, b, upper=true)", NPU_OK, { 8, 10, 2, 1, 9, 2 },
          { 1.25, 1.5 } },
        { "f64[2,2]", "y = linalg_tensorinv(a, ind=1)", NPU_OK, { 0, 2, 4, 0 }, { 0, 0.25, 0.5, 0 } },
        { "f64[2,2] f64[2]", "y = linalg_tensorsolve(a, b)", NPU_OK, { 1, 1, 0, 2, 5, 4 }, { 3, 2 } },
        { "f64[2,2] f64[2]", "y = linalg_tensorsolve(a, b, dims=[0])", NPU_OK,
          { 1, 0, 1, 2, 5, 4 }, { 3, 2 } },
    };
    CHECK_ROWS(rows);
}

/* Factors keep the multipliers below the diagonal; a pivot of 0 fails where it is asked for. */
static void test_factors(void)
{
    static const row rows[] = {
        { "f64[2,2]", "y, p, i = linalg_lu_factor_ex(a)", NPU_OK, { 1, 2, 4, 4 }, { 4, 4, 0.25, 1 } },
        { "f64[2,2]", "y, p, i = linalg_lu_factor_ex(a)", NPU_OK, { 1, 2, 2, 4 }, { 2, 4, 0.5, 0 } },
        { "f64[2,2]", "y, l, u = linalg_lu(a)", NPU_OK, { 1, 2, 4, 4 }, { 0, 1, 1, 0 } },
        { "f64[2,2]", "y = matrix_exp(a)", NPU_OK, { 0, 1, 0, 0 }, { 1, 1, 0, 1 } },
        { "f64[2,1]", "q, y = linalg_qr(a)", NPU_OK, { 3, 4 }, { -5 } },
        { "f64[2,1]", "y, r = linalg_qr(a, mode='complete')", NPU_OK, { 3, 4 }, { -0.6, -0.8, -0.8, 0.6 } },
        { "f64[1,2]", "y, r = qr(a)", NPU_OK, { -3, 4 }, { 1 } },
        { "f64[2,2]", "y = cholesky(a)", NPU_OK, { 4, 2, 2, 10 }, { 2, 0, 1, 3 } },
    };
    CHECK_ROWS(rows);
}

/* Vectors have a free sign, so that what they make is compared: the matrix again, and a unit matrix, also where
   singular values are 0 or a matrix is completed to a square one. Of eigenvalues one triangle alone is read. */
#define SVD_AGAIN "t = aten.mul.Tensor(u, s)\ny = aten.matmul.default(t, v)"
#define U_TIMES_U "t = aten.transpose.int(u, 0, 1)\ny = aten.matmul.default(t, u)"
#define V_TIMES_V "t = aten.transpose.int(v, 0, 1)\ny = aten.matmul.default(v, t)"
#define EIGEN_AGAIN "t = aten.mul.Tensor(v, e)\nw = aten.transpose.int(v, 0, 1)\ny = aten.matmul.default(t, w)"
static void test_vectors_of_factors(void)
{
    static const row rows[] = {
        { "f64[2,3]", "u, s, v = _linalg_svd(a)\n" SVD_AGAIN, NPU_OK, { 1, 2, 3, -4, 5, 7 }, { 1, 2, 3, -4, 5, 7 } },
        { "f64[3,2]", "u, s, v = _linalg_svd(a)\n" SVD_AGAIN, NPU_OK, { 1, 2, 3, -4, 5, 7 }, { 1, 2, 3, -4, 5, 7 } },
        { "f64[2,2]", "u, s, v = linalg_svd(a)\n" SVD_AGAIN, NPU_OK, { 1, 2, 2, 4 }, { 1, 2, 2, 4 } },
        { "f64[3,2]", "u, s, v = linalg_svd(a)\n" U_TIMES_U, NPU_OK, { 0 }, { 1, 0, 0, 0, 1, 0, 0, 0, 1 } },
        { "f64[3,2]", "u, s, v = linalg_svd(a)\n" U_TIMES_U, NPU_OK, { 1, 2, 2, 4, 3, 6 }, { 1, 0, 0, 0, 1, 0, 0, 0, 1 } },
        { "f64[2,3]", "u, s, v = linalg_svd(a)\n" V_TIMES_V, NPU_OK, { 1, 2, 3, 0, 5, 0 }, { 1, 0, 0, 0, 1, 0, 0, 0, 1 } },
        { "f64[2,3]", "u, s, v = linalg_svd(a)\n" U_TIMES_U, NPU_OK, { 1, 2, 3, 0, 5, 0 }, { 1, 0, 0, 1 } },
        { "f64[2,2]", "y = linalg_svdvals(a)", NPU_OK, { 0, -4e200, 3e200, 0 }, { 4e200, 3e200 } },
        { "f64[2,2]", "e, v = _linalg_eigh(a)\n" EIGEN_AGAIN, NPU_OK, { 2, NO_NUMBER, 1, 3 }, { 2, 1, 1, 3 } },
        { "f64[3,3]", "e, v = linalg_eigh(a, UPLO='u')\n" EIGEN_AGAIN, NPU_OK, { 2, 1, 7, 0, 3, 4, 0, 0, 5 },
          { 2, 1, 7, 1, 3, 4, 7, 4, 5 } },
        { "f64[2,2]", "u, v = linalg_eigh(a)\n" V_TIMES_V, NPU_OK, { 2, 0, 1, 3 }, { 1, 0, 0, 1 } },
        { "f64[2,2]", "y = linalg_eigvalsh(a)", NPU_OK, { 2, 0, 2, -1 }, { -2, 3 } },
        { "f64[2,2]", "y = linalg_eigvalsh(a)", NPU_OK, { 0, 0, 1, 0 }, { -1, 1 } },
        { "f64[3,3]", "y = linalg_eigvalsh(a)", NPU_OK, { 0 }, { 0, 0, 0 } },
        { "f64[3,3]", "y = linalg_eigvalsh(a)", NPU_OK, { 2, 0, 0, 0, -1, 0, 0, 0, 2 }, { -1, 2, 2 } },
        { "f64[3,3]", "y = linalg_eigvalsh(a)", NPU_OK, { 1, 9, 9, 1, 1, 9, 1, 1, 1 }, { 0, 0, 3 } },
        { "f64[4,4]", "u, v = linalg_eigh(a)\n" V_TIMES_V, NPU_OK, { 1, 9, 9, 9, 1, 1, 9, 9, 1, 1, 1, 9, 1, 1, 1, 1 },
          { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 } },
    };
    CHECK_ROWS(rows);
}

/* Of a [2,n,n], s, which is symmetric, p, which is positive definite, too, d [2,n,n+3] and i, the unit matrix: y is to
   be z, and r has the same bits with every instruction set. */
#define T(name, x) name " = aten.transpose.int(" x ", -2, -1)\n"
static const char *const sized[] = {
    "r, v = aten.linalg_eigh.default(s)\nu = aten.unsqueeze.default(r, -2)\nw = aten.mul.Tensor(v, u)\n" T("x", "v")
    "y = aten.matmul.default(w, x)\noutput y = y\noutput z = s",
    "e, r = aten.linalg_eigh.default(s, 'U')\n" T("x", "r") "y = aten.matmul.default(x, r)\noutput y = y\noutput z = i",
    "k = aten.ones_like.default(s)\ne, r = aten.linalg_eigh.default(k)\n" T("x", "r") /* rounding is all but one row */
    "y = aten.matmul.default(x, r)\noutput y = y\noutput z = i",
    "q, r = aten.linalg_qr.default(a)\ny = aten.matmul.default(q, r)\noutput y = y\noutput z = a",
    T("x", "d") "q, r = aten.linalg_qr.default(x)\ny = aten.matmul.default(q, r)\noutput y = y\noutput z = x",
    T("x", "d") "r, u = aten.linalg_qr.default(x, 'complete')\ny = aten.matmul.default(r, u)\noutput y = y\n"
    "output z = x",
    "r, u = aten.linalg_qr.default(d)\n" T("x", "r") "y = aten.matmul.default(x, r)\noutput y = y\noutput z = i",
    "u, r, v = aten.linalg_svd.default(d, false)\ne = aten.unsqueeze.default(r, -2)\nw = aten.mul.Tensor(u, e)\n"
    "y = aten.matmul.default(w, v)\noutput y = y\noutput z = d",
    "r = aten.linalg_inv.default(a)\ny = aten.matmul.default(a, r)\noutput y = y\noutput z = i",
    "r = aten.linalg_solve.default(a, d)\ny = aten.matmul.default(a, r)\noutput y = y\noutput z = d",
    "r = aten.linalg_solve_triangular.default(p, d, upper=true)\nw = aten.triu.default(p)\n"
    "y = aten.matmul.default(w, r)\noutput y = y\noutput z = d",
    T("x", "d") "r = aten.linalg_solve_triangular.default(p, x, upper=false, left=false)\nw = aten.tril.default(p)\n"
    "y = aten.matmul.default(r, w)\noutput y = y\noutput z = x",
    "r = aten.linalg_cholesky.default(p)\n" T("x", "r") "y = aten.matmul.default(r, x)\noutput y = y\noutput z = p",
    "r = aten.linalg_cholesky.default(p, upper=true)\n" T("x", "r") "y = aten.matmul.default(x, r)\noutput y = y\n"
    "output z = p",
    "l = aten.linalg_cholesky.default(p)\nr = aten.cholesky_solve.default(d, l)\ny = aten.matmul.default(p, r)\n"
    "output y = y\noutput z = d",
    "r, q, w = aten.linalg_lu_factor_ex.default(d)\ne, l, u = aten.lu_unpack.default(r, q)\n"
    "m = aten.matmul.default(l, u)\ny = aten.matmul.default(e, m)\noutput y = y\noutput z = d",
};

enum { SIZED = 2 * 103 * 103 }; /* numbers of the largest */
static double sized_a[SIZED], sized_s[SIZED], sized_p[SIZED], sized_d[SIZED];

static void make_sized(int n)
{
    uint64_t seed = 5;
    for (int i = 0; i < 2 * n * (n + 3); i++) {
        sized_a[i] = (double)(npu_test_random(&seed) % 4001) / 1000 - 2;
        sized_d[i] = (double)(npu_test_random(&seed) % 4001) / 1000 - 2;
    }
    for (int i = 0; i < 2 * n * n; i++) {
        int line = i / n % n, col = i % n;
        sized_s[i] = sized_a[i] + sized_a[i - line * n - col + col * n + line];
        sized_p[i] = sized_s[i] + (line == col ? 5 * n : 0);
    }
}

/* On one backend; `first` is r of another set, or becomes it. */
static void check_sized(const char *call, int n, uint32_t isa, double *first)
{
    const npu_backend *cpu = isa_cpu(isa);
    const double *in[4] = { sized_a, sized_s, sized_p, sized_d }, *y, *z, *r;
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    char text[1000];
    size_t size = 0;
    snprintf(text, sizeof text,
             "graph main\ninput a : f64[2,%d,%d]\ninput s : f64[2,%d,%d]\ninput p : f64[2,%d,%d]\n"
             "input d : f64[2,%d,%d]\no = aten.eye.default(%d, dtype=f64)\ni = aten.expand.default(o, [2, %d, %d])\n"
             "%s\noutput r = r\n", n, n, n, n, n, n, n, n + 3, n, n, n, call);
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    for (uint32_t i = 0; exec && i < 4; i++) {
        NPU_CHECK_STATUS(npu_test_input_at(exec, i, in[i], (size_t)(2 * n * (i == 3 ? n + 3 : n)) * 8), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    y = npu_exec_output(exec, 0, &size), z = npu_exec_output(exec, 1, NULL);
    for (size_t i = 0; i < size / 8; i++) {
        if (!(fabs(y[i] - z[i]) < 1e-9 * n)) {
            NPU_CHECK_THAT(false, "%s: n = %d, set %s: element %u is %.17g, expected %.17g", call, n, npu_ref_isa(isa),
                           (unsigned)i, y[i], z[i]);
            break;
        }
    }
    r = npu_exec_output(exec, 2, &size);
    NPU_CHECK_THAT(isa == 0 || memcmp(first, r, size) == 0, "%s: n = %d: set %s has other bits", call, n,
                   npu_ref_isa(isa));
    memcpy(first, r, size);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

static void test_sizes(void)
{
    static const int sizes[] = { 1, 2, 3, 8, 17, 64, 100 };
    static double first[SIZED];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        make_sized(sizes[i]);
        for (size_t k = 0; k < sizeof sized / sizeof sized[0]; k++) {
            for (uint32_t isa = 0; isa_cpu(isa); isa++) {
                if (isa == 0 || !strchr(npu_ref_isa(isa), '_')) { /* those of "_vnni" have the same loops */
                    check_sized(sized[k], sizes[i], isa, first);
                }
            }
        }
    }
    isa_free();
}

static void test_products(void)
{
    static const row rows[] = {
        { "f64[2,2]", "y = linalg_matrix_power(a, n=5)", NPU_OK, { 1, 1, 1, 0 }, { 8, 5, 5, 3 } },
        { "f64[2,2]", "y = linalg_matrix_power(a, n=0)", NPU_OK, { 1, 1, 1, 1 }, { 1, 0, 0, 1 } },
        { "f64[2,2]", "y = matrix_power(a, n=-2)", NPU_OK, { 2, 0, 0, 4 }, { 0.25, 0, 0, 0.0625 } },
        { "f64[2] f64[2,2] f64[2]", "y = linalg_multi_dot([a, b, c])", NPU_OK, { 1, 2, 1, 2, 3, 4, 5, 6 },
          { 95 } },
        { "f64[2,1] f64[1,2] f64[2,1]", "y = linalg_multi_dot([a, b, c])", NPU_OK, { 1, 2, 3, 4, 5, 6 },
          { 39, 78 } },
        { "f64[3] f64[3]", "y = linalg_cross(a, b)", NPU_OK, { 1, 2, 3, 4, 5, 6 }, { -3, 6, -3 } },
        { "f64[3,2] f64[3,1]", "y = cross(a, b)", NPU_OK,
          { 1, 0, 0, 1, 0, 0, 0, 0, 1 }, { 0, 1, -1, 0, 0, 0 } },
    };
    CHECK_ROWS(rows);
}

/* The first matrix turns (3, 4) into a row and has one singular value; the second has 4 and 3. */
static void test_norms(void)
{
    static const row rows[] = {
        { "f64[2,2]", "y = linalg_matrix_norm(a, 2)", NPU_OK, { 3, 4, 0, 0 }, { 5 } },
        { "f64[2,2]", "y = linalg_matrix_norm(a, -2)", NPU_OK, { 3, 4, 0, 0 }, { 0 } },
        { "f64[2,2]", "y = linalg_matrix_norm.str_ord(a, 'nuc')", NPU_OK, { 0, -4, 3, 0 }, { 7 } },
        { "f64[2,2]", "y = linalg_matrix_norm.str_ord(a)", NPU_OK, { 0, -4, 3, 0 }, { 5 } },
        { "f64[2,2]", "y = linalg_matrix_norm(a, 1)", NPU_OK, { 1, -4, 3, 1 }, { 5 } },
        { "f64[2,2]", "y = linalg_matrix_norm(a, -1)", NPU_OK, { 1, -4, 3, 1 }, { 4 } },
        { "f64[2,3]", "y = linalg_norm(a, inf)", NPU_OK, { 1, -4, 3, 1, 1, 1 }, { 8 } },
        { "f64[2,3]", "y = linalg_norm(a, 1, dim=[1, 0])", NPU_OK, { 1, -4, 3, 1, 1, 1 }, { 8 } },
        { "f64[2,2]", "y = linalg_norm(a, 2)", NPU_OK, { 0, -4, 3, 0 }, { 4 } },
        { "f64[2,2]", "y = linalg_norm(a, 0, dim=[1])", NPU_OK, { 0, -4, 3, 1 }, { 1, 2 } },
        { "f64[2,2]", "y = linalg_norm(a)", NPU_OK, { 0, -4, 3, 0 }, { 5 } },
        { "f64[2,2]", "y = linalg_norm.ord_str(a, 'nuc')", NPU_OK, { 1, 2, 2, 4 }, { 5 } },
        { "f64[2,2]", "y = linalg_norm(a, 2)", NPU_OK, { NO_NUMBER, 0, 0, 1 }, { NO_NUMBER } },
    };
    CHECK_ROWS(rows);
}

static void test_statistics(void)
{
    static const row rows[] = {
        { "f64[2,3]", "y = cov(a)", NPU_OK, { 1, 2, 3, 3, 3, 0 }, { 1, -1.5, -1.5, 3 } },
        { "f64[2,3]", "y = cov(a, correction=3)", NPU_OK,
          { 1, 1, 1, 2, 2, 2 }, { NO_NUMBER, NO_NUMBER, NO_NUMBER, NO_NUMBER } },
        { "f64[3] i64[3]", "y = cov(a, fweights=b)", NPU_OK, { 1, 2, 9, 1, 3, 0 }, { 0.25 } },
        { "f64[3] i64[3]", "y = cov(a, fweights=b)", NPU_ERR_RANGE, { 1, 2, 9, 1, 3, -1 }, { 0 } },
        { "f64[3] f64[3]", "y = cov(a, aweights=b)", NPU_ERR_RANGE, { 1, 2, 9, 1, 3, NO_NUMBER }, { 0 } },
        { "f64[2,3]", "y = corrcoef(a)", NPU_OK, { 1, 2, 3, 6, 4, 2 }, { 1, -1, -1, 1 } },
        { "f64[2,2]", "y = corrcoef(a)", NPU_OK, { 1, 2, 3, 3 }, { 1, NO_NUMBER, NO_NUMBER, NO_NUMBER } },
        { "f64[3] f64[3]", "y = trapezoid.x(a, b)", NPU_OK, { 1, 3, 5, 0, 1, 4 }, { 14 } },
        { "f64[3] f64[3]", "y = cumulative_trapezoid.x(a, b)", NPU_OK, { 1, 3, 5, 0, 1, 4 }, { 2, 14 } },
        { "f64[2,2]", "y = trapz.dx(a, dx=2.0, dim=0)", NPU_OK, { 1, 3, 5, 0 }, { 6, 3 } },
        { "f64[1] f64[1]", "y = trapz.x(a, b)", NPU_OK, { 1, 3 }, { 0 } },
    };
    CHECK_ROWS(rows);
}

static void test_margins(void)
{
    static const row rows[] = {
        { "f64[1,3] i64[1]", "y = multi_margin_loss(a, b, p=2)", NPU_OK,
          { 1, 2, 1.5, 0 }, { (4 + 2.25) / 3 } },
        { "f64[1,3] i64[1]", "y = multi_margin_loss(a, b)", NPU_ERR_RANGE, { 1, 2, 1.5, 3 }, { 0 } },
        { "f64[1,3] i64[1]", "y = multi_margin_loss(a, b)", NPU_ERR_RANGE, { 1, 2, 1.5, -1 }, { 0 } },
        { "f64[3] i64[3]", "y = multilabel_margin_loss(a, b)", NPU_OK, { 1, 2, 1.5, 2, -1, 0 }, { 2.0 / 3 } },
        { "f64[3] i64[3]", "y = multilabel_margin_loss(a, b)", NPU_ERR_RANGE,
          { 1, 2, 1.5, 2, -1, 3 }, { 0 } },
        { "f64[3] i64[3]", "y = multilabel_margin_loss(a, b)", NPU_ERR_RANGE,
          { 1, 2, 1.5, 2, -2, 0 }, { 0 } },
        { "f64[2,2] f64[2,2] i64[2]", "y = cosine_embedding_loss(a, b, c, reduction=2)", NPU_OK,
          { 1, 0, 3, 4, 0, 1, 3, 4, 1, -1 }, { 2 } },
        { "f64[1,2] f64[1,2] f64[1,2]", "y = triplet_margin_loss(a, b, c, eps=0.0)", NPU_OK,
          { 0, 0, 3, 4, 0, 2 }, { 4 } },
        { "f64[1,2] f64[1,2] f64[1,2]", "y = triplet_margin_loss(a, b, c, eps=0.0, swap=true)", NPU_OK,
          { 0, 0, 0, 2, 0, 3 }, { 2 } },
    };
    CHECK_ROWS(rows);
}

/* Samples of 0 begin windows at 0, 1 and 3. One so large that its neighbours are 8 apart leads out of the
   row. */
static void test_fractional_pools(void)
{
    static const row rows[] = {
        { "f64[1,1,5] f64[1,1,2]", "y, at = fractional_max_pool2d(a, [1, 2], [1, 3], b)", NPU_OK,
          { 5, 4, 9, 1, 2, 0, 0 }, { 5, 9, 2 } },
        { "f64[1,1,7] f64[1,1,2]", "y, at = fractional_max_pool2d(a, [1, 1], [1, 7], b)", NPU_ERR_RANGE,
          { 1, 2, 3, 4, 5, 6, 7, 36028797018963968.0, 0 }, { 0 } },
    };
    CHECK_ROWS(rows);
}

/* Each part of a batch has workspace of its own: many copies of one matrix give many copies of one result. */
static void test_batches(void)
{
    enum { BATCH = 8000 };
    static double in[BATCH * 4];
    static const char *const calls[] = {
        "y = linalg_matrix_power(a, n=7)", "y = linalg_matrix_power(a, n=-3)", "y = linalg_matrix_norm(a, 2)",
        "y = linalg_solve_triangular(a, a, upper=true)", "y = cholesky_solve(a, a)"
    };
    for (int i = 0; i < BATCH * 4; i++) {
        in[i] = (double)(i % 4) * 0.25 + 1;
    }
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        const npu_backend *cpu = npu_ref_backend();
        row r = { "f64[8000,2,2]", calls[c], NPU_OK, { 0 }, { 0 } };
        npu_graph *g = build(&r);
        npu_exec *exec = NULL;
        size_t size = 0, wrong = 0;
        NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
        npu_test_input(exec, "a", in, sizeof in);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        const double *y = npu_exec_output(exec, 0, &size);
        size_t item = size / BATCH;
        for (size_t i = 1; i < BATCH; i++) {
            wrong += memcmp(y, (const char *)y + i * item, item) != 0;
        }
        NPU_CHECK(item >= sizeof(double) && y[0] == y[0]);
        NPU_CHECK_EQ(wrong, 0);
        npu_exec_destroy(exec);
        npu_graph_destroy(g);
    }
}

#define TO_F64 "\ny = aten._to_copy.default(n, dtype=f64)"
#define INF ((double)INFINITY)

/* Ends of the ranges in which each form of a function holds, and what is beyond them. */
static void test_special_functions(void)
{
    static const row rows[] = {
        { "f64[10] f64[10]", "y = igamma(a, b)", NPU_OK,
          { 1, 1, 1, 2, 0, 1, INF, 1, -1, 1, 0.5, 2, 20, 2, 1, 0, 1, INF, 1, -1 },
          { 0.3934693402873666, 0.8646647167633873, 0.9999999979388464, 0.5939941502901619, 1, 0, 0, 1,
            NO_NUMBER, NO_NUMBER } },
        { "f64[8] f64[8]", "y = igammac(a, b)", NPU_OK,
          { 0.5, 1, 0, 1, INF, 1, INF, 0, 2, 5, 1, 0, 1, INF, INF, 0 },
          { 0.04550026389635839, 0.006737946999085467, 0, 1, 1, 0, NO_NUMBER, NO_NUMBER } },
        { "f64[6]", "y = special_ndtri(a)", NPU_OK, { 0.5, 0.975, 0.025, 0, 1, -1 },
          { 0, 1.9599639845400545, -1.9599639845400545, -INF, INF, NO_NUMBER } },
        { "f64[3]", "y = special_erfcx(a)", NPU_OK, { 0, 10, 20 }, { 1, 0.05614099274382259, 0.02817434874105132 } },
        { "f64[3]", "y = special_log_ndtr(a)", NPU_OK, { -20, -30, 0 },
          { -203.9171553710973, -454.3212439563431, -0.6931471805599453 } },
        { "f64[8] f64[8]", "y = special_zeta(a, b)", NPU_OK,
          { 2, 1, 0.5, 2, 2, 2.5, 2, 50, 1, 1, 1, 0, -1, -0.5, NO_NUMBER, 2 },
          { 1.6449340668482264, INF, NO_NUMBER, INF, INF, NO_NUMBER, NO_NUMBER, 8.881784210930816e-16 } },
        { "f64[2]", "y = polygamma(0, a)", NPU_OK, { 1, 2 }, { -0.5772156649015329, 0.4227843350984671 } },
        { "f64[2]", "y = polygamma(1, a)", NPU_OK, { 1, 2 }, { 1.6449340668482264, 0.6449340668482264 } },
        { "f64[8] f64[8]", "y = div.Tensor_mode(a, b, rounding_mode='floor')", NPU_OK,
          { 7, -7, 7, -7, 1, 7, 0, -6, 2, 2, -2, -2, 2, 0, 0, 2 }, { 3, -4, -4, 3, 0, INF, NO_NUMBER, -3 } },
        { "i64[6] i64[6]", "n = pow.Tensor_Tensor(a, b)" TO_F64, NPU_OK,
          { 3, 1, -1, -1, 2, -2, 4, -5, -2, -3, -1, 3 }, { 81, 1, 1, -1, 0, -8 } },
        { "f64[3] f64[3]", "y = gelu_backward(a, b)", NPU_OK, { 1, 2, 3, 0, 40, -40 }, { 0.5, 2, 0 } },
        { "f64[3] f64[3]", "n = allclose(a, b, 0.0, 0.0)" TO_F64, NPU_OK, { 1, 2, 3, 1, 2, 3 }, { 1 } },
        { "f64[2] f64[2]", "n = allclose(a, b, equal_nan=true)" TO_F64, NPU_OK, { NO_NUMBER, 1, NO_NUMBER, 1 }, { 1 } },
        { "f64[2] f64[2]", "n = allclose(a, b)" TO_F64, NPU_OK, { NO_NUMBER, 1, NO_NUMBER, 1 }, { 0 } },
        { "i64[2] i64[2]", "n = allclose(a, b, 0.0, 1.0)" TO_F64, NPU_OK, { 1, 5, 2, 6 }, { 1 } },
        { "i64[2] i64[2]", "n = allclose(a, b, 0.0, 0.0)" TO_F64, NPU_OK, { 1, 5, 1, 6 }, { 0 } },
    };
    NPU_ITEM("F59");
    CHECK_ROWS(rows);
}

static void test_distances_and_norms(void)
{
    static const row rows[] = {
        { "f64[2,2] f64[1,2]", "y = cdist(a, b, 2.0)", NPU_OK, { 3, 4, 0, 2, 0, 0 }, { 5, 2 } },
        { "f64[2,2] f64[1,2]", "y = cdist(a, b, 0.0)", NPU_OK, { 3, 4, 0, 2, 0, 0 }, { 2, 1 } },
        { "f64[2,2] f64[1,2]", "y = cdist(a, b, 1.0)", NPU_OK, { 3, 4, 0, 2, 0, 0 }, { 7, 2 } },
        { "f64[2,2] f64[1,2]", "y = cdist(a, b, inf)", NPU_OK, { 3, -4, NO_NUMBER, 2, 0, 0 }, { 4, NO_NUMBER } },
        { "f64[4]", "y = linalg_vector_norm(a, -inf)", NPU_OK, { 3, -1, 2, -5 }, { 1 } },
        { "f64[4]", "y = linalg_vector_norm(a, inf)", NPU_OK, { 3, -1, 2, -5 }, { 5 } },
        { "f64[2,2]", "y = roll(a, [1])", NPU_OK, { 1, 2, 3, 4 }, { 4, 1, 2, 3 } },
        { "f64[2,2]", "y = roll(a, [-1, 1], [0, 1])", NPU_OK, { 1, 2, 3, 4 }, { 4, 3, 2, 1 } },
        { "f64[2,3]", "y = einsum('ba', [a])", NPU_OK, { 1, 2, 3, 4, 5, 6 }, { 1, 4, 2, 5, 3, 6 } },
        { "f64[2,2] f64[2,1]", "y = einsum('ij,jk', [a, b])", NPU_OK, { 1, 2, 3, 4, 5, 6 }, { 17, 39 } },
        { "f64[1,2,2] f64[2,1]", "y = einsum('...ij,jk', [a, b])", NPU_OK, { 1, 2, 3, 4, 5, 6 }, { 17, 39 } },
        { "f64[1,1]", "y = cov(a)", NPU_OK, { 3 }, { NO_NUMBER } },
        { "f64[0]", "y = median(a)", NPU_OK, { 0 }, { NO_NUMBER } },
        { "f64[0]", "y = nanmedian(a)", NPU_OK, { 0 }, { NO_NUMBER } },
        { "f64[3]", "y = quantile.scalar(a, 0.5)", NPU_OK, { 1, NO_NUMBER, 3 }, { NO_NUMBER } },
        { "f64[3]", "y = nanquantile.scalar(a, 0.5)", NPU_OK, { 1, NO_NUMBER, 3 }, { 2 } },
        { "f64[2] f64[2]", "y = cosine_similarity(a, b, 0)", NPU_OK, { 3, 4, 4, 3 }, { 0.96 } },
        { "f64[2,2] f64[2,2]", "y = cosine_similarity(a, b, 0)", NPU_OK, { 3, 1, 4, 0, 4, 1, 3, 0 }, { 0.96, 1 } },
        { "f64[2,2]", "n = any.dims(a, [])" TO_F64, NPU_OK, { 0, 2, 3, 0 }, { 0, 1, 1, 0 } },
        { "f64[2,2]", "n = any.dims(a, [1])" TO_F64, NPU_OK, { 0, 0, 3, 0 }, { 0, 1 } },
        { "f64[2,2]", "y = linalg_det(a)", NPU_OK, { 1, 2, 2, 4 }, { 0 } },
        { "f64[2,2]", "y = logdet(a)", NPU_OK, { 0, 1, 1, 0 }, { NO_NUMBER } },
        { "f64[2,2]", "y = logdet(a)", NPU_OK, { 1, 2, 2, 4 }, { -INF } },
        { "f64[1,1,1,3] f64[1,1,3,2]", "y = grid_sampler_2d(a, b, 0, 2, true)", NPU_OK,
          { 1, 5, 9, 0, 0, -2, 0, 2.5, 0 }, { 5, 5, 3 } },
        { "f64[1,1,2,2] f64[1,1,1,2]", "y = grid_sampler_2d(a, b, 2, 0, true)", NPU_OK,
          { 1, 2, 3, 4, NO_NUMBER, 0 }, { 0 } },
        { "f64[1,1,2]", "y = upsample_nearest1d(a, [3], 1e-300)", NPU_OK, { 7, 8 }, { 8, 8, 8 } },
#if SIZE_MAX > UINT32_MAX /* where elements beside the 0 are as many as a size can hold */
        { "f64[0,2531812678995821025]", "y = repeat_interleave.self_int(a, 4, 0)", NPU_OK, { 0 }, { 0 } },
#endif
    };
    NPU_ITEM("F59");
    CHECK_ROWS(rows);
}

/* What only the data can be wrong in is refused by the run. */
static void test_wrong_data(void)
{
    static const row rows[] = {
        { "f64[2] f64[1]", "y = quantile(a, b)", NPU_ERR_RANGE, { 1, 2, NO_NUMBER }, { 0 } },
        { "f64[3]", "y = histc(a, 2)", NPU_OK, { 0, 1, 2 }, { 1, 2 } },
        { "f64[3]", "y = histc(a, 2)", NPU_OK, { 3, 3, 3 }, { 0, 3 } },
        { "f64[2] f64[2] i64[2]", "n = searchsorted.Tensor(a, b, sorter=c)" TO_F64, NPU_OK,
          { 5, 2, 3, 6, 1, 0 }, { 1, 2 } },
        { "f64[2] f64[2] i64[2]", "n = searchsorted.Tensor(a, b, sorter=c)" TO_F64, NPU_ERR_RANGE,
          { 5, 2, 3, 6, 1, 2 }, { 0 } },
        { "f64[2] f64[2] i64[2]", "n = searchsorted.Tensor(a, b, sorter=c)" TO_F64, NPU_ERR_RANGE,
          { 5, 2, 3, 6, 1, -1 }, { 0 } },
        { "f64[2] i64[2]", "y = repeat_interleave.self_Tensor(a, b, output_size=3)", NPU_OK,
          { 7, 8, 1, 2 }, { 7, 8, 8 } },
        { "f64[2] i64[2]", "y = repeat_interleave.self_Tensor(a, b, output_size=3)", NPU_ERR_RANGE,
          { 7, 8, 1, 1 }, { 0 } },
        { "f64[2] i64[2]", "y = repeat_interleave.self_Tensor(a, b, output_size=3)", NPU_ERR_RANGE,
          { 7, 8, 4, -1 }, { 0 } },
        { "f64[2] i64[2]", "y = repeat_interleave.self_Tensor(a, b, output_size=3)", NPU_ERR_RANGE,
          { 7, 8, -1, 4 }, { 0 } },
        { "f64[2] f64[2]", "y = binary_cross_entropy(a, b)", NPU_ERR_RANGE, { 0.5, NO_NUMBER, 1, 0 }, { 0 } },
        { "f64[1,2] i64[1]", "y = nll_loss(a, b)", NPU_OK, { -3, -4, 1 }, { 4 } },
        { "f64[1,2] i64[1]", "y = nll_loss(a, b)", NPU_ERR_RANGE, { -3, -4, 2 }, { 0 } },
        { "f64[1,2] i64[1]", "y = nll_loss(a, b)", NPU_ERR_RANGE, { -3, -4, -1 }, { 0 } },
        { "f64[2,2] i64[2] i64[1]", "y, n, o, p = embedding_bag(a, b, c)", NPU_OK, { 1, 2, 3, 4, 0, 1, 0 }, { 4, 6 } },
        { "f64[2,2] i64[2] i64[1]", "y, n, o, p = embedding_bag(a, b, c)", NPU_ERR_RANGE,
          { 1, 2, 3, 4, 0, 2, 0 }, { 0 } },
        { "f64[2,2] i64[2] i64[1]", "y, n, o, p = embedding_bag(a, b, c)", NPU_ERR_RANGE,
          { 1, 2, 3, 4, 0, 1, 3 }, { 0 } },
        { "f64[1]", "y = neg(a)\naten._assert_async.default(a)", NPU_OK, { 2 }, { -2 } },
        { "f64[1]", "y = neg(a)\nn = aten.item.default(a)\naten._assert_scalar.default(n, 'is 0')", NPU_ERR_RANGE,
          { 0 }, { 0 } },
        { "i64[1] f64[1]", "y = neg(b)\nn = aten.item.default(a)\naten.sym_constrain_range.default(n, min=2, max=4)",
          NPU_OK, { 4, 1 }, { -1 } },
        { "i64[1] f64[1]", "y = neg(b)\nn = aten.item.default(a)\naten.sym_constrain_range_for_size.default(n, min=0)",
          NPU_ERR_RANGE, { -1, 1 }, { 0 } },
        { "f64[3] i64[2]", "y = segment_reduce(a, 'sum', lengths=b)", NPU_OK, { 1, 2, 3, 1, 2 }, { 1, 5 } },
        { "f64[3] i64[2]", "y = segment_reduce(a, 'sum', lengths=b)", NPU_ERR_RANGE, { 1, 2, 3, 1, 1 }, { 0 } },
        { "f64[3] i64[2]", "y = segment_reduce(a, 'sum', lengths=b, unsafe=true)", NPU_OK, { 1, 2, 3, 1, 1 }, { 1, 2 } },
        { "f64[3] i64[2]", "y = segment_reduce(a, 'sum', lengths=b, unsafe=true)", NPU_ERR_RANGE,
          { 1, 2, 3, 1, 3 }, { 0 } },
        { "f64[3] i64[2]", "y = segment_reduce(a, 'sum', lengths=b)", NPU_ERR_RANGE, { 1, 2, 3, 4, -1 }, { 0 } },
        { "f64[3] i64[2]", "y = segment_reduce(a, 'max', offsets=b)", NPU_OK, { 1, 2, 3, 1, 3 }, { 3 } },
        { "f64[3] i64[2]", "y = segment_reduce(a, 'max', offsets=b)", NPU_ERR_RANGE, { 1, 2, 3, 2, 1 }, { 0 } },
        { "f64[3] i64[2]", "y = segment_reduce(a, 'max', offsets=b)", NPU_ERR_RANGE, { 1, 2, 3, -1, 1 }, { 0 } },
        { "f64[2,1]", "y, e = histogramdd(a, [2])", NPU_OK, { 1, 2 }, { 1, 1 } },
        { "f64[2,1,2] i64[1,1]", "y = ctc_loss.IntList(a, b, [2], [1])", NPU_OK, { -1, -2, -1, -2, 1 },
          { 3 - 0.86199480405822932 } },
        { "f64[2,1,2] i64[1,1]", "y = ctc_loss.IntList(a, b, [2], [1])", NPU_ERR_RANGE, { -1, -2, -1, -2, 2 }, { 0 } },
        { "f64[2,1,2] i64[1,1]", "y = ctc_loss.IntList(a, b, [3], [1])", NPU_ERR_RANGE, { -1, -2, -1, -2, 1 }, { 0 } },
        { "f64[2,1,2] i64[1,1] i64[1]", "y, p = _ctc_loss.Tensor(a, b, c, c)", NPU_ERR_RANGE,
          { -1, -2, -1, -2, 1, 2 }, { 0 } },
        { "f64[2,2] i64[2]", "y, n = _pack_padded_sequence(a, b, false)", NPU_OK, { 1, 2, 3, 4, 2, 1 }, { 1, 2, 3 } },
        { "f64[2,2] i64[2]", "y, n = _pack_padded_sequence(a, b, false)", NPU_ERR_RANGE, { 1, 2, 3, 4, 1, 2 }, { 0 } },
        { "f64[2,2] i64[2]", "y, n = _pack_padded_sequence(a, b, false)", NPU_ERR_RANGE, { 1, 2, 3, 4, 2, 0 }, { 0 } },
        { "f64[2,2] i64[2]", "y, n = _pack_padded_sequence(a, b, false)", NPU_ERR_RANGE, { 1, 2, 3, 4, 3, 1 }, { 0 } },
        { "f64[3] i64[2]", "y, n = _pad_packed_sequence(a, b, true, 0.5, 3)", NPU_OK, { 1, 2, 3, 2, 1 },
          { 1, 3, 0.5, 2, 0.5, 0.5 } },
        { "f64[3] i64[2]", "y, n = _pad_packed_sequence(a, b, true, 0.5, 3)", NPU_ERR_RANGE, { 1, 2, 3, 1, 2 }, { 0 } },
        { "f64[3] i64[2]", "y, n = _pad_packed_sequence(a, b, true, 0.5, 3)", NPU_ERR_RANGE, { 1, 2, 3, 2, 2 }, { 0 } },
        { "f64[3] i64[2]", "y, n = _pad_packed_sequence(a, b, true, 0.5, 3)", NPU_ERR_RANGE, { 1, 2, 3, 4, 0 }, { 0 } },
    };
    NPU_ITEM("F59");
    CHECK_ROWS(rows);
}

/* And told in words what was found. */
static void test_words(void)
{
    static const struct {
        const char *inputs, *call;
        npu_status status;
        double in[MAX_NUMBERS];
        const char *words;
    } rows[] = {
        { "f64[2,2]", "y = linalg_tensorinv(a, ind=1)", NPU_ERR_NUMERICAL, { 1, 2, 2, 4 }, "the matrix is singular" },
        { "f64[2,2] f64[2]", "y = linalg_tensorsolve(a, b)", NPU_ERR_NUMERICAL, { 1, 1, 1, 1, 5, 4 },
          "the matrix is singular" },
        { "f64[2,2]", "y, p, i = linalg_lu_factor_ex(a, check_errors=true)", NPU_ERR_NUMERICAL, { 1, 2, 2, 4 },
          "the matrix is singular" },
        { "f64[2,2]", "y = cholesky(a)", NPU_ERR_NUMERICAL, { 1, 2, 2, 1 }, "the matrix is not positive definite" },
        { "f64[2,2]", "y = linalg_svdvals(a)", NPU_ERR_NUMERICAL, { 0, NO_NUMBER, 3, 0 },
          "the matrix holds NaN or infinity" },
        { "f64[2,2]", "y = linalg_pinv(a, 0.1)", NPU_ERR_NUMERICAL, { 0, (double)INFINITY, 3, 0 },
          "the matrix holds NaN or infinity" },
        { "f64[2,2]", "y = linalg_eigvalsh(a)", NPU_ERR_NUMERICAL, { 2, 0, NO_NUMBER, -1 },
          "the matrix holds NaN or infinity" },
        { "f64[2,2]", "y = matrix_power(a, n=-2)", NPU_ERR_NUMERICAL, { 1, 1, 1, 1 }, "the matrix is singular" },
        { "f64[3] f64[3]", "y = cov(a, aweights=b)", NPU_ERR_NUMERICAL, { 1, 2, 9, 0, 0, 0 }, "the weights sum to 0" },
        { "f64[2] f64[1]", "y = quantile(a, b)", NPU_ERR_RANGE, { 1, 2, 1.5 }, "q is 1.5, expected 0 to 1" },
        { "f64[3]", "y = histc(a, 2)", NPU_ERR_NUMERICAL, { 0, 1, INF }, "no bins from 0 to inf" },
        { "f64[3]", "y = histc(a, 2)", NPU_ERR_NUMERICAL, { 0, 1, NO_NUMBER }, "no bins" },
        { "f64[2] f64[2]", "y = binary_cross_entropy(a, b)", NPU_ERR_RANGE, { 0.5, 1.5, 1, 0 },
          "self holds 1.5, expected 0 to 1" },
        { "f64[1]", "y = neg(a)\naten._assert_async.default(a)", NPU_ERR_RANGE, { 0 },
          "the asserted value is 0" },
        { "f64[1]", "y = neg(a)\naten._assert_async.msg(a, 'is 0')", NPU_ERR_RANGE, { 0 }, "out of range: is 0" },
        { "i64[1] f64[1]", "y = neg(b)\nn = aten.item.default(a)\naten.sym_constrain_range.default(n, min=2, max=4)",
          NPU_ERR_RANGE, { 5, 1 }, "5, asserted to be from 2 to 4" },
        { "f64[2,1]", "y, e = histogramdd(a, [2])", NPU_ERR_NUMERICAL, { 1, NO_NUMBER }, "no bins" },
        { "f64[3,2,2]", "y = linalg_inv(a)", NPU_ERR_NUMERICAL, { 1, 0, 0, 1, 1, 2, 2, 4, 3, 0, 0, 0 },
          "no result for these numbers: matrix 1 of 0 to 2 is singular (A 'a' f64[3,2,2])" },
        { "i64[2] i64[2]", "n = div.Tensor_mode(a, b, rounding_mode='trunc')" TO_F64, NPU_ERR_NUMERICAL, { 1, 2, 1, 0 },
          "an integer is divided by 0" },
        { "f64[2,2]", "y = linalg_cholesky(a)", NPU_ERR_NUMERICAL, { 1, 2, 2, 1 },
          "no result for these numbers: the matrix is not positive definite (" },
        { "f64[2,2] i64[2]", "y = cov(a, fweights=b)", NPU_ERR_RANGE, { 1, 2, 3, 4, 1, -1 },
          "a weight is -1, expected at least 0" },
        { "f64[2,2] i64[2]", "y = cov(a, fweights=b)", NPU_ERR_NUMERICAL, { 1, 2, 3, 4, 0, 0 },
          "the weights sum to 0" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row r = { rows[i].inputs, rows[i].call, rows[i].status, { 0 }, { 0 } };
        memcpy(r.in, rows[i].in, sizeof r.in);
        check_row(&r, rows[i].words);
    }
}

/* Of many matrices, some of them singular, the first is named, at any number of threads. */
static void test_first_of_many(void)
{
    enum { BATCH = 2000, N = 4 };
    static const uint32_t widths[] = { 1, 4 };
    static double x[BATCH][N][N], y[BATCH][N][N];
    const npu_backend *cpu = npu_ref_backend();
    const int64_t dims[3] = { BATCH, N, N };
    npu_plan_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_value in = npu_input(g, "x", npu_spec_tensor(NPU_F64, 3, dims));
    npu_arg arg = npu_arg_tensor("A", in);
    npu_output(g, "y", npu_op_result(g, npu_emit_name(g, "aten.linalg_inv", &arg, 1), 0));
    for (int i = 0; i < BATCH; i++) {
        for (int k = 0; k < N && i != 701 && i != 1900; k++) {
            x[i][k][k] = 1 + k;
        }
    }
    for (int w = 0; w < 2; w++) {
        npu_parallel *threads = NULL;
        npu_status made = npu_threads_create(&threads, &(npu_threads_desc){ .width = widths[w] });
        npu_plan *plan = NULL;
        npu_program *program = NULL;
        npu_exec *exec = NULL;
        NPU_CHECK(made == NPU_OK || made == NPU_ERR_UNSUPPORTED);
        NPU_CHECK_STATUS(npu_plan_create(&plan, g, &desc, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_program_create(&program, plan, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_create(&exec, program, &(npu_exec_desc){ .parallel = threads }, NULL), NPU_OK);
        npu_test_input(exec, "x", x, sizeof x);
        npu_exec_set_output(exec, "y", y, sizeof y);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_ERR_NUMERICAL);
        NPU_CHECK_THAT(strstr(npu_exec_diag(exec)->message, "matrix 701 of 0 to 1999 is singular") != NULL, "%s",
                       npu_exec_diag(exec)->message);
        npu_exec_destroy(exec);
        npu_program_destroy(program);
        npu_plan_destroy(plan);
        npu_threads_destroy(threads);
    }
    npu_graph_destroy(g);
}

/* Kernels take memory for the numbers that there are: none for matrices that are not there, and of tall and wide ones no
   square of the longer side. */
static void test_room(void)
{
    static const struct { const char *inputs, *call; uint64_t most; } rows[] = {
        { "f64[65536,2]", "y, r = linalg_qr(a)", 4 << 20 },
        { "f64[2,65536]", "y, r = linalg_qr(a, mode='complete')", 4 << 20 },
        { "f64[65536,2]", "y, s, v = _linalg_svd(a)", 8 << 20 },
        { "f64[2,65536]", "u, y, v = _linalg_svd(a)", 8 << 20 },
        { "f64[65536,2]", "y = linalg_svdvals(a)", 8 << 20 },
        { "f64[65536,2]", "y = linalg_pinv(a, rcond=0.1)", 16 << 20 },
        { "f64[65536,2] f64[65536,3]", "y, r, k, s = linalg_lstsq(a, b)", 64 << 20 },
        { "f64[0,4096,4096]", "y, r = linalg_qr(a)", 4096 },
        { "f64[0,4096,4096]", "y, v = linalg_eigh(a)", 4096 },
        { "f64[0,4096,4096]", "y, p, i = linalg_lu_factor_ex(a)", 4096 },
        { "f64[0,4096,4096]", "p, y, u = linalg_lu(a)", 4096 },
        { "f64[0,4096,4096]", "y = linalg_inv(a)", 4096 },
        { "f64[0,4096,4096]", "y = linalg_det(a)", 4096 },
        { "f64[0,4096,4096]", "y = matrix_exp(a)", 4096 },
        { "f64[0,4096,4096]", "y = linalg_matrix_power(a, n=3)", 4096 },
        { "f64[0,4096,4096]", "y = linalg_matrix_norm(a, ord=2)", 4096 },
        { "f64[0,4096,4096] f64[0,4096,4096]", "y = bmm(a, b)", 4096 },
        { "f64[0,1,4096,64] f64[0,1,4096,64]", "y = scaled_dot_product_attention(a, b, b)", 4096 },
        { "f64[0,1048576] i64[0,1048576]", "y = multilabel_margin_loss(a, b)", 4096 },
        { "f64[65536,0] f64[65536,0]", "y = _weight_norm(a, b)", 4096 },
        { "f64[0,1048576]", "p, i, y = linalg_lu_factor_ex(a)", 4096 },
        { "f64[8,0,5] i64[0,1048576] i64[0] i64[0]", "y = ctc_loss.Tensor(a, b, c, d)", 4096 },
        { "f64[1048576,0] i64[2]", "y = embedding_renorm(a, b, max_norm=1.0, norm_type=2.0)", 4096 },
        { "c64[0,5,1048576] f32[9]", "y = istft(a, n_fft=9, hop_length=4, window=b)", 4096 },
    };
    const npu_backend *cpu = npu_ref_backend();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row r;
        npu_plan_desc desc = { .backends = &cpu, .num_backends = 1 };
        npu_plan *plan = NULL;
        npu_program *program = NULL;
        npu_memory m = { 0 };
        npu_diag diag = { 0 };
        memset(&r, 0, sizeof r);
        r.inputs = rows[i].inputs;
        r.call = rows[i].call;
        npu_graph *g = build(&r);
        npu_status status = g ? npu_plan_create(&plan, g, &desc, &diag) : NPU_ERR_PARSE;
        status = status ? status : npu_program_create(&program, plan, &diag);
        status = status ? status : npu_plan_memory(npu_program_plan(program), 0, &m);
        NPU_CHECK_THAT(status == NPU_OK && m.scratch <= rows[i].most, "%s of %s: %s %llu bytes, at most %llu", r.call, r.inputs,
                       diag.message, (unsigned long long)m.scratch, (unsigned long long)rows[i].most);
        npu_program_destroy(program);
        npu_plan_destroy(plan);
        npu_graph_destroy(g);
    }
}

/* A call of one op says what a run of it says. */
static void test_call(void)
{
    static double x[2][2][2] = { { { 1, 0 }, { 0, 1 } }, { { 1, 2 }, { 2, 4 } } }, y[2][2][2], table[2], one_row[1];
    static int64_t index[1] = { 5 };
    const npu_backend *cpu = npu_ref_backend();
    const int64_t matrices[3] = { 2, 2, 2 }, two = 2, one = 1;
    npu_tensor t[5];
    npu_buffer b[5];
    uint8_t dim[8] = { 0 };
    npu_diag diag;
    npu_tensor_set_host(&t[0], &b[0], NPU_F64, 3, matrices, x);
    npu_tensor_set_host(&t[1], &b[1], NPU_F64, 3, matrices, y);
    npu_tensor_set_host(&t[2], &b[2], NPU_F64, 1, &two, table);
    npu_tensor_set_host(&t[3], &b[3], NPU_I64, 1, &one, index);
    npu_tensor_set_host(&t[4], &b[4], NPU_F64, 1, &one, one_row);
    NPU_CHECK_STATUS(npu_op_call(cpu, NPU_TEST_CALL(NPU_ATEN_LINALG_INV, t, 1, &t[1], 1, 0, NULL, 0), &diag),
                     NPU_ERR_NUMERICAL);
    NPU_CHECK_STR(diag.message, "aten.linalg_inv.default on cpu: no result for these numbers: matrix 1 of 0 to 1 is "
                                "singular (A f64[2,2,2])");
    NPU_CHECK_STATUS(npu_op_call(cpu, NPU_TEST_CALL(NPU_ATEN_INDEX_SELECT, &t[2], 2, &t[4], 1, 0, dim, 8), &diag),
                     NPU_ERR_RANGE);
    NPU_CHECK_STR(diag.message, "aten.index_select.default on cpu: index or number out of range: operand 1 holds 5 to "
                                "5 (self f64[2], index i64[1])");
}

int main(void)
{
    NPU_RUN(test_solving);
    NPU_RUN(test_factors);
    NPU_RUN(test_vectors_of_factors);
    NPU_RUN(test_sizes);
    NPU_RUN(test_products);
    NPU_RUN(test_norms);
    NPU_RUN(test_statistics);
    NPU_RUN(test_margins);
    NPU_RUN(test_fractional_pools);
    NPU_RUN(test_batches);
    NPU_RUN(test_special_functions);
    NPU_RUN(test_distances_and_norms);
    NPU_RUN(test_wrong_data);
    NPU_RUN(test_words);
    NPU_RUN(test_first_of_many);
    NPU_RUN(test_room);
    NPU_RUN(test_call);
    return npu_test_done();
}
