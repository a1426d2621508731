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
#ifndef RETORT_RUNNER_FACTS_H
#define RETORT_RUNNER_FACTS_H

#include "base/slice.h"
#include "runner/frame.h"

#include <stdbool.h>
#include <stddef.h>

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
