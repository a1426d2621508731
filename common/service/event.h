/*
 * What a service is told of outside of its exchanges (service/service.h): a request that is over, and
 * a client's connection that has ended. Words take the place of numbers: they are those of the access
 * log of the proxy.
 *
 *     static void tally_logged(void *service, const struct service_log_line *line) {
 *         if (line->status == 404 && slice_equal(line->result, SLICE("MISS")))
 *             ... counts with atomics, since many threads call it ...
 *     }
 *
 *     service_status_text(404)                                 "Not Found"
 *
 * Texts are escaped as in the access log: they have only visible ASCII; blanks, quotes, backslashes,
 * control characters and all other bytes are shown as %XX, and a long text is cut. In `error` blanks
 * stay. So a service may write texts into lines and messages of its own as they are. A text that is
 * not known is empty.
 *
 * Units: bytes, microseconds. Threads: values. Ownership: the slices live until the call returns.
 */
#ifndef RETORT_SERVICE_EVENT_H
#define RETORT_SERVICE_EVENT_H

#include "base/slice.h"

#include <stdint.h>

/* A request that is over. */
struct service_log_line {
    struct slice transaction_id;         /* as in struct service_exchange */
    struct slice client_ip, client_user; /* empty where the service is not to know them */
    struct slice method, url;
    unsigned status;         /* that the client got; 0: it left before there was one */
    uint64_t request_bytes;  /* of the body that came from the client */
    uint64_t response_bytes; /* that the client was sent, heads included */
    uint64_t microseconds;
    struct slice result; /* how the cache took part: "HIT", "MISS", "TUNNEL", ... */
    struct slice
        hierarchy;       /* where the response came from: "NONE" for the proxy itself, "DIRECT" */
    struct slice server; /* that it came from; empty: the proxy itself */
    struct slice error;  /* what went wrong, such as a timeout, in a sentence; empty: nothing */
    struct slice content_type; /* without parameters: "text/html" */
    bool aborted;              /* the client did not get all of the response */
};

/* A connection of a client that has ended. */
struct service_connection {
    struct slice client_ip; /* empty where the service is not to know it */
    uint64_t requests;
    uint64_t bytes_in, bytes_out; /* as the socket carried them */
    uint64_t microseconds;        /* that it was open */
    struct slice reason;          /* who ended it: "client", "proxy", "timeout", "error", ... */
};

/* The standard reason of a status (RFC 9110 §15); "Unknown" for one without. */
const char *service_status_text(unsigned status);

#endif
