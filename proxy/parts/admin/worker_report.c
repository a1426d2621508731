#include "admin/worker_report.h"

#include "base/assert.h"
#include "event/mailbox.h"
#include "transaction/access_log.h"
#include "transaction/transaction.h"
#include "worker.h"

static void worker_report_fill(void *subject, void *answer) {
    struct worker_report *report = answer;
    struct transaction_host *host = subject;
    access_logs_count_lost(host->logs);
    report->counters = host->net->counters;
    report->durations = host->net->durations;
    request_counts_copy(host->parts[PART_ADMIN], &report->requests);
    report->settings = settings_reference(host->snapshot->settings);
    report->services = NULL;
    PARTS_FOR_EACH (number, worker.report)
        report->services = part_table[number]->worker.report(host);
}

void worker_report_release(struct worker_report *report) {
    request_counts_release(&report->requests);
    free(report->services);
    report->services = NULL;
    settings_release(&report->settings);
}

static void worker_report_drop(void *answer) {
    worker_report_release(answer);
}

bool worker_report_ask(struct worker *worker, struct worker_report *report, unsigned patience) {
    static const struct question_class question = {sizeof *report, worker_report_fill,
                                                   worker_report_drop};
    return worker_ask(worker, &question, worker_host(worker), report, patience);
}
