#include "icap/unadapted.h"

#include "base/assert.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct icap_unadapted *icap_unadapted_new(const char *service) {
    struct icap_unadapted *unadapted;
    ALLOC_OBJ(unadapted, ICAP_UNADAPTED_MAGIC);
    atomic_init(&unadapted->references, 1);
    unadapted->service = xstrdup(service);
    return unadapted;
}

struct icap_unadapted *icap_unadapted_reference(struct icap_unadapted *unadapted) {
    CHECK_OBJ(unadapted, ICAP_UNADAPTED_MAGIC);
    atomic_fetch_add(&unadapted->references, 1);
    return unadapted;
}

void icap_unadapted_release(struct icap_unadapted **unadaptedp) {
    struct icap_unadapted *unadapted = *unadaptedp;
    *unadaptedp = NULL;
    if (unadapted == NULL)
        return;
    CHECK_OBJ(unadapted, ICAP_UNADAPTED_MAGIC);
    if (atomic_fetch_sub(&unadapted->references, 1) != 1)
        return;
    free(unadapted->service);
    FREE_OBJ(unadapted);
}

/* What has come since the last line. */
static uint64_t unadapted_tell(struct icap_teller *teller) {
    struct icap_unadapted *unadapted = teller->unadapted;
    uint64_t count = atomic_load(&unadapted->count), news = count - teller->told;
    long lasted = (long)(time(NULL) - (time_t)atomic_load(&unadapted->since));
    teller->told = count;
    if (news > 0)
        log_warn("icap service %s: %lu more messages passed unadapted, %lu in %ld seconds; the "
                 "latest because %s",
                 unadapted->service, (unsigned long)news,
                 (unsigned long)icap_unadapted_count(unadapted), lasted, teller->reason);
    return news;
}

static void unadapted_end(struct icap_teller *teller) {
    teller->telling = false;
    atomic_store(&teller->unadapted->since, 0);
    atomic_store(&teller->unadapted->told_of, false);
}

static void on_minute(struct timer *timer) {
    struct icap_teller *teller = CONTAINER_OF(timer, struct icap_teller, timer);
    if (unadapted_tell(teller) > 0) {
        loop_timer_after(teller->loop, &teller->timer, ICAP_UNADAPTED_TELL);
        return;
    }
    log_info("icap service %s: no message has passed unadapted for a minute",
             teller->unadapted->service);
    unadapted_end(teller);
}

void icap_teller_init(struct icap_teller *teller, struct icap_unadapted *unadapted,
                      struct loop *loop) {
    memset(teller, 0, sizeof *teller);
    teller->unadapted = icap_unadapted_reference(unadapted);
    teller->loop = loop;
    timer_init(&teller->timer, on_minute);
}

static void unadapted_begin(struct icap_teller *teller) {
    struct icap_unadapted *unadapted = teller->unadapted;
    teller->telling = true;
    atomic_store(&unadapted->before, atomic_load(&unadapted->count) - 1);
    teller->told = atomic_load(&unadapted->before) + 1;
    atomic_store(&unadapted->since, (int64_t)time(NULL));
    log_warn("icap service %s: a message passed unadapted because %s; each minute this log says "
             "how many more",
             unadapted->service, teller->reason);
    loop_timer_after(teller->loop, &teller->timer, ICAP_UNADAPTED_TELL);
}

void icap_teller_note(struct icap_teller *teller, const char *reason) {
    struct icap_unadapted *unadapted = teller->unadapted;
    CHECK_OBJ(unadapted, ICAP_UNADAPTED_MAGIC);
    snprintf(teller->reason, sizeof teller->reason, "%s", reason);
    atomic_fetch_add(&unadapted->count, 1);
    if (!atomic_load(&unadapted->told_of) && !atomic_exchange(&unadapted->told_of, true))
        unadapted_begin(teller);
}

void icap_teller_release(struct icap_teller *teller) {
    timer_cancel(&teller->loop->timers, &teller->timer);
    if (teller->telling) {
        unadapted_tell(teller);
        unadapted_end(teller);
    }
    icap_unadapted_release(&teller->unadapted);
}
