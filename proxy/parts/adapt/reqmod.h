/*
 * REQMOD: asks services that change or answer requests before the cache is searched. The functions
 * below are REQMOD_POSTCACHE's too.
 *
 *     struct reqmod *reqmod = arena_alloc(&transaction->arena, sizeof *reqmod);
 *     reqmod_start(transaction, reqmod, ADAPT_REQMOD_PRECACHE, transaction->request.head);
 *     ... the transaction's task runs until reqmod->chain.state is no longer ADAPT_RUNNING ...
 *     reqmod_take_body(transaction, reqmod);
 *     reqmod_close(transaction, reqmod);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_ADAPT_REQMOD_H
#define RETORT_ADAPT_REQMOD_H

#include "adapt/chain.h"
#include "http/url.h"
#include "transaction/step.h"

#include <stdbool.h>

/* Written by reqmod.c. */
struct reqmod {
    struct adapt_chain chain;
    struct adapt_message message;
    const struct http_head *before; /* the head that the first service is shown */
    bool by_who;                    /* which services are asked depends on who asks */
};

/* Is the request for such a service at that point? */
bool reqmod_is_wanted_at(struct transaction *transaction, enum adapt_point point);
/* Starts the services that want the request, on that head of it. */
void reqmod_start(struct transaction *transaction, struct reqmod *reqmod, enum adapt_point point,
                  struct http_head *head);
/* Makes the body that came out of the chain the request's body. */
void reqmod_take_body(struct transaction *transaction, struct reqmod *reqmod);
/* A service has changed the CONNECT; its target stays. */
void reqmod_change_connect(struct transaction *transaction, const struct http_head *head);
/* A service has answered in place of the origin. */
enum step reqmod_adopt_response(struct transaction *transaction, struct reqmod *reqmod);
enum step reqmod_fail(struct transaction *transaction, const struct reqmod *reqmod);
/* The URL that an adapted head is for. If the head has only a path, the scheme is that of the
 * request. False: the URL can't be used. */
bool reqmod_parse_target(const struct transaction *transaction, const struct http_head *head,
                         struct url *url);
enum step reqmod_fail_url(struct transaction *transaction);
/* Ends what is under way, with what reads from it. NULL: nothing is under way. It may be called
 * again. */
void reqmod_close(struct transaction *transaction, struct reqmod *reqmod);

#endif
