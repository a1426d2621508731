/*
 * Heads of adapted messages, for every service that changes a body: may the service change the
 * body, and which fields of the head have to change with it?
 *
 *     if (!adapted_head_allowed(exchange))              GET, 200, body, no no-transform, whole
 *         return NULL;
 *     if (!media_type_listed(type, &settings->types)) return NULL;
 *     ...
 *     adapted_head_body_changed(exchange);              ETag weak, digests and ranges gone
 *     adapted_head_add_vary(exchange, SLICE("Accept-Encoding"));
 *
 * Threads: works on one exchange.
 */
#ifndef RETORT_SERVICE_ADAPTED_HEAD_H
#define RETORT_SERVICE_ADAPTED_HEAD_H

#include "service/service.h"

/* May the body be changed? True for a whole 200 response with a body to a GET, with one content
 * type, if neither response nor request has Cache-Control: no-transform (RFC 9111 §5.2.2.6,
 * §5.2.1.6). */
bool adapted_head_allowed(const struct service_exchange *exchange);

/* Has the body no content coding other than identity (RFC 9110 §8.4)? */
bool adapted_head_is_identity(const struct http_head *head);

/* Call it when the body differs from the origin's: a strong ETag becomes weak (RFC 9110 §8.8.1).
 * Content-MD5, Digest, Content-Digest, Repr-Digest and Accept-Ranges are removed. */
void adapted_head_body_changed(struct service_exchange *exchange);

/* Adds a name to Vary unless Vary contains it (RFC 9110 §12.5.5). */
void adapted_head_add_vary(struct service_exchange *exchange, struct slice name);

/* Call it when the response is for one client alone: Cache-Control becomes private, without public
 * and s-maxage, and keeps its other directives (RFC 9111 §5.2.2.7). */
void adapted_head_make_private(struct service_exchange *exchange);

/* The length the head announces; SERVICE_LENGTH_UNKNOWN when it does not. */
uint64_t adapted_head_length(const struct http_head *head);

/* "text/html" of "Text/HTML; charset=utf-8", as a slice into the value. */
struct slice media_type_of(const struct http_head *head);
/* Is the type in the list? Items are "text/html"; "text/" with an asterisk, for all types of text;
 * "+json", for a suffix (RFC 6839). */
bool media_type_listed(struct slice type, const struct service_list *list);

#endif
