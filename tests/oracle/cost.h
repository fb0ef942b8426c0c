/* cost.h - what a placement of at most 14 ops on an accelerator (0), or two (0 and 1), and the CPU (the last) takes, and the
   least that any takes, by trying all that could take less than the best so far. Knows nothing of how the partitioner searches; costs are counted from what is done:
   launches, ops, and each value that is brought where it is read. */
#ifndef ORACLE_COST_H
#define ORACLE_COST_H

#include <stdint.h>
#include <string.h>

enum { COST_MAX_OPS = 14, COST_MAX_BACKENDS = 3 };

typedef struct cost_graph {
    uint32_t num_ops, num_backends;
    uint32_t needs[COST_MAX_OPS];       /* per op: a bit for each op that it reads from */
    uint32_t reads_input;               /* ops that read the graph's input */
    uint32_t fetched;                   /* ops whose result is an output of the graph */
    uint32_t fetched_twice;             /* some of those that no op reads: two outputs */
    uint32_t control;                   /* ops that only the core itself runs, in host memory as the CPU */
    double bytes[COST_MAX_OPS], input_bytes;
    double ns[COST_MAX_OPS][COST_MAX_BACKENDS]; /* below 0: it does not take it */
    double launch[COST_MAX_BACKENDS], transfer[COST_MAX_BACKENDS], byte_ns[COST_MAX_BACKENDS]; /* 0 for the CPU */
} cost_graph;

static inline double cost_move(const cost_graph *g, uint32_t backend, double bytes)
{
    return backend + 1 == g->num_backends ? 0 : g->transfer[backend] + g->byte_ns[backend] * bytes;
}

/* Launches in the best order of backends: all that is ready on one runs at once. Less than `least`, or that. */
static inline double cost_launches(const cost_graph *g, const uint8_t *where, uint32_t done, uint32_t last, double least)
{
    if (least <= 0 || done == (1u << g->num_ops) - 1) {
        return least < 0 ? least : 0;
    }
    for (uint32_t backend = 0; backend < g->num_backends; backend++) {
        uint32_t next = done;
        for (uint32_t again = backend != last; again;) {
            again = 0;
            for (uint32_t op = 0; op < g->num_ops; op++) {
                if (!(next >> op & 1) && where[op] == backend && !(g->needs[op] & ~next)) {
                    next |= 1u << op;
                    again = 1;
                }
            }
        }
        if (next != done) {
            double launch = g->launch[backend], rest = cost_launches(g, where, next, backend, least - launch);
            least = launch + rest < least ? launch + rest : least;
        }
    }
    return least;
}

static inline double cost_of(const cost_graph *g, const uint8_t *where)
{
    double ns = cost_launches(g, where, 0, COST_MAX_BACKENDS, 1e300);
    uint32_t has_input = 0;
    for (uint32_t op = 0; op < g->num_ops; op++) {
        uint32_t to = g->fetched >> op & 1 ? 1u << (g->num_backends - 1) : 0;
        ns += g->ns[op][where[op]];
        has_input |= g->reads_input >> op & 1 ? 1u << where[op] : 0;
        for (uint32_t user = 0; user < g->num_ops; user++) {
            to |= g->needs[user] >> op & 1 ? 1u << where[user] : 0;
        }
        to &= ~(1u << where[op]);
        ns += to ? cost_move(g, where[op], g->bytes[op]) : 0; /* it leaves once */
        ns += g->fetched_twice >> op & 1 ? cost_move(g, where[op], g->bytes[op]) : 0; /* or for each output */
        for (uint32_t b = 0; b < g->num_backends; b++) {
            ns += to >> b & 1 ? cost_move(g, b, g->bytes[op]) : 0;
        }
    }
    for (uint32_t b = 0; b < g->num_backends; b++) {
        ns += has_input >> b & 1 ? cost_move(g, b, g->input_bytes) : 0;
    }
    return ns;
}

static inline double cost_fastest(const cost_graph *g, uint32_t op)
{
    double ns = g->ns[op][0];
    for (uint32_t b = 1; b < g->num_backends; b++) {
        ns = g->ns[op][b] >= 0 && (ns < 0 || g->ns[op][b] < ns) ? g->ns[op][b] : ns;
    }
    return ns;
}

/* Ops before `op` are placed: alone they take no more than with others, and those from it at least `rest`. */
static inline void cost_try(const cost_graph *g, uint8_t *where, uint32_t op, double rest, double *least)
{
    cost_graph before = *g;
    double ns;
    before.num_ops = op;
    ns = cost_of(&before, where);
    if (ns + rest >= *least || op == g->num_ops) {
        *least = ns + rest < *least ? ns : *least;
        return;
    }
    for (uint32_t b = 0; b < g->num_backends; b++) {
        where[op] = (uint8_t)b;
        if (g->ns[op][b] >= 0) {
            cost_try(g, where, op + 1, rest - cost_fastest(g, op), least);
        }
    }
}

/* The least; `known` is what some placement takes. */
static inline double cost_least(const cost_graph *g, double known)
{
    uint8_t where[COST_MAX_OPS];
    double rest = 0;
    for (uint32_t op = 0; op < g->num_ops; op++) {
        rest += cost_fastest(g, op);
    }
    cost_try(g, where, 0, rest, &known);
    return known;
}

/* The least that a chain of ops of any number takes, all of whose values have as many bytes as the input: op by op, for
   each backend that could have run the last. */
static inline double cost_chain_least(const cost_graph *g, double (*ns)[COST_MAX_BACKENDS], uint32_t num_ops)
{
    double least[COST_MAX_BACKENDS] = { 0 }, best = 1e300;
    for (uint32_t op = 0; op < num_ops; op++) {
        double next[COST_MAX_BACKENDS];
        for (uint32_t b = 0; b < g->num_backends; b++) {
            next[b] = 1e300;
            for (uint32_t from = op ? 0 : g->num_backends - 1; from < g->num_backends && ns[op][b] >= 0; from++) {
                double moves = from == b ? 0 : cost_move(g, from, g->input_bytes) + cost_move(g, b, g->input_bytes);
                double all = least[from] + moves + (op == 0 || from != b ? g->launch[b] : 0) + ns[op][b];
                next[b] = all < next[b] ? all : next[b];
            }
        }
        memcpy(least, next, sizeof least);
    }
    for (uint32_t b = 0; b < g->num_backends; b++) {
        double all = least[b] + cost_move(g, b, g->input_bytes);
        best = all < best ? all : best;
    }
    return best;
}

#endif
