/*
 * An exchange of a runner: one message on its way through a service (service/service.h), between the
 * frames of the worker that has it and the functions of the service.
 *
 *     struct runner_exchange *exchange = runner_exchange_new(link, slot, serial);
 *     runner_exchange_take(exchange, &frame, payload);        each frame of it but CLOSE
 *     runner_exchange_free(&exchange);                        after CLOSE
 *
 * It holds at most FRAME_WINDOW bytes of the body, which the service has not taken; what the service
 * gives goes into the ring at once, as far as the reader has given credit. While it waits for
 * something that the service names, for the reader, or for more of the body, it costs nothing.
 *
 * Threads: the runner's. Errors: frames that the worker would not send are bugs, and assertions.
 */
#ifndef RETORT_RUNNER_EXCHANGE_H
#define RETORT_RUNNER_EXCHANGE_H

#include "event/loop.h"
#include "runner/frame.h"
#include "runner/runner.h"
#include "service/driver.h"

struct runner_exchange {
    unsigned magic;
#define RUNNER_EXCHANGE_MAGIC 0x72756e78u
    struct runner_link *link;
    uint32_t slot, serial;
    struct bundle opening; /* heads and facts are slices of it */
    struct arena arena;
    struct http_head request, head;
    struct driver driver; /* over: what it had to say is said, or due */
    struct driver_watch watch;
    char *in;            /* FRAME_WINDOW bytes, with those of driver.in; NULL: none yet */
    uint64_t told_taken; /* bytes */
    bool preview_due, preview_whole, idle, needed;
    /* What is to be sent, in this order */
    bool hold_due;
    char *verdict; /* the text; NULL: there is none, or all of it is sent */
    size_t verdict_length, verdict_sent;
    bool pass_due, end_due;
    uint64_t credit;
    struct list_link blocked; /* in link->blocked: the ring has no room */
    struct task task;
};

struct runner_exchange *runner_exchange_new(struct runner_link *link, uint32_t slot,
                                            uint32_t serial);
void runner_exchange_take(struct runner_exchange *exchange, const struct frame *frame,
                          const char *payload);
void runner_exchange_free(struct runner_exchange **exchangep);

#endif
