#include "record/record.h"

#include "admin/cache_call.h"
#include "admin/guard.h"
#include "admin/page.h"
#include "base/log.h"
#include "base/plural.h"
#include "net/address.h"

#include <inttypes.h>
#include <string.h>

enum { USUAL_TRANSACTIONS = 1, USUAL_SECONDS = 300 };

/* The pages about inspected transactions (record/inspections.h). Secrets are masked unless the inspection was told otherwise, by
 * an admin; only admins see such transactions. A body is never of a type that a browser shows. */

static struct inspections *inspections_of(const struct admin_calls *calls) {
    const struct records *records = calls->parts[PART_RECORD];
    return records->inspections;
}

/* Beginning. */

/* api_check has checked the range. */
static uint64_t wished_number(const struct page_request *request, const char *name,
                              uint64_t usual) {
    uint64_t number;
    const char *text = page_argument(request, name);
    return text != NULL && slice_to_uint64(slice_from(text), &number) ? number : usual;
}

/* Transactions have the address of their client in its one usual spelling. */
static bool take_client(const struct page_request *request, struct inspection_wish *wish) {
    struct address address;
    struct slice text = slice_from(page_argument(request, "client"));
    wish->client[0] = '\0';
    if (text.length == 0)
        return true;
    if (!address_parse_ip(&address, text, 1))
        return false;
    wish->client[address_format_ip(&address, wish->client)] = '\0';
    return true;
}

static bool take_choice(struct page *page, const struct page_request *request,
                        struct record_filter *filter, struct inspection_wish *wish) {
    static const char *const names[] = {"host", "prefix", "regex"};
    char error[RECORD_FILTER_ERROR];
    const char *unmasked = page_argument(request, "unmasked");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = page_argument(request, names[i]);
        if (value == NULL || value[0] == '\0' || record_filter_set(filter, names[i], value, error))
            continue;
        page_error(page, 400, error);
        return false;
    }
    if (!take_client(request, wish)) {
        page_error(page, 400, "the client must be an IP address");
        return false;
    }
    wish->transactions = wished_number(request, "transactions", USUAL_TRANSACTIONS);
    wish->seconds = wished_number(request, "seconds", USUAL_SECONDS);
    wish->masked = unmasked == NULL || strcmp(unmasked, "yes") != 0;
    return true;
}

/* The workers have the recorder before the first transaction is taken, so that none of its exchanges
 * is missing. */
static void start_inspection(struct page *page, const struct admin_calls *calls,
                             const struct inspection_wish *wish, uint64_t body) {
    struct inspections_state state;
    const struct recorder_sink sink = inspections_sink(inspections_of(calls));
    struct recorder_limits limits = RECORDER_LIMITS;
    limits.body = body;
    limits.seconds = RECORDER_MOST.seconds; /* it ends by inspect_page_stop, or as its store says */
    struct recorder *recorder = recorder_for(&sink, &limits);
    log_info("inspection of the next %llu %s started through the admin plane%s",
             (unsigned long long)wish->transactions,
             plural((int64_t)wish->transactions, "transaction", "transactions"),
             wish->masked ? "" : ", with all secrets");
    recording_use(calls->parts[PART_RECORD], RECORDING_TRANSACTIONS, recorder);
    recorder_release(&recorder);
    inspections_open(inspections_of(calls));
    inspections_state(inspections_of(calls), &state);
    page_json(page, 200, json_pack("{s:I}", "inspection", (json_int_t)state.number));
}

static void inspect_page_begin(struct page *page, const struct admin_calls *calls,
                               const struct page_request *request) {
    struct record_filter filter = {0};
    struct inspection_wish wish;
    if (take_choice(page, request, &filter, &wish)) {
        if (inspections_begin(inspections_of(calls), &filter, &wish))
            start_inspection(page, calls, &wish,
                             wished_number(request, "body", RECORDER_LIMITS.body));
        else
            page_error(page, 409, "another inspection is in progress; wait, or stop it");
    }
    record_filter_release(&filter);
}

static void inspect_page_stop(struct page *page, const struct admin_calls *calls,
                              const struct page_request *request) {
    (void)request;
    inspections_stop(inspections_of(calls));
    page_json(page, 200, json_pack("{s:b}", "stopped", 1));
}

static void inspect_page_clear(struct page *page, const struct admin_calls *calls,
                               const struct page_request *request) {
    (void)request;
    page_json(page, 200,
              json_pack("{s:i}", "cleared", (int)inspections_clear(inspections_of(calls))));
}

/* Looking. */

static json_t *text_or_null(const char *text) {
    return text == NULL ? json_null() : cache_call_text(slice_from(text));
}

static json_t *summary_to_json(const struct inspected *inspected) {
    json_t *json =
        json_pack("{s:s, s:I, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "id", inspected->id, "at",
                  (json_int_t)inspected->at, "active", (int)inspected->active, "masked",
                  (int)inspected->masked, "client", text_or_null(inspected->client), "method",
                  text_or_null(inspected->method), "url", text_or_null(inspected->url), "result",
                  text_or_null(inspected->result), "error", text_or_null(inspected->error), "user",
                  text_or_null(inspected->user));
    json_t *numbers =
        json_pack("{s:i, s:I, s:I, s:b, s:i, s:i}", "status", (int)inspected->status, "bytes",
                  (json_int_t)inspected->bytes, "took", (json_int_t)inspected->took, "aborted",
                  (int)inspected->aborted, "exchange_count", (int)inspected->record_count,
                  "left_out", (int)inspected->left_out);
    json_object_update(json, numbers);
    json_decref(numbers);
    return json;
}

static void list_one(void *arg, const struct inspected *inspected) {
    json_array_append_new(arg, summary_to_json(inspected));
}

static void inspect_page_list(struct page *page, const struct admin_calls *calls,
                              const struct page_request *request) {
    (void)request;
    struct inspections_state state;
    json_t *list = json_array();
    inspections_state(inspections_of(calls), &state);
    inspections_each(inspections_of(calls), list_one, list);
    page_json(page, 200,
              json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:o}", "under_way", (int)state.under_way,
                        "left", (json_int_t)state.left, "seconds_left",
                        (json_int_t)state.seconds_left, "memory", (json_int_t)state.memory,
                        "evicted", (json_int_t)state.evicted, "left_out",
                        (json_int_t)state.left_out, "transactions", list));
}

/* One transaction, as a reader sees it. */
struct inspect_look {
    bool may_see_secrets, forbidden;
    json_t *json;
    struct inspected_record *records[INSPECTED_RECORDS]; /* referenced */
    unsigned record_count;
};

static json_t *step_to_json(const struct inspected_step *step) {
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o}", "step", step->name, "begun",
                     (json_int_t)step->begun, "took", (json_int_t)step->took, "waited",
                     (json_int_t)step->waited, "found", text_or_null(step->found), "awaited",
                     text_or_null(step->awaited));
}

static json_t *inspected_service_to_json(const struct inspected_service *service) {
    return json_pack("{s:o, s:o, s:o, s:o, s:i}", "service", text_or_null(service->service),
                     "point", text_or_null(service->point), "verdict",
                     text_or_null(service->verdict), "error", text_or_null(service->error),
                     "milliseconds", (int)service->milliseconds);
}

static json_t *heads_to_json(const struct inspected *inspected) {
    static const char *const names[INSPECTED_HEADS] = {"request", "origin_response", "response"};
    json_t *heads = json_object();
    for (unsigned i = 0; i < INSPECTED_HEADS; i++)
        if (inspected->heads[i].base != NULL)
            json_object_set_new(heads, names[i], cache_call_text(inspected->heads[i]));
    return heads;
}

static void inspect_page_look_at(void *arg, const struct inspected *inspected) {
    struct inspect_look *look = arg;
    json_t *steps = json_array(), *services = json_array();
    look->forbidden = !inspected->masked && !look->may_see_secrets;
    for (unsigned i = 0; i < inspected->step_count; i++)
        json_array_append_new(steps, step_to_json(&inspected->steps[i]));
    for (unsigned i = 0; i < inspected->service_count; i++)
        json_array_append_new(services, inspected_service_to_json(&inspected->services[i]));
    look->json = summary_to_json(inspected);
    json_object_set_new(look->json, "steps", steps);
    json_object_set_new(look->json, "services", services);
    json_object_set_new(look->json, "heads", heads_to_json(inspected));
    for (unsigned i = 0; i < inspected->record_count; i++)
        look->records[i] = inspected_record_reference(inspected->records[i]);
    look->record_count = inspected->record_count;
}

static void look_release(struct inspect_look *look) {
    json_decref(look->json);
    for (unsigned i = 0; i < look->record_count; i++)
        inspected_record_release(&look->records[i]);
}

/* False: an answer has been made. */
static bool inspect_page_look(struct page *page, const struct admin_calls *calls,
                              const struct page_request *request, struct inspect_look *look) {
    const char *id = page_argument(request, "id");
    *look = (struct inspect_look){.may_see_secrets = request->caller->role >= OPERATOR_ADMIN};
    if (!inspections_find(inspections_of(calls), slice_from(id), inspect_page_look_at, look)) {
        page_error(page, 404,
                   "no transaction of this id is kept; /v1/inspect lists those that are");
        return false;
    }
    if (!look->forbidden)
        return true;
    look_release(look);
    page_error(page, 403,
               "it was inspected with all secrets, and is for callers with the role admin");
    return false;
}

static json_t *exchange_to_json(const struct inspected_record *record) {
    struct recorded_exchange exchange;
    const char *error;
    if (!recorded_exchange_parse(&exchange, inspected_record_content(record), &error))
        return json_null();
    json_t *json = json_object();
#define TEXT(name, help)                                                                           \
    if (exchange.name.length > 0)                                                                  \
        json_object_set_new(json, #name, cache_call_text(exchange.name));
#define NUMBER(name, help)                                                                         \
    if (exchange.name > 0)                                                                         \
        json_object_set_new(json, #name, json_integer((json_int_t)exchange.name));
#define PART(name, help)
#include "record/recorded_exchange.def"
#undef TEXT
#undef NUMBER
#undef PART
    const struct {
        const char *name;
        struct slice head;
    } heads[] = {{"asked", exchange.asked},
                 {"answered", exchange.answered},
                 {"request_head", exchange.request_head},
                 {"response_head", exchange.response_head},
                 {"result_head", exchange.result_head}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (heads[i].head.length > 0)
            json_object_set_new(json, heads[i].name, cache_call_text(heads[i].head));
    json_object_set_new(json, "virgin_kept", json_integer((json_int_t)exchange.virgin.length));
    json_object_set_new(json, "result_kept", json_integer((json_int_t)exchange.result.length));
    return json;
}

static void inspect_page_transaction(struct page *page, const struct admin_calls *calls,
                                     const struct page_request *request) {
    struct inspect_look look;
    if (!inspect_page_look(page, calls, request, &look))
        return;
    json_t *exchanges = json_array();
    for (unsigned i = 0; i < look.record_count; i++)
        json_array_append_new(exchanges, exchange_to_json(look.records[i]));
    json_object_set_new(look.json, "exchanges", exchanges);
    page_json(page, 200, json_incref(look.json));
    look_release(&look);
}

static bool inspect_page_copy_body(struct page *page, const struct inspected_record *record,
                                   const char *part) {
    struct recorded_exchange exchange;
    const char *error;
    if (!recorded_exchange_parse(&exchange, inspected_record_content(record), &error))
        return false;
    struct slice body = strcmp(part, "virgin") == 0 ? exchange.virgin : exchange.result;
    page->text = malloc(body.length + 1);
    if (page->text == NULL)
        return false;
    memcpy(page->text, body.base == NULL ? "" : body.base, body.length);
    page->length = body.length;
    return true;
}

static void inspect_page_body(struct page *page, const struct admin_calls *calls,
                              const struct page_request *request) {
    struct inspect_look look;
    const char *part = page_argument(request, "part");
    uint64_t number = wished_number(request, "exchange", 0);
    if (strcmp(part, "virgin") != 0 && strcmp(part, "result") != 0) {
        page_error(page, 400, "the part must be virgin or result");
        return;
    }
    if (!inspect_page_look(page, calls, request, &look))
        return;
    if (number >= look.record_count) {
        page_error(page, 404, "the transaction has no exchange of this number");
    } else if (inspect_page_copy_body(page, look.records[number], part)) {
        page->status = 200;
        page->content_type = "application/octet-stream";
        page->download = true;
    } else {
        page_error(page, 503, "out of memory: try again later");
    }
    look_release(&look);
}

void inspect_page_answer(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request) {
    static const struct {
        const char *method, *path;
        void (*make)(struct page *page, const struct admin_calls *calls,
                     const struct page_request *request);
    } pages[] = {
        {"GET", "/inspect", inspect_page_list},
        {"POST", "/inspect", inspect_page_begin},
        {"POST", "/inspect/stop", inspect_page_stop},
        {"POST", "/inspect/clear", inspect_page_clear},
        {"GET", "/inspect/transaction", inspect_page_transaction},
        {"GET", "/inspect/body", inspect_page_body},
    };
    size_t i = 0;
    while (strcmp(request->method, pages[i].method) != 0 ||
           strcmp(request->path, pages[i].path) != 0)
        i++;
    pages[i].make(page, calls, request);
}

void inspect_page_print_metrics(FILE *out, void *arg) {
    const struct records *records = arg;
    struct inspections_state state;
    inspections_state(records->inspections, &state);
    fprintf(out,
            "# HELP retort_inspection_under_way 1 while transactions are taken for an inspection.\n"
            "# TYPE retort_inspection_under_way gauge\nretort_inspection_under_way %d\n"
            "# HELP retort_inspected_transactions Inspected transactions that are kept; %d at "
            "most.\n"
            "# TYPE retort_inspected_transactions gauge\nretort_inspected_transactions %u\n"
            "# HELP retort_inspected_bytes Bytes of memory that inspected transactions take.\n"
            "# TYPE retort_inspected_bytes gauge\nretort_inspected_bytes %zu\n"
            "# HELP retort_inspected_limit_bytes Bytes of memory that inspected transactions may "
            "take at most.\n"
            "# TYPE retort_inspected_limit_bytes gauge\nretort_inspected_limit_bytes %d\n",
            state.under_way, INSPECTIONS_KEPT, state.kept, state.memory, INSPECTIONS_MEMORY);
    fprintf(out,
            "# HELP retort_inspections_taken_total Transactions that were inspected.\n"
            "# TYPE retort_inspections_taken_total counter\n"
            "retort_inspections_taken_total %" PRIu64 "\n"
            "# HELP retort_inspections_evicted_total Inspected transactions that made room for "
            "newer ones.\n"
            "# TYPE retort_inspections_evicted_total counter\n"
            "retort_inspections_evicted_total %" PRIu64 "\n"
            "# HELP retort_inspections_left_out_total Heads, bodies and exchanges of inspected "
            "transactions that found no room.\n"
            "# TYPE retort_inspections_left_out_total counter\n"
            "retort_inspections_left_out_total %" PRIu64 "\n",
            state.taken, state.evicted, state.left_out);
}
