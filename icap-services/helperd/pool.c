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

static void finish_job(struct job *job, enum helper_status status, struct helper_packet *result,
                       const char *why) {
    CHECK_OBJ(job, JOB_MAGIC);
    struct pool *pool = job->pool;
    switch (status) {
    case HELPER_DONE: pool->counts.served++; break;
    case HELPER_UNCHANGED: pool->counts.unchanged++; break;
    case HELPER_REFUSED: pool->counts.refused++; break;
    case HELPER_TIMEOUT: pool->counts.timeouts++; break;
    default: pool->counts.failed++; break;
    }
    pool->counts.milliseconds += pool->loop->now - job->submitted;
    timer_cancel(&pool->loop->timers, &job->timer);
    list_remove(&job->link);
    if (job->worker != NULL)
        job->worker->job = NULL;
    job->on_result(job, status, result, why);
    helper_packet_close_body(&job->packet);
    FREE_OBJ(job);
}

/* ---- the breaker -------------------------------------------------------------------------- */

static void refuse_waiting(struct pool *pool, const char *why) {
    LIST_FOR_EACH_SAFE (link, next, &pool->queue) {
        pool->queued--;
        finish_job(CONTAINER_OF(link, struct job, link), HELPER_REFUSED, NULL, why);
    }
}

static void note_result(struct pool *pool) {
    if (pool->breaker != BREAKER_CLOSED)
        log_info("pool %s: its helpers work again", pool->settings.name);
    pool->breaker = BREAKER_CLOSED;
    pool->deaths = 0;
}

static void note_death(struct pool *pool) {
    pool->deaths++;
    if (pool->settings.breaker == 0 || pool->retiring)
        return;
    if (pool->breaker == BREAKER_CLOSED && pool->deaths < pool->settings.breaker)
        return;
    if (pool->breaker == BREAKER_CLOSED) {
        pool->counts.broken++;
        log_error("pool %s: %u helpers in a row have died: its jobs are refused, one each %llu ms "
                  "is tried; look at its command, %s",
                  pool->settings.name, pool->deaths,
                  (unsigned long long)pool->settings.breaker_time, pool->settings.command[0]);
    }
    pool->breaker = BREAKER_OPEN;
    pool->breaker_ends = pool->loop->now + pool->settings.breaker_time;
    refuse_waiting(pool, "the helpers of the pool die one after another");
}

/* May a job come in? The first one after the time is the try. A try whose job was cancelled, or
 * never reached a helper, leaves no mark, so that after the time another one follows. */
static bool breaker_admits(struct pool *pool) {
    if (pool->breaker == BREAKER_CLOSED)
        return true;
    if (pool->loop->now < pool->breaker_ends)
        return false;
    pool->breaker = BREAKER_TRYING;
    pool->breaker_ends = pool->loop->now + pool->settings.breaker_time;
    return true;
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
        return;
    }
    log_error("pool %s: no new helper process: %s; trying again", pool->settings.name,
              strerror(errno));
    worker->failures++;
    start_later(worker);
}

/* Those that are not about to be removed. */
static unsigned lasting_workers(const struct pool *pool) {
    unsigned count = 0;
    LIST_FOR_EACH (link, &pool->workers)
        count += !CONTAINER_OF(link, struct worker, link)->surplus;
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
    } else if (worker->state == WORKER_IDLE && lasting_workers(pool) > pool->settings.processes) {
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
    worker_kill(worker);
    if (worker->job != NULL)
        finish_job(worker->job, HELPER_TIMEOUT, NULL, "the helper was killed at the deadline");
}

/* What an idle worker does next: leave, or take a job. */
static void settle(struct pool *pool, struct worker *worker) {
    bool worn = pool->settings.max_jobs > 0 && worker->served >= pool->settings.max_jobs;
    if (worker->surplus || worn || pool->retiring)
        worker_retire(worker, POOL_LEAVE_TIME);
    if (worker->replace)
        replace_one(pool);
    dispatch(pool);
    if (worker->state == WORKER_IDLE && pool->settings.max_processes > pool->settings.processes)
        loop_timer_after(pool->loop, &worker->timer, pool->settings.idle);
}

static void take_result(struct pool *pool, struct worker *worker, struct helper_packet *result) {
    timer_cancel(&pool->loop->timers, &worker->job_timer);
    worker->served++;
    worker->failures = 0;
    note_result(pool);
    if (worker->job != NULL)
        finish_job(worker->job, result->message.status, result, NULL);
}

static void on_result(struct worker *worker, struct helper_packet *result) {
    struct pool *pool;
    CAST_OBJ(pool, worker->pool, POOL_MAGIC);
    worker->state = WORKER_IDLE;
    take_result(pool, worker, result);
    settle(pool, worker);
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
        take_result(pool, worker, result);
    timer_cancel(&pool->loop->timers, &worker->job_timer);
    log_exit(pool, worker, status);
    pool->counts.ended_cpu += worker->ended_cpu;
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool was_to_go = worker->retired || worker->replace; /* how it went is no news */
    if (!good && !was_to_go)
        note_death(pool);
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

static const struct worker_callbacks callbacks = {on_result, on_lost, on_exit_of};

static void add_worker(struct pool *pool) {
    struct worker *worker;
    ALLOC_OBJ(worker, WORKER_MAGIC);
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

static struct worker *idle_worker(struct pool *pool) {
    LIST_FOR_EACH (link, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->state == WORKER_IDLE && !worker->surplus)
            return worker;
    }
    return NULL;
}

/* Nobody has seen it: it stays the first that waits. Once, or a fault of our own would cost one
 * helper after the other. */
static void keep_waiting(struct pool *pool, struct job *job) {
    if (!job->returned) {
        job->returned = true;
        return;
    }
    pool->queued--;
    finish_job(job, HELPER_FAILED, NULL, "the helper died");
}

static void give(struct pool *pool, struct worker *worker, struct job *job) {
    timer_cancel(&pool->loop->timers, &worker->timer);
    uint64_t left = job->deadline > pool->loop->now ? job->deadline - pool->loop->now : 0;
    job->packet.message.milliseconds = (uint32_t)left;
    if (!worker_give(worker, &job->packet, pool->settings.terms.cpu)) {
        worker_kill(worker);
        keep_waiting(pool, job);
        return;
    }
    list_remove(&job->link);
    pool->queued--;
    timer_cancel(&pool->loop->timers, &job->timer);
    job->worker = worker;
    worker->job = job;
    timer_set(&pool->loop->timers, &worker->job_timer, job->deadline);
}

static void dispatch(struct pool *pool) {
    struct list_link *first;
    struct worker *worker;
    while ((first = list_first(&pool->queue)) != NULL && (worker = idle_worker(pool)) != NULL)
        give(pool, worker, CONTAINER_OF(first, struct job, link));
}

/* One more for a job that would wait, if there may be one more. */
static void grow(struct pool *pool) {
    if (pool->queued > 0 && pool->breaker == BREAKER_CLOSED &&
        lasting_workers(pool) < pool->settings.max_processes) {
        add_worker(pool);
        dispatch(pool);
    }
}

static void on_wait_timeout(struct timer *timer) {
    struct job *job = CONTAINER_OF(timer, struct job, timer);
    CHECK_OBJ(job, JOB_MAGIC);
    job->pool->queued--;
    finish_job(job, HELPER_TIMEOUT, NULL, "the deadline passed in the queue");
}

/* Why a job can't be taken; NULL when it can. */
static const char *refusal_of(struct pool *pool) {
    bool full = pool->queued >= pool->settings.queue && idle_worker(pool) == NULL &&
                lasting_workers(pool) >= pool->settings.max_processes;
    if (pool->retiring)
        return "retort-helperd is stopping";
    if (full)
        return "the queue of the pool is full";
    return breaker_admits(pool) ? NULL : "the helpers of the pool die one after another";
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
    list_init(&job->link);
    timer_init(&job->timer, on_wait_timeout);
    const char *refusal = refusal_of(pool);
    if (refusal != NULL) {
        finish_job(job, HELPER_REFUSED, NULL, refusal);
        return;
    }
    list_append(&pool->queue, &job->link);
    pool->queued++;
    timer_set(&pool->loop->timers, &job->timer, job->deadline);
    dispatch(pool);
    grow(pool);
}

void pool_cancel(struct job **jobp) {
    struct job *job = *jobp;
    *jobp = NULL;
    CHECK_OBJ(job, JOB_MAGIC);
    struct pool *pool = job->pool;
    pool->counts.cancelled++;
    if (job->worker != NULL)
        job->worker->job = NULL; /* it finishes for nobody; its deadline stays */
    else
        pool->queued--;
    timer_cancel(&pool->loop->timers, &job->timer);
    list_remove(&job->link);
    helper_packet_close_body(&job->packet);
    FREE_OBJ(job);
}

/* ---- the pool as a whole ------------------------------------------------------------------ */

static void copy_settings(struct pool_settings *to, const struct pool_settings *from) {
    unsigned words = 0;
    *to = *from;
    while (from->command[words] != NULL)
        words++;
    to->name = xstrdup(from->name);
    to->terms.cgroup = from->terms.cgroup == NULL ? NULL : xstrdup(from->terms.cgroup);
    to->command = xcalloc(words + 1, sizeof *to->command);
    for (unsigned i = 0; i < words; i++)
        to->command[i] = xstrdup(from->command[i]);
}

static void release_settings(struct pool_settings *settings) {
    for (char **word = settings->command; *word != NULL; word++)
        free(*word);
    free(settings->command);
    free(settings->terms.cgroup);
    free(settings->name);
}

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
    copy_settings(&pool->settings, settings);
    output_share_init(&pool->share, loop, &pool->settings);
    prepare_cgroup(settings);
    list_init(&pool->link);
    list_init(&pool->workers);
    list_init(&pool->queue);
    for (unsigned i = 0; i < settings->processes; i++)
        add_worker(pool);
    return pool;
}

void pool_free(struct pool **poolp) {
    struct pool *pool = *poolp;
    *poolp = NULL;
    CHECK_OBJ(pool, POOL_MAGIC);
    ASSERT(list_empty(&pool->queue));
    LIST_FOR_EACH_SAFE (link, next, &pool->workers)
        remove_worker(pool, CONTAINER_OF(link, struct worker, link));
    list_remove(&pool->link);
    output_share_release(&pool->share);
    release_settings(&pool->settings);
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

static bool same_command(char *const *a, char *const *b) {
    for (; *a != NULL && *b != NULL; a++, b++)
        if (strcmp(*a, *b) != 0)
            return false;
    return *a == *b;
}

/* All but the nice level, which can be changed while a helper runs. */
static bool same_terms(const struct helper_terms *a, const struct helper_terms *b) {
    bool same_cgroup = a->cgroup == NULL || b->cgroup == NULL ? a->cgroup == b->cgroup
                                                              : strcmp(a->cgroup, b->cgroup) == 0;
    return same_cgroup && a->io == b->io && a->scheduler == b->scheduler && a->memory == b->memory;
}

/* Other helpers are to come: what became of those before them says nothing. */
static void begin_anew(struct pool *pool) {
    pool->breaker = BREAKER_CLOSED;
    pool->deaths = 0;
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
    bool other = !same_command(pool->settings.command, settings->command) ||
                 !same_terms(&pool->settings.terms, &settings->terms);
    int nice = pool->settings.terms.nice;
    release_settings(&pool->settings);
    copy_settings(&pool->settings, settings);
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
        worker->surplus = kept >= most;
        kept += !worker->surplus;
        if (worker->surplus && worker->state == WORKER_IDLE)
            worker_retire(worker, POOL_LEAVE_TIME);
        else if (worker->surplus && worker->state == WORKER_DOWN)
            remove_worker(pool, worker);
    }
    while (kept++ < processes)
        add_worker(pool);
    dispatch(pool);
}

void pool_retire(struct pool *pool) {
    pool->retiring = true;
    refuse_waiting(pool, "retort-helperd is stopping");
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
