#include "admin/resolver_report.h"

#include "base/assert.h"
#include "event/mailbox.h"
#include "net/remembered_name.h"
#include "transaction/transaction.h"
#include "worker.h"

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

static void resolver_report_fill(struct resolver_report *report, struct resolver *resolver,
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

/* The wish lives until the question is answered, also when nobody waits any more. */
struct names_wish {
    struct transaction_host *host;
    struct resolver_wish wish;
};

struct names_answer {
    struct names_wish *wish;
    struct resolver_report report;
};

static void on_names_question(void *subject, void *answer) {
    struct names_wish *wish = subject;
    struct names_answer *names = answer;
    names->wish = wish;
    resolver_report_fill(&names->report, wish->host->net->resolver, &wish->wish);
}

static void release_names(void *answer) {
    struct names_answer *names = answer;
    resolver_report_release(&names->report);
    free(names->wish);
}

bool resolver_report_ask(struct worker *worker, const struct resolver_wish *wish,
                         struct resolver_report *report, unsigned patience) {
    static const struct question_class question = {sizeof(struct names_answer), on_names_question,
                                                   release_names};
    struct names_answer answer;
    if (!worker_may_answer(worker, patience))
        return false;
    struct names_wish *copy = xcalloc(1, sizeof *copy);
    copy->host = worker_host(worker);
    copy->wish = *wish;
    if (!worker_ask(worker, &question, copy, &answer, patience))
        return false;
    *report = answer.report;
    free(copy);
    return true;
}
