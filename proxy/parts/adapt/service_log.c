#include "adapt/service_log.h"

#include "adapt/adapt_worker.h"
#include "adapt/adaptation.h"
#include "log/line.h"
#include "service/event.h"

/* As the log shows it: nothing in it can end a line, or begin another value. */
static struct slice service_log_shown(struct transaction *transaction, struct slice text,
                                      bool keep_spaces) {
    enum { PER_BYTE = 3, SPARE = 8 };
    struct log_line line;
    if (text.length <= LOG_LINE_SHOWN &&
        bytes_skip(text.base, text.base + text.length, BYTES_PLAIN) == text.base + text.length)
        return text;
    size_t shown = text.length < LOG_LINE_SHOWN ? text.length : LOG_LINE_SHOWN;
    char *room = arena_alloc(&transaction->arena, PER_BYTE * shown + SPARE);
    line.at = room;
    line.end = room + PER_BYTE * shown;
    log_line_put_escaped(&line, text, keep_spaces);
    return slice_make(room, (size_t)(line.at - room));
}

static void service_log_fill(struct transaction *transaction, const struct journal *journal,
                             struct service_log_line *line) {
    bool proxy_itself = journal->origin.length == 0;
    *line = (struct service_log_line){
        .transaction_id = slice_from(transaction_id(transaction)),
        .client_ip = journal->client,
        .client_user = service_log_shown(transaction, journal->user, false),
        .method = service_log_shown(transaction, journal->method, false),
        .url = service_log_shown(transaction, journal->url, false),
        .status = journal->status,
        .request_bytes = exchange_received(transaction->exchange),
        .response_bytes = journal->bytes,
        .microseconds = journal->duration,
        .result = cache_result_name(journal->result),
        .hierarchy = proxy_itself ? SLICE("NONE") : SLICE("DIRECT"),
        .server = service_log_shown(transaction, journal->origin, false),
        .error = service_log_shown(transaction, slice_from(journal->error), true),
        .content_type = service_log_shown(transaction, journal_media_type(journal), false),
        .aborted = journal->aborted,
    };
}

static void service_log_on_entry(struct entry_watcher *watcher, struct transaction *transaction,
                                 const struct journal *journal) {
    const struct adapt_set *set = adapt_set_of(transaction);
    struct service_log_line line;
    (void)watcher;
    if ((set->hears & ADAPTER_HEARS_LOG) == 0)
        return;
    service_log_fill(transaction, journal, &line);
    for (size_t i = 0; i < set->service_count; i++) {
        struct adapter *service = set->services[i];
        if ((service->hears & ADAPTER_HEARS_LOG) != 0 &&
            !adapt_opt_out_has(adaptation_of(transaction)->opt_outs, service->module))
            service->class->logged(service, &line);
    }
}

void service_log_hear(struct transaction_host *host, struct entry_watcher *watcher) {
    watcher->on_entry = service_log_on_entry;
    if ((adapt_worker_of(host)->set->hears & ADAPTER_HEARS_LOG) != 0)
        entry_watcher_join(&host->watcher, watcher);
}
