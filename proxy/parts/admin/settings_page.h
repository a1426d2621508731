/*
 * Pages about the settings: what is in use and where it comes from, changes at run time, and
 * reloads.
 *
 *     POST /v1/settings?save=yes     {"cache.memory": "1GB", "adapt.all.disabled": ["gray"]}
 *     {"changed": [{"name": "cache.memory", "old": "512MB", "new": "1GB"}, ...],
 *      "waits_for_restart": [], "refused": [], "saved": true}
 *
 * All changes of a request are made, or none. What has changed stands in the audit log.
 *
 * Threads: any of the admin plane.
 */
#ifndef RETORT_ADMIN_SETTINGS_PAGE_H
#define RETORT_ADMIN_SETTINGS_PAGE_H

#include "admin/page.h"

struct overrides;

void settings_page_show(struct page *page, const struct admin_calls *calls);
void settings_page_effective(struct page *page, const struct admin_calls *calls);
void settings_page_changes(struct page *page, const struct admin_calls *calls);
void settings_page_schema(struct page *page, const struct admin_calls *calls);
void settings_page_list(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request);
void settings_page_set(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request);
void settings_page_unset(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request);
/* Makes changes for another page and answers: `begin`, which is released, with the members above. A
 * refusal is answered as that of settings_page_set. `anew`: see admin_calls.change. The request may
 * have the argument save. */
void settings_page_change(struct page *page, const struct admin_calls *calls,
                          const struct page_request *request, const struct overrides *changes,
                          const char *anew, json_t *begin);
void settings_page_reload(struct page *page, const struct admin_calls *calls);

#endif
