/*
 * PURGE: carries out the methods PURGE and BAN of a client that an access section has let in.
 *
 *     PURGE http://www.example.com/a        removes the stored response, all its variants
 *     BAN http://www.example.com/img/       removes all whose URLs begin so, and match the regular
 *     X-Ban-Regex: \.jpe?g$                 expression
 *
 *     if (purge_is_meant(request))
 *         return STEP_PURGE;                                ADMIT
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_PURGE_H
#define RETORT_TRANSACTION_STEPS_PURGE_H

#include "http/head.h"
#include "transaction/step.h"

struct access_settings;
struct purge_order;

/* Does the request have one of these methods, in the only spelling that counts? */
static inline bool purge_is_meant(const struct http_head *request) {
    return request->method_id == HTTP_METHOD_PURGE || request->method_id == HTTP_METHOD_BAN;
}
/* Is the section one that lets clients use the method of the request? */
bool purge_is_allowed(const struct http_head *request, const struct access_settings *section);
enum step purge_refuse(struct transaction *transaction);
/* Ends what is under way. It may be called again. */
void purge_end(struct transaction *transaction);

#endif
