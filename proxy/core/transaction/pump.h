/*
 * A pump: moves a body from its source into memory as fast as both allow.
 *
 *     pump_start(&pump, loop, &source, body, max_object, &transaction->task);
 *     ... the task runs when pump.state is no longer PUMP_RUNNING ...
 *     pump_stop(&pump);
 *
 * A body whose source announced its length must have that length; a source that fails, or ends
 * elsewhere, makes the body BODY_FAILED, never complete. A shared body that grows past `limit` is
 * turned into a passing one, if it has not been announced to others (its length was unknown).
 *
 * When a source fills all the room that it is offered, the next read offers more room. So a large
 * body takes few reads, and a body that trickles in takes little memory.
 *
 * With a stream, every byte also goes there; this is for bodies that are kept on disk only. While
 * the stream is behind, the pump does not read.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_PUMP_H
#define RETORT_TRANSACTION_PUMP_H

#include "cache/body.h"
#include "cache/second_level.h"
#include "event/source.h"

enum pump_state { PUMP_IDLE, PUMP_RUNNING, PUMP_COMPLETE, PUMP_FAILED };

struct pump {
    enum pump_state state;
    struct loop *loop;
    struct source *source; /* owned */
    struct body *body;     /* referenced */
    uint64_t limit;
    struct second_level_stream *stream; /* owned; set before pump_start: gets all bytes too */
    bool overflowed;                    /* the body is not kept whole */
    bool unread;                        /* nobody reads: it is fetched to be kept, or not at all */
    int rooms;                          /* pieces of the body that the next read may fill */
    struct task task;
    struct timer timer; /* the stream is behind */
    struct task *waker;
};

void pump_start(struct pump *pump, struct loop *loop, struct source **sourcep, struct body *body,
                uint64_t limit, struct task *waker);
/* The reader has left: the pump stops when the body grows past the limit. */
void pump_set_unread(struct pump *pump);
/* Abandons what is left; the body fails if it was not complete. */
void pump_stop(struct pump *pump);

#endif
