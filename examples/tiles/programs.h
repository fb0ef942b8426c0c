/* programs.h - three tile programs: softmax, matrix product, and layer norm of a sum. Each is built as child graph `body`
   of g, for a launch of `blocks` blocks, and says with flags what each pipe must wait for. */
#ifndef NPU_TILE_PROGRAMS_H
#define NPU_TILE_PROGRAMS_H

#include "../../npu_ir.h"

typedef struct tile_program {
    npu_graph *g;
    bool barriers; /* bar_v between ops of the vector unit, for cores where those overlap */
} tile_program;

/* Pipe `from` is done with something that pipe `to` needs. */
static inline void set_flag(tile_program *p, npu_pipe from, npu_pipe to, int64_t event)
{
    npu_system_sync_src(p->g, from, to, event);
}

static inline void wait_flag(tile_program *p, npu_pipe from, npu_pipe to, int64_t event)
{
    npu_system_sync_dst(p->g, from, to, event);
}

static inline npu_value put(tile_program *p, npu_value tile, npu_space space, int64_t offset)
{
    npu_value_set_place(p->g, tile, space, offset);
    return tile;
}

/* A tile made by the vector unit, at a place in the unified buffer. */
static inline npu_value made(tile_program *p, npu_value tile, int64_t offset)
{
    put(p, tile, NPU_SPACE_UB, offset);
    if (p->barriers) {
        npu_system_bar_v(p->g);
    }
    return tile;
}

/* The register b * step + plus, as an offset. */
static inline npu_tile_index at_block(tile_program *p, npu_value block, int64_t step, int64_t plus)
{
    npu_value scaled = npu_arith_binary(p->g, NPU_ARITH_MULI, block,
                                        npu_arith_constant(p->g, NPU_U64, npu_scalar_int(step)));
    npu_tile_index at = { 0, { 0 } };
    at.value = npu_arith_binary(p->g, NPU_ARITH_ADDI, scaled,
                                npu_arith_constant(p->g, NPU_U64, npu_scalar_int(plus)));
    return at;
}

static inline npu_spec matrix(int64_t rows, int64_t cols)
{
    int64_t dims[2];
    dims[0] = rows;
    dims[1] = cols;
    return npu_spec_tensor(NPU_F32, 2, dims);
}

/* Softmax of the rows of x [blocks * tiles * rows, cols] into out: each block takes `tiles` tiles of `rows` rows, loaded and
   stored in two buffers by turns, so that tile i + 1 arrives and tile i - 1 leaves while tile i is computed. */
static inline npu_graph *build_softmax(npu_graph *g, int64_t blocks, int64_t tiles, int64_t rows,
                                       int64_t cols, bool barriers, uint32_t *body)
{
    tile_program program = { 0 }, *p = &program;
    int64_t shape[2], size = (rows * cols * 4 + 31) / 32 * 32, column = (rows * 4 + 31) / 32 * 32;
    p->g = npu_graph_add_child(g, "softmax", NPU_LEVEL_TILE, body);
    p->barriers = barriers;
    shape[0] = rows;
    shape[1] = cols;
    npu_value x = npu_input(p->g, "x", matrix(blocks * tiles * rows, cols)),
              out = npu_input(p->g, "out", matrix(blocks * tiles * rows, cols));
    npu_value block = npu_block_get_block_idx(p->g);
    for (int64_t i = 0; i < tiles; i++) {
        int64_t turn = i % 2;
        npu_tile_index at[2] = { { 0, { 0 } }, { 0, { 0 } } };
        at[0] = at_block(p, block, tiles * rows, i * rows);
        if (i >= 2) {
            wait_flag(p, NPU_PIPE_V, NPU_PIPE_MTE2, turn); /* tile i - 2 is used up */
        }
        npu_value t = put(p, npu_block_load(p->g, x, at, shape, 2, NPU_SPACE_UB), NPU_SPACE_UB, turn * size);
        set_flag(p, NPU_PIPE_MTE2, NPU_PIPE_V, turn);
        wait_flag(p, NPU_PIPE_MTE2, NPU_PIPE_V, turn);
        npu_value most = made(p, npu_block_max(p->g, t, 1, true), 6 * size);
        npu_value less = made(p, npu_block_row_expand_sub(p->g, t, most), 2 * size);
        if (i + 2 < tiles) {
            set_flag(p, NPU_PIPE_V, NPU_PIPE_MTE2, turn);
        }
        npu_value e = made(p, npu_block_exp(p->g, less), 3 * size);
        npu_value sum = made(p, npu_block_sum(p->g, e, 1, true), 6 * size + column);
        if (i >= 2) {
            wait_flag(p, NPU_PIPE_MTE3, NPU_PIPE_V, turn); /* result i - 2 has left */
        }
        npu_value y = made(p, npu_block_row_expand_div(p->g, e, sum), (4 + turn) * size);
        set_flag(p, NPU_PIPE_V, NPU_PIPE_MTE3, turn);
        wait_flag(p, NPU_PIPE_V, NPU_PIPE_MTE3, turn);
        out = npu_block_store(p->g, y, at, shape, 2, out);
        if (i + 2 < tiles) {
            set_flag(p, NPU_PIPE_MTE3, NPU_PIPE_V, turn);
        }
    }
    npu_output(p->g, "y", out);
    return p->g;
}

/* c [blocks * m, n] = a [blocks * m, k * steps] b [k * steps, n]: each block sums `steps` products of [m,k] and [k,n]. Data goes
   DDR -> L1 -> L0A and L0B -> matrix unit -> L0C -> DDR. */
static inline npu_graph *build_matmul(npu_graph *g, int64_t blocks, int64_t steps, int64_t m, int64_t k,
                                      int64_t n, uint32_t *body)
{
    tile_program program = { 0 }, *p = &program;
    int64_t a_shape[2], b_shape[2], c_shape[2], b_place = (m * k * 4 + 31) / 32 * 32;
    npu_value acc = { 0 };
    p->g = npu_graph_add_child(g, "matmul", NPU_LEVEL_TILE, body);
    a_shape[0] = c_shape[0] = m;
    a_shape[1] = b_shape[0] = k;
    b_shape[1] = c_shape[1] = n;
    npu_value a = npu_input(p->g, "a", matrix(blocks * m, k * steps)),
              b = npu_input(p->g, "b", matrix(k * steps, n));
    npu_value c = npu_input(p->g, "c", matrix(blocks * m, n)), block = npu_block_get_block_idx(p->g);
    npu_tile_index row = at_block(p, block, m, 0);
    for (int64_t i = 0; i < steps; i++) {
        npu_tile_index a_at[2] = { { 0, { 0 } }, { 0, { 0 } } }, b_at[2] = { { 0, { 0 } }, { 0, { 0 } } };
        a_at[0] = row;
        a_at[1].number = b_at[0].number = i * k;
        if (i) {
            wait_flag(p, NPU_PIPE_MTE1, NPU_PIPE_MTE2, 0); /* L1 is free again */
        }
        npu_value a1 = put(p, npu_block_load(p->g, a, a_at, a_shape, 2, NPU_SPACE_L1), NPU_SPACE_L1, 0);
        npu_value b1 = put(p, npu_block_load(p->g, b, b_at, b_shape, 2, NPU_SPACE_L1), NPU_SPACE_L1, b_place);
        set_flag(p, NPU_PIPE_MTE2, NPU_PIPE_MTE1, 0);
        wait_flag(p, NPU_PIPE_MTE2, NPU_PIPE_MTE1, 0);
        if (i) {
            wait_flag(p, NPU_PIPE_M, NPU_PIPE_MTE1, 0); /* L0A and L0B are free again */
        }
        npu_value a0 = put(p, npu_block_move(p->g, a1, NPU_SPACE_L0A, false), NPU_SPACE_L0A, 0);
        npu_value b0 = put(p, npu_block_move(p->g, b1, NPU_SPACE_L0B, false), NPU_SPACE_L0B, 0);
        if (i + 1 < steps) {
            set_flag(p, NPU_PIPE_MTE1, NPU_PIPE_MTE2, 0);
        }
        set_flag(p, NPU_PIPE_MTE1, NPU_PIPE_M, 0);
        wait_flag(p, NPU_PIPE_MTE1, NPU_PIPE_M, 0);
        acc = i ? npu_block_matmul_acc(p->g, acc, a0, b0) : npu_block_matmul(p->g, a0, b0);
        put(p, acc, NPU_SPACE_L0C, 0);
        if (i + 1 < steps) {
            set_flag(p, NPU_PIPE_M, NPU_PIPE_MTE1, 0);
        }
    }
    set_flag(p, NPU_PIPE_M, NPU_PIPE_FIX, 0);
    wait_flag(p, NPU_PIPE_M, NPU_PIPE_FIX, 0);
    npu_tile_index c_at[2] = { { 0, { 0 } }, { 0, { 0 } } };
    c_at[0] = row;
    npu_output(p->g, "y", npu_block_store(p->g, acc, c_at, c_shape, 2, c));
    return p->g;
}

/* out = layer_norm(x + r) w + b over the last dim, eps 1e-5: x, r, out [blocks * rows, cols], w, b [1, cols]. */
static inline npu_graph *build_add_layer_norm(npu_graph *g, int64_t blocks, int64_t rows, int64_t cols,
                                              bool barriers, uint32_t *body)
{
    tile_program program = { 0 }, *p = &program;
    int64_t shape[2], vector[2], size = (rows * cols * 4 + 31) / 32 * 32, row = (cols * 4 + 31) / 32 * 32;
    npu_tile_index at[2] = { { 0, { 0 } }, { 0, { 0 } } }, zero[2] = { { 0, { 0 } }, { 0, { 0 } } };
    p->g = npu_graph_add_child(g, "add_layer_norm", NPU_LEVEL_TILE, body);
    p->barriers = barriers;
    shape[0] = rows;
    vector[0] = 1;
    shape[1] = vector[1] = cols;
    npu_value x = npu_input(p->g, "x", matrix(blocks * rows, cols)),
              r = npu_input(p->g, "r", matrix(blocks * rows, cols));
    npu_value w = npu_input(p->g, "w", matrix(1, cols)), b = npu_input(p->g, "b", matrix(1, cols));
    npu_value out = npu_input(p->g, "out", matrix(blocks * rows, cols));
    at[0] = at_block(p, npu_block_get_block_idx(p->g), rows, 0);
    npu_value tx = put(p, npu_block_load(p->g, x, at, shape, 2, NPU_SPACE_UB), NPU_SPACE_UB, 0);
    npu_value tr = put(p, npu_block_load(p->g, r, at, shape, 2, NPU_SPACE_UB), NPU_SPACE_UB, size);
    set_flag(p, NPU_PIPE_MTE2, NPU_PIPE_V, 0);
    npu_value tw = put(p, npu_block_load(p->g, w, zero, vector, 2, NPU_SPACE_UB), NPU_SPACE_UB, 3 * size);
    npu_value tb =
        put(p, npu_block_load(p->g, b, zero, vector, 2, NPU_SPACE_UB), NPU_SPACE_UB, 3 * size + row);
    set_flag(p, NPU_PIPE_MTE2, NPU_PIPE_V, 1); /* the parameters may come while the rows are computed */
    wait_flag(p, NPU_PIPE_MTE2, NPU_PIPE_V, 0);
    int64_t small = 3 * size + 2 * row;
    npu_value sum = made(p, npu_block_add(p->g, tx, tr), 2 * size);
    npu_value mean = made(p,
                          npu_block_muls(p->g, made(p, npu_block_sum(p->g, sum, 1, true), small),
                                         npu_scalar_float(1.0 / (double)cols)),
                          small + size);
    npu_value centred = made(p, npu_block_row_expand_sub(p->g, sum, mean), 0);
    npu_value square = made(p, npu_block_mul(p->g, centred, centred), size);
    npu_value variance = made(p,
                              npu_block_muls(p->g, made(p, npu_block_sum(p->g, square, 1, true), small),
                                             npu_scalar_float(1.0 / (double)cols)),
                              small + size);
    npu_value scale =
        made(p, npu_block_rsqrt(p->g, made(p, npu_block_adds(p->g, variance, npu_scalar_float(1e-5)), small)),
             small + size);
    npu_value normal = made(p, npu_block_row_expand_mul(p->g, centred, scale), 2 * size);
    wait_flag(p, NPU_PIPE_MTE2, NPU_PIPE_V, 1);
    npu_value y = made(
        p, npu_block_col_expand_add(p->g, made(p, npu_block_col_expand_mul(p->g, normal, tw), 0), tb), size);
    set_flag(p, NPU_PIPE_V, NPU_PIPE_MTE3, 0);
    wait_flag(p, NPU_PIPE_V, NPU_PIPE_MTE3, 0);
    npu_output(p->g, "y", npu_block_store(p->g, y, at, shape, 2, out));
    return p->g;
}

#endif
