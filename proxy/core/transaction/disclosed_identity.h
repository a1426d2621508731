/*
 * Disclosure: what the sections request_headers, and services that know who asks, tell the origin
 * about that. A response that the origin may have made for one user is for nobody else, as the
 * response to a request with Authorization is (RFC 9111 §3.5).
 *
 *     disclosed_identity_note(transaction, section, &changes);   whenever a section changes the request
 *     rules.discloses_identity = disclosed_identity_is_personal(transaction, response);
 *     rules.unselected = disclosed_identity_hides_selector(transaction, response);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_DISCLOSED_IDENTITY_H
#define RETORT_TRANSACTION_DISCLOSED_IDENTITY_H

#include "http/head.h"
#include "settings/head_rules.h"

struct adapter;
struct field_changes;
struct object;
struct reqmod;
struct respmod;
struct transaction;

/* Written by disclosed_identity.c. */
struct disclosed_identity {
    struct slice at_client; /* names of fields that the cache sees, ",X-Role,X-User" */
    struct slice by_class;  /* those of them that tell of a class */
    bool at_origin;         /* the cache does not see the fields, or they are of the response */
};

/* Before the section changes the request. */
void disclosed_identity_note(struct transaction *transaction, const struct fields_settings *section,
                             const struct field_changes *changes);
/* After services have changed the request for the cache (FIELDS_AT_CLIENT) or for the origin. */
void disclosed_identity_note_services(struct transaction *transaction, const struct reqmod *reqmod,
                                      enum fields_where where);
/* After services have adapted the response before it is stored. */
void disclosed_identity_note_adapted(struct transaction *transaction,
                                     const struct respmod *respmod);
/* Is the service told who asks, and is that known? Then its result is for nobody else. */
bool disclosed_identity_tells_service(struct transaction *transaction,
                                      const struct adapter *service);
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
