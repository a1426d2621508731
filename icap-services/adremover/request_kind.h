/*
 * What kind of resource a request asks for, and for which page, as far as its head tells.
 *
 *     unsigned types = request_kind_types(head, path);      enum filter_type, or-ed
 *     struct slice page = request_kind_page(head);          host; empty when not told
 *     enum filter_party party = request_kind_party(head);
 *
 * Sec-Fetch-Dest tells the type exactly, but browsers send it only to https. Without this field,
 * the ending of the path and the Accept field tell which types are possible. Threads: pure.
 */
#ifndef RETORT_ADREMOVER_REQUEST_KIND_H
#define RETORT_ADREMOVER_REQUEST_KIND_H

#include "adremover/request.h"
#include "http/head.h"

/* `path` may have a query behind it. */
unsigned request_kind_types(const struct http_head *head, struct slice path);
struct slice request_kind_page(const struct http_head *head);
unsigned request_kind_method(const struct http_head *head); /* enum filter_method */
/* Reads Sec-Fetch-Site, which browsers send even when they hold back Referer. */
enum filter_party request_kind_party(const struct http_head *head);

#endif
