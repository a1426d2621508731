/*
 * The pages about inspected transactions (record/inspections.h):
 *
 *     POST /v1/inspect?transactions=5&host=www.example.com       the next five of that host
 *     POST /v1/inspect/stop
 *     GET  /v1/inspect                            how it stands, and the transactions that are kept
 *     GET  /v1/inspect/transaction?id=ID          steps, heads, services, exchanges
 *     GET  /v1/inspect/body?id=ID&exchange=0&part=virgin     the body, as it is
 *     POST /v1/inspect/clear
 *
 * Secrets are masked unless the inspection was told otherwise, by an admin; only admins see such
 * transactions. A body is never of a type that a browser shows.
 *
 * Threads: those of the admin plane.
 */
#ifndef RETORT_ADMIN_INSPECT_PAGE_H
#define RETORT_ADMIN_INSPECT_PAGE_H

#include "admin/page.h"

void inspect_page_begin(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request);
void inspect_page_stop(struct page *page, const struct admin_calls *calls);
void inspect_page_clear(struct page *page, const struct admin_calls *calls);
void inspect_page_list(struct page *page, const struct admin_calls *calls);
void inspect_page_transaction(struct page *page, const struct admin_calls *calls,
                              const struct page_request *request);
void inspect_page_body(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request);
void inspect_page_print_metrics(FILE *out, const struct admin_calls *calls);

#endif
