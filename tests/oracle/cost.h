/* cost.h - what a placement of at most 14 ops on an accelerator (0), or two (0 and 1), and the CPU (the last) takes, and the
   least that any takes, by trying all. Knows nothing of how the partitioner searches; costs are counted from what is done:
   launches, ops, and each value that is brought where it is read. */
#ifndef ORACLE_COST_H
#define ORACLE_COST_H

#include <stdint.h>

enum { COST_MAX_OPS = 14, COST_MAX_BACKENDS = 3 };

typedef struct cost_graph {
    uint32_t num_ops, num_backends;
    uint32_t needs[COST_MAX_OPS];       /* per op: a bit for each op that it reads from */
    uint32_t reads_input;               /* ops that read the graph's input */
    uint32_t fetched;                   /* ops whose result is an output of the graph */
    double bytes[COST_MAX_OPS], input_bytes;
    double ns[COST_MAX_OPS][COST_MAX_BACKENDS]; /* below 0: it does not take it */
    double launch[COST_MAX_BACKENDS], transfer[COST_MAX_BACKENDS], byte_ns[COST_MAX_BACKENDS]; /* 0 for the CPU */
} cost_graph;

static inline double cost_move(const cost_graph *g, uint32_t backend, double bytes)
{
    return backend + 1 == g->num_backends ? 0 : g->transfer[backend] + g->byte_ns[backend] * bytes;
}

/* Launches: all that is ready on one backend runs at once; the backend that begins is the best one. */
static inline double cost_launches(const cost_graph *g, const uint8_t *where)
{
    double least = -1;
    for (uint32_t begin = 0; begin < g->num_backends; begin++) {
        uint32_t done = 0, all = (1u << g->num_ops) - 1, backend = begin, idle = 0;
        double ns = 0;
        while (done != all && idle <= g->num_backends) {
            uint32_t before = done;
            for (uint32_t again = 1; again;) {
                again = 0;
                for (uint32_t op = 0; op < g->num_ops; op++) {
                    if (!(done >> op & 1) && where[op] == backend && !(g->needs[op] & ~done)) {
                        done |= 1u << op;
                        again = 1;
                    }
                }
            }
            ns += done != before ? g->launch[backend] : 0;
            idle = done != before ? 0 : idle + 1;
            backend = (backend + 1) % g->num_backends;
        }
        least = least < 0 || ns < least ? ns : least;
    }
    return least;
}

static inline double cost_of(const cost_graph *g, const uint8_t *where)
{
    double ns = cost_launches(g, where);
    uint32_t has_input = 0;
    for (uint32_t op = 0; op < g->num_ops; op++) {
        uint32_t to = g->fetched >> op & 1 ? 1u << (g->num_backends - 1) : 0;
        ns += g->ns[op][where[op]];
        has_input |= g->reads_input >> op & 1 ? 1u << where[op] : 0;
        for (uint32_t user = 0; user < g->num_ops; user++) {
            to |= g->needs[user] >> op & 1 ? 1u << where[user] : 0;
        }
        for (uint32_t b = 0; b < g->num_backends; b++) {
            ns += b != where[op] && to >> b & 1 ? cost_move(g, where[op], g->bytes[op]) + cost_move(g, b, g->bytes[op]) : 0;
        }
    }
    for (uint32_t b = 0; b < g->num_backends; b++) {
        ns += has_input >> b & 1 ? cost_move(g, b, g->input_bytes) : 0;
    }
    return ns;
}

static inline void cost_try(const cost_graph *g, uint8_t *where, uint32_t op, double *least)
{
    if (op == g->num_ops) {
        double ns = cost_of(g, where);
        *least = *least < 0 || ns < *least ? ns : *least;
        return;
    }
    for (uint32_t b = 0; b < g->num_backends; b++) {
        where[op] = (uint8_t)b;
        if (g->ns[op][b] >= 0) {
            cost_try(g, where, op + 1, least);
        }
    }
}

static inline double cost_least(const cost_graph *g)
{
    uint8_t where[COST_MAX_OPS];
    double least = -1;
    cost_try(g, where, 0, &least);
    return least;
}

#endif
