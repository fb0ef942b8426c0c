/* groups.h - the fewest groups that a placement allows, by looking at every set of ops that may have run: at most 16 ops;
   of larger graphs, how many there are where each group takes all that is ready. Knows nothing of how the partitioner
   groups. */
#ifndef ORACLE_GROUPS_H
#define ORACLE_GROUPS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ORACLE_MAX_OPS = 16 };

typedef struct oracle_dag {
    uint32_t num_ops;
    uint32_t needs[ORACLE_MAX_OPS];  /* per op: a bit for each op that it reads from */
    uint8_t colour[ORACLE_MAX_OPS];  /* where it runs */
} oracle_dag;

/* The fewest runs of one colour, in any order that the edges allow, counting those of `counted` only; 0xff counts all. */
static inline uint32_t oracle_fewest_groups(const oracle_dag *d, uint8_t counted)
{
    static uint8_t best[1u << ORACLE_MAX_OPS][4]; /* what has run, the colour that ran last */
    uint32_t all = (1u << d->num_ops) - 1, least = 0xff;
    memset(best, 0xff, sizeof best);
    for (uint32_t c = 0; c < 4; c++) {
        best[0][c] = 0;
    }
    for (uint32_t done = 0; done <= all; done++) {
        for (uint32_t op = 0; op < d->num_ops; op++) {
            uint32_t c = d->colour[op], next = done | 1u << op;
            if (next == done || (d->needs[op] & ~done)) {
                continue;
            }
            for (uint32_t last = 0; last < 4; last++) {
                uint32_t is_new = (counted == 0xff || counted == c) && (last != c || done == 0);
                if (best[done][last] != 0xff && best[done][last] + is_new < best[next][c]) {
                    best[next][c] = (uint8_t)(best[done][last] + is_new);
                }
            }
        }
    }
    for (uint32_t c = 0; c < 4; c++) {
        least = best[all][c] < least ? best[all][c] : least;
    }
    return least;
}

/* Groups of colour 0 where ops of two colours run in turns, each time all of one colour that can; the colour that begins is
   the better one. Ops stand behind those that they read from: at most two, negative = none. */
static inline uint32_t oracle_waves(uint32_t num_ops, const uint8_t *colour, int32_t (*from)[2])
{
    uint8_t *done = (uint8_t *)malloc(num_ops + 1);
    uint32_t least = UINT32_MAX;
    for (uint32_t begin = 0; begin < 2; begin++) {
        uint32_t groups = 0, left = num_ops;
        memset(done, 0, num_ops);
        for (uint32_t now = begin; left; now = 1 - now) {
            uint32_t before = left;
            for (uint32_t i = 0; i < num_ops; i++) {
                if (!done[i] && colour[i] == now && (from[i][0] < 0 || done[from[i][0]]) &&
                    (from[i][1] < 0 || done[from[i][1]])) {
                    done[i] = 1;
                    left--;
                }
            }
            groups += now == 0 && left < before;
        }
        least = groups < least ? groups : least;
    }
    free(done);
    return least;
}

#endif
