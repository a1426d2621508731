/*
 * Pages that put services to work, take them out, and order them, while the proxy runs:
 *
 *     POST /v1/services/unload?name=gray               no chain has it any more; its instance ends with the
 *                                                      last request that began with it
 *     POST /v1/services/load?name=gray                 it begins anew: its section of the configuration, its
 *                                                      lists and its module are read again
 *     POST /v1/services/order?class=images&services=gray,gzip
 *
 *     {"service": "gray", "notes": [], "changed": [...], "waits_for_restart": [], "refused": [],
 *      "saved": false}
 *
 * They are changes of the options disabled and adapt.services, as POST /v1/settings makes them:
 * saved with save=yes, kept over reloads, and in the audit log. "notes" says where a load has no
 * effect yet, such as in no adapt section.
 *
 * Threads: any of the admin plane.
 */
#ifndef RETORT_ADMIN_SERVICE_CONTROL_PAGE_H
#define RETORT_ADMIN_SERVICE_CONTROL_PAGE_H

#include "admin/page.h"

void service_control_page_load(struct page *page, const struct admin_calls *calls,
                               const struct page_request *request);
void service_control_page_unload(struct page *page, const struct admin_calls *calls,
                                 const struct page_request *request);
void service_control_page_order(struct page *page, const struct admin_calls *calls,
                                const struct page_request *request);

#endif
