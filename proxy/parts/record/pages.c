#include "record/record.h"

#include "admin/guard.h"
#include "admin/page.h"
#include "admin/part_pages.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* The pages that record exchanges with services. The client that starts a recording has to fetch the recorded data again and
 * again, because only what fits into the recording's memory is kept. There is one recording at a time. */

/* What these calls have in common. */
struct record_call {
    struct page *page;
    const struct admin_calls *calls;
    const struct page_request *request;
    struct records *records;
};

static const char *argument(const struct record_call *call, const char *name) {
    const char *value = page_argument(call->request, name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool record_page_take_filter(const struct record_call *call, struct record_filter *filter) {
    char error[RECORD_FILTER_ERROR];
    for (const char *const *name = record_filter_names; *name != NULL; name++) {
        const char *value = argument(call, *name);
        if (value == NULL || record_filter_set(filter, *name, value, error))
            continue;
        page_error(call->page, 400, error);
        return false;
    }
    return true;
}

static bool take_limit(const struct record_call *call, const char *name, uint64_t least,
                       uint64_t most, uint64_t *limit) {
    char reason[100];
    const char *text = argument(call, name);
    if (text == NULL)
        return true;
    if (slice_to_uint64(slice_from(text), limit) && *limit >= least && *limit <= most)
        return true;
    snprintf(reason, sizeof reason, "%s must be a number from %llu to %llu", name,
             (unsigned long long)least, (unsigned long long)most);
    page_error(call->page, 400, reason);
    return false;
}

static bool take_limits(const struct record_call *call, struct recorder_limits *limits) {
    const struct recorder_limits most = RECORDER_MOST;
    *limits = RECORDER_LIMITS;
    return take_limit(call, "body", 0, most.body, &limits->body) &&
           take_limit(call, "memory", 1, most.memory, &limits->memory) &&
           take_limit(call, "exchanges", 1, most.exchanges, &limits->exchanges) &&
           take_limit(call, "seconds", 1, most.seconds, &limits->seconds);
}

static bool is_busy(const struct record_call *call) {
    struct recorder *recorder = recording_latest(call->records, RECORDING_EXCHANGES);
    bool busy = recorder != NULL && !recorder_is_over(recorder);
    recorder_release(&recorder);
    return busy;
}

static void record_page_start(const struct record_call *call, struct record_filter *filter,
                              const struct recorder_limits *limits) {
    const char *unmasked = argument(call, "unmasked");
    bool masked = unmasked == NULL || strcmp(unmasked, "yes") != 0;
    struct recorder *recorder = recorder_new(filter, limits, masked);
    log_info("recording of ICAP exchanges started through the admin plane%s",
             masked ? "" : ", with all secrets");
    recording_use(call->records, RECORDING_EXCHANGES, recorder);
    page_json(call->page, 200,
              json_pack("{s:I}", "recording", (json_int_t)recorder_number(recorder)));
    recorder_release(&recorder);
}

static void record_page_begin(const struct record_call *call) {
    struct record_filter filter = {0};
    struct recorder_limits limits;
    if (is_busy(call))
        page_error(call->page, 409,
                   "another recording is in progress; wait until it has ended, or stop it");
    else if (record_page_take_filter(call, &filter) && take_limits(call, &limits))
        record_page_start(call, &filter, &limits);
    record_filter_release(&filter);
}

/* Returns the recording of the call with a reference. NULL: an answer has been made. */
static struct recorder *record_page_find(const struct record_call *call) {
    uint64_t number = 0;
    const char *text = argument(call, "recording");
    struct recorder *recorder = recording_latest(call->records, RECORDING_EXCHANGES);
    if (recorder != NULL && text != NULL && slice_to_uint64(slice_from(text), &number) &&
        number == recorder_number(recorder))
        return recorder;
    recorder_release(&recorder);
    page_error(call->page, 404, "there is no such recording, or a newer one has replaced it");
    return NULL;
}

/* The number of a recording is no secret, so it does not show that the caller has begun it. False:
 * an answer has been made. */
static bool may_take(const struct record_call *call, const struct recorder *recorder) {
    struct admin_denial denial;
    if (recorder_masks(recorder) ||
        admin_guard_allows(call->calls->guard, call->request->caller, OPERATOR_ADMIN, &denial))
        return true;
    page_error(call->page, denial.status, denial.reason);
    return false;
}

static void record_page_take(const struct record_call *call) {
    struct recorder *recorder = record_page_find(call);
    if (recorder == NULL)
        return;
    if (may_take(call, recorder)) {
        call->page->status = 200;
        call->page->content_type = "application/octet-stream";
        call->page->text = recorder_take(recorder, &call->page->length);
        call->page->unchanged = call->page->length == 0; /* retortctl asks many times a second */
    }
    recorder_release(&recorder);
}

static void record_page_end(const struct record_call *call) {
    struct recorder *recorder = record_page_find(call);
    if (recorder == NULL)
        return;
    recorder_stop(recorder, "the recording was stopped");
    page_json(call->page, 200, json_pack("{s:b}", "stopped", 1));
    recorder_release(&recorder);
}

static void record_answer(struct page *page, const struct admin_calls *calls,
                          const struct page_request *request) {
    static const struct {
        const char *path;
        void (*make)(const struct record_call *call);
    } pages[] = {
        {"/icap/record", record_page_begin},
        {"/icap/record/take", record_page_take},
        {"/icap/record/stop", record_page_end},
    };
    const struct record_call call = {page, calls, request, calls->parts[PART_RECORD]};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (strcmp(request->path, pages[i].path) == 0) {
            pages[i].make(&call);
            return;
        }
    inspect_page_answer(page, calls, request);
}

const struct part_pages record_pages = {
    .answer = record_answer,
    .print_metrics = inspect_page_print_metrics,
};
