#include "icap/health.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* All health states, so that services on the same host and port go down together. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_link all = {&all, &all};

static uint64_t health_hash_text(const char *text, uint64_t seed) {
    return text == NULL ? seed : XXH3_64bits_withSeed(text, strlen(text), seed + 1);
}

/* A hash of all settings that may decide whether the endpoint answers. */
static uint64_t identity_of(const struct service_settings *settings, unsigned index) {
    uint64_t hash = health_hash_text(settings->name, settings->point);
    hash = health_hash_text(settings->uri_texts[index], hash);
    hash = health_hash_text(settings->trust.digest, hash);
    return health_hash_text(settings->credentials, hash);
}

static void take_rules(struct icap_health *health, const struct service_settings *settings) {
    health->failures_down = settings->failures_down;
    health->down_min = settings->down_min;
    health->down_max = settings->down_max;
    health->consequence = settings->endpoint_count > 1 ? "other endpoints serve if they are up"
                          : settings->bypass           ? "messages pass unadapted"
                                                       : "its requests are answered with 502";
}

struct icap_health *icap_health_new(const struct service_settings *settings, unsigned index) {
    const struct url *uri = &settings->endpoints[index];
    struct icap_health *health;
    ALLOC_OBJ(health, ICAP_HEALTH_MAGIC);
    atomic_init(&health->references, 1);
    atomic_init(&health->turn, 1);
    health->identity = identity_of(settings, index);
    health->service = xstrdup(settings->name);
    health->uri = xstrdup(settings->uri_texts[index]);
    int length = asprintf(&health->place, "%.*s:%u", SLICE_PRINT(uri->host), uri->port);
    ASSERT(length > 0);
    pthread_mutex_init(&health->lock, NULL);
    list_init(&health->watching);
    take_rules(health, settings);
    health->back_off = health->down_min;
    health->now.since = time(NULL);
    snprintf(health->now.error, sizeof health->now.error, "it has not been asked yet");
    pthread_mutex_lock(&all_lock);
    list_append(&all, &health->link);
    pthread_mutex_unlock(&all_lock);
    return health;
}

struct icap_health *icap_health_reference(struct icap_health *health) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    atomic_fetch_add(&health->references, 1);
    return health;
}

void icap_health_release(struct icap_health **healthp) {
    struct icap_health *health = *healthp;
    *healthp = NULL;
    if (health == NULL)
        return;
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    if (atomic_fetch_sub(&health->references, 1) != 1)
        return;
    pthread_mutex_lock(&all_lock);
    list_remove(&health->link);
    pthread_mutex_unlock(&all_lock);
    ASSERT(list_empty(&health->watching));
    pthread_mutex_destroy(&health->lock);
    free(health->service);
    free(health->uri);
    free(health->place);
    FREE_OBJ(health);
}

bool icap_health_is_of(const struct icap_health *health, const struct service_settings *settings,
                       unsigned index) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    return health->identity == identity_of(settings, index);
}

/* Call with the lock held. Informs the other workers. */
static void health_changed(struct icap_health *health, const struct loop *loop) {
    atomic_fetch_add_explicit(&health->turn, 1, memory_order_release);
    waiters_wake(&health->watching, loop);
}

void icap_health_configure(struct icap_health *health, const struct service_settings *settings) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    pthread_mutex_lock(&health->lock);
    take_rules(health, settings);
    health->back_off = health->down_min;
    if (health->now.state == SERVICE_DOWN) {
        health->now.retry_at = 0;
        health_changed(health, NULL);
    }
    pthread_mutex_unlock(&health->lock);
}

void icap_health_read(struct icap_health *health, struct icap_health_view *view) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    pthread_mutex_lock(&health->lock);
    *view = health->now;
    view->turn = atomic_load_explicit(&health->turn, memory_order_relaxed);
    pthread_mutex_unlock(&health->lock);
}

void icap_health_watch(struct icap_health *health, struct waiter **slot, struct mailbox *mailbox,
                       struct task *task) {
    if (*slot != NULL)
        return;
    pthread_mutex_lock(&health->lock);
    waiter_add(&health->watching, slot, mailbox, task);
    pthread_mutex_unlock(&health->lock);
}

/* Who asks it. */

static bool health_is_due(const struct icap_health_view *known, uint64_t now) {
    return known->state == SERVICE_DOWN || !known->have_options || known->options_expire <= now;
}

bool icap_health_claim(struct icap_health *health, const void *who, uint64_t now) {
    bool got = false;
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    if (icap_health_is_claimed(health))
        return false;
    pthread_mutex_lock(&health->lock);
    if (!icap_health_is_claimed(health) && health_is_due(&health->now, now)) {
        atomic_store_explicit(&health->holder, who, memory_order_relaxed);
        got = true;
    }
    pthread_mutex_unlock(&health->lock);
    return got;
}

/* Call with the lock held. */
static void health_let_go(struct icap_health *health, const void *who) {
    ASSERT(atomic_load_explicit(&health->holder, memory_order_relaxed) == who);
    atomic_store_explicit(&health->holder, NULL, memory_order_relaxed);
}

void icap_health_unclaim(struct icap_health *health, const void *who, bool hand_over,
                         const struct loop *loop) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    if (atomic_load_explicit(&health->holder, memory_order_relaxed) != who)
        return;
    pthread_mutex_lock(&health->lock);
    health_let_go(health, who);
    if (hand_over)
        health_changed(health, loop);
    pthread_mutex_unlock(&health->lock);
}

/* Changes of the state, under the lock. */

static void health_enter(struct icap_health *health, enum service_state state) {
    health->now.state = state;
    health->now.since = time(NULL);
    health->now.unreachable = false;
    atomic_store_explicit(&health->failures, 0, memory_order_relaxed);
}

static void note_error(struct icap_health *health, const char *error) {
    snprintf(health->now.error, sizeof health->now.error, "%s", error);
}

static bool is_out_of_reach(enum icap_failure failure) {
    return failure == ICAP_FAILURE_CONNECT || failure == ICAP_FAILURE_LOST;
}

/* The pause before the next try. */
static uint64_t next_pause(struct icap_health *health, enum icap_failure failure) {
    uint64_t pause = health->back_off;
    if (is_out_of_reach(failure))
        return pause < ICAP_HEALTH_AGAIN ? pause : ICAP_HEALTH_AGAIN;
    health->back_off = backoff_next(health->back_off, health->down_max);
    return pause;
}

static void health_go_down(struct icap_health *health, enum icap_failure failure, const char *error,
                           const struct loop *loop) {
    bool fresh = health->now.state != SERVICE_DOWN;
    uint64_t pause = next_pause(health, failure);
    note_error(health, error);
    if (fresh) {
        health_enter(health, SERVICE_DOWN);
        log_warn("icap service %s (%s) is down: %s; %s, trying again in %lu ms", health->service,
                 health->uri, health->now.error, health->consequence, (unsigned long)pause);
    }
    health->now.unreachable = health->lost = is_out_of_reach(failure);
    health->now.have_options = false;
    health->now.retry_at = loop->now + pause;
    health_changed(health, loop);
    if (fresh)
        health->went_down = atomic_load_explicit(&health->turn, memory_order_relaxed);
}

static void health_come_up(struct icap_health *health) {
    if (health->now.state != SERVICE_UNKNOWN)
        log_info("icap service %s (%s) is up again after %ld seconds", health->service, health->uri,
                 (long)(time(NULL) - health->now.since));
    health_enter(health, SERVICE_UP);
}

/* Calls the function for all services on the same host and port, with their locks held. */
static void for_place(const struct icap_health *one, const char *error, const struct loop *loop,
                      void (*change)(struct icap_health *health, const char *error,
                                     const struct loop *loop)) {
    pthread_mutex_lock(&all_lock);
    LIST_FOR_EACH (link, &all) {
        struct icap_health *health = CONTAINER_OF(link, struct icap_health, link);
        if (strcmp(health->place, one->place) != 0)
            continue;
        pthread_mutex_lock(&health->lock);
        change(health, error, loop);
        pthread_mutex_unlock(&health->lock);
    }
    pthread_mutex_unlock(&all_lock);
}

static void fall_too(struct icap_health *health, const char *error, const struct loop *loop) {
    if (health->now.state != SERVICE_DOWN)
        health_go_down(health, ICAP_FAILURE_LOST, error, loop);
}

static void be_reached(struct icap_health *health, const char *error, const struct loop *loop) {
    (void)error;
    if (health->now.state != SERVICE_DOWN || !health->now.unreachable)
        return;
    health->now.unreachable = false;
    health->now.retry_at = loop->now;
    health_changed(health, loop);
}

void icap_health_reached(struct icap_health *health, const struct loop *loop) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    for_place(health, NULL, loop, be_reached);
}

static void shift(struct icap_health *health, const char *error, const struct loop *loop) {
    (void)error;
    atomic_fetch_add_explicit(&health->shifts, 1, memory_order_release);
    health_changed(health, loop);
}

void icap_health_see_istag(struct icap_health *health, const char istag[SERVICE_TEXT]) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    pthread_mutex_lock(&health->lock);
    memcpy(health->now.options.istag, istag, SERVICE_TEXT);
    pthread_mutex_unlock(&health->lock);
}

void icap_health_show_istag(struct icap_health *health, char istag[SERVICE_TEXT]) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    pthread_mutex_lock(&health->lock);
    memcpy(istag, health->now.options.istag, SERVICE_TEXT);
    pthread_mutex_unlock(&health->lock);
}

void icap_health_shift(struct icap_health *health, const struct loop *loop) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    for_place(health, NULL, loop, shift);
}

/* What the log says. */

static uint64_t expiry(const struct icap_options *options, uint64_t now) {
    uint64_t ttl = options->ttl < 0 ? 0 : (uint64_t)options->ttl * 1000;
    if (options->ttl < 0)
        return TIMER_NEVER;
    return now + (ttl < ICAP_OPTIONS_TTL_MIN ? ICAP_OPTIONS_TTL_MIN : ttl);
}

void icap_health_answered(struct icap_health *health, const void *who,
                          const struct icap_options *options, const struct loop *loop) {
    struct icap_health_view *known = &health->now;
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    pthread_mutex_lock(&health->lock);
    known->options = *options;
    known->options.notice.since = loop->now;
    known->options_expire = expiry(options, loop->now);
    known->have_options = true;
    if (known->state == SERVICE_UNKNOWN || (known->state == SERVICE_DOWN && health->lost)) {
        health_come_up(health);
    } else if (known->state == SERVICE_DOWN) {
        health_enter(health, SERVICE_TRIAL);
        log_info("icap service %s (%s) answers again; the next message tests it", health->service,
                 health->uri);
    }
    if (known->state == SERVICE_UP)
        health->back_off = health->down_min;
    health_let_go(health, who);
    health_changed(health, loop);
    pthread_mutex_unlock(&health->lock);
}

/* The old OPTIONS stay in use. They are asked for again a little later each time. */
static void put_off(struct icap_health *health, enum icap_failure failure, const char *error,
                    const struct loop *loop) {
    health->now.options_expire = loop->now + next_pause(health, failure);
    if (health->now.options_expire < loop->now + ICAP_OPTIONS_TTL_MIN)
        health->now.options_expire = loop->now + ICAP_OPTIONS_TTL_MIN;
    note_error(health, error);
    if (atomic_fetch_add_explicit(&health->failures, 1, memory_order_relaxed) + 1 >=
        health->failures_down)
        health_go_down(health, failure, error, loop);
    else
        health_changed(health, loop);
}

void icap_health_unanswered(struct icap_health *health, const void *who, enum icap_failure failure,
                            const char *error, const struct loop *loop) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    pthread_mutex_lock(&health->lock);
    bool serves = health->now.have_options && health->now.state != SERVICE_DOWN;
    bool lost = failure == ICAP_FAILURE_LOST;
    if (serves && failure != ICAP_FAILURE_GONE && !lost)
        put_off(health, failure, error, loop);
    else
        health_go_down(health, failure, error, loop);
    if (health->now.state != SERVICE_DOWN)
        health_let_go(health, who);
    pthread_mutex_unlock(&health->lock);
    if (lost)
        for_place(health, error, loop, fall_too);
}

void icap_health_succeeded(struct icap_health *health, const struct loop *loop) {
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    atomic_store_explicit(&health->failures, 0, memory_order_relaxed);
    pthread_mutex_lock(&health->lock);
    if (health->now.state == SERVICE_TRIAL) {
        health_come_up(health);
        health_changed(health, loop);
    }
    pthread_mutex_unlock(&health->lock);
}

/* Returns true when the failure concerns the endpoint itself. */
static bool is_telling(enum icap_failure failure, enum service_state state) {
    switch (failure) {
    case ICAP_FAILURE_REFUSED:
    case ICAP_FAILURE_BODY:
    case ICAP_FAILURE_QUEUE:
    case ICAP_FAILURE_DOWN: return false;
    case ICAP_FAILURE_OVERLOADED: return state == SERVICE_TRIAL;
    default: return true;
    }
}

static bool health_is_final(enum icap_failure failure) {
    return is_out_of_reach(failure) || failure == ICAP_FAILURE_HANDSHAKE ||
           failure == ICAP_FAILURE_GONE;
}

void icap_health_failed(struct icap_health *health, uint64_t turn, enum icap_failure failure,
                        const char *error, const struct loop *loop) {
    bool fell = false;
    CHECK_OBJ(health, ICAP_HEALTH_MAGIC);
    pthread_mutex_lock(&health->lock);
    enum service_state state = health->now.state;
    bool serves = state == SERVICE_UP || state == SERVICE_TRIAL;
    if (serves && turn >= health->went_down && is_telling(failure, state)) {
        unsigned failures = atomic_fetch_add_explicit(&health->failures, 1, memory_order_relaxed);
        fell = health_is_final(failure) || state == SERVICE_TRIAL ||
               failures + 1 >= health->failures_down;
        if (fell)
            health_go_down(health, failure, error, loop);
    }
    pthread_mutex_unlock(&health->lock);
    if (fell && is_out_of_reach(failure))
        for_place(health, error, loop, fall_too);
}
