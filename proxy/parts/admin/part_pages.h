/*
 * What a part adds to the admin plane. It stands in a file of its own, proxy/parts/NAME/pages.c, which includes this room and
 * is built only with it: so a part does not need the admin plane in order to have pages.
 *
 *     const struct part_pages spans_pages = {.print_metrics = spans_print_metrics};
 *
 *     if PART_ADMIN                                                               parts/spans/local.mk
 *     proxy_libproxy_a_SOURCES += proxy/parts/spans/pages.c
 *     endif
 *
 * Threads: those of the admin plane; `state` is what the part keeps for the process (part.h).
 */
#ifndef RETORT_ADMIN_PART_PAGES_H
#define RETORT_ADMIN_PART_PAGES_H

#include "part.h"

struct admin_calls;
struct admin_report;
struct page;
struct page_request;
struct trust_rows;
struct worker_report;

struct part_pages {
    /* Makes a page whose row in the table of calls has the part's number. */
    void (*answer)(struct page *page, const struct admin_calls *calls,
                   const struct page_request *request);
    /* Services in the report on the whole proxy (admin/admin.h): makes the list, and adds what a worker has that uses the same
     * settings. What the metrics and /status show of it. */
    void (*begin_report)(struct admin_report *report);
    void (*add_report)(struct admin_report *report, const struct worker_report *worker);
    void (*print_report)(FILE *out, const struct admin_report *report);
    struct json_t *(*services_to_json)(const struct admin_report *report);
    void (*print_metrics)(FILE *out, void *state);
    /* Likewise, of those that stand with the sizes of caches. */
    void (*print_sizes)(FILE *out, void *state);
    /* Shows the files of trust that are the part's: when do they end (admin/trust_page.h)? */
    void (*see_trust)(const struct trust_rows *rows, const struct settings *settings);
    /* The admin plane ends: so do answers that go on (struct page_feed). Their readers may take so many
     * milliseconds to read to the end. */
    void (*end_feeds)(void *state, unsigned patience);
};

/* By the part's number; NULL: it has none, or is not there. */
extern const struct part_pages *const part_pages_table[PART_COUNT];

/* A loop over the parts that have the function, such as print_metrics. */
#define PAGES_FOR_EACH(number, function)                                                           \
    for (unsigned number = PART_CORE + 1; number < PART_COUNT; number++)                           \
        if (part_pages_table[number] != NULL && part_pages_table[number]->function != NULL)

#endif
