/*
 * What every service that changes a body must know about heads: may it, and what else in the head
 * stops being true.
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

/* A whole 200 response with a body to a GET, neither partial nor under Cache-Control: no-transform
 * (RFC 9111 §5.2.2.6, and §5.2.1.6 for the request's), with one content type. */
bool adapted_head_allowed(const struct service_exchange *exchange);

/* No content coding but identity (RFC 9110 §8.4). */
bool adapted_head_is_identity(const struct http_head *head);

/* The body is no longer the origin's: a strong ETag becomes weak (RFC 9110 §8.8.1), Content-MD5,
 * Digest, Content-Digest, Repr-Digest and Accept-Ranges go. */
void adapted_head_body_changed(struct service_exchange *exchange);

/* Adds a name to Vary unless it is there (RFC 9110 §12.5.5). */
void adapted_head_add_vary(struct service_exchange *exchange, struct slice name);

/* The response is for one client alone: Cache-Control becomes private, without public and s-maxage,
 * and keeps its other directives (RFC 9111 §5.2.2.7). */
void adapted_head_make_private(struct service_exchange *exchange);

/* The length the head announces; SERVICE_LENGTH_UNKNOWN when it does not. */
uint64_t adapted_head_length(const struct http_head *head);

/* "text/html" of "Text/HTML; charset=utf-8", as a slice into the value. */
struct slice media_type_of(const struct http_head *head);
/* Is the type in the list? Items: "text/html", "text/" and an asterisk for all of text, "+json" for
 * a suffix (RFC 6839). */
bool media_type_listed(struct slice type, const struct service_list *list);

#endif
