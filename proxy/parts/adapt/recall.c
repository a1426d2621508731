#include "adapt/recall.h"

#include "adapt/client_fields.h"
#include "base/assert.h"
#include "cache/cache_control.h"

struct recall {
    unsigned magic;
#define RECALL_MAGIC 0x4eca1100u
    struct verdicts *table;
    struct adapter *adapter;
    struct net_context *net;
    struct arena *arena;
    struct adapter_request request;
    /* An answer whose body is being copied. */
    struct slice key;
    struct verdict verdict;
    struct source source; /* what is read, in place of `from` */
    struct source *from;
    struct task task; /* there is more */
    char *bytes;
    size_t length; /* what has passed */
};

static bool is_safe(const struct http_head *head) {
    enum http_method method = http_method_lookup(head->method);
    return method == HTTP_METHOD_GET || method == HTTP_METHOD_HEAD || method == HTTP_METHOD_OPTIONS;
}

struct recall *recall_begin(const struct adapter_request *request, struct adapter *adapter) {
    struct recall *recall;
    if (adapter->host->verdicts == NULL || !is_safe(request->request))
        return NULL;
    recall = arena_alloc(request->arena, sizeof *recall);
    INIT_OBJ(recall, RECALL_MAGIC);
    recall->table = adapter->host->verdicts;
    recall->adapter = adapter;
    recall->net = adapter->host->net;
    recall->arena = request->arena;
    recall->request = *request;
    return recall;
}

/* Keys. */

/* The fixed part before the texts. Without routing the named services were not checked. */
struct prefix {
    uint64_t service;
    uint32_t client_fields;
    uint16_t whole_head, routing;
};

/* Writes a line of two words if it fits. Returns the length of the text with it. */
static size_t recall_write_line(struct slice one, struct slice two, char *out, size_t length,
                                size_t capacity) {
    size_t whole = length + one.length + two.length + 2;
    if (whole <= capacity)
        slice_put(slice_put(slice_put(slice_put(out + length, one), SLICE(" ")), two), SLICE("\n"));
    return whole;
}

/* Writes method, URL, and for each field name one line and a line for each value. Missing fields
 * have a line too, because a reload may list other fields. Returns the whole length. */
static size_t write_chosen(const struct http_head *head, char *const *names, char *out,
                           size_t capacity) {
    size_t length = recall_write_line(head->method, head->target, out, 0, capacity);
    for (; *names != NULL; names++) {
        struct slice name = slice_from(*names);
        length = recall_write_line(name, SLICE(""), out, length, capacity);
        for (unsigned i = 0; i < head->field_count; i++)
            if (slice_equal_nocase(head->fields[i].name, name))
                length = recall_write_line(SLICE(""), head->fields[i].value, out, length, capacity);
    }
    return length;
}

static struct slice recall_make_key(struct recall *recall, unsigned fields, bool whole_head) {
    const struct service_settings *settings = recall->adapter->settings;
    const struct http_head *head = recall->request.request;
    const struct prefix prefix = {recall->adapter->tag->base, fields, whole_head,
                                  settings->routing};
    char *const *names = settings->verdict_by;
    size_t client = client_fields_write(fields, &recall->request.client, NULL, 0);
    size_t text =
        whole_head ? http_head_write_request(head, NULL, 0) : write_chosen(head, names, NULL, 0);
    size_t length = sizeof prefix + client + text;
    char *bytes = arena_alloc(recall->arena, length), *at = bytes + sizeof prefix;
    memcpy(bytes, &prefix, sizeof prefix);
    client_fields_write(fields, &recall->request.client, at, client);
    if (whole_head)
        http_head_write_request(head, at + client, text);
    else
        write_chosen(head, names, at + client, text);
    return slice_make(bytes, length);
}

/* Those that it may be told at any of its places. */
static unsigned recall_client_fields(const struct recall *recall) {
    return recall->adapter->class->client_fields(recall->adapter);
}

static bool by_whole_head(const struct recall *recall) {
    for (char *const *name = recall->adapter->settings->verdict_by; *name != NULL; name++)
        if (strcmp(*name, "*") == 0)
            return true;
    return false;
}

/* Looking up. */

static bool recall_find_verdict(struct recall *recall, bool whole_head, struct verdict *verdict) {
    uint64_t tag = service_tag_value(recall->adapter->tag);
    return tag != 0 &&
           verdicts_find(recall->table,
                         recall_make_key(recall, recall_client_fields(recall), whole_head), tag,
                         recall->net->loop->now, recall->arena, verdict);
}

bool recall_find(struct recall *recall, struct verdict *verdict) {
    CHECK_OBJ(recall, RECALL_MAGIC);
    if (!verdicts_any(recall->table) ||
        (!recall_find_verdict(recall, by_whole_head(recall), verdict) &&
         (by_whole_head(recall) || !recall_find_verdict(recall, true, verdict))))
        return false;
    recall->adapter->class->refresh(recall->adapter);
    recall->adapter->account.remembered++;
    recall->net->counters.verdicts_used++;
    return true;
}

/* Noting. */

static void recall_keep(struct recall *recall) {
    bool kept;
    recall->net->counters.verdicts_evicted +=
        verdicts_keep(recall->table, recall->key, &recall->verdict, recall->net->loop->now, &kept);
    recall->net->counters.verdicts_kept += kept;
}

/* The client asks caches to forget its request (RFC 9111 §5.2.1.5). */
static bool is_to_be_forgotten(const struct recall *recall) {
    struct cache_control control;
    cache_control_parse(&control, recall->request.request);
    return control.no_store;
}

/* An answer that opens a session is for one client only. */
static bool may_note(const struct recall *recall, const struct adapter_call *call) {
    if (call->result.lifetime <= 0 || call->result.tag == 0 || call->result.unable != NULL ||
        is_to_be_forgotten(recall))
        return false;
    switch (call->verdict) {
    case ADAPTER_UNMODIFIED: return true;
    case ADAPTER_MODIFIED: return call->result.head_given && !call->result.has_body;
    case ADAPTER_SATISFIED:
        return call->result.head_given && !http_head_sets_cookies(call->adapted);
    default: return false;
    }
}

/* Returns true when a verdict depends on more of the head than verdict_by lists. A changed
 * request contains the fields of its client. An answer may depend on the client's Range or
 * conditions, or state this itself with Vary. */
static bool is_of_whole_head(const struct adapter_call *call) {
    if (call->verdict != ADAPTER_SATISFIED)
        return call->verdict == ADAPTER_MODIFIED;
    unsigned status = call->adapted->status;
    return status == 206 || status == 304 || status == 412 || status == 416 ||
           http_head_has(call->adapted, HTTP_VARY);
}

static void copy_bytes(struct recall *recall, const char *bytes, size_t count) {
    if (recall->length + count <= VERDICT_BODY_MAX)
        memcpy(recall->bytes + recall->length, bytes, count);
    recall->length += count;
}

/* Only once: `from` is not read any more. */
static void recall_finish(struct recall *recall) {
    if (recall->bytes == NULL || recall->length > VERDICT_BODY_MAX)
        return;
    recall->verdict.body = slice_make(recall->bytes, recall->length);
    recall->bytes = NULL;
    recall_keep(recall);
}

static enum source_status recall_body_read(struct source *source, char *buffer, size_t capacity,
                                           size_t *got) {
    struct recall *recall = CONTAINER_OF(source, struct recall, source);
    CHECK_OBJ(recall, RECALL_MAGIC);
    enum source_status status = source_read(recall->from, buffer, capacity, got);
    if (status == SOURCE_DATA)
        copy_bytes(recall, buffer, *got);
    else if (status == SOURCE_END)
        recall_finish(recall);
    return status;
}

static void recall_body_close(struct source *source) {
    struct recall *recall = CONTAINER_OF(source, struct recall, source);
    CHECK_OBJ(recall, RECALL_MAGIC);
    task_cancel(&recall->task);
    source_close(&recall->from);
}

static const struct source_class body_class = {"noted body", recall_body_read, recall_body_close,
                                               NULL};

static void recall_on_more(struct task *task) {
    struct recall *recall = CONTAINER_OF(task, struct recall, task);
    CHECK_OBJ(recall, RECALL_MAGIC);
    source_wake(&recall->source);
}

static struct source *copy_body(struct recall *recall, struct source *body) {
    recall->from = body;
    recall->bytes = arena_alloc(recall->arena, VERDICT_BODY_MAX);
    task_init(&recall->task, recall_on_more);
    source_init(&recall->source, &body_class, recall->net->loop, body->length);
    source_set_waker(body, &recall->task);
    return &recall->source;
}

static struct slice adapted_text(const struct recall *recall, const struct adapter_call *call) {
    if (call->result.head_text.length > 0)
        return call->result.head_text;
    return http_head_text(call->adapted,
                          call->verdict == ADAPTER_SATISFIED ? http_head_write_response
                                                             : http_head_write_request,
                          recall->arena);
}

struct source *recall_note(struct recall *recall, const struct adapter_call *call,
                           struct source *body) {
    CHECK_OBJ(recall, RECALL_MAGIC);
    if (!may_note(recall, call))
        return body;
    bool whole_head = by_whole_head(recall) || is_of_whole_head(call);
    recall->key = recall_make_key(recall, recall_client_fields(recall) | call->result.client_fields,
                                  whole_head);
    recall->verdict = (struct verdict){
        .kind = call->verdict,
        .has_body = body != NULL,
        .routed = call->result.next_services != NULL,
        .next_services = slice_from(call->result.next_services),
        .tag = call->result.tag,
        .expires = recall->net->loop->now + (uint64_t)call->result.lifetime * 1000,
    };
    if (call->verdict != ADAPTER_UNMODIFIED)
        recall->verdict.head = adapted_text(recall, call);
    if (body != NULL)
        return copy_body(recall, body);
    recall_keep(recall);
    return NULL;
}

void recall_end(struct recall *recall) {
    CHECK_OBJ(recall, RECALL_MAGIC);
    if (recall->from != NULL)
        task_cancel(&recall->task);
}
