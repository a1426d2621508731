#include "helperd/admission.h"

#include "helperd/dispatch.h"
#include "helperd/pool_workers.h"

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
