#include "helperd/pool.h"

#include "base/assert.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A helper that lived longer than this did not fail at its start. */
enum { SETTLED_AFTER = 5000 };

static void dispatch(struct pool *pool);
static void replace_one(struct pool *pool);

static void count_end(struct pool *pool, const struct job *job, enum helper_status status) {
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

static void finish_job(struct job *job, enum helper_status status, struct helper_packet *result,
                       const char *why) {
    CHECK_OBJ(job, JOB_MAGIC);
    struct pool *pool = job->pool;
    count_end(pool, job, status);
    timer_cancel(&pool->loop->timers, &job->timer);
    queue_remove(job);
    if (job->worker != NULL)
        job->worker->job = NULL;
    job->on_result(job, status, result, why);
    helper_packet_close_body(&job->packet);
    FREE_OBJ(job);
}

static void pool_refuse(struct job *job, enum refusal refusal) {
    job->pool->counts.refusals[refusal]++;
    finish_job(job, HELPER_REFUSED, NULL, refusal_reason(refusal));
}

static void refuse_waiting(struct pool *pool, enum refusal refusal) {
    for (struct job *job; (job = queue_any(&pool->queue)) != NULL;)
        pool_refuse(job, refusal);
}

/* ---- workers ------------------------------------------------------------------------------ */

static void start_later(struct worker *worker) {
    uint64_t delay = POOL_BACKOFF_FIRST;
    for (unsigned i = 1; i < worker->failures && delay < POOL_BACKOFF_LAST; i++)
        delay *= 2;
    loop_timer_after(worker->loop, &worker->timer,
                     delay < POOL_BACKOFF_LAST ? delay : POOL_BACKOFF_LAST);
}

static void start_worker(struct pool *pool, struct worker *worker) {
    if (worker_start(worker, pool->settings.command, &pool->settings.terms)) {
        log_info("pool %s: helper %d started at nice %d", pool->settings.name, (int)worker->pid,
                 pool->settings.terms.nice);
        if (worker->spare)
            loop_timer_after(worker->loop, &worker->timer, pool->settings.idle);
        return;
    }
    log_error("pool %s: no new helper process: %s; trying again", pool->settings.name,
              strerror(errno));
    worker->failures++;
    start_later(worker);
}

/* Those that are not about to be removed, without the spare. */
static unsigned lasting_workers(const struct pool *pool) {
    unsigned count = 0;
    LIST_FOR_EACH (link, &pool->workers) {
        const struct worker *worker = CONTAINER_OF(link, struct worker, link);
        count += !worker->surplus && !worker->spare;
    }
    return count;
}

static void on_worker_timer(struct timer *timer) {
    struct worker *worker = CONTAINER_OF(timer, struct worker, timer);
    struct pool *pool;
    CAST_OBJ(pool, worker->pool, POOL_MAGIC);
    if (worker->state == WORKER_LEAVING)
        worker_kill(worker);
    else if (worker->state == WORKER_DOWN) {
        start_worker(pool, worker);
        dispatch(pool);
    } else if (worker->state == WORKER_IDLE &&
               (worker->spare || lasting_workers(pool) > pool->settings.processes)) {
        worker->surplus = true;
        worker_retire(worker, POOL_LEAVE_TIME);
    }
}

static void on_job_deadline(struct timer *timer) {
    struct worker *worker = CONTAINER_OF(timer, struct worker, job_timer);
    struct pool *pool;
    CAST_OBJ(pool, worker->pool, POOL_MAGIC);
    if (worker->state != WORKER_BUSY)
        return;
    log_warn("pool %s: helper %d did not finish a job before its deadline; it is killed",
             pool->settings.name, (int)worker->pid);
    worker->overdue = true;
    worker_kill(worker);
    if (worker->job != NULL)
        finish_job(worker->job, HELPER_TIMEOUT, NULL, "the helper was killed at the deadline");
}

/* What an idle worker does next: leave, or take a job. */
static void pool_settle(struct pool *pool, struct worker *worker) {
    bool worn = pool->settings.max_jobs > 0 && worker->served >= pool->settings.max_jobs;
    if (worker->surplus || worn || pool->retiring)
        worker_retire(worker, POOL_LEAVE_TIME);
    if (worker->replace)
        replace_one(pool);
    dispatch(pool);
    if (worker->state == WORKER_IDLE &&
        (worker->spare || pool->settings.max_processes > pool->settings.processes))
        loop_timer_after(pool->loop, &worker->timer, pool->settings.idle);
}

/* An eighth of what is new each time; one that is far out counts for four times the usual. */
static void note_pace(struct pool *pool, const struct job *job) {
    enum { WEIGHT = 8, FAR_OUT = 4 };
    double *pace = &pool->pace[job->place.lane];
    double now = (double)(pool->loop->now - job->begun) / (double)job->place.cost;
    if (*pace > 0 && now > FAR_OUT * *pace)
        now = FAR_OUT * *pace;
    *pace += *pace > 0 ? (now - *pace) / WEIGHT : now;
}

/* It is not at work any more. */
static void leave_work(struct pool *pool, struct worker *worker) {
    if (!worker->at_work)
        return;
    pool->lanes[worker->lane].at_work--;
    worker->at_work = false;
}

static void pool_take_result(struct pool *pool, struct worker *worker,
                             struct helper_packet *result) {
    timer_cancel(&pool->loop->timers, &worker->job_timer);
    worker->served++;
    worker->failures = 0;
    leave_work(pool, worker);
    breaker_note_result(&pool->breaker);
    if (worker->job != NULL && result->message.status == HELPER_DONE)
        note_pace(pool, worker->job);
    if (worker->job != NULL)
        finish_job(worker->job, result->message.status, result, NULL);
}

static void pool_on_result(struct worker *worker, struct helper_packet *result) {
    struct pool *pool;
    CAST_OBJ(pool, worker->pool, POOL_MAGIC);
    worker->state = WORKER_IDLE;
    pool_take_result(pool, worker, result);
    pool_settle(pool, worker);
}

static void on_lost(struct worker *worker) {
    worker_kill(worker);
    if (worker->job != NULL)
        finish_job(worker->job, HELPER_FAILED, NULL, "the helper died");
}

static void log_exit(const struct pool *pool, const struct worker *worker, int status) {
    if (WIFSIGNALED(status))
        log_warn("pool %s: a helper was ended by signal %d (%s) after %llu jobs",
                 pool->settings.name, WTERMSIG(status), strsignal(WTERMSIG(status)),
                 (unsigned long long)worker->served);
    else if (WEXITSTATUS(status) != 0)
        log_warn("pool %s: a helper ended with status %d after %llu jobs; its command is %s",
                 pool->settings.name, WEXITSTATUS(status), (unsigned long long)worker->served,
                 pool->settings.command[0]);
    else
        log_info("pool %s: a helper left", pool->settings.name);
}

static void remove_worker(struct pool *pool, struct worker *worker) {
    timer_cancel(&pool->loop->timers, &worker->timer);
    timer_cancel(&pool->loop->timers, &worker->job_timer);
    list_remove(&worker->link);
    output_close(&worker->output);
    pool->worker_count--;
    FREE_OBJ(worker);
}

static void on_exit_of(struct worker *worker, int status, struct helper_packet *result) {
    struct pool *pool;
    CAST_OBJ(pool, worker->pool, POOL_MAGIC);
    if (result != NULL)
        pool_take_result(pool, worker, result);
    timer_cancel(&pool->loop->timers, &worker->job_timer);
    const char *client = worker->at_work ? worker->client : NULL;
    leave_work(pool, worker);
    log_exit(pool, worker, status);
    pool->counts.ended_cpu += worker->ended_cpu;
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool used_up = worker->overdue || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
    /* How it went is no news, or its job's fault. */
    bool was_to_go = worker->retired || worker->replace || used_up;
    if (!good && !was_to_go && !pool->retiring &&
        breaker_note_death(&pool->breaker, client, pool->loop->now) &&
        breaker_is_open_for_all(&pool->breaker))
        refuse_waiting(pool, REFUSAL_BREAKER);
    if (worker->job != NULL)
        finish_job(worker->job, HELPER_FAILED, NULL, "the helper died");
    if (worker->surplus || pool->retiring) {
        remove_worker(pool, worker);
        return;
    }
    pool->counts.restarts++;
    bool settled = worker->served > 0 || pool->loop->now - worker->started > SETTLED_AFTER ||
                   good || was_to_go;
    worker->failures = settled ? 0 : worker->failures + 1;
    if (settled)
        start_worker(pool, worker);
    else
        start_later(worker);
    replace_one(pool);
    dispatch(pool);
}

static const struct worker_callbacks callbacks = {pool_on_result, on_lost, on_exit_of};

static void add_worker(struct pool *pool, bool spare) {
    struct worker *worker;
    ALLOC_OBJ(worker, WORKER_MAGIC);
    worker->spare = spare;
    worker->pool = pool;
    worker->loop = pool->loop;
    worker->callbacks = &callbacks;
    worker->fd = -1;
    event_init(&worker->event);
    output_init(&worker->output, &pool->share);
    timer_init(&worker->timer, on_worker_timer);
    timer_init(&worker->job_timer, on_job_deadline);
    list_append(&pool->workers, &worker->link);
    pool->worker_count++;
    start_worker(pool, worker);
}

struct worker *pool_find(struct pool *pool, pid_t pid) {
    LIST_FOR_EACH (link, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->pid == pid)
            return worker;
    }
    return NULL;
}

/* ---- jobs --------------------------------------------------------------------------------- */

/* One that may do a job of that lane; the spare only where no other is idle. */
static struct worker *idle_worker(struct pool *pool, enum lane lane) {
    struct worker *spare = NULL;
    LIST_FOR_EACH (link, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->state != WORKER_IDLE || worker->surplus)
            continue;
        if (!worker->spare)
            return worker;
        spare = worker;
    }
    return lane == LANE_SMALL ? spare : NULL;
}

/* Nobody has seen it: it stays the first that waits. Once, or a fault of our own would cost one
 * helper after the other. */
static void keep_waiting(struct pool *pool, struct job *job) {
    if (job->returned) {
        finish_job(job, HELPER_FAILED, NULL, "the helper died");
        return;
    }
    job->returned = true;
    queue_put_back(&pool->queue, job);
}

static void note_begin(struct pool *pool, struct worker *worker, struct job *job) {
    struct lane_counts *lane = &pool->lanes[job->place.lane];
    uint64_t waited = pool->loop->now - job->submitted;
    job->begun = pool->loop->now;
    lane->begun++;
    lane->waited += waited;
    if (waited > lane->longest)
        lane->longest = waited;
    lane->at_work++;
    worker->lane = job->place.lane;
    memcpy(worker->client, job->place.client, sizeof worker->client);
    worker->at_work = true;
}

static uint64_t time_left(const struct pool *pool, const struct job *job) {
    return job->deadline > pool->loop->now ? job->deadline - pool->loop->now : 0;
}

static void pool_give_job(struct pool *pool, struct worker *worker, struct job *job) {
    timer_cancel(&pool->loop->timers, &worker->timer);
    job->packet.message.milliseconds = (uint32_t)time_left(pool, job);
    if (!worker_give(worker, &job->packet, pool->settings.terms.cpu)) {
        worker_kill(worker);
        keep_waiting(pool, job);
        return;
    }
    timer_cancel(&pool->loop->timers, &job->timer);
    note_begin(pool, worker, job);
    job->worker = worker;
    worker->job = job;
    timer_set(&pool->loop->timers, &worker->job_timer, job->deadline);
}

/* Milliseconds that so much work of a lane takes one helper; 0 where that is not known. */
static double expected_time(const struct pool *pool, enum lane lane, uint64_t cost) {
    return pool->pace[lane] * (double)cost;
}

/* The next job of a lane that can still be done in time; the others are refused. */
static struct job *next_job(struct pool *pool, enum lane lane) {
    struct job *job;
    while ((job = queue_take(&pool->queue, lane)) != NULL) {
        bool waited = job->submitted < pool->loop->now;
        double expected = waited ? expected_time(pool, lane, job->place.cost) : 0;
        if (breaker_is_open_for(&pool->breaker, job->place.client))
            pool_refuse(job, REFUSAL_BREAKER);
        else if (expected > (double)time_left(pool, job))
            pool_refuse(job, REFUSAL_TOO_LATE);
        else
            return job;
    }
    return NULL;
}

/* The lane whose turn it is; LANE_COUNT: none can go on. */
static enum lane next_lane(struct pool *pool) {
    bool small = pool->queue.lanes[LANE_SMALL].count > 0 && idle_worker(pool, LANE_SMALL) != NULL;
    bool large = pool->queue.lanes[LANE_LARGE].count > 0 && idle_worker(pool, LANE_LARGE) != NULL;
    if (large && (!small || pool->lanes[LANE_LARGE].at_work == 0))
        return LANE_LARGE;
    return small ? LANE_SMALL : LANE_COUNT;
}

static void hand_out(struct pool *pool) {
    for (enum lane lane; (lane = next_lane(pool)) != LANE_COUNT;) {
        struct job *job = next_job(pool, lane);
        if (job != NULL)
            pool_give_job(pool, idle_worker(pool, lane), job);
    }
}

static bool has_spare(const struct pool *pool) {
    LIST_FOR_EACH (link, &pool->workers)
        if (CONTAINER_OF(link, struct worker, link)->spare)
            return true;
    return false;
}

/* Large jobs hold the helpers that a small one would need. */
static bool wants_spare(const struct pool *pool) {
    return pool->lanes[LANE_LARGE].at_work > 0 && !has_spare(pool);
}

/* Where jobs still wait, one more helper takes the next, if there may be one more. */
static void dispatch(struct pool *pool) {
    hand_out(pool);
    if (queue_count(&pool->queue) == 0 || breaker_is_open_for_all(&pool->breaker) || pool->retiring)
        return;
    bool below = lasting_workers(pool) < pool->settings.max_processes;
    if (!below && (pool->queue.lanes[LANE_SMALL].count == 0 || !wants_spare(pool)))
        return;
    add_worker(pool, !below);
    hand_out(pool);
}

static void on_wait_timeout(struct timer *timer) {
    struct job *job = CONTAINER_OF(timer, struct job, timer);
    CHECK_OBJ(job, JOB_MAGIC);
    finish_job(job, HELPER_TIMEOUT, NULL, "the deadline passed in the queue");
}

/* Could its deadline be kept behind what waits before it? */
static bool can_be_in_time(const struct pool *pool, const struct job *job) {
    enum lane lane = job->place.lane;
    unsigned helpers = lasting_workers(pool);
    uint64_t before = queue_cost_before(&pool->queue, &job->place);
    double wait = expected_time(pool, lane, before) / (helpers == 0 ? 1 : helpers);
    return wait + expected_time(pool, lane, job->place.cost) <= (double)time_left(pool, job);
}

/* Lets a client with more work in the queue give its place. False when there is none. */
static bool pool_make_room(struct pool *pool, struct job *job) {
    bool large_full = job->place.lane == LANE_LARGE &&
                      pool->queue.lanes[LANE_LARGE].count >= pool->settings.queue_large;
    if (!large_full && queue_count(&pool->queue) < pool->settings.queue)
        return true;
    struct job *other = queue_most_greedy(&pool->queue, large_full ? LANE_LARGE : LANE_SMALL, job);
    if (other == NULL)
        return false;
    pool_refuse(other, REFUSAL_SHARE);
    return true;
}

/* Why a job can't be taken. */
static enum refusal refusal_of(struct pool *pool, struct job *job) {
    enum lane lane = job->place.lane;
    if (pool->retiring)
        return REFUSAL_STOPPING;
    if (!breaker_admits(&pool->breaker, job->place.client, pool->loop->now))
        return REFUSAL_BREAKER;
    bool at_once = idle_worker(pool, lane) != NULL ||
                   lasting_workers(pool) < pool->settings.max_processes ||
                   (lane == LANE_SMALL && wants_spare(pool));
    if (at_once)
        return REFUSAL_NONE;
    if (!can_be_in_time(pool, job))
        return REFUSAL_TOO_LATE;
    return pool_make_room(pool, job) ? REFUSAL_NONE : REFUSAL_QUEUE_FULL;
}

/* What it will cost, as its client says, or else by its size. */
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
    job->deadline = pool->loop->now + allowed;
    job->packet.message.id = ++pool->next_id;
    job->packet.message.version = HELPER_VERSION; /* the rest is not for helpers */
    pool_set_place(pool, job);
    timer_init(&job->timer, on_wait_timeout);
    enum refusal refusal = refusal_of(pool, job);
    if (refusal != REFUSAL_NONE) {
        pool_refuse(job, refusal);
        return;
    }
    queue_add(&pool->queue, job);
    timer_set(&pool->loop->timers, &job->timer, job->deadline);
    dispatch(pool);
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
    helper_packet_close_body(&job->packet);
    FREE_OBJ(job);
}

/* ---- the pool as a whole ------------------------------------------------------------------ */

/* The directory is the operator's, or what runs as root makes; that helpers run without is a
 * warning. */
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

struct pool *pool_create(struct loop *loop, const struct pool_settings *settings) {
    struct pool *pool;
    ALLOC_OBJ(pool, POOL_MAGIC);
    pool->loop = loop;
    pool_settings_copy(&pool->settings, settings);
    breaker_init(&pool->breaker, &pool->settings);
    output_share_init(&pool->share, loop, &pool->settings);
    prepare_cgroup(settings);
    list_init(&pool->link);
    list_init(&pool->workers);
    queue_init(&pool->queue);
    for (unsigned i = 0; i < settings->processes; i++)
        add_worker(pool, false);
    return pool;
}

void pool_free(struct pool **poolp) {
    struct pool *pool = *poolp;
    *poolp = NULL;
    CHECK_OBJ(pool, POOL_MAGIC);
    ASSERT(queue_count(&pool->queue) == 0);
    LIST_FOR_EACH_SAFE (link, next, &pool->workers)
        remove_worker(pool, CONTAINER_OF(link, struct worker, link));
    list_remove(&pool->link);
    output_share_release(&pool->share);
    pool_settings_release(&pool->settings);
    FREE_OBJ(pool);
}

/* One at a time, so that the pool keeps working: the next one goes when this one is back. */
static void replace_one(struct pool *pool) {
    struct worker *candidate = NULL;
    LIST_FOR_EACH (link, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->state == WORKER_LEAVING)
            return;
        if (worker->replace && worker->state == WORKER_IDLE)
            candidate = worker;
    }
    if (candidate != NULL)
        worker_retire(candidate, POOL_LEAVE_TIME);
}

/* Other helpers are to come: what became of those before them says nothing. */
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
    prepare_cgroup(settings);
    pool->settings.terms.nice = nice;
    if (!pool_renice(pool, settings->terms.nice, error, sizeof error))
        log_error("pool %s: %s", settings->name, error);
    if (other)
        begin_anew(pool);
    pool_resize(pool, settings->processes);
    replace_one(pool);
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
                 "have less: choose %d to %d",
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
    replace_one(pool);
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
            remove_worker(pool, worker);
    }
    while (kept++ < processes)
        add_worker(pool, false);
    dispatch(pool);
}

void pool_retire(struct pool *pool) {
    pool->retiring = true;
    refuse_waiting(pool, REFUSAL_STOPPING);
    LIST_FOR_EACH_SAFE (link, next, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->state == WORKER_IDLE)
            worker_retire(worker, POOL_LEAVE_TIME);
        else if (worker->state == WORKER_DOWN)
            remove_worker(pool, worker);
    }
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
