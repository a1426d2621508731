#include "helperd/pool.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "helperd/dispatch.h"
#include "helperd/pool_workers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

void breaker_init(struct breaker *breaker, const struct pool_settings *settings) {
    uint64_t opened = breaker->opened;
    *breaker = (struct breaker){.settings = settings, .opened = opened};
}

static void blame(struct breaker *breaker, const char *client) {
    bool known = client != NULL && client[0] != 0;
    bool first = breaker->deaths == 0;
    if (first && known)
        strcpy(breaker->client, client);
    else if (!known || strcmp(breaker->client, client) != 0)
        breaker->client[0] = 0;
    breaker->deaths++;
}

static void breaker_tell(const struct breaker *breaker) {
    const struct pool_settings *settings = breaker->settings;
    bool one = breaker->client[0] != 0;
    log_error("pool %s: %u helpers in a row have died%s%s: %s jobs are refused, one each %llu ms "
              "is tried; look at its command, %s",
              settings->name, breaker->deaths, one ? " of jobs for client " : "", breaker->client,
              one ? "that client's" : "its", (unsigned long long)settings->breaker_time,
              settings->command[0]);
}

bool breaker_note_death(struct breaker *breaker, const char *client, uint64_t now) {
    blame(breaker, client);
    if (breaker->settings->breaker == 0)
        return false;
    if (breaker->state == BREAKER_CLOSED && breaker->deaths < breaker->settings->breaker)
        return false;
    if (breaker->state == BREAKER_CLOSED) {
        breaker->opened++;
        breaker_tell(breaker);
    }
    breaker->state = BREAKER_OPEN;
    breaker->ends = now + breaker->settings->breaker_time;
    return true;
}

void breaker_note_result(struct breaker *breaker) {
    if (breaker->state != BREAKER_CLOSED)
        log_info("pool %s: its helpers work again", breaker->settings->name);
    breaker_init(breaker, breaker->settings);
}

bool breaker_is_open_for_all(const struct breaker *breaker) {
    return breaker->state != BREAKER_CLOSED && breaker->client[0] == 0;
}

static bool concerns(const struct breaker *breaker, const char *client) {
    return breaker->state != BREAKER_CLOSED &&
           (breaker->client[0] == 0 || strcmp(breaker->client, client) == 0);
}

bool breaker_is_open_for(const struct breaker *breaker, const char *client) {
    return breaker->state == BREAKER_OPEN && concerns(breaker, client);
}

bool breaker_admits(struct breaker *breaker, const char *client, uint64_t now) {
    if (!concerns(breaker, client))
        return true;
    if (now < breaker->ends)
        return false;
    breaker->state = BREAKER_TRYING;
    breaker->ends = now + breaker->settings->breaker_time;
    return true;
}

const char *breaker_text(enum breaker_state state) {
    static const char *const texts[] = {"closed", "open", "trying"};
    return texts[state];
}

/* ---- jobs --------------------------------------------------------------------------------- */

static void on_wait_timeout(struct timer *timer) {
    struct job *job = CONTAINER_OF(timer, struct job, timer);
    CHECK_OBJ(job, JOB_MAGIC);
    job_finish(job, HELPER_TIMEOUT, NULL, "the deadline passed in the queue");
}

/* Sets the cost of a job: what its client says, or else its size. */
static void pool_set_place(struct pool *pool, struct job *job) {
    const struct helper_origin *origin = &job->packet.origin;
    struct queue_place *place = &job->place;
    uint64_t cost = origin->cost > 0 ? origin->cost : job->packet.message.body_length;
    memset(place, 0, sizeof *place);
    list_init(&place->link);
    place->cost = cost < QUEUE_COST_LEAST  ? QUEUE_COST_LEAST
                  : cost > QUEUE_COST_MOST ? QUEUE_COST_MOST
                                           : cost;
    place->lane = cost <= pool->settings.small ? LANE_SMALL : LANE_LARGE;
    queue_set_client(place, origin->client);
}

void pool_submit(struct pool *pool, struct job **jobp) {
    struct job *job = *jobp;
    *jobp = NULL;
    CHECK_OBJ(pool, POOL_MAGIC);
    CHECK_OBJ(job, JOB_MAGIC);
    uint64_t allowed = job->packet.message.milliseconds;
    if (allowed == 0 || allowed > pool->settings.deadline)
        allowed = pool->settings.deadline;
    job->pool = pool;
    job->submitted = pool->loop->now;
    job->came = clocks_microseconds(CLOCK_MONOTONIC);
    job->deadline = pool->loop->now + allowed;
    job->packet.message.id = ++pool->next_id;
    job->packet.message.version = HELPER_VERSION; /* the rest is not for helpers */
    pool_set_place(pool, job);
    timer_init(&job->timer, on_wait_timeout);
    if (!line_port_takes(pool->settings.terms.protocol, &job->packet)) {
        job_finish(job, HELPER_UNUSABLE, NULL, "the job is no question of the pool's protocol");
        return;
    }
    enum refusal refusal = admission_refusal(pool, job);
    if (refusal != REFUSAL_NONE) {
        job_refuse(job, refusal);
        return;
    }
    queue_add(&pool->queue, job);
    timer_set(&pool->loop->timers, &job->timer, job->deadline);
    dispatch_jobs(pool);
}

void pool_cancel(struct job **jobp) {
    struct job *job = *jobp;
    *jobp = NULL;
    CHECK_OBJ(job, JOB_MAGIC);
    struct pool *pool = job->pool;
    pool->counts.cancelled++;
    if (job->worker != NULL)
        job->worker->job = NULL; /* it finishes for nobody; its deadline stays */
    timer_cancel(&pool->loop->timers, &job->timer);
    queue_remove(job);
    job_free(job);
}

/* ---- the pool as a whole ------------------------------------------------------------------ */

/* The operator, or a program that runs as root, makes the directory. If helpers run without it,
 * that is a warning. */
static void prepare_cgroup(const struct pool_settings *settings) {
    const struct helper_terms *terms = &settings->terms;
    char path[PATH_MAX], weight[16];
    if (terms->cgroup == NULL)
        return;
    if (mkdir(terms->cgroup, 0755) != 0 && errno != EEXIST)
        log_warn("pool %s: cgroup %s: %s", settings->name, terms->cgroup, strerror(errno));
    if (terms->cgroup_weight == 0)
        return;
    snprintf(path, sizeof path, "%s/cpu.weight", terms->cgroup);
    int length = snprintf(weight, sizeof weight, "%u\n", terms->cgroup_weight);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, weight, (size_t)length) != length)
        log_warn("pool %s: %s: %s; is the cpu controller on in the cgroup above?", settings->name,
                 path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void note_configured(struct pool *pool, const struct pool_settings *settings) {
    pool->configured_nice = settings->terms.nice;
    pool->configured_processes = settings->processes;
}

struct pool *pool_create(struct loop *loop, const struct pool_settings *settings) {
    struct pool *pool;
    ALLOC_OBJ(pool, POOL_MAGIC);
    pool->loop = loop;
    pool_settings_copy(&pool->settings, settings);
    note_configured(pool, settings);
    breaker_init(&pool->breaker, &pool->settings);
    output_share_init(&pool->share, loop, &pool->settings);
    prepare_cgroup(settings);
    list_init(&pool->link);
    list_init(&pool->workers);
    queue_init(&pool->queue);
    for (unsigned i = 0; i < settings->processes; i++)
        pool_workers_add(pool, false);
    return pool;
}

void pool_free(struct pool **poolp) {
    struct pool *pool = *poolp;
    *poolp = NULL;
    CHECK_OBJ(pool, POOL_MAGIC);
    ASSERT(queue_count(&pool->queue) == 0);
    LIST_FOR_EACH_SAFE (link, next, &pool->workers)
        pool_workers_remove(pool, CONTAINER_OF(link, struct worker, link));
    list_remove(&pool->link);
    output_share_release(&pool->share);
    pool_settings_release(&pool->settings);
    FREE_OBJ(pool);
}

/* New helpers will come. What happened to the old ones says nothing about them. */
static void begin_anew(struct pool *pool) {
    breaker_init(&pool->breaker, &pool->settings);
    LIST_FOR_EACH (link, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        worker->replace = true;
        worker->failures = 0;
        if (worker->state == WORKER_DOWN)
            loop_timer_after(pool->loop, &worker->timer, 0);
    }
}

void pool_reconfigure(struct pool *pool, const struct pool_settings *settings) {
    char error[256];
    bool other = !pool_settings_same_process(&pool->settings, settings);
    int nice = pool->settings.terms.nice;
    pool_settings_release(&pool->settings);
    pool_settings_copy(&pool->settings, settings);
    note_configured(pool, settings);
    prepare_cgroup(settings);
    pool->settings.terms.nice = nice;
    if (!pool_renice(pool, settings->terms.nice, error, sizeof error))
        log_error("pool %s: %s", settings->name, error);
    if (other)
        begin_anew(pool);
    pool_resize(pool, settings->processes);
    pool_workers_replace_one(pool);
}

bool pool_renice(struct pool *pool, int nice, char *error, size_t error_size) {
    int own = getpriority(PRIO_PROCESS, 0);
    if (nice < NICE_LOW || nice > NICE_HIGH) {
        snprintf(error, error_size, "nice must be from %d to %d", NICE_LOW, NICE_HIGH);
        return false;
    }
    if (nice < own && geteuid() != 0) {
        snprintf(error, error_size,
                 "retort-helperd runs at nice %d itself and is not root, so its helpers can not "
                 "have less; choose %d to %d",
                 own, own, NICE_HIGH);
        return false;
    }
    pool->settings.terms.nice = nice;
    LIST_FOR_EACH (link, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        /* Raising always works. Lowering is for root; anyone else starts new processes. */
        if (worker->pid > 0 && !worker_renice(worker, &pool->settings.terms))
            worker->replace = true;
    }
    pool_workers_replace_one(pool);
    return true;
}

void pool_resize(struct pool *pool, unsigned processes) {
    unsigned kept = 0;
    bool fixed = pool->settings.max_processes <= pool->settings.processes;
    pool->settings.processes = processes;
    if (fixed || pool->settings.max_processes < processes)
        pool->settings.max_processes = processes;
    unsigned most = pool->settings.max_processes;
    LIST_FOR_EACH_SAFE (link, next, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->spare)
            continue;
        worker->surplus = kept >= most;
        kept += !worker->surplus;
        if (worker->surplus && worker->state == WORKER_IDLE)
            worker_retire(worker, POOL_LEAVE_TIME);
        else if (worker->surplus && worker->state == WORKER_DOWN)
            pool_workers_remove(pool, worker);
    }
    while (kept++ < processes)
        pool_workers_add(pool, false);
    dispatch_jobs(pool);
}

void pool_retire(struct pool *pool) {
    pool->retiring = true;
    job_refuse_waiting(pool, REFUSAL_STOPPING);
    LIST_FOR_EACH_SAFE (link, next, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->state == WORKER_IDLE)
            worker_retire(worker, POOL_LEAVE_TIME);
        else if (worker->state == WORKER_DOWN)
            pool_workers_remove(pool, worker);
    }
}

struct worker *pool_find(struct pool *pool, pid_t pid) {
    LIST_FOR_EACH (link, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->pid == pid)
            return worker;
    }
    return NULL;
}

uint64_t pool_cpu(const struct pool *pool) {
    uint64_t total = pool->counts.ended_cpu;
    LIST_FOR_EACH (link, &pool->workers)
        total += worker_cpu(CONTAINER_OF(link, struct worker, link));
    return total;
}

bool pool_is_quiet(const struct pool *pool) {
    return pool->worker_count == 0;
}
