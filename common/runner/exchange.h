/*
 * An exchange of a runner: one message on its way through a service (service/service.h), between the
 * frames of the worker that has it and the functions of the service.
 *
 *     struct runner_exchange *exchange = runner_exchange_new(link, slot, serial);
 *     runner_exchange_take(exchange, &frame, payload);        each frame of it but CLOSE
 *     runner_exchange_run(exchange);                          once after the frames of a batch
 *     runner_exchange_free(&exchange);                        after CLOSE
 *
 * It holds at most FRAME_WINDOW bytes of the body, which the service has not taken; what the service
 * gives goes into the ring at once, as far as the reader has given credit. While it waits for
 * something that the service names, for the reader, or for more of the body, it costs nothing.
 *
 *     exchange.c  its life and its frames        drive.c  the calls of the service
 *
 * Threads: the runner's. Errors: frames that the worker would not send are bugs, and assertions.
 */
#ifndef RETORT_RUNNER_EXCHANGE_H
#define RETORT_RUNNER_EXCHANGE_H

#include "event/loop.h"
#include "runner/facts.h"
#include "runner/runner.h"

enum runner_mode {
    RUNNER_OPENING, /* its facts come */
    RUNNER_BEGUN,   /* its preview comes */
    RUNNER_HELD,    /* the body goes to the service; nothing comes out yet */
    RUNNER_ADAPTED, /* and comes from it */
    RUNNER_ANSWERED,
    RUNNER_ECHO, /* after PASS: what comes goes back */
    RUNNER_OVER,
};

struct runner_exchange {
    unsigned magic;
#define RUNNER_EXCHANGE_MAGIC 0x72756e78u
    enum runner_mode mode;
    struct runner_link *link;
    uint32_t slot, serial;
    struct bundle opening; /* heads and facts are slices of it */
    struct arena arena;
    struct http_head request, head;
    struct service_exchange exchange;
    void *state; /* NULL: the service is not interested */
    /* The body on its way to the service */
    char *in; /* FRAME_WINDOW bytes; NULL: none yet */
    size_t in_begin, in_end;
    uint64_t taken, told_taken; /* bytes */
    bool preview_due, preview_whole, input_ended, finished, pushed, idle, stopped, needed;
    /* What is to be sent, in this order */
    bool hold_due;
    char *verdict; /* the text; NULL: there is none, or all of it is sent */
    size_t verdict_length, verdict_sent;
    bool pass_due, end_due;
    enum frame_end end;
    uint64_t credit;
    struct list_link blocked; /* in link->blocked: the ring has no room */
    /* What the service waits for */
    struct event event, also;
    struct timer timer;
    bool watched, overdue;
    struct service_wait told; /* of the last call of its `ready` */
    struct task task;
};

struct runner_exchange *runner_exchange_new(struct runner_link *link, uint32_t slot,
                                            uint32_t serial);
void runner_exchange_take(struct runner_exchange *exchange, const struct frame *frame,
                          const char *payload);
void runner_exchange_run(struct runner_exchange *exchange);
void runner_exchange_free(struct runner_exchange **exchangep);

/* Inside runner/. */
/* False: the ring has no room; the exchange runs again when there is some. */
bool runner_exchange_send(struct runner_exchange *exchange, enum frame_type type, uint64_t number,
                          const void *bytes, size_t length);
/* Sends what is due. False: not all of it. */
bool runner_exchange_send_due(struct runner_exchange *exchange);
/* Calls the service until nothing moves. */
void runner_exchange_drive(struct runner_exchange *exchange);
void runner_exchange_begin(struct runner_exchange *exchange);
void runner_exchange_wait_stop(struct runner_exchange *exchange);

#endif
