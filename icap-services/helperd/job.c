#include "helperd/job.h"

#include "base/assert.h"
#include "helperd/pool.h"

const char *refusal_text(enum refusal refusal) {
    static const char *const texts[] = {"none",     "queue_full", "share",
                                        "too_late", "breaker",    "stopping"};
    return texts[refusal];
}

static const char *refusal_reason(enum refusal refusal) {
    static const char *const reasons[] = {
        "",
        "the queue of the pool is full",
        "the queue of the pool is full, and this client has the most work in it",
        "it could not be done before its deadline",
        "the helpers of the pool die one after another",
        "retort-helperd is stopping"};
    return reasons[refusal];
}

static void job_count_end(struct pool *pool, const struct job *job, enum helper_status status) {
    switch (status) {
    case HELPER_DONE: pool->counts.served++; break;
    case HELPER_UNCHANGED: pool->counts.unchanged++; break;
    case HELPER_REFUSED: pool->counts.refused++; break;
    case HELPER_TIMEOUT: pool->counts.timeouts++; break;
    default: pool->counts.failed++; break;
    }
    if (status == HELPER_DONE || status == HELPER_UNCHANGED)
        pool->counts.milliseconds += pool->loop->now - job->submitted;
}

void job_free(struct job *job) {
    CHECK_OBJ(job, JOB_MAGIC);
    helper_packet_close_body(&job->packet);
    explicit_bzero(job->packet.parameters, helper_packet_parameters(&job->packet).length);
    FREE_OBJ(job);
}

void job_finish(struct job *job, enum helper_status status, struct helper_packet *result,
                const char *why) {
    CHECK_OBJ(job, JOB_MAGIC);
    struct pool *pool = job->pool;
    job_count_end(pool, job, status);
    timer_cancel(&pool->loop->timers, &job->timer);
    queue_remove(job);
    if (job->worker != NULL)
        job->worker->job = NULL;
    job->on_result(job, status, result, why);
    job_free(job);
}

void job_refuse(struct job *job, enum refusal refusal) {
    job->pool->counts.refusals[refusal]++;
    job_finish(job, HELPER_REFUSED, NULL, refusal_reason(refusal));
}

void job_refuse_waiting(struct pool *pool, enum refusal refusal) {
    for (struct job *job; (job = queue_any(&pool->queue)) != NULL;)
        job_refuse(job, refusal);
}
