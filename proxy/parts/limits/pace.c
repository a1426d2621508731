#include "limits/pace.h"

#include "base/assert.h"

/* A piece is what flows in a twentieth of a second, and has between LEAST and MOST bytes. CREDIT is
 * how long the bandwidth is saved up while nobody uses it, in nanoseconds. */
enum { PIECES_A_SECOND = 20, LEAST = 256, MOST = 64 * 1024 };
#define CREDIT      UINT64_C(100000000)
#define MILLISECOND UINT64_C(1000000)

static struct shared_pace *shared_pace_of(struct pace *base) {
    struct shared_pace *pace = CONTAINER_OF(base, struct shared_pace, base);
    CHECK_OBJ(pace, SHARED_PACE_MAGIC);
    return pace;
}

static void shared_pace_on_timeout(struct timer *timer) {
    struct shared_pace *pace = CONTAINER_OF(timer, struct shared_pace, timer);
    CHECK_OBJ(pace, SHARED_PACE_MAGIC);
    pace->base.on_ready(pace->base.arg);
}

static uint64_t shared_pace_piece(const struct shared_pace *pace) {
    uint64_t least = pace->shares[0].rate;
    for (unsigned i = 1; i < pace->count; i++)
        if (pace->shares[i].rate < least)
            least = pace->shares[i].rate;
    uint64_t piece = least / PIECES_A_SECOND;
    return piece < LEAST ? LEAST : piece > MOST ? MOST : piece;
}

static void shared_pace_reserve(struct shared_pace *pace) {
    pace->granted = shared_pace_piece(pace);
    pace->ready_at = 0;
    for (unsigned i = 0; i < pace->count; i++) {
        uint64_t cost = bucket_cost(pace->granted, pace->shares[i].rate);
        uint64_t at = limit_table_reserve(pace->table, pace->shares[i].entry, pace->way, cost,
                                          CREDIT, pace->loop->now_nanoseconds);
        if (at > pace->ready_at)
            pace->ready_at = at;
    }
}

static size_t shared_pace_ask(struct pace *base, size_t wanted) {
    struct shared_pace *pace = shared_pace_of(base);
    if (pace->count == 0)
        return wanted;
    if (pace->granted == 0)
        shared_pace_reserve(pace);
    if (pace->ready_at > pace->loop->now_nanoseconds) {
        timer_set(&pace->loop->timers, &pace->timer,
                  (pace->ready_at + MILLISECOND - 1) / MILLISECOND);
        return 0;
    }
    return wanted < pace->granted ? wanted : (size_t)pace->granted;
}

static void shared_pace_used(struct pace *base, size_t bytes) {
    struct shared_pace *pace = shared_pace_of(base);
    pace->granted -= bytes < pace->granted ? bytes : pace->granted;
}

static void shared_pace_end(struct pace *base) {
    struct shared_pace *pace = shared_pace_of(base);
    timer_cancel(&pace->loop->timers, &pace->timer);
    for (unsigned i = 0; i < pace->count; i++)
        limit_table_give_back(pace->table, pace->shares[i].entry, pace->way,
                              bucket_cost(pace->granted, pace->shares[i].rate));
    pace->granted = 0;
    pace->count = 0;
}

static const struct pace_class shared_pace_class = {
    .ask = shared_pace_ask,
    .used = shared_pace_used,
    .end = shared_pace_end,
};

void shared_pace_init(struct shared_pace *pace, struct loop *loop, struct limit_table *table,
                      enum pace_way way) {
    *pace = (struct shared_pace){
        .magic = SHARED_PACE_MAGIC,
        .base = {.class = &shared_pace_class},
        .loop = loop,
        .table = table,
        .way = way,
    };
    timer_init(&pace->timer, shared_pace_on_timeout);
}
