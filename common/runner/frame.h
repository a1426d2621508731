/*
 * Frames: what a worker of the proxy and a runner, which runs a service elsewhere, say to each other
 * about messages. A frame is a struct frame, `length` bytes behind it, and padding.
 *
 *     to the runner                             back
 *     OPEN     the heads and facts, in pieces   HOLD     the service needs more of the body
 *     BODY     bytes of the body                VERDICT  what it says, and the head, in pieces
 *     PREVIEW  what has come is the preview     BODY     bytes of the adapted body
 *     END      the body is complete             PASS     what comes from now on is the original
 *     IDLE     there is no more for the moment  TAKEN    bytes of the body that are done with
 *     CREDIT   there is room for so many more   NEED     all is taken; it waits for more
 *     STOP     after PASS: nothing more comes   END      why nothing more comes
 *     CLOSE    nobody wants more of it          CLOSED   the number of the exchange is free
 *
 * An exchange has a slot, a small number, and a serial, which tells it from those that had the slot
 * before. The worker chooses both, and gives a slot to another exchange only after CLOSED.
 *
 * In either direction at most FRAME_WINDOW bytes of a body are on their way or wait: the sender begins
 * with that credit, and TAKEN and CREDIT return it. So the ring never waits for one exchange, and one
 * that nobody reads costs bounded memory. After a VERDICT of SKIP the runner has no credit until it
 * gets CREDIT: most hosts have the original, and want nothing.
 *
 * The worker trusts nothing of what comes back. Units: bytes. Threads: values.
 */
#ifndef RETORT_RUNNER_FRAME_H
#define RETORT_RUNNER_FRAME_H

#include <stdint.h>

enum frame_type {
    FRAME_OPEN = 1, /* number: bytes of all pieces together (runner/facts.h) */
    FRAME_BODY,
    FRAME_PREVIEW, /* number: 1, it is the whole body */
    FRAME_END,     /* back, number: enum frame_end */
    FRAME_IDLE,
    FRAME_CREDIT, /* number: bytes */
    FRAME_STOP,
    FRAME_CLOSE,
    FRAME_HOLD,
    FRAME_VERDICT, /* number: bytes of all pieces together */
    FRAME_PASS,
    FRAME_TAKEN, /* number: bytes since the last one */
    FRAME_NEED,  /* number: bytes since the beginning */
    FRAME_CLOSED,
    FRAME_TYPES,
};

/* Why an adapted body ends, or why there is no verdict. */
enum frame_end {
    FRAME_DONE,
    FRAME_ABORTED,    /* the service can't complete it */
    FRAME_STUCK,      /* it neither goes on nor waits for anything */
    FRAME_GREEDY,     /* it took more than there was */
    FRAME_MISMADE,    /* it made a head that can't be written down */
    FRAME_FUNCTIONS,  /* it has no functions for what it wants to do */
    FRAME_TOO_LONG,   /* its head is longer than FRAME_TEXT_MAX */
    FRAME_UNREADABLE, /* the runner can not read the head of the message */
    FRAME_OVERFULL,   /* it gave more than there was room for, or an unknown flow */
    FRAME_UNKNOWN,    /* it gave an unknown verdict */
    FRAME_ENDS,
};

/* Or-ed to the number of END: the service has opted out of the transaction (service.h). */
enum { FRAME_OPTED_OUT = 0x100 };

enum {
    FRAME_PAYLOAD = 16384,       /* bytes behind a frame, at most */
    FRAME_WINDOW = 64 * 1024,    /* bytes of a body under way, in one direction */
    FRAME_TEXT_MAX = 512 * 1024, /* of OPEN or VERDICT, all pieces together */
    FRAME_SLOTS = 1024,          /* exchanges of a worker at a runner at a time */
};

struct frame {
    uint32_t type, length;
    uint32_t slot, serial;
    uint64_t number;
};

#endif
