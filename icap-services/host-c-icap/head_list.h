/*
 * Converts between c-icap's header lists and struct http_head.
 *
 *     if (!head_list_read(&head, list, true, &arena))       a copy in the arena, parsed
 *         -> c-icap let something through that is no head; leave the message alone
 *     head_list_write(list, &head, true);                   the whole list anew
 *
 * c-icap has no call that rewrites a request line, and it can't change a field in place. So
 * head_list_write always writes the whole list. Threads: works on one request.
 */
#ifndef RETORT_HOST_HEAD_LIST_H
#define RETORT_HOST_HEAD_LIST_H

#include "base/arena.h"
#include "http/head.h"

struct ci_headers_list;

bool head_list_read(struct http_head *head, struct ci_headers_list *list, bool is_request,
                    struct arena *arena);
/* False when memory is exhausted; the list is unusable then. */
bool head_list_write(struct ci_headers_list *list, const struct http_head *head, bool is_request);

#endif
