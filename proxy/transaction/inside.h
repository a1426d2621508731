/*
 * Requests inside intercepted TLS connections (client/intercepted.h): which of them are served, and
 * what they are answered when the connection is only there to show a page.
 *
 *     if (inside_has_page(transaction))
 *         return inside_answer(transaction);
 *     ...
 *     if (inside_facts(transaction) != NULL && !inside_is_for(transaction, &transaction->request.url))
 *         return fail_with(transaction, 421, ...);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_INSIDE_H
#define RETORT_TRANSACTION_INSIDE_H

#include "client/intercepted.h"
#include "http/url.h"
#include "intercept/server_identity.h"
#include "transaction/step.h"

struct settings;
struct transaction;

/* What is known of the connection around the request; NULL: it is not intercepted. */
const struct intercepted_facts *inside_facts(const struct transaction *transaction);
/* Is every request on this connection answered with the same page? */
bool inside_has_page(const struct transaction *transaction);
enum step inside_answer(struct transaction *transaction);
/* Where the identity of the origin behind a connection is remembered (intercept/server_identity.h). */
struct server_identity_place {
    struct server_identity_key key;
    struct address destination; /* what the key points to */
};
/* False: the identity is not remembered, because the client connects to one host and asks for
 * another. */
bool inside_identity(const struct intercepted_facts *facts, const struct settings *settings,
                     struct server_identity_place *place);
/* The origin has failed to show a good certificate to a request inside: the next connection has it
 * verified anew. */
void inside_forget_identity(struct transaction *transaction);
/* Is the request inside an intercepted connection, and the URL for the server of that
 * connection? */
bool inside_is_for(const struct transaction *transaction, const struct url *url);

#endif
