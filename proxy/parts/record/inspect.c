#include "record/record.h"

#include "adapt/chain.h"
#include "client/identity.h"
#include "transaction/trace.h"
#include "transaction/transaction.h"

#include <string.h>

/* What a transaction leaves in the store of inspected transactions (record/inspections.h), if an operator wants it: its
 * steps, its heads, the services that it was shown to, and its outcome. */

enum { INSPECT_USER = 256 };

/* A transaction that is inspected. Nanoseconds of the monotonic clock. In the transaction's arena. */
struct inspecting {
    struct inspected *inspected;
    uint64_t started;
    struct inspected_outcome outcome;
    char awaited[TRACE_TEXT]; /* of the step that runs; empty: it does not wait */
    char user[INSPECT_USER];
};

/* NULL: nobody inspects it. */
static struct inspecting *inspecting_of(const struct transaction *transaction) {
    return transaction->parts[PART_RECORD];
}

/* Microseconds since the transaction began. */
static uint64_t since_start(const struct transaction *transaction, uint64_t now) {
    uint64_t started = inspecting_of(transaction)->started;
    return now > started ? (now - started) / 1000 : 0;
}

static void set_request(struct transaction *transaction) {
    const struct http_head *head = transaction->request.head;
    if (head != NULL)
        inspected_set_head(inspecting_of(transaction)->inspected, INSPECTED_REQUEST,
                           http_head_text(head, http_head_write_request, &transaction->arena));
}

static void set_response(struct transaction *transaction, enum inspected_head which) {
    inspected_set_head(
        inspecting_of(transaction)->inspected, which,
        http_head_text(transaction->response.head, http_head_write_response, &transaction->arena));
}

/* At the end: the head of the stored response where there is one, else that of the passing one. */
static void set_result(struct transaction *transaction) {
    const struct object *object = transaction_object(transaction);
    if (object != NULL)
        inspected_set_head(inspecting_of(transaction)->inspected, INSPECTED_RESPONSE,
                           object_head(object));
    else if (transaction->response.head != NULL)
        set_response(transaction, INSPECTED_RESPONSE);
}

static void inspect_add_services(struct transaction *transaction) {
    const struct adapt_chain *chains[STEP_CHAINS];
    unsigned count = transaction_chains(transaction, chains);
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < chains[i]->at; j++) {
            const struct adapt_record *record = &chains[i]->records[j];
            const struct inspected_service service = {
                .service = record->service,
                .point = adapt_point_name(chains[i]->point),
                .verdict = record->verdict,
                .error = record->error,
                .milliseconds = record->milliseconds,
            };
            inspected_add_service(inspecting_of(transaction)->inspected, &service);
        }
}

static void choose(struct record_worker *worker, struct transaction *transaction) {
    struct exchange *exchange = transaction->exchange;
    const struct inspection_facts facts = {
        .id = slice_from(transaction_id(transaction)),
        .client = exchange_client_ip(exchange),
        .method = transaction->request.original_method,
        .url = transaction->request.original_url,
    };
    struct inspected *inspected = inspections_take(worker->inspections, &facts);
    if (inspected == NULL)
        return;
    struct inspecting *inspecting = arena_alloc(&transaction->arena, sizeof *inspecting);
    *inspecting = (struct inspecting){.inspected = inspected, .started = exchange->started};
    transaction->parts[PART_RECORD] = inspecting;
    transaction_begin(transaction, STEP_RECEIVE); /* so that inspect_end is called */
    worker->inspected++;
    set_request(transaction);
}

static struct slice note_user(struct transaction *transaction) {
    struct inspecting *inspecting = inspecting_of(transaction);
    if (transaction->identity == NULL)
        return slice_make("", 0);
    struct slice name = transaction->identity->name;
    size_t length = name.length < INSPECT_USER ? name.length : INSPECT_USER;
    memcpy(inspecting->user, name.base, length);
    return slice_make(inspecting->user, length);
}

/* While the client is there, which LOG lets go. */
static void note_outcome(struct transaction *transaction) {
    struct exchange *exchange = transaction->exchange;
    if (exchange == NULL)
        return;
    inspecting_of(transaction)->outcome = (struct inspected_outcome){
        .result = cache_result_name(transaction->outcome.result),
        .status = transaction->outcome.status,
        .bytes = exchange->bytes_sent,
        .took = since_start(transaction, transaction->times->now),
        .error = transaction->outcome.error,
        .user = note_user(transaction),
        .aborted = exchange->state == EXCHANGE_ABORTED,
    };
}

static void note_wait(struct transaction *transaction) {
    struct inspecting *inspecting = inspecting_of(transaction);
    if (inspecting->awaited[0] == '\0')
        trace_awaited(transaction, inspecting->awaited);
}

/* The first step begins with the request. */
static void note_step(struct transaction *transaction) {
    struct inspecting *inspecting = inspecting_of(transaction);
    const struct step_times *times = transaction->times;
    uint64_t begun =
        transaction->step == STEP_RECEIVE ? inspecting->started : times->begun[transaction->step];
    bool waited = inspecting->awaited[0] != '\0';
    char found[TRACE_TEXT];
    trace_found(transaction, found);
    const struct inspected_step step = {
        .name = step_name(transaction->step),
        .begun = since_start(transaction, begun),
        .took = times->now > begun ? (times->now - begun) / 1000 : 0,
        .waited = waited ? (times->now - times->waits) / 1000 : 0,
        .found = found,
        .awaited = waited ? inspecting->awaited : NULL,
    };
    inspected_add_step(inspecting->inspected, &step);
    inspecting->awaited[0] = '\0';
}

static void inspect_step(struct step_watcher *watcher, struct transaction *transaction,
                         enum step next) {
    struct record_worker *worker = CONTAINER_OF(watcher, struct record_worker, watcher);
    if (inspecting_of(transaction) == NULL && transaction->step == STEP_RECEIVE &&
        next != STEP_WAIT)
        choose(worker, transaction);
    if (inspecting_of(transaction) == NULL)
        return;
    note_outcome(transaction);
    if (next == STEP_WAIT) {
        note_wait(transaction);
        return;
    }
    note_step(transaction);
    if (transaction->step == STEP_FETCH && transaction->response.head != NULL)
        set_response(transaction, INSPECTED_ORIGIN);
    if (next == STEP_LOG) {
        set_result(transaction);
        inspect_add_services(transaction);
    }
}

static void inspect_end(struct step_watcher *watcher, struct transaction *transaction) {
    struct record_worker *worker = CONTAINER_OF(watcher, struct record_worker, watcher);
    struct inspecting *inspecting = inspecting_of(transaction);
    if (inspecting == NULL)
        return;
    transaction->parts[PART_RECORD] = NULL;
    worker->inspected--;
    inspected_end(&inspecting->inspected, &inspecting->outcome);
}

/* Is an inspection under way, or has it transactions here? */
static bool inspect_wants(const struct step_watcher *watcher) {
    const struct record_worker *worker = CONTAINER_OF(watcher, struct record_worker, watcher);
    return worker->inspected > 0 || !inspections_are_over(worker->inspections);
}

void inspect_join(struct record_worker *worker, struct transaction_host *host) {
    worker->watcher = (struct step_watcher){inspect_wants, inspect_step, inspect_end};
    host->step_watcher = &worker->watcher;
}
