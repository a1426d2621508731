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
 * waits for something names a descriptor and a deadline; the loop watches both. A call that takes
 * more than INSIDE_SLOW microseconds is counted, and named in the log.
 *
 * Differences to a service that is asked by ICAP: nothing is encoded or sent, so the preview ends
 * where the service says, and a head that alone was changed leaves the body where it is. A
 * service that crashes takes the proxy with it.
 *
 * Threads: the worker's. Memory: the request's arena.
 */
#ifndef RETORT_INSIDE_CALL_H
#define RETORT_INSIDE_CALL_H

#include "adapt/adapter_call.h"
#include "base/clocks.h"
#include "inside/service.h"

enum { INSIDE_SLOW = 5000 };

/* What happens to the body. */
enum inside_mode {
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
    struct inside_instance *instance; /* referenced */
    struct net_context *net;
    struct service_exchange exchange;
    struct http_head *request; /* a copy that the service may read */
    void *state;               /* of the service; NULL: it is not interested */
    struct service_tag_moment asked;
    bool hold;          /* the verdict waits for the first byte of the adapted body */
    bool decided;       /* ADAPT, and the verdict waits for that byte */
    bool input_ended;   /* all of the body has been read */
    bool finished;      /* and the service knows it */
    bool complete;      /* all has been given out */
    bool overdue;       /* `ready` was called after the deadline of the present wait */
    bool watched;       /* the loop watches what the service waits for */
    struct net_buffer *in;  /* bytes that the service has not taken; NULL: none */
    struct net_buffer *out; /* bytes that came before the verdict was given; NULL: none */
    struct event event;
    struct timer wait_timer; /* of the wait of the service */
    struct timer timer;      /* of the verdict or of a pause, while the service has to go on */
    struct timer total;
    struct task task; /* more of the body has come, or what the service waited for */
    /* The adapted body */
    struct source body;
    uint64_t given; /* bytes of it, where its length is stated */
    char last;      /* the last of them, which waits for the end */
    bool last_there, failed;
};

void inside_call_start(struct inside_call *call, struct inside_service *service,
                       const struct adapter_request *request, struct http_head *adapted,
                       struct task *waker);
struct source *inside_call_body(struct inside_call *call);
void inside_call_close(struct inside_call *call);

/* Inside inside/. */
void inside_call_fail(struct inside_call *call, uint64_t *count, const char *error);
/* Moves bytes of the body to the service. False: none can be moved now. */
bool inside_call_feed(struct inside_call *call);
/* Nothing moves: waits for the body, or for what the service waits for. False: the service waits for
 * nothing although it has to go on, which is a bug of it; the call has failed. */
bool inside_call_wait(struct inside_call *call);
/* Before the service is called: nothing that it waited for is watched any more. */
void inside_call_stop_waiting(struct inside_call *call);
void inside_body_init(struct inside_call *call);
/* What the service gives, as a source does. */
enum source_status inside_body_pull(struct inside_call *call, char *buffer, size_t capacity,
                                    size_t *got);

/* Around each call of a function of the service. */
static inline uint64_t inside_clock(void) {
    return clocks_microseconds(CLOCK_MONOTONIC);
}
static inline void inside_clocked(struct inside_call *call, const char *what, uint64_t began) {
    uint64_t took = inside_clock() - began;
    if (__builtin_expect(took > INSIDE_SLOW, 0))
        inside_instance_note_slow(call->instance, what, took);
}

#endif
