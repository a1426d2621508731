#include "net/resolver_report.h"

#include "base/assert.h"
#include "net/remembered_name.h"

#include <stdlib.h>

static void resolver_report_add(struct resolver_report *report, const struct name_entry *entry,
                                uint64_t now) {
    struct resolver_name *name = &report->names[report->count++];
    *name = (struct resolver_name){
        .name = xstrdup(entry->name),
        .error = entry->error,
        .expires_in = entry->expires > now ? entry->expires - now : 0,
        .stale_for = entry->stale_until > now ? entry->stale_until - now : 0,
        .kept = !list_empty(&entry->kept),
        .failing = entry->failing,
        .asking = entry->lookup != NULL,
    };
    memcpy(name->count, entry->known.count, sizeof name->count);
    memcpy(name->ips, entry->known.ips, sizeof name->ips);
}

void resolver_report_fill(struct resolver_report *report, struct resolver *resolver,
                          const struct resolver_wish *wish) {
    struct slice wanted = slice_from(wish->name);
    *report = (struct resolver_report){0};
    if (wish->forget) {
        report->found = resolver_forget(resolver, wanted);
        return;
    }
    const struct list_link *names = resolver_remembered(resolver);
    report->names = xcalloc(RESOLVER_REPORT_MOST, sizeof *report->names);
    for (const struct list_link *link = names->prev; link != names; link = link->prev) {
        const struct name_entry *entry = CONTAINER_OF(link, const struct name_entry, used);
        if (wanted.length > 0 && !slice_equal_nocase(slice_from(entry->name), wanted))
            continue;
        report->found++;
        if (report->count < RESOLVER_REPORT_MOST)
            resolver_report_add(report, entry, resolver_now(resolver));
    }
}

void resolver_report_release(struct resolver_report *report) {
    for (unsigned i = 0; i < report->count; i++)
        free(report->names[i].name);
    free(report->names);
    *report = (struct resolver_report){0};
}
