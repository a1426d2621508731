/*
 * The health of one endpoint of an ICAP service, for all workers and over reloads: whether it is
 * up, what its OPTIONS said, since when that is so, and why.
 *
 *     struct icap_health *health = icap_health_new(settings, index);
 *     struct icap_health_view known = {0};
 *     icap_health_watch(health, &slot, mailbox, &task);     the task runs after the next change
 *     if (icap_health_has_changed(health, &known))          no lock: each message may ask
 *         icap_health_read(health, &known);
 *     icap_health_failed(health, known.turn, ICAP_FAILURE_CLOSED, error, loop);
 *
 *     if (icap_health_claim(health, who, now))              asking it is for one worker at a time
 *         ... OPTIONS are asked ...
 *         icap_health_answered(health, who, &options, loop);      or: it gave no answer
 *         icap_health_unanswered(health, who, failure, error, loop);
 *
 *     UNKNOWN --OPTIONS--> UP --failures_down in a row, or out of reach--> DOWN
 *                           ^ ^                                             | |
 *                           | +--------- out of reach before: OPTIONS ------+ |
 *                           +-- a transaction succeeds -- TRIAL <-- OPTIONS --+
 *
 * An endpoint that answers, but wrongly, is asked again after down_min, then twice that, up to
 * down_max. One that is out of reach (nobody takes the connection, or its host is silent) is tried
 * every ICAP_HEALTH_AGAIN milliseconds at most: a packet or two are all that costs. All endpoints
 * of the same host and port go out of reach together, of whatever service.
 *
 * What claims an endpoint that is down keeps it until it is up, and tries it when its time has
 * come. OPTIONS that fall due while it is up are no question of its health: an answer that does not
 * come counts as one failure, and the old ones stay in force.
 *
 * Threads: any; one lock each. Under it no other lock is taken but mailboxes are posted to. Units:
 * milliseconds of the loops' clock. Ownership: references.
 */
#ifndef RETORT_ICAP_HEALTH_H
#define RETORT_ICAP_HEALTH_H

#include "adapt/service_report.h"
#include "event/waiter.h"
#include "icap/options.h"
#include "settings/settings.h"

enum { ICAP_HEALTH_AGAIN = 500 };
/* However short a TTL it states: OPTIONS are asked no more often. */
enum { ICAP_OPTIONS_TTL_MIN = 1000 };

/* What can go wrong with a transaction, by whose fault. */
enum icap_failure {
    ICAP_FAILURE_CONNECT,   /* nobody takes the connection */
    ICAP_FAILURE_HANDSHAKE, /* TLS */
    ICAP_FAILURE_LOST,      /* its host has fallen silent */
    ICAP_FAILURE_TIMEOUT,
    ICAP_FAILURE_CLOSED,
    ICAP_FAILURE_PROTOCOL,
    ICAP_FAILURE_REFUSED,    /* this message only */
    ICAP_FAILURE_PATIENCE,   /* 408 */
    ICAP_FAILURE_GONE,       /* 404, 405: not what it was configured for */
    ICAP_FAILURE_OVERLOADED, /* 503 */
    ICAP_FAILURE_SERVER,
    ICAP_FAILURE_QUEUE,
    ICAP_FAILURE_DOWN,
    ICAP_FAILURE_BODY, /* the virgin body broke off */
};

/* What a worker knows of it. Begins as {0}. */
struct icap_health_view {
    uint64_t turn; /* 0: nothing has been read */
    enum service_state state;
    bool unreachable; /* while it is down */
    bool have_options;
    uint64_t options_expire; /* TIMER_NEVER: never */
    uint64_t retry_at;       /* while it is down */
    time_t since;            /* of the state */
    struct icap_options options;
    char error[SERVICE_ERROR]; /* why it is down, or failed last */
};

struct icap_health {
    unsigned magic;
#define ICAP_HEALTH_MAGIC 0x1ca94ea1u
    _Atomic unsigned references;
    /* Fixed. */
    uint64_t identity;
    char *service, *uri, *place; /* place: "host:port" */
    struct list_link link;       /* all that there are */
    /* Read without the lock, changed under it. */
    _Atomic uint64_t turn; /* one more with each change */
    _Atomic unsigned failures;
    _Atomic uint64_t shifts;
    _Atomic(const void *) holder; /* who asks it; NULL: nobody */
    pthread_mutex_t lock;
    struct icap_health_view now; /* but for `turn` */
    unsigned failures_down;
    uint64_t down_min, down_max;
    const char *consequence; /* of its being down */
    bool lost;               /* it went down because it was out of reach */
    uint64_t back_off;
    uint64_t went_down; /* the turn with which it did so last */
    struct list_link watching;
};

struct icap_health *icap_health_new(const struct service_settings *settings, unsigned index);
struct icap_health *icap_health_reference(struct icap_health *health);
void icap_health_release(struct icap_health **healthp);
/* Is it that of this endpoint, asked in the same way? */
bool icap_health_is_of(const struct icap_health *health, const struct service_settings *settings,
                       unsigned index);
/* A reload has brought these. If it is down it is tried at once: what was wrong may have been
 * mended. */
void icap_health_configure(struct icap_health *health, const struct service_settings *settings);

static inline bool icap_health_has_changed(const struct icap_health *health,
                                           const struct icap_health_view *view) {
    return atomic_load_explicit(&health->turn, memory_order_acquire) != view->turn;
}

void icap_health_read(struct icap_health *health, struct icap_health_view *view);
/* Once; ends with waiter_cancel(slot, &health->lock). */
void icap_health_watch(struct icap_health *health, struct waiter **slot, struct mailbox *mailbox,
                       struct task *task);

/* False: somebody else asks it, or there is nothing to ask now. */
bool icap_health_claim(struct icap_health *health, const void *who, uint64_t now);
static inline bool icap_health_is_claimed(const struct icap_health *health) {
    return atomic_load_explicit(&health->holder, memory_order_relaxed) != NULL;
}
/* Does nothing where it is not the holder. `hand_over`: somebody else is to go on. */
void icap_health_unclaim(struct icap_health *health, const void *who, bool hand_over,
                         const struct loop *loop);
/* Both are by the holder, who holds it no longer unless it is down. */
void icap_health_answered(struct icap_health *health, const void *who,
                          const struct icap_options *options, const struct loop *loop);
void icap_health_unanswered(struct icap_health *health, const void *who, enum icap_failure failure,
                            const char *error, const struct loop *loop);

/* A connection to it has come about: it is not out of reach, nor are others of its host and port.
 * Whether it serves is another question. */
void icap_health_reached(struct icap_health *health, const struct loop *loop);
/* The ISTag that the last answer had, of all workers', is what operators are shown. */
void icap_health_see_istag(struct icap_health *health, const char istag[SERVICE_TEXT]);
void icap_health_show_istag(struct icap_health *health, char istag[SERVICE_TEXT]);
/* Its server has become another (adapt/service_tag.h). The old processes of one that reads its configuration
 * again stay as long as somebody has a connection to them, of whatever service, and c-icap ignores
 * further orders as long as they stay: so all connections from before are to be closed, to all
 * endpoints of that host and port. icap_health_shifts is one more then. */
void icap_health_shift(struct icap_health *health, const struct loop *loop);
static inline uint64_t icap_health_shifts(const struct icap_health *health) {
    return atomic_load_explicit(&health->shifts, memory_order_acquire);
}
void icap_health_succeeded(struct icap_health *health, const struct loop *loop);
/* Of a transaction that began when the turn was `turn`: one that is older than the last fall says
 * nothing new. */
void icap_health_failed(struct icap_health *health, uint64_t turn, enum icap_failure failure,
                        const char *error, const struct loop *loop);

#endif
