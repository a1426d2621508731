/*
 * REQMOD_POSTCACHE: asks services that change or answer requests on their way to the origin. They
 * see only what goes to the origin. What they make of a request is the origin's: the response is
 * stored as the answer to the client's request.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_REQMOD_POSTCACHE_H
#define RETORT_TRANSACTION_STEPS_REQMOD_POSTCACHE_H

#include "transaction/steps/reqmod.h"

/* Written by reqmod_postcache.c. */
struct reqmod_postcache {
    struct reqmod reqmod;
    struct http_head head; /* of the request for the origin */
    struct url url;        /* absolute, normalised */
    struct slice url_text;
    struct slice authority;
};

#endif
