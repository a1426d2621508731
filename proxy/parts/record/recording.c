#include "record/record.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "net/context.h"
#include "record/mask.h"

#include <time.h>
#include <xxhash.h>

enum { FIRST_BYTES = 8192 };

/* Bodies are copied by the way: a source in front of the virgin one, and one behind the adapted one, pass on what they read.
 * Nothing waits for a recording: where memory has come to its limit it forgets what it has, counts itself as dropped, and only
 * passes on. Secrets are replaced before anything is kept. */

/* A body that passes by. */
struct tee {
    struct source source; /* what its reader has */
    struct source *from;
    struct task task; /* `from` has more */
    struct message_recording *recording;
    char *bytes;
    size_t kept, capacity;
    uint64_t length;
    XXH3_state_t *sum;
    bool ended;
};

/* A message for one recorder. The first one stands beside the call. */
struct message_recording {
    struct recording base;
    struct message_recording
        *next; /* the same message for the other recorder; NULL: it does not want it */
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

static void forget_all(struct message_recording *recording) {
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

static void recording_drop(struct message_recording *recording) {
    if (recording->dropped)
        return;
    recording->dropped = true;
    forget_all(recording);
    recorder_drop(recording->recorder, recording->recorded.id);
}

static bool recording_reserve(struct message_recording *recording, size_t bytes) {
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
static void keep_head(struct message_recording *recording, struct slice *part, struct slice head) {
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

static struct source *tee_start(struct tee *tee, struct message_recording *recording,
                                struct source *from) {
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

void recording_set_recorder(struct adapter_host *adapters, enum recording_kind kind,
                            struct recorder *recorder) {
    struct record_worker *worker = adapters->recorders;
    recorder_release(&worker->recorders[kind]);
    worker->recorders[kind] = recorder;
    adapters->records = NULL;
    for (unsigned i = 0; i < RECORDING_KINDS; i++)
        if (worker->recorders[i] != NULL)
            adapters->records = &recording_class;
}

/* The recorder, if it records still. NULL: there is none. */
static struct recorder *recorder_at_work(struct adapter_host *adapters, enum recording_kind kind) {
    struct record_worker *worker = adapters->recorders;
    struct recorder *recorder = worker->recorders[kind];
    if (recorder == NULL || !recorder_is_over(recorder))
        return recorder;
    if (recorder_is_empty(recorder))
        recording_set_recorder(adapters, kind, NULL);
    return NULL;
}

/* NULL: the recorder does not want the message. */
static struct message_recording *recording_new(struct adapter *adapter,
                                               const struct adapter_request *request,
                                               struct recorder *recorder, struct slice head) {
    struct recorded_exchange recorded = recording_describe(adapter, request, head);
    if (!recorder_begin(recorder, &recorded))
        return NULL;
    struct message_recording *recording;
    ALLOC_OBJ(recording, RECORDING_MAGIC);
    recording->base.class = &recording_class;
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

static struct recording *recording_begin(struct adapter *adapter,
                                         const struct adapter_request *request) {
    struct message_recording *first = NULL;
    struct slice head = {0};
    for (unsigned i = 0; i < RECORDING_KINDS; i++) {
        struct recorder *recorder = recorder_at_work(adapter->host, i);
        if (recorder == NULL)
            continue;
        if (head.base == NULL)
            head = http_head_text(request->request, http_head_write_request, request->arena);
        struct message_recording *recording = recording_new(adapter, request, recorder, head);
        if (recording == NULL)
            continue;
        recording->next = first;
        first = recording;
    }
    return first == NULL ? NULL : &first->base;
}

/* Each recording of the message. */
#define FOR_EACH_RECORDING(recording, first)                                                       \
    for (struct message_recording *recording =                                                     \
             CONTAINER_OF(first, struct message_recording, base);                                  \
         recording != NULL; recording = recording->next)

static void recording_asked(struct recording *first, const char *uri, struct slice head) {
    FOR_EACH_RECORDING(recording, first) {
        CHECK_OBJ(recording, RECORDING_MAGIC);
        recording_forget(&recording->recorded.asked);
        recording_forget(&recording->recorded.answered);
        recording->recorded.uri = slice_from(uri);
        keep_head(recording, &recording->recorded.asked, head);
    }
}

static void recording_answered(struct recording *first, struct slice head) {
    FOR_EACH_RECORDING(recording, first) {
        CHECK_OBJ(recording, RECORDING_MAGIC);
        recording->recorded.icap_status = status_in(head);
        keep_head(recording, &recording->recorded.answered, head);
    }
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

static void keep_result_head(struct message_recording *recording, const struct http_head *head,
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

static void recording_settled(struct recording *first, const struct adapter_call *call) {
    bool satisfied = call->verdict == ADAPTER_SATISFIED;
    FOR_EACH_RECORDING(recording, first) {
        CHECK_OBJ(recording, RECORDING_MAGIC);
        recording->recorded.verdict = slice_from(recording_verdict_name(call));
        recording->recorded.verdict_microseconds =
            clocks_microseconds(CLOCK_MONOTONIC) - recording->started;
        if ((call->verdict == ADAPTER_MODIFIED || satisfied) && call->result.head_given)
            keep_result_head(recording, call->adapted, satisfied || recording->of_response);
    }
}

static struct source *recording_body(struct recording *first, struct source *body) {
    FOR_EACH_RECORDING(recording, first) {
        CHECK_OBJ(recording, RECORDING_MAGIC);
        if (recording->dropped)
            continue;
        recording->recorded.result_given = 1;
        body = tee_start(&recording->result, recording, body);
    }
    return body;
}

static void recording_describe_end(struct message_recording *recording,
                                   const struct adapter_call *call) {
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

static void recording_described(struct recording *first, const struct adapter_call *call) {
    FOR_EACH_RECORDING(recording, first)
    recording_describe_end(recording, call);
}

static void recording_free(struct message_recording *recording, struct adapter_host *host) {
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

static void recording_end(struct recording *first, struct adapter_host *host) {
    struct message_recording *next = CONTAINER_OF(first, struct message_recording, base);
    while (next != NULL) {
        struct message_recording *recording = next;
        next = recording->next;
        recording_free(recording, host);
    }
}

const struct recording_class recording_class = {
    .begin = recording_begin,
    .asked = recording_asked,
    .answered = recording_answered,
    .settled = recording_settled,
    .body = recording_body,
    .described = recording_described,
    .end = recording_end,
};
