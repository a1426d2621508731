#include "limits/pace.h"

#include "base/assert.h"

/* A piece is what flows in a twentieth of a second, and has between LEAST and MOST bytes. CREDIT is
 * how long the bandwidth is saved up while nobody uses it, in nanoseconds. */
enum { PIECES_A_SECOND = 20, LEAST = 256, MOST = 64 * 1024 };
#define CREDIT      UINT64_C(100000000)
#define MILLISECOND UINT64_C(1000000)

static void pace_on_timeout(struct timer *timer) {
    struct pace *pace = CONTAINER_OF(timer, struct pace, timer);
    CHECK_OBJ(pace, PACE_MAGIC);
    pace->on_ready(pace->arg);
}

void pace_init(struct pace *pace, struct loop *loop, struct limit_table *table,
               enum limit_way way) {
    *pace = (struct pace){.magic = PACE_MAGIC, .loop = loop, .table = table, .way = way};
    timer_init(&pace->timer, pace_on_timeout);
}

static uint64_t pace_piece(const struct pace *pace) {
    uint64_t least = pace->shares[0].rate;
    for (unsigned i = 1; i < pace->count; i++)
        if (pace->shares[i].rate < least)
            least = pace->shares[i].rate;
    uint64_t piece = least / PIECES_A_SECOND;
    return piece < LEAST ? LEAST : piece > MOST ? MOST : piece;
}

static void pace_reserve(struct pace *pace) {
    pace->granted = pace_piece(pace);
    pace->ready_at = 0;
    for (unsigned i = 0; i < pace->count; i++) {
        uint64_t cost = bucket_cost(pace->granted, pace->shares[i].rate);
        uint64_t at = limit_table_reserve(pace->table, pace->shares[i].entry, pace->way, cost,
                                          CREDIT, pace->loop->now_nanoseconds);
        if (at > pace->ready_at)
            pace->ready_at = at;
    }
}

size_t pace_ask(struct pace *pace, size_t wanted) {
    CHECK_OBJ(pace, PACE_MAGIC);
    if (pace->count == 0)
        return wanted;
    if (pace->granted == 0)
        pace_reserve(pace);
    if (pace->ready_at > pace->loop->now_nanoseconds) {
        timer_set(&pace->loop->timers, &pace->timer,
                  (pace->ready_at + MILLISECOND - 1) / MILLISECOND);
        return 0;
    }
    return wanted < pace->granted ? wanted : (size_t)pace->granted;
}

void pace_used(struct pace *pace, size_t bytes) {
    CHECK_OBJ(pace, PACE_MAGIC);
    pace->granted -= bytes < pace->granted ? bytes : pace->granted;
}

void pace_end(struct pace *pace) {
    CHECK_OBJ(pace, PACE_MAGIC);
    timer_cancel(&pace->loop->timers, &pace->timer);
    for (unsigned i = 0; i < pace->count; i++)
        limit_table_give_back(pace->table, pace->shares[i].entry, pace->way,
                              bucket_cost(pace->granted, pace->shares[i].rate));
    pace->granted = 0;
    pace->count = 0;
}
