/*
 * Disclosure: what the sections request_headers tell the origin about who asks. A response that the
 * origin may have made for one user is for nobody else, as the response to a request with
 * Authorization is (RFC 9111 §3.5).
 *
 *     disclosure_note(transaction, section, &changes);   whenever a section changes the request
 *     rules.told_who = disclosure_is_personal(transaction, response);
 *     rules.unselected = disclosure_hides_selector(transaction, response);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_DISCLOSURE_H
#define RETORT_TRANSACTION_DISCLOSURE_H

#include "http/head.h"

struct field_changes;
struct fields_settings;
struct transaction;

/* Written by disclosure.c. */
struct disclosure {
    struct slice at_client; /* names of fields that the cache sees, ",X-Role,X-User" */
    bool at_origin;         /* the cache does not see the fields */
};

/* Before the section changes the request. */
void disclosure_note(struct transaction *transaction, const struct fields_settings *section,
                     const struct field_changes *changes);
/* The names of the fields that the cache sees. A request in the background has those of the request
 * that it repeats, since no section changes it again. */
struct slice disclosure_at_client(const struct transaction *transaction);
/* Was the origin told who asks? Fields that the cache sees do not count if Vary names them: then
 * each user gets the response that was stored for that user. */
bool disclosure_is_personal(const struct transaction *transaction,
                            const struct http_head *response);
/* Does Vary name a field whose value the cache can't compare, because it was written or changed
 * behind the cache? */
bool disclosure_hides_selector(struct transaction *transaction, const struct http_head *response);

#endif
