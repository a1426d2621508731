/*
 * What a response's head says of its bytes (RFC 9110 §8), put right where they become others.
 *
 *     struct representation before;
 *     representation_note(&before, head);          before the services
 *     representation_decoded(head, arena);         the content codings are taken off
 *     representation_changed(head, &before, arena);       a service has changed the body
 *     representation_untold(head, decoded, arena);        or who knows: a HEAD has no body
 *
 * A validator of other bytes than these must not be strong: the origin's ETag becomes weak (RFC
 * 9110 §8.8.1), which still lets the origin confirm it. Digests of the old bytes and Accept-Ranges
 * go, and so does Content-Length with a coding. What a service has written itself is left to it: a
 * field that is another than before stays as it is. Services that code a body choose by what the
 * client accepts, so Vary says that; where a coding was taken off, nothing is chosen by it any
 * more. The response to a HEAD may leave out what is known only once there is a body (RFC 9110
 * §9.3.2), and says nothing that a service which changes it would make untrue.
 *
 * No Warning is added, nor is the status made 203: RFC 9111 §5.5 has done away with the one, RFC
 * 9110 §7.7 leaves the other free, and clients and caches know what to do with a 200.
 *
 * Called by the chain of services (adapt/chain.h) around each service, and for the response to a HEAD.
 *
 * Threads: pure functions on heads. Memory: slices of the heads and of the arena. Errors: none.
 */
#ifndef RETORT_ADAPT_REPRESENTATION_H
#define RETORT_ADAPT_REPRESENTATION_H

#include "base/arena.h"
#include "http/head.h"

enum { REPRESENTATION_DIGESTS = 4 };

struct representation {
    struct slice etag;
    struct slice digests[REPRESENTATION_DIGESTS];
    bool coded; /* it has a Content-Encoding */
};

/* Keeps what the head says now. */
void representation_note(struct representation *before, const struct http_head *head);
/* The content codings are taken off. */
void representation_decoded(struct http_head *head, struct arena *arena);
/* A service has changed the body of what `before` describes. */
void representation_changed(struct http_head *head, const struct representation *before,
                            struct arena *arena);
/* The response to a HEAD, which a service would change. `decoded`: its content codings would be taken off. */
void representation_untold(struct http_head *head, bool decoded, struct arena *arena);

#endif
