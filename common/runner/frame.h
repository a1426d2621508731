/*
 * The texts of OPEN and VERDICT frames: what a runner has to know of a message, and what it says of
 * it. They are longer than a frame may be, so they travel in pieces.
 *
 *     char *bytes = facts_of_message(&facts, &length);        free it
 *     sent += ...                                             in pieces, each with `length` as number
 *
 *     struct bundle bundle = {0};
 *     if (!bundle_add(&bundle, frame, payload)) ...           a piece that does not fit: a lie
 *     if (bundle_is_whole(&bundle) && facts_read_verdict(&verdict, &bundle)) ...
 *     bundle_release(&bundle);
 *
 * Heads are texts as HTTP writes them (RFC 9112 §2.1), with the empty line; whoever reads them parses
 * them. Slices that were read are of the bundle. Threads: values. Errors: false, without a reason.
 */
#ifndef RETORT_RUNNER_FRAME_H
#define RETORT_RUNNER_FRAME_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

enum frame_type {
    FRAME_OPEN = 1, /* number: bytes of all pieces together (runner/frame.h) */
    FRAME_BODY,
    FRAME_PREVIEW, /* number: 1, it is the whole body */
    FRAME_END,     /* back, number: enum driver_failure (service/driver.h) */
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

struct facts_message {
    uint32_t point, has_body, of_service;
    uint32_t request_version, version; /* as in struct http_head: the text says 1.1 */
    struct slice request;              /* empty: the head is the request's */
    struct slice head;
    struct slice client_ip, client_user, arguments, transaction_id;
};

struct facts_verdict {
    uint32_t skip; /* 1: SKIP; 0: ADAPT */
    uint32_t keeps_body, answers, failed, opt_out;
    uint64_t body_length, lifetime;
    uint32_t version;
    struct slice head; /* empty after SKIP */
    struct slice because;
};

/* Allocated; the length is at most FRAME_TEXT_MAX, or it is NULL. */
char *facts_of_message(const struct facts_message *facts, size_t *length);
char *facts_of_verdict(const struct facts_verdict *facts, size_t *length);

struct bundle {
    char *bytes;
    size_t length, total;
};

bool bundle_add(struct bundle *bundle, const struct frame *frame, const char *payload);
static inline bool bundle_is_whole(const struct bundle *bundle) {
    return bundle->bytes != NULL && bundle->length == bundle->total;
}
void bundle_release(struct bundle *bundle);

bool facts_read_message(struct facts_message *facts, const struct bundle *bundle);
bool facts_read_verdict(struct facts_verdict *facts, const struct bundle *bundle);

#endif
