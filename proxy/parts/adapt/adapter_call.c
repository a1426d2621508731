#include "adapt/adapter_call.h"

#include "adapt/recording.h"
#include "base/assert.h"
#include "base/clocks.h"

#include <stdlib.h>

struct adapter_call *adapter_call_start(struct adapter *adapter,
                                        const struct adapter_request *request,
                                        struct http_head *adapted, struct task *waker) {
    struct adapter_request recorded;
    CHECK_OBJ(adapter, ADAPTER_MAGIC);
    struct adapter_call *call = arena_alloc(request->arena, adapter->class->call_size);
    if (adapter->host->records != NULL) {
        recorded = *request;
        recorded.recording = adapter->host->records->begin(adapter, request);
        request = &recorded;
    }
    adapter->class->start(call, adapter, request, adapted, waker);
    return call;
}

void adapter_call_end(struct adapter_call *call) {
    struct adapter_host *host = call->adapter->host;
    struct recording *recording = call->recording;
    call->recording = NULL;
    if (recording != NULL)
        recording->class->described(recording, call);
    call->adapter->class->end(call);
    if (recording != NULL)
        recording->class->end(recording, host);
}

void adapter_call_init(struct adapter_call *call, struct adapter *adapter,
                       const struct http_head *given, struct source **body,
                       struct recording *recording, struct http_head *adapted, struct task *waker) {
    const struct service_settings *settings = adapter->settings;
    struct net_context *net = adapter->host->net;
    const struct spill_file_limits limits = {
        .memory = settings->keep,
        .file = settings->keep_on_disk,
        .directory = settings->temporary_directory,
        .spare = &net->spare_blocks,
    };
    call->magic = ADAPTER_CALL_MAGIC;
    call->adapter = adapter;
    call->recording = recording;
    call->waker = waker;
    call->adapted = adapted;
    call->has_body = *body != NULL;
    call->started = clocks_microseconds(CLOCK_MONOTONIC);
    virgin_body_init(&call->virgin, net->loop, body, &limits);
    stated_length_init(&call->stated, given, call->virgin.first.length);
}

static uint64_t adapter_call_age(const struct adapter_call *call) {
    return clocks_microseconds(CLOCK_MONOTONIC) - call->started;
}

static void adapter_call_note_all(struct adapter_call *call, uint64_t microseconds) {
    times_add(&call->adapter->account.to_last_byte, microseconds);
    call->figures.last_byte = microseconds;
}

void adapter_call_has_all(struct adapter_call *call) {
    adapter_call_note_all(call, adapter_call_age(call));
}

static void adapter_call_count(struct adapter_call *call) {
    struct adapter_account *account = &call->adapter->account;
    const struct adapter_result *result = &call->result;
    switch (call->verdict) {
    case ADAPTER_UNMODIFIED: account->unmodified++; break;
    case ADAPTER_MODIFIED: *(result->partial ? &account->partial : &account->modified) += 1; break;
    case ADAPTER_SATISFIED: account->satisfied++; break;
    default: return;
    }
    account->unable += result->unable != NULL;
    uint64_t took = call->settled - call->started;
    times_add(&account->to_verdict, took);
    if (call->verdict == ADAPTER_UNMODIFIED || !result->has_body)
        adapter_call_note_all(call, took);
}

void adapter_call_settle(struct adapter_call *call, enum adapter_verdict verdict) {
    CHECK_OBJ(call, ADAPTER_CALL_MAGIC);
    ASSERT(call->verdict == ADAPTER_PENDING);
    call->verdict = verdict;
    call->settled = clocks_microseconds(CLOCK_MONOTONIC);
    if (call->result.tag == 0) /* nobody was asked */
        call->result.tag = service_tag_value(call->adapter->tag);
    adapter_call_count(call);
    if (call->recording != NULL)
        call->recording->class->settled(call->recording, call);
    if (call->waker != NULL)
        loop_defer(call->adapter->host->net->loop, call->waker);
}

struct source *adapter_call_body(struct adapter_call *call) {
    CHECK_OBJ(call, ADAPTER_CALL_MAGIC);
    if (call->verdict == ADAPTER_UNMODIFIED)
        return call->has_body ? virgin_body_hand_on(&call->virgin) : NULL;
    if (!call->result.has_body)
        return NULL;
    struct source *body = call->adapter->class->body(call);
    struct recording *recording = call->recording;
    return recording == NULL || body == NULL ? body : recording->class->body(recording, body);
}

bool adapter_call_recover(struct adapter_call *call, struct source **body) {
    CHECK_OBJ(call, ADAPTER_CALL_MAGIC);
    ASSERT(call->verdict == ADAPTER_FAILED || call->broken);
    *body = NULL;
    if (!virgin_body_is_whole(&call->virgin) || call->virgin.failed)
        return false;
    if (call->has_body)
        *body = virgin_body_hand_on(&call->virgin);
    return true;
}

void adapter_call_forget_reader(struct adapter_call *call) {
    CHECK_OBJ(call, ADAPTER_CALL_MAGIC);
    if (call->virgin.replaying && call->virgin.from != NULL)
        source_set_waker(call->virgin.from, NULL);
}

uint64_t adapter_call_kept(const struct adapter_call *call) {
    CHECK_OBJ(call, ADAPTER_CALL_MAGIC);
    bool undecided = call->verdict == ADAPTER_PENDING && virgin_body_is_whole(&call->virgin);
    return undecided ? spill_file_length(&call->virgin.kept) : 0;
}

size_t adapter_call_peek(const struct adapter_call *call, struct spill_file_cursor *cursor,
                         char *buffer, size_t capacity) {
    if (adapter_call_kept(call) <= cursor->taken)
        return 0;
    ssize_t got = spill_file_peek(&call->virgin.kept, cursor, buffer, capacity);
    return got > 0 ? (size_t)got : 0;
}

void adapter_call_commit(struct adapter_call *call) {
    CHECK_OBJ(call, ADAPTER_CALL_MAGIC);
    bool wanted = call->result.partial && !call->body_ended;
    if (call->verdict != ADAPTER_PENDING && !wanted)
        virgin_body_stop_keeping(&call->virgin);
}

void adapter_call_release(struct adapter_call *call) {
    CHECK_OBJ(call, ADAPTER_CALL_MAGIC);
    struct adapter_account *account = &call->adapter->account;
    account->kept_on_disk += call->virgin.kept.on_disk;
    account->unkept += call->virgin.unkept;
    virgin_body_release(&call->virgin);
    free(call->result.next_services);
    free(call->result.unable);
    call->magic = 0;
}
