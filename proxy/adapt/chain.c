#include "adapt/chain.h"

#include "base/assert.h"

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct slice head_bytes(struct arena *arena, const struct http_head *head,
                               size_t (*write)(const struct http_head *, char *, size_t)) {
    size_t length = write(head, NULL, 0);
    char *bytes = arena_alloc(arena, length + 3);
    write(head, bytes, length + 1);
    memcpy(bytes + length, "\r\n", 3);
    return slice_make(bytes, length + 2);
}

static void start_stage(struct adapt_chain *chain) {
    struct adapt_message *message = chain->message;
    struct icap_request request = {
        .request_head = head_bytes(chain->arena, message->request, http_head_write_request),
        .response_head =
            chain->reqmod ? slice_make("", 0)
                          : head_bytes(chain->arena, message->response, http_head_write_response),
        .virgin = &message->body,
        .path = message->path,
        .client_ip = message->client_ip,
        .transaction_id = message->transaction_id,
    };
    struct icap_call *call = arena_alloc(chain->arena, sizeof *call);
    chain->calls[chain->at] = call;
    chain->stage_started = nanoseconds();
    icap_call_start(call, chain->services[chain->at], &request, chain->adapted, &chain->task);
}

static void record(struct adapt_chain *chain, const char *verdict) {
    struct adapt_record *entry = &chain->records[chain->at];
    entry->service = chain->services[chain->at]->settings->name;
    entry->verdict = verdict;
    entry->milliseconds = (unsigned)((nanoseconds() - chain->stage_started + 500000) / 1000000);
}

/* The adapted head takes the place of the old one; framing is ours to decide. */
static void take_head(struct adapt_chain *chain, struct icap_call *call, struct http_head **slot) {
    if (call->head_given) {
        char *bytes = arena_alloc(chain->arena, http_head_size(chain->adapted));
        if (*slot == NULL)
            *slot = arena_alloc(chain->arena, sizeof **slot);
        http_head_copy(*slot, chain->adapted, bytes);
    }
    if (*slot == NULL)
        return;
    http_head_remove_hop_by_hop(*slot);
    if (!chain->reqmod || slot == &chain->message->response)
        http_head_remove(*slot, HTTP_CONTENT_LENGTH);
}

static void unmodified(struct adapt_chain *chain, struct icap_call *call) {
    chain->net->counters.icap_unmodified++;
    record(chain, "UNMODIFIED");
    chain->message->body = icap_call_body(call);
}

/* Origins exist that want a length: an adapted request goes out with the one that the service stated.
 * Whoever sends the body checks it. */
static void trust_length(struct adapt_message *message) {
    uint64_t length;
    if (message->body != NULL &&
        slice_to_uint64(http_head_value(message->request, HTTP_CONTENT_LENGTH), &length) &&
        length <= INT64_MAX)
        message->body->length = (int64_t)length;
}

static void modified(struct adapt_chain *chain, struct icap_call *call) {
    chain->net->counters.icap_modified++;
    record(chain, "MODIFIED");
    chain->modified = true;
    take_head(chain, call, chain->reqmod ? &chain->message->request : &chain->message->response);
    chain->message->body = icap_call_body(call);
    if (chain->reqmod)
        trust_length(chain->message);
}

static enum adapt_state satisfied(struct adapt_chain *chain, struct icap_call *call) {
    chain->net->counters.icap_satisfied++;
    record(chain, "SATISFIED");
    chain->modified = true;
    take_head(chain, call, &chain->message->response);
    chain->message->body = icap_call_body(call);
    return ADAPT_SATISFIED;
}

static enum adapt_state failed(struct adapt_chain *chain, struct icap_call *call) {
    if (chain->services[chain->at]->settings->bypass &&
        icap_call_recover(call, &chain->message->body)) {
        chain->net->counters.icap_bypassed++;
        record(chain, "BYPASSED");
        chain->bypassed = true;
        return ADAPT_RUNNING;
    }
    record(chain, "FAILED");
    chain->error = call->error;
    chain->failed_service = chain->services[chain->at]->settings->name;
    return ADAPT_FAILED;
}

static enum adapt_state take_verdict(struct adapt_chain *chain, struct icap_call *call) {
    switch (call->verdict) {
    case ICAP_UNMODIFIED: unmodified(chain, call); return ADAPT_RUNNING;
    case ICAP_MODIFIED: modified(chain, call); return ADAPT_RUNNING;
    case ICAP_SATISFIED: return satisfied(chain, call);
    default: return failed(chain, call);
    }
}

/* One of the services has spoken. */
static void on_verdict(struct task *task) {
    struct adapt_chain *chain = CONTAINER_OF(task, struct adapt_chain, task);
    CHECK_OBJ(chain, ADAPT_CHAIN_MAGIC);
    struct icap_call *call = chain->calls[chain->at];
    if (chain->state != ADAPT_RUNNING || call->verdict == ICAP_PENDING)
        return;
    chain->state = take_verdict(chain, call);
    chain->at++;
    if (chain->state == ADAPT_RUNNING && chain->at < chain->count) {
        start_stage(chain);
        return;
    }
    if (chain->state == ADAPT_RUNNING)
        chain->state = ADAPT_DONE;
    loop_defer(chain->net->loop, chain->waker);
}

void adapt_chain_start(struct adapt_chain *chain, struct icap_service *const *services,
                       unsigned count, struct adapt_message *message, struct arena *arena,
                       struct net_context *net, struct task *waker) {
    ASSERT(count > 0 && count <= ADAPT_CHAIN_MAX);
    INIT_OBJ(chain, ADAPT_CHAIN_MAGIC);
    memcpy(chain->services, services, count * sizeof *services);
    chain->count = count;
    chain->state = ADAPT_RUNNING;
    chain->message = message;
    chain->reqmod = message->response == NULL;
    chain->arena = arena;
    chain->net = net;
    chain->waker = waker;
    chain->adapted = arena_alloc(arena, sizeof *chain->adapted);
    task_init(&chain->task, on_verdict);
    start_stage(chain);
}

void adapt_chain_close(struct adapt_chain *chain) {
    if (chain->magic != ADAPT_CHAIN_MAGIC)
        return;
    task_cancel(&chain->task);
    /* The last first: each reads from the one before it. */
    for (unsigned i = chain->count; i-- > 0;)
        if (chain->calls[i] != NULL)
            icap_call_close(chain->calls[i]);
    chain->magic = 0;
}
