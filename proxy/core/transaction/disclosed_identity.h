/*
 * Disclosure: what the sections request_headers, and services that know who asks, tell the origin
 * about that. A response that the origin may have made for one user is for nobody else, as the
 * response to a request with Authorization is (RFC 9111 §3.5).
 *
 *     if (section->tells_class || disclosed_identity_is_in(transaction, section->tells_user, false))
 *         disclosed_identity_note(transaction, names, at_origin, section->tells_class);
 *     rules.discloses_identity = disclosed_identity_is_personal(transaction, response);
 *     rules.unselected = disclosed_identity_hides_selector(transaction, response);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_DISCLOSED_IDENTITY_H
#define RETORT_TRANSACTION_DISCLOSED_IDENTITY_H

#include "http/head.h"

struct object;
struct transaction;

/* Written by disclosed_identity.c. */
struct disclosed_identity {
    struct slice at_client; /* names of fields that the cache sees, ",X-Role,X-User" */
    struct slice by_class;  /* those of them that tell of a class */
    bool at_origin;         /* the cache does not see the fields, or they are of the response */
};

/* Is it told by a text that names the user, or one that names the access section that decided? */
bool disclosed_identity_is_in(struct transaction *transaction, bool user, bool rule);
/* Rules that tell it change the fields of these names, ",X-Role,X-User", for the cache or for the origin. `by_class`: since
 * their class depends on who asks. */
void disclosed_identity_note(struct transaction *transaction, struct slice names, bool at_origin,
                             bool by_class);
/* After services that know who asks have changed the request for the cache, the request for the origin, or the
 * response before it is stored. `before`: the head as it was; `by_who`: which services are asked depends on who asks. */
void disclosed_identity_note_request(struct transaction *transaction,
                                     const struct http_head *before, bool by_who);
void disclosed_identity_note_outgoing(struct transaction *transaction,
                                      const struct http_head *before);
void disclosed_identity_note_response(struct transaction *transaction);
/* Is there a user, or credentials that nobody has verified, which name one too? */
bool disclosed_identity_is_somebody_named(struct transaction *transaction);
/* The names of the fields that the cache sees. A request in the background has those of the request
 * that it repeats, since no section changes it again. */
struct slice disclosed_identity_at_client(const struct transaction *transaction);
/* Was the origin told who asks? Fields that the cache sees do not count if Vary names them: then
 * each user gets the response that was stored for that user. */
bool disclosed_identity_is_personal(const struct transaction *transaction,
                                    const struct http_head *response);
/* Is the stored response for others than the client, whose class decides what the origin is told, or
 * which services are asked? It was made for somebody who is not in that class. Asked only if
 * settings->any_told_class. */
bool disclosed_identity_excludes(struct transaction *transaction, const struct object *object);
/* Does Vary name a field whose value the cache can't compare, because it was written or changed
 * behind the cache? */
bool disclosed_identity_hides_selector(struct transaction *transaction,
                                       const struct http_head *response);

#endif
