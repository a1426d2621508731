/*
 * A driver: one message on its way through one instance of a service (service/service.h). It calls the
 * service in the order that service.h promises, looks at what comes back, and says what is needed next.
 * Each host of services has one for each message, and only brings bytes to it and takes bytes from it.
 *
 *     driver_init(&driver, ops, NULL, &arena, &host);
 *     driver.exchange.head = ...                           what the service may know of the message
 *     driver_begin(&driver, service);
 *     if (driver.mode == DRIVER_PREVIEW)
 *         driver_preview(&driver, bytes, complete);
 *     ... driver.verdict and driver.mode say what becomes of the message ...
 *
 *     driver.in = bytes;                                   of the body, from its first byte on
 *     driver.in_ended = true;                              there will be no others
 *     switch (driver_run(&driver, out, sizeof out, &got)) {
 *     case DRIVER_GAVE:    got bytes of the adapted body are in `out`
 *     case DRIVER_ENDED:   the body is complete
 *     case DRIVER_DECIDED: after HOLD: driver.verdict and driver.mode
 *     case DRIVER_TURN:    it could go on, but others have their turn
 *     case DRIVER_RESTS:   nothing moves: driver_rest says what it waits for
 *     case DRIVER_FAILED:  driver_failure_text(driver.failure)
 *     }
 *     driver_end(&driver);
 *
 * driver.in is what the service has not taken yet; driver_run advances it, and a host that has more
 * makes it longer. driver.mode is the host's to set as well: DRIVER_OVER when nobody wants more of the
 * body, DRIVER_PASSED when it gives back itself what the service leaves alone.
 *
 * A host that has more to do around each call of the service, or that gets the bytes from a source of
 * its own, has hooks.
 *
 * Threads: the exchange's. Errors: a service that breaks the rules, or gives up, makes the message fail;
 * it is not called any more then, but for `end`. Units: bytes, milliseconds of CLOCK_MONOTONIC.
 * Ownership: the bytes and heads are the host's.
 */
#ifndef RETORT_SERVICE_DRIVER_H
#define RETORT_SERVICE_DRIVER_H

#include "event/loop.h"
#include "service/service.h"

/* What happens to the body. */
enum driver_mode {
    DRIVER_NEW,
    DRIVER_PREVIEW,  /* its beginning is gathered */
    DRIVER_HELD,     /* it goes to the service; nothing comes out yet */
    DRIVER_ADAPTED,  /* it goes to the service and comes from it */
    DRIVER_ANSWERED, /* another one comes from the service */
    DRIVER_PASSED,   /* it passes without the service, which has nothing of it any more */
    DRIVER_COMPLETE, /* all has been given out */
    DRIVER_OVER,     /* it has failed, or nobody wants more of it */
};

enum driver_status {
    DRIVER_GAVE,
    DRIVER_ENDED,
    DRIVER_DECIDED,
    DRIVER_TURN,
    DRIVER_RESTS,
    DRIVER_FAILED,
};

/* Why a message fails. Hosts that look at heads, or hand the message on, have reasons of their own.
 * Processes tell each other these numbers. */
enum driver_failure {
    DRIVER_NO_FAILURE,
    DRIVER_ABORTED,    /* the service can't complete the body */
    DRIVER_STUCK,      /* it neither goes on nor waits for anything */
    DRIVER_GREEDY,     /* it took more than there was */
    DRIVER_MISMADE,    /* it made a head that can't be written down */
    DRIVER_FUNCTIONS,  /* it has no functions for what it wants to do */
    DRIVER_TOO_LONG,   /* its head is too long */
    DRIVER_UNREADABLE, /* the host can't read the head of the message */
    DRIVER_OVERFULL,   /* it gave more than there was room for, or an unknown flow */
    DRIVER_UNKNOWN,    /* it gave an unknown verdict */
    DRIVER_RESPONSE,   /* it answered a response */
    DRIVER_PASSES,     /* it passed on the body of a request as its answer */
    DRIVER_BROKE_OFF,  /* the body that it was to adapt broke off */
    DRIVER_FAILURES,
};

/* The calls of the service's functions. */
enum driver_call {
    DRIVER_BEGIN,
    DRIVER_ASK_PREVIEW,
    DRIVER_PUSH,
    DRIVER_FINISH,
    DRIVER_ASK_VERDICT,
    DRIVER_PULL,
    DRIVER_IDLE,
    DRIVER_READY,
    DRIVER_END,
};
extern const char *const driver_call_names[]; /* "begin", ... */

struct driver;

struct driver_hooks {
    void (*before)(struct driver *driver, enum driver_call call);
    void (*after)(struct driver *driver, enum driver_call call);
    /* Adds to driver.in what there is of the body, or sets driver.in_ended. */
    void (*fill)(struct driver *driver);
};

struct driver {
    unsigned magic;
#define DRIVER_MAGIC 0x64726976u
    enum driver_mode mode;
    enum service_verdict verdict; /* the last one */
    enum driver_failure failure;
    const struct service_ops *ops;
    const struct driver_hooks *hooks;
    struct service_exchange exchange;
    void *state;              /* of the service; NULL: it is not interested, or `end` was called */
    struct slice in;          /* bytes that have not been taken */
    bool in_ended;            /* all of the body is in `in`, or was taken */
    bool finished;            /* and the service knows it */
    bool pushed;              /* the service has had some of the body */
    bool full;                /* the last `pull` gave as much as there was room for */
    bool overdue;             /* `told` is over, and the service was told */
    uint64_t taken;           /* bytes of `in` that were taken, by the service or to be passed on */
    uint64_t given;           /* bytes that the service has given */
    uint64_t odd;             /* after a failure: what the service returned */
    struct service_wait told; /* of the last call of its `ready` */
};

/* The driver is zero before. Its exchange has an arena, a host and no length then. hooks NULL: none. */
void driver_init(struct driver *driver, const struct service_ops *ops,
                 const struct driver_hooks *hooks, struct arena *arena,
                 const struct service_host *host);
void driver_begin(struct driver *driver, void *service);
void driver_preview(struct driver *driver, struct slice body, bool complete);
/* Calls the service until there are bytes in `out` or nothing moves. `capacity` 0: there is no room
 * at the moment. */
enum driver_status driver_run(struct driver *driver, char *out, size_t capacity, size_t *got);
/* There is no more of the body for the moment: the service may give what it keeps back, by driver_pull. */
void driver_idle(struct driver *driver);
/* What the service waits for has come, or its deadline has passed. */
void driver_ready(struct driver *driver);
/* Always, and last. */
void driver_end(struct driver *driver);

/* Nothing moves: what does the service wait for? */
enum driver_rest {
    DRIVER_WAITS, /* for what exchange.wait and exchange.also name: driver_wait, service/driver.h */
    DRIVER_WANTS, /* for more of the body */
    DRIVER_HANGS, /* for nothing: it has failed */
};
enum driver_rest driver_rest(struct driver *driver);
bool driver_may_wait(const struct driver *driver);
/* Is what it waits for there, or will it be within so many milliseconds (less than 0: until its
 * deadline)? The thread waits meanwhile. */
bool driver_wait(const struct driver *driver, int64_t most);

/* The message fails. */
void driver_fail(struct driver *driver, enum driver_failure failure);
/* A sentence without a full stop. */
const char *driver_failure_text(enum driver_failure failure);

/* The steps of driver_run, for hosts that take them in another order. */

/* False: the service has taken nothing. */
bool driver_push(struct driver *driver);
/* Tells the service of the end, once all was taken. False: it is not time for that. */
bool driver_finish(struct driver *driver);
/* False: it still holds the message back. */
bool driver_ask_verdict(struct driver *driver);
enum driver_status driver_pull(struct driver *driver, char *out, size_t capacity, size_t *got);
/* So many bytes of `in` are used up. */
static inline void driver_drop(struct driver *driver, size_t length) {
    driver->in.base += length;
    driver->in.length -= length;
    driver->taken += length;
}

/*
 * A watch of what a driver waits for (service/driver.h), in a host that has a loop.
 *
 *     driver_watch_init(&watch, &driver, &loop, on_over);
 *     if (driver_rest(&driver) == DRIVER_WAITS)
 *         driver_watch_start(&watch);
 *     static void on_over(struct driver_watch *watch) ... driver_ready(&driver); driver_run(...) ...
 *     driver_watch_stop(&watch);                  before each other call of the service
 *     driver_watch_release(&watch);
 *
 * Copies of the descriptors are watched: several exchanges may wait for one, and a service that names
 * one which is not its own, or which it has closed, does not touch what others watch. One that no loop
 * can watch is asked about at the deadline.
 *
 * Threads: the loop's.
 */

struct driver_watch {
    struct driver *driver;
    struct loop *loop;
    void (*on_over)(struct driver_watch *watch); /* it is stopped then */
    struct event event, also;
    struct timer timer; /* without a function: it has not watched yet */
    bool watches;
};

/* The watch is zero before. */
static inline void driver_watch_init(struct driver_watch *watch, struct driver *driver,
                                     struct loop *loop,
                                     void (*on_over)(struct driver_watch *watch)) {
    watch->driver = driver;
    watch->loop = loop;
    watch->on_over = on_over;
}
void driver_watch_start(struct driver_watch *watch);
/* Inside. */
void driver_watch_end(struct driver_watch *watch);
static inline void driver_watch_stop(struct driver_watch *watch) {
    if (watch->watches)
        driver_watch_end(watch);
}
static inline void driver_watch_release(struct driver_watch *watch) {
    driver_watch_stop(watch);
    if (watch->timer.on_timeout != NULL)
        timer_cancel(&watch->loop->timers, &watch->timer);
}

#endif
