/*
 * A call of a service inside the proxy: one message on its way through an instance. It is an
 * adapter's call (adapt/adapter_call.h), where what comes of it and how its body is read stand; this
 * is the host that common/service/service.h describes.
 *
 *     inside_call_start(call, service, &request, &adapted_head, &transaction->task);
 *     ... the task runs until call->base.verdict is no longer ADAPTER_PENDING ...
 *     inside_call_close(call);
 *
 * The service is called on the worker, and the worker does nothing else meanwhile. A service that
 * waits for something names a descriptor or two and a deadline; the loop watches them. A call of one of
 * its functions that takes more than INSIDE_SLOW is counted, and named in the log.
 *
 *     call.c    the verdict            feed.c    the body on its way to the service
 *     wait.c    what is waited for     body.c    the body that comes from it
 *     slow.c    how long a call of the service took
 *     remote.c  the service where it runs in a thread or a process of its own (inside/remote.h)
 *
 * As with ICAP: the preview, the timeouts, which count only while the service has to go on, the
 * bypass as long as the original is whole, and what is refused of an adapted head (inside/head.h).
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
#include "inside/service.h"

/* Pieces of a body after which others have their turn. */
enum { INSIDE_TURNS = 8 };
struct desk_link;

/* What happens to the body. */
enum inside_mode {
    INSIDE_QUEUED,   /* it waits for a place at the service */
    INSIDE_PREVIEW,  /* its beginning is gathered */
    INSIDE_HELD,     /* it goes to the service; nothing comes out yet */
    INSIDE_ADAPTED,  /* it goes to the service and comes from it */
    INSIDE_PASSED,   /* it passes without the service, which has nothing of it inside any more */
    INSIDE_ANSWERED, /* another one comes from the service */
    INSIDE_OVER,
};

struct inside_call {
    struct adapter_call base;
    unsigned magic;
#define INSIDE_CALL_MAGIC 0x1451decau
    enum inside_mode mode;
    struct inside_service *service;
    struct inside_instance *instance; /* referenced; NULL: there is none */
    struct net_context *net;
    struct desk_link *link; /* to the runner that has it; NULL: it is in this worker */
    struct service_exchange exchange;
    const struct http_head *before;  /* as the service was given it; until the verdict */
    struct adapt_opt_out **opt_outs; /* of the transaction */
    void *state;                     /* of the service; NULL: it is not interested */
    enum http_method method;         /* of the request as it was */
    uint64_t generation;             /* of the service's tag when the service was asked */
    uint64_t fingerprint;            /* of who makes the result */
    bool hold;                       /* the verdict waits for the first byte of the adapted body */
    bool decided;                    /* ADAPT, and the verdict waits for that byte */
    bool all_there;                  /* all bytes of its stated length have been read */
    bool pushed;                     /* the service has some of the body */
    bool input_ended;                /* all of the body has been read */
    bool finished;                   /* and the service knows it */
    bool complete;                   /* all has been given out */
    struct inside_turn turn;
    struct task turn_task;    /* there is a place for it */
    uint64_t read;            /* bytes of the body */
    struct net_buffer *in;    /* bytes that the service has not taken; NULL: none */
    struct net_buffer *first; /* bytes that came before the verdict was given; NULL: none */
    /* What the service waits for */
    bool watched;             /* the loop watches it */
    bool overdue;             /* `told` is over, and the service was told */
    struct service_wait told; /* of the last call of its `ready` */
    uint64_t began_waiting;   /* microseconds; of the wait under way */
    uint64_t waited; /* microseconds that it was waited for since it took or gave something */
    struct event event, also;
    struct timer wait_timer;
    /* Limits */
    struct timer timer; /* of the preview, the verdict or a pause, while it has to go on */
    struct timer total;
    struct task task; /* more of the body has come */
    /* The adapted body */
    struct source body;
    uint64_t given; /* bytes of it, where its length is stated */
    bool rests;     /* others have their turn; it goes on right afterwards */
    char last;      /* the last of them, which waits for the end */
    bool last_there;
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
bool inside_feed_read(struct inside_call *call, size_t most);
/* Gives the service what there is. False: it has taken nothing. */
bool inside_feed(struct inside_call *call);
/* The service has taken so many of the waiting bytes in another way. */
void inside_feed_drop(struct inside_call *call, size_t length);
/* Bytes that the service has not taken. */
struct slice inside_feed_waiting(const struct inside_call *call);

/* The service took or gave something: its time begins anew. */
static inline void inside_wait_moved(struct inside_call *call) {
    call->waited = 0;
}
/* Nothing moves: waits for the body, or for what the service waits for. False: the service waits for
 * nothing although it has to go on, which is a bug of it; the call has failed. */
bool inside_wait(struct inside_call *call);
/* Before each call of the service: nothing that it waited for is watched any more. */
void inside_wait_stop(struct inside_call *call);
void inside_wait_init(struct inside_call *call);

void inside_body_init(struct inside_call *call);
/* What the service gives, as a source does. */
enum source_status inside_body_pull(struct inside_call *call, char *buffer, size_t capacity,
                                    size_t *got);

/* Around each call of a function of the service: the time before it, and its name afterwards. Almost
 * all calls begin and end at the same time of the coarse clock (slow.c). */
uint64_t inside_clock_fine(void);
void inside_clock_moved(struct inside_call *call, const char *what, uint64_t began);
extern _Thread_local bool inside_watchful; /* calls of this thread are measured by the fine clock */

static inline uint64_t inside_clock(void) {
    return inside_watchful ? inside_clock_fine() : clocks_microseconds(CLOCK_MONOTONIC_COARSE);
}
/* Microseconds. One of the two clocks may be behind the other by a tick. */
static inline uint64_t inside_clock_since(uint64_t began) {
    uint64_t now = inside_clock();
    return now > began ? now - began : 0;
}
static inline void inside_clocked(struct inside_call *call, const char *what, uint64_t began) {
    if (__builtin_expect(call->exchange.opt_out, 0) && call->opt_outs != NULL)
        adapt_opt_out_note(call->opt_outs, call->service->base.module, call->exchange.arena);
    if (__builtin_expect(inside_watchful || inside_clock() != began, 0))
        inside_clock_moved(call, what, began);
}

#endif
