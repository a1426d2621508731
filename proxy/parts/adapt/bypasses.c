#include "adapt/bypasses.h"

#include "base/assert.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct bypasses *bypasses_new(const char *service) {
    struct bypasses *bypasses;
    ALLOC_OBJ(bypasses, BYPASSES_MAGIC);
    atomic_init(&bypasses->references, 1);
    bypasses->service = xstrdup(service);
    return bypasses;
}

struct bypasses *bypasses_reference(struct bypasses *bypasses) {
    CHECK_OBJ(bypasses, BYPASSES_MAGIC);
    atomic_fetch_add(&bypasses->references, 1);
    return bypasses;
}

void bypasses_release(struct bypasses **bypassesp) {
    struct bypasses *bypasses = *bypassesp;
    *bypassesp = NULL;
    if (bypasses == NULL)
        return;
    CHECK_OBJ(bypasses, BYPASSES_MAGIC);
    if (atomic_fetch_sub(&bypasses->references, 1) != 1)
        return;
    free(bypasses->service);
    FREE_OBJ(bypasses);
}

/* Counts since the last line. */
static uint64_t bypass_log_write(struct bypass_log *log) {
    struct bypasses *bypasses = log->bypasses;
    uint64_t count = atomic_load(&bypasses->count), news = count - log->logged;
    long lasted = (long)(time(NULL) - (time_t)atomic_load(&bypasses->since));
    log->logged = count;
    if (news > 0)
        log_warn("service %s: %lu more messages passed unadapted (%lu in %ld seconds), the "
                 "latest because %s",
                 bypasses->service, (unsigned long)news, (unsigned long)bypasses_count(bypasses),
                 lasted, log->reason);
    return news;
}

static void bypass_log_end(struct bypass_log *log) {
    log->active = false;
    atomic_store(&log->bypasses->since, 0);
    atomic_store(&log->bypasses->logged, false);
}

static void bypass_log_on_minute(struct timer *timer) {
    struct bypass_log *log = CONTAINER_OF(timer, struct bypass_log, timer);
    if (bypass_log_write(log) > 0) {
        loop_timer_after(log->loop, &log->timer, BYPASS_LOG_EVERY);
        return;
    }
    log_info("service %s: no message has passed unadapted for a minute", log->bypasses->service);
    bypass_log_end(log);
}

void bypass_log_init(struct bypass_log *log, struct bypasses *bypasses, struct loop *loop) {
    memset(log, 0, sizeof *log);
    log->bypasses = bypasses_reference(bypasses);
    log->loop = loop;
    timer_init(&log->timer, bypass_log_on_minute);
}

static void bypass_log_begin(struct bypass_log *log) {
    struct bypasses *bypasses = log->bypasses;
    log->active = true;
    atomic_store(&bypasses->before, atomic_load(&bypasses->count) - 1);
    log->logged = atomic_load(&bypasses->before) + 1;
    atomic_store(&bypasses->since, (int64_t)time(NULL));
    log_warn("service %s: a message passed unadapted because %s; further ones are counted "
             "here once a minute",
             bypasses->service, log->reason);
    loop_timer_after(log->loop, &log->timer, BYPASS_LOG_EVERY);
}

void bypass_log_note(struct bypass_log *log, const char *reason) {
    struct bypasses *bypasses = log->bypasses;
    CHECK_OBJ(bypasses, BYPASSES_MAGIC);
    snprintf(log->reason, sizeof log->reason, "%s", reason);
    atomic_fetch_add(&bypasses->count, 1);
    if (!atomic_load(&bypasses->logged) && !atomic_exchange(&bypasses->logged, true))
        bypass_log_begin(log);
}

void bypass_log_release(struct bypass_log *log) {
    timer_cancel(&log->loop->timers, &log->timer);
    if (log->active) {
        bypass_log_write(log);
        bypass_log_end(log);
    }
    bypasses_release(&log->bypasses);
}
