/*
 * The page of the event stream (events/stream.h): who may join it with which filter.
 *
 *     GET /v1/events?status=5xx&host=.example.org
 *
 * It answers with a consumer (page->consumer), whose events the reply then sends
 * (admin/event_reply.h), or with an error.
 *
 * Threads: those of the admin plane, several at a time.
 */
#ifndef RETORT_ADMIN_EVENTS_PAGE_H
#define RETORT_ADMIN_EVENTS_PAGE_H

#include "admin/page.h"

void events_page_open(struct page *page, const struct admin_calls *calls,
                      const struct page_request *request);
void events_page_print_metrics(FILE *out, const struct admin_calls *calls);

#endif
