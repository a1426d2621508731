/*
 * A call of a service inside the proxy: one message on its way through an instance. It is an
 * adapter's call (adapt/adapter_call.h), where what comes of it and how its body is read stand; this
 * is the host of its driver (common/service/driver.h).
 *
 *     inside_call_start(call, service, &request, &adapted_head, &transaction->task);
 *     ... the task runs until call->base.verdict is no longer ADAPTER_PENDING ...
 *     inside_call_close(call);
 *
 * The service is called on the worker, and the worker does nothing else meanwhile. A service that
 * waits for something names a descriptor or two and a deadline; the loop watches them. A call of one of
 * its functions that takes more than INSIDE_SLOW is counted, and named in the log.
 *
 *     call.c    the verdict, and how long a call of the service took
 *     body.c    the body, on its way there and back
 *     remote.c  what is waited for; the service where it runs in a thread or a process of its own
 *
 * As with ICAP: the preview, the timeouts, which count only while the service has to go on, the
 * bypass as long as the original is whole, and what is refused of an adapted head.
 * Otherwise than with ICAP: nothing is encoded or sent. The preview is at most NET_BUFFER_SIZE bytes.
 * A service that crashes takes the proxy with it.
 *
 * A message takes at most two buffers of NET_BUFFER_SIZE, besides what the service itself and the
 * copy of the original (adapt/virgin_body.h) take.
 *
 * Threads: the worker's. Memory: the request's arena.
 */
#ifndef RETORT_INSIDE_CALL_H
#define RETORT_INSIDE_CALL_H

#include "adapt/adapter_call.h"
#include "base/clocks.h"
#include "http/head.h"
#include "inside/service.h"
#include "service/driver.h"

struct inside_link;

struct inside_call {
    struct adapter_call base;
    unsigned magic;
#define INSIDE_CALL_MAGIC 0x1451decau
    struct inside_service *service;
    struct inside_instance *instance; /* referenced; NULL: there is none */
    struct net_context *net;
    struct inside_link *link;        /* to the runner that has it; NULL: it is in this worker */
    struct driver driver;            /* new: it waits for a place at the service */
    const struct http_head *before;  /* as the service was given it; until the verdict */
    struct adapt_opt_out **opt_outs; /* of the transaction */
    enum http_method method;         /* of the request as it was */
    uint64_t generation;             /* of the service's tag when the service was asked */
    uint64_t fingerprint;            /* of who makes the result */
    uint64_t entered;                /* microseconds; when its function was called */
    bool hold;                       /* the verdict waits for the first byte of the adapted body */
    bool decided;                    /* ADAPT, and the verdict waits for that byte */
    bool all_there;                  /* all bytes of its stated length have been read */
    struct inside_turn turn;
    struct task turn_task;    /* there is a place for it */
    uint64_t read;            /* bytes of the body */
    struct net_buffer *in;    /* bytes that the service has not taken; NULL: none */
    struct net_buffer *first; /* bytes that came before the verdict was given; NULL: none */
    /* What the service waits for */
    struct driver_watch watch;
    uint64_t began_waiting; /* microseconds; of the wait under way */
    uint64_t moved;         /* bytes that it had taken and given at the last wait */
    uint64_t waited;        /* microseconds that it was waited for since then */
    /* Limits */
    struct timer timer; /* of the preview, the verdict or a pause, while it has to go on */
    struct timer total;
    struct task task; /* more of the body has come */
    /* The adapted body */
    struct source body;
};

void inside_call_start(struct inside_call *call, struct inside_service *service,
                       const struct adapter_request *request, struct http_head *adapted,
                       struct task *waker);
struct source *inside_call_body(struct inside_call *call);
void inside_call_close(struct inside_call *call);

/* Inside inside/. */
/* `count`: of the account. A body that broke off is no fault of the service. */
void inside_call_fail(struct inside_call *call, uint64_t *count, const char *error);
/* The service does nothing any more for the message: others may have its place. */
void inside_call_give_place(struct inside_call *call);
/* More has come, or what the service waited for. */
void inside_call_go_on(struct inside_call *call);

/* Reads up to so many bytes of the body into call->in. False: nothing has come. */
bool inside_body_fill(struct inside_call *call, size_t most);
/* Gives the buffer back if it is empty. */
static inline void inside_body_give_back(struct inside_call *call) {
    if (call->in != NULL && call->driver.in.length == 0)
        net_buffer_give(call->net, &call->in);
}
/* Nobody wants what the service has not taken. */
static inline void inside_body_drop(struct inside_call *call) {
    net_buffer_give(call->net, &call->in);
    call->driver.in = SLICE("");
}
void inside_body_init(struct inside_call *call);
/* What the service gives, as a source does. */
enum source_status inside_body_pull(struct inside_call *call, char *buffer, size_t capacity,
                                    size_t *got);
/* The driver says that the message has failed. */
void inside_call_fail_by_service(struct inside_call *call);

/* Nothing moves: waits for the body, or for what the service waits for. False: the service waits for
 * nothing although it has to go on, which is a bug of it; the call has failed. */
bool inside_wait(struct inside_call *call);
void inside_wait_on_over(struct driver_watch *watch);

extern const struct driver_hooks inside_call_hooks;
/* For tests. */
uint64_t inside_clock_fine(void);
void inside_clock_moved(struct inside_call *call, const char *what, uint64_t began);
extern _Thread_local bool inside_watchful; /* calls of this thread are measured by the fine clock */

/* Almost all calls of functions of a service begin and end at the same time of the coarse clock
 * (call.c). */
static inline uint64_t inside_clock(void) {
    return inside_watchful ? inside_clock_fine() : clocks_microseconds(CLOCK_MONOTONIC_COARSE);
}

/*
 * The check of a head that a service inside the proxy has made.
 *
 *     const char *error = inside_head_error(head, before, response, method);
 *     if (error != NULL) ...                           the message fails, for that reason
 *
 * Refused, as from an ICAP server: what can't be written down (service/clean_head.h); more than
 * HTTP_FIELDS_MAX fields or INSIDE_HEAD_MAX bytes; a response with a 1xx; framing that contradicts
 * itself (RFC 9112 §6.3); a request whose method was changed from or to HEAD or CONNECT.
 *
 * Threads: values.
 */

enum { INSIDE_HEAD_MAX = 128 * 1024 }; /* bytes of start line, names and values */

/* `before`: as for clean_head. `method`: of the request as it was. Returns NULL, or why the head can't
 * be sent. */
const char *inside_head_error(const struct http_head *head, const struct http_head *before,
                              bool response, enum http_method method);

#endif
