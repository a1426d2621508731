/*
 * A remote exchange: a message on its way through a service that runs in a thread or a process of its
 * own, as the worker sees it. To a call (inside/call.h) it looks like a service of this process: these
 * are the functions of a service, which put frames into a ring and take what has come back.
 *
 *     instance->ops = &instance->remote_ops;          inside_remote_functions(&instance->remote_ops)
 *     if (!inside_remote_check(call)) return;         first in each turn of a call
 *     if (inside_remote_must_go_on(call)) ...         it is the runner's turn, or the wait is for more body
 *
 * So preview, verdict, timeouts, bypass, stated lengths and the check of heads are those of a service
 * that runs in the worker. What is different: the preview's verdict comes later, so `preview` says
 * HOLD, and no more of the body goes out until the runner has said HOLD or ADAPT as well.
 *
 * An exchange holds at most FRAME_WINDOW bytes of the adapted body that nobody has read yet. The runner
 * is free of it as soon as it has said all, or nobody wants more of it, however long the body then takes.
 *
 * Nothing that comes from a runner is taken for true: its type at that moment, its lengths, its credit,
 * the text of its head. It may say nothing without end: each frame gives a byte, takes one, or answers
 * one of ours.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_INSIDE_REMOTE_H
#define RETORT_INSIDE_REMOTE_H

#include "base/spool.h"
#include "inside/call.h"
#include "inside/runner_links.h"
#include "runner/frame.h"
#include "service/driver.h"

/* Why a run is over. */
enum remote_failure { REMOTE_DIED, REMOTE_LIED };

struct inside_remote {
    unsigned magic;
#define INSIDE_REMOTE_MAGIC 0x1451de4eu
    struct inside_call *call;
    struct inside_link *link; /* NULL: the run is over, or nothing more is wanted of it */
    uint32_t slot, serial;
    struct list_link blocked; /* in link->blocked */
    const char *error;        /* it has failed, and the call does not know yet; NULL: it has not */
    uint64_t *error_count;
    /* What is to be sent, in this order */
    char *opening; /* NULL: all of it is sent */
    size_t opening_length, opening_sent;
    bool opened; /* some of it was sent */
    bool preview_due, preview_whole, asked;
    size_t preview_length; /* bytes of the preview that the call has not pushed yet */
    bool idle_due, end_due, stop_due;
    uint64_t owed; /* bytes of the adapted body that were read, and for which CREDIT is due */
    /* The body on its way to the service: bytes */
    uint64_t sent, taken;
    bool finished;
    bool needed; /* the service has taken `taken` bytes, all that was sent then, and wants more */
    unsigned unanswered; /* frames for which the runner may say NEED */
    uint64_t idle_at;
    /* What has come back */
    bool held, decided, applied, passed, ended;
    enum driver_failure end;
    struct bundle bundle;
    struct facts_verdict verdict;
    struct http_head *head; /* of the arena; NULL: none */
    struct spool body;
    uint64_t credit; /* bytes that the runner may send */
};

/* Fills in the functions. */
void inside_remote_functions(struct service_ops *ops);

/* Before the exchange begins: is there a runner that can take it? False: the call has failed. */
bool inside_remote_find(struct inside_call *call);
/* False: the call has failed. */
bool inside_remote_check(struct inside_call *call);
/* Has the runner said what it wants? */
bool inside_remote_has_verdict(const struct inside_call *call);
/* The call wants nothing more of its runner, and will not call it again: others may have the slot. */
void inside_remote_let_go(struct inside_call *call);

/* For the links. False: the runner may not say that now. */
bool inside_remote_take(struct inside_remote *remote, const struct frame *frame,
                        const char *payload);
void inside_remote_lost(struct inside_remote *remote, enum remote_failure failure);
void inside_remote_has_room(struct list_link *blocked);

#endif
