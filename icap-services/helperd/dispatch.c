#include "helperd/dispatch.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "helperd/pool_workers.h"

/* Each new value counts for an eighth. A value that is far out counts as four times the usual
 * one. */
void dispatch_note_pace(struct pool *pool, const struct job *job) {
    enum { WEIGHT = 8, FAR_OUT = 4 };
    double *pace = &pool->pace[job->place.lane];
    double now = (double)(pool->loop->now - job->begun) / (double)job->place.cost;
    if (*pace > 0 && now > FAR_OUT * *pace)
        now = FAR_OUT * *pace;
    *pace += *pace > 0 ? (now - *pace) / WEIGHT : now;
}

/* After a reload with another protocol, a helper that speaks the old one gets no job. */
static bool dispatch_same_language(const struct pool *pool, const struct worker *worker) {
    const struct helper_terms *terms = &pool->settings.terms;
    return worker->lines.protocol == terms->protocol && worker->lines.channels == terms->channels;
}

/* A worker that may do a job of that lane. The spare is taken only when no other worker is idle. */
/* An idle worker that may do a job of that lane now; NULL: there is none. */
static struct worker *dispatch_idle_worker(struct pool *pool, enum lane lane) {
    struct worker *spare = NULL;
    LIST_FOR_EACH (link, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->state != WORKER_IDLE || worker->surplus ||
            !dispatch_same_language(pool, worker))
            continue;
        if (!worker->spare)
            return worker;
        spare = worker;
    }
    return lane == LANE_SMALL ? spare : NULL;
}

/* No helper has seen the job, so it stays the first that waits. This happens only once for each
 * job: otherwise a fault of our own would cost one helper after another. */
static void dispatch_keep_waiting(struct pool *pool, struct job *job) {
    if (job->returned) {
        job_finish(job, HELPER_FAILED, NULL, "the helper died");
        return;
    }
    job->returned = true;
    queue_put_back(&pool->queue, job);
}

static void dispatch_note_begin(struct pool *pool, struct worker *worker, struct job *job) {
    struct lane_counts *lane = &pool->lanes[job->place.lane];
    uint64_t waited = pool->loop->now - job->submitted;
    job->begun = pool->loop->now;
    lane->begun++;
    lane->waited += waited;
    if (waited > lane->longest)
        lane->longest = waited;
    lane->at_work++;
    worker->got_job = clocks_microseconds(CLOCK_MONOTONIC);
    times_add(&lane->waiting, worker->got_job - job->came);
    worker->lane = job->place.lane;
    memcpy(worker->client, job->place.client, sizeof worker->client);
    worker->at_work = true;
}

/* Milliseconds until the job's deadline. */
static uint64_t dispatch_time_left(const struct pool *pool, const struct job *job) {
    return job->deadline > pool->loop->now ? job->deadline - pool->loop->now : 0;
}

static void dispatch_give(struct pool *pool, struct worker *worker, struct job *job) {
    timer_cancel(&pool->loop->timers, &worker->timer);
    job->packet.message.milliseconds = (uint32_t)dispatch_time_left(pool, job);
    if (!worker_give(worker, &job->packet, pool->settings.terms.cpu)) {
        worker_kill(worker);
        dispatch_keep_waiting(pool, job);
        return;
    }
    if (line_port_is_open(&worker->lines)) /* no other helper will get it, so a password can go */
        explicit_bzero(job->packet.parameters, job->packet.message.inline_length);
    timer_cancel(&pool->loop->timers, &job->timer);
    dispatch_note_begin(pool, worker, job);
    job->worker = worker;
    worker->job = job;
    timer_set(&pool->loop->timers, &worker->job_timer, job->deadline);
}

/* Milliseconds that one helper needs for so much work of a lane; 0: not known. */
/* Milliseconds that one worker needs for so much work of a lane; 0: not known. */
static double dispatch_expected_time(const struct pool *pool, enum lane lane, uint64_t cost) {
    return pool->pace[lane] * (double)cost;
}

/* The next job of a lane that can still be done in time. Jobs that can't are refused. */
static struct job *dispatch_next_job(struct pool *pool, enum lane lane) {
    struct job *job;
    while ((job = queue_take(&pool->queue, lane)) != NULL) {
        bool waited = job->submitted < pool->loop->now;
        double expected = waited ? dispatch_expected_time(pool, lane, job->place.cost) : 0;
        if (breaker_is_open_for(&pool->breaker, job->place.client))
            job_refuse(job, REFUSAL_BREAKER);
        else if (expected > (double)dispatch_time_left(pool, job))
            job_refuse(job, REFUSAL_TOO_LATE);
        else
            return job;
    }
    return NULL;
}

/* The lane whose turn it is; LANE_COUNT: no lane can go on. */
static enum lane dispatch_next_lane(struct pool *pool) {
    bool small =
        pool->queue.lanes[LANE_SMALL].count > 0 && dispatch_idle_worker(pool, LANE_SMALL) != NULL;
    bool large =
        pool->queue.lanes[LANE_LARGE].count > 0 && dispatch_idle_worker(pool, LANE_LARGE) != NULL;
    if (large && (!small || pool->lanes[LANE_LARGE].at_work == 0))
        return LANE_LARGE;
    return small ? LANE_SMALL : LANE_COUNT;
}

static void dispatch_hand_out(struct pool *pool) {
    for (enum lane lane; (lane = dispatch_next_lane(pool)) != LANE_COUNT;) {
        struct job *job = dispatch_next_job(pool, lane);
        if (job != NULL)
            dispatch_give(pool, dispatch_idle_worker(pool, lane), job);
    }
}

static bool dispatch_has_spare(const struct pool *pool) {
    LIST_FOR_EACH (link, &pool->workers)
        if (CONTAINER_OF(link, struct worker, link)->spare)
            return true;
    return false;
}

/* Large jobs hold the helpers that a small one would need. */
/* Do large jobs hold the workers that a small one would need, and is there no spare yet? */
static bool dispatch_wants_spare(const struct pool *pool) {
    return pool->lanes[LANE_LARGE].at_work > 0 && !dispatch_has_spare(pool);
}

/* If jobs still wait, one more helper is started for them, if the pool may have one more. */
void dispatch_jobs(struct pool *pool) {
    dispatch_hand_out(pool);
    if (queue_count(&pool->queue) == 0 || breaker_is_open_for_all(&pool->breaker) || pool->retiring)
        return;
    bool below = pool_workers_lasting(pool) < pool->settings.max_processes;
    if (!below && (pool->queue.lanes[LANE_SMALL].count == 0 || !dispatch_wants_spare(pool)))
        return;
    pool_workers_add(pool, !below);
    dispatch_hand_out(pool);
}

/* Could the job keep its deadline behind the jobs that wait before it? */
static bool admission_can_be_in_time(const struct pool *pool, const struct job *job) {
    enum lane lane = job->place.lane;
    unsigned helpers = pool_workers_lasting(pool);
    uint64_t before = queue_cost_before(&pool->queue, &job->place);
    double wait = dispatch_expected_time(pool, lane, before) / (helpers == 0 ? 1 : helpers);
    return wait + dispatch_expected_time(pool, lane, job->place.cost) <=
           (double)dispatch_time_left(pool, job);
}

/* Refuses a job of the client with more work in the queue, to make room. False when there is
 * none. */
static bool admission_make_room(struct pool *pool, struct job *job) {
    bool large_full = job->place.lane == LANE_LARGE &&
                      pool->queue.lanes[LANE_LARGE].count >= pool->settings.queue_large;
    if (!large_full && queue_count(&pool->queue) < pool->settings.queue)
        return true;
    struct job *other = queue_most_greedy(&pool->queue, large_full ? LANE_LARGE : LANE_SMALL, job);
    if (other == NULL)
        return false;
    job_refuse(other, REFUSAL_SHARE);
    return true;
}

/* Why a job can't be taken. */
enum refusal admission_refusal(struct pool *pool, struct job *job) {
    enum lane lane = job->place.lane;
    if (pool->retiring)
        return REFUSAL_STOPPING;
    if (!breaker_admits(&pool->breaker, job->place.client, pool->loop->now))
        return REFUSAL_BREAKER;
    bool at_once = dispatch_idle_worker(pool, lane) != NULL ||
                   pool_workers_lasting(pool) < pool->settings.max_processes ||
                   (lane == LANE_SMALL && dispatch_wants_spare(pool));
    if (at_once)
        return REFUSAL_NONE;
    if (!admission_can_be_in_time(pool, job))
        return REFUSAL_TOO_LATE;
    return admission_make_room(pool, job) ? REFUSAL_NONE : REFUSAL_QUEUE_FULL;
}
