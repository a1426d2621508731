/*
 * An injection: stores a response that nobody has fetched.
 *
 *     struct injection injection = {.response = &head, .lifetime = INJECTION_BY_HEAD};
 *     if (injection_judge(&injection) == INJECTION_GOOD &&
 *         injection_store(&injection, &store, &name, body, &object) == INJECTION_GOOD)
 *         ... object_release(&object) ...
 *     else
 *         ... injection.error says why ...
 *
 * The response is for all requests of its URL, in every mode. It takes the place of what they would
 * have got. It is kept as if it had just come from the origin: its head says how long it is fresh,
 * unless the lifetime is stated.
 *
 * Threads: those that may wait for a disk; never a worker. Errors: a result, and a sentence without a
 * full stop.
 */
#ifndef RETORT_CONTENT_INJECTION_H
#define RETORT_CONTENT_INJECTION_H

#include "cache/stored.h"
#include "http/date.h"
#include "http/head.h"

#include <sys/types.h>

enum { INJECTION_ERROR = 240, INJECTION_BY_HEAD = -1 };

enum injection_result {
    INJECTION_GOOD,
    INJECTION_BAD,     /* this is no response that could be stored */
    INJECTION_REFUSED, /* it says that it may not be stored, or it was purged or replaced at this
                        * moment */
    INJECTION_TOO_LARGE,
    INJECTION_NOT_KEPT, /* it is stored, but a restart would undo it */
};

struct injection {
    struct http_head *response; /* is cleaned of what is not stored */
    int64_t lifetime;           /* seconds; INJECTION_BY_HEAD: its head says */
    struct freshness freshness;
    char date[HTTP_DATE_LENGTH + 1];
    char error[INJECTION_ERROR];
};

/* Reads a head, with its empty line, that may be stored. Returns how many bytes it has; 0: it is
 * not that of a whole final response. */
size_t injection_read_head(struct http_head *response, struct slice message);
/* Is a Content-Length, if it is there, that of the body? */
bool injection_states_length(const struct http_head *response, uint64_t length);
/* Would the cache have room for such a body, if it had nothing else? */
bool injection_fits(const struct content_store *store, uint64_t length);
/* May it be stored? */
enum injection_result injection_judge(struct injection *injection);
/* Stores it after that. `body` is complete, and is referenced. *objectp: what is stored, referenced;
 * NULL: it is not. */
enum injection_result injection_store(struct injection *injection,
                                      const struct content_store *store,
                                      const struct cache_name *name, struct body *body,
                                      struct object **objectp);

#endif
