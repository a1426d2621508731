#include "adapt/recording.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "record/mask.h"

#include <time.h>
#include <xxhash.h>

enum { FIRST_BYTES = 8192 };

/* A body that passes by. */
struct tee {
    struct source source; /* what its reader has */
    struct source *from;
    struct task task; /* `from` has more */
    struct recording *recording;
    char *bytes;
    size_t kept, capacity;
    uint64_t length;
    XXH3_state_t *sum;
    bool ended;
};

struct recording {
    unsigned magic;
#define RECORDING_MAGIC 0x1ca94ec1u
    struct recorder *recorder;         /* referenced */
    struct recorded_exchange recorded; /* its parts are ours */
    size_t reserved;
    bool dropped;
    uint64_t started; /* microseconds */
    bool of_response;
    struct tee virgin, result;
};

/* Memory. */

static void recording_forget(struct slice *part) {
    free((char *)part->base);
    *part = slice_make(NULL, 0);
}

static void forget_tee(struct tee *tee) {
    free(tee->bytes);
    XXH3_freeState(tee->sum);
    tee->bytes = NULL;
    tee->sum = NULL;
    tee->kept = tee->capacity = 0;
}

static void forget_all(struct recording *recording) {
    struct recorded_exchange *recorded = &recording->recorded;
    struct slice *parts[] = {&recorded->asked, &recorded->request_head, &recorded->response_head,
                             &recorded->answered, &recorded->result_head};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        recording_forget(parts[i]);
    forget_tee(&recording->virgin);
    forget_tee(&recording->result);
    recorder_unreserve(recording->recorder, recording->reserved);
    recording->reserved = 0;
}

static void recording_drop(struct recording *recording) {
    if (recording->dropped)
        return;
    recording->dropped = true;
    forget_all(recording);
    recorder_drop(recording->recorder, recording->recorded.id);
}

static bool recording_reserve(struct recording *recording, size_t bytes) {
    if (recording->dropped)
        return false;
    if (!recorder_reserve(recording->recorder, bytes)) {
        recording_drop(recording);
        return false;
    }
    recording->reserved += bytes;
    return true;
}

/* Appends bytes to a part. */
static void keep_head(struct recording *recording, struct slice *part, struct slice head) {
    size_t length = head.length;
    if (length == 0 || !recording_reserve(recording, 2 * length))
        return;
    bool masks = recording->recorded.masked != 0;
    char *masked = masks ? record_mask_head(head, &length) : NULL;
    char *bytes = realloc((char *)part->base, part->length + length);
    if (bytes == NULL || (masked == NULL && masks)) {
        if (bytes != NULL)
            part->base = bytes;
        recording_drop(recording);
    } else {
        memcpy(bytes + part->length, masked != NULL ? masked : head.base, length);
        *part = slice_make(bytes, part->length + length);
    }
    free(masked);
}

/* Bodies. */

static bool recording_make_room(struct tee *tee, size_t wanted) {
    size_t capacity = tee->capacity > 0 ? tee->capacity : FIRST_BYTES;
    while (capacity < wanted)
        capacity *= 2;
    if (capacity == tee->capacity)
        return true;
    if (!recording_reserve(tee->recording, capacity - tee->capacity))
        return false;
    char *bytes = realloc(tee->bytes, capacity);
    if (bytes == NULL) {
        recording_drop(tee->recording);
        return false;
    }
    tee->bytes = bytes;
    tee->capacity = capacity;
    return true;
}

static void keep_bytes(struct tee *tee, const char *bytes, size_t count) {
    size_t most = recorder_body_most(tee->recording->recorder);
    if (tee->recording->dropped)
        return;
    tee->length += count;
    if (XXH3_64bits_update(tee->sum, bytes, count) != XXH_OK)
        return;
    if (count > most - tee->kept)
        count = most - tee->kept;
    if (count == 0 || !recording_make_room(tee, tee->kept + count))
        return;
    memcpy(tee->bytes + tee->kept, bytes, count);
    tee->kept += count;
}

static enum source_status tee_read(struct source *source, char *buffer, size_t capacity,
                                   size_t *got) {
    struct tee *tee = CONTAINER_OF(source, struct tee, source);
    CHECK_OBJ(tee->recording, RECORDING_MAGIC);
    enum source_status status = source_read(tee->from, buffer, capacity, got);
    if (status == SOURCE_DATA)
        keep_bytes(tee, buffer, *got);
    else if (status == SOURCE_END)
        tee->ended = true;
    return status;
}

static void tee_close(struct source *source) {
    struct tee *tee = CONTAINER_OF(source, struct tee, source);
    CHECK_OBJ(tee->recording, RECORDING_MAGIC);
    task_cancel(&tee->task);
    source_close(&tee->from);
}

static const struct source_class tee_class = {"recorded body", tee_read, tee_close, NULL};

static void recording_on_more(struct task *task) {
    struct tee *tee = CONTAINER_OF(task, struct tee, task);
    CHECK_OBJ(tee->recording, RECORDING_MAGIC);
    source_wake(&tee->source);
}

static struct source *tee_start(struct tee *tee, struct recording *recording, struct source *from) {
    tee->sum = XXH3_createState();
    if (tee->sum == NULL || XXH3_64bits_reset(tee->sum) != XXH_OK) {
        recording_drop(recording);
        return from;
    }
    tee->recording = recording;
    tee->from = from;
    source_init(&tee->source, &tee_class, from->loop, from->length);
    source_set_waker(from, &tee->task);
    return &tee->source;
}

/* A reader that knows the length may not have read the end. */
static bool is_whole(const struct tee *tee) {
    return tee->ended || (tee->source.length >= 0 && tee->length == (uint64_t)tee->source.length);
}

/* The exchange. */

static uint64_t milliseconds_since_1970(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Of a start line, the word of that number from 0 on. */
static struct slice word(struct slice line, unsigned number) {
    for (;; number--) {
        size_t length = 0;
        while (length < line.length && line.base[length] > ' ')
            length++;
        if (number == 0 || length == line.length)
            return slice_make(line.base, number == 0 ? length : 0);
        line = slice_make(line.base + length + 1, line.length - length - 1);
    }
}

static uint64_t status_in(struct slice head) {
    uint64_t status = 0;
    return slice_to_uint64(word(head, 1), &status) ? status : 0;
}

static struct recorded_exchange recording_describe(const struct adapter *adapter,
                                                   const struct adapter_request *request,
                                                   struct slice head) {
    return (struct recorded_exchange){
        .id = request->transaction_id,
        .service = slice_from(adapter->settings->name),
        .uri = slice_from(adapter->settings->uri_texts[0]),
        .point = slice_from(adapt_point_name(adapter->settings->point)),
        .method = word(head, 0),
        .url = word(head, 1),
        .client_ip = request->client.ip,
        .server_ip = request->client.server_ip,
        .client_port = request->client.port,
        .time = milliseconds_since_1970(),
        .status = request->response != NULL ? request->response->status : 0,
        .virgin_given = *request->body != NULL,
    };
}

/* False: nothing is to be recorded any more. */
static bool recorder_goes_on(struct adapter_host *host) {
    bool over = recorder_is_over(host->recorder);
    if (over && recorder_is_empty(host->recorder))
        recorder_release(&host->recorder);
    return !over;
}

struct recording *recording_begin(struct adapter *adapter, const struct adapter_request *request) {
    struct recorder *recorder = adapter->host->recorder;
    if (!recorder_goes_on(adapter->host))
        return NULL;
    struct slice head = http_head_text(request->request, http_head_write_request, request->arena);
    struct recorded_exchange recorded = recording_describe(adapter, request, head);
    if (!recorder_begin(recorder, &recorded))
        return NULL;
    struct recording *recording;
    ALLOC_OBJ(recording, RECORDING_MAGIC);
    recording->recorder = recorder_reference(recorder);
    recording->recorded = recorded;
    recording->of_response = request->response != NULL;
    recording->started = clocks_microseconds(CLOCK_MONOTONIC);
    task_init(&recording->virgin.task, recording_on_more);
    task_init(&recording->result.task, recording_on_more);
    keep_head(recording, &recording->recorded.request_head, head);
    if (request->response != NULL)
        keep_head(recording, &recording->recorded.response_head,
                  http_head_text(request->response, http_head_write_response, request->arena));
    if (*request->body != NULL)
        *request->body = tee_start(&recording->virgin, recording, *request->body);
    return recording;
}

void recording_asked(struct recording *recording, const char *uri, struct slice head) {
    CHECK_OBJ(recording, RECORDING_MAGIC);
    recording_forget(&recording->recorded.asked);
    recording_forget(&recording->recorded.answered);
    recording->recorded.uri = slice_from(uri);
    keep_head(recording, &recording->recorded.asked, head);
}

void recording_answered(struct recording *recording, struct slice head) {
    CHECK_OBJ(recording, RECORDING_MAGIC);
    recording->recorded.icap_status = status_in(head);
    keep_head(recording, &recording->recorded.answered, head);
}

static const char *recording_verdict_name(const struct adapter_call *call) {
    switch (call->verdict) {
    case ADAPTER_PENDING: break;
    case ADAPTER_UNMODIFIED: return "unmodified";
    case ADAPTER_MODIFIED: return call->result.partial ? "partial" : "modified";
    case ADAPTER_SATISFIED: return "satisfied";
    case ADAPTER_FAILED: return "failed";
    }
    return "abandoned";
}

static void keep_result_head(struct recording *recording, const struct http_head *head,
                             bool response) {
    size_t (*write)(const struct http_head *, char *, size_t) =
        response ? http_head_write_response : http_head_write_request;
    size_t length = write(head, NULL, 0);
    char *bytes = malloc(length + 3);
    if (bytes == NULL)
        return;
    write(head, bytes, length + 1);
    memcpy(bytes + length, "\r\n", 3);
    keep_head(recording, &recording->recorded.result_head, slice_make(bytes, length + 2));
    free(bytes);
}

void recording_settled(struct recording *recording, const struct adapter_call *call) {
    CHECK_OBJ(recording, RECORDING_MAGIC);
    bool satisfied = call->verdict == ADAPTER_SATISFIED;
    recording->recorded.verdict = slice_from(recording_verdict_name(call));
    recording->recorded.verdict_microseconds =
        clocks_microseconds(CLOCK_MONOTONIC) - recording->started;
    if ((call->verdict == ADAPTER_MODIFIED || satisfied) && call->result.head_given)
        keep_result_head(recording, call->adapted, satisfied || recording->of_response);
}

struct source *recording_body(struct recording *recording, struct source *body) {
    CHECK_OBJ(recording, RECORDING_MAGIC);
    if (recording->dropped)
        return body;
    recording->recorded.result_given = 1;
    return tee_start(&recording->result, recording, body);
}

void recording_described(struct recording *recording, const struct adapter_call *call) {
    struct recorded_exchange *recorded = &recording->recorded;
    const struct tee *virgin = &recording->virgin, *result = &recording->result;
    CHECK_OBJ(recording, RECORDING_MAGIC);
    recorded->total_microseconds = clocks_microseconds(CLOCK_MONOTONIC) - recording->started;
    recorded->verdict = slice_from(recording_verdict_name(call));
    if (call->verdict == ADAPTER_FAILED || call->broken)
        recorded->error = slice_from(call->error);
    if (virgin->sum != NULL) {
        recorded->virgin = slice_make(virgin->bytes, virgin->kept);
        recorded->virgin_length = virgin->length;
        recorded->virgin_sum = XXH3_64bits_digest(virgin->sum);
        recorded->virgin_whole = is_whole(virgin);
    }
    if (result->sum != NULL) {
        recorded->result = slice_make(result->bytes, result->kept);
        recorded->result_length = result->length;
        recorded->result_sum = XXH3_64bits_digest(result->sum);
        recorded->result_whole = is_whole(result);
    }
}

void recording_end(struct recording **recordingp, struct adapter_host *host) {
    struct recording *recording = *recordingp;
    *recordingp = NULL;
    CHECK_OBJ(recording, RECORDING_MAGIC);
    task_cancel(&recording->virgin.task);
    task_cancel(&recording->result.task);
    enum icap_keeping keeping = recording->dropped
                                    ? ICAP_DROPPED
                                    : recorder_keep(recording->recorder, &recording->recorded);
    host->net->counters.icap_recorded += keeping == ICAP_KEPT;
    host->net->counters.icap_record_dropped += keeping == ICAP_DROPPED;
    forget_all(recording);
    recorder_release(&recording->recorder);
    FREE_OBJ(recording);
}
