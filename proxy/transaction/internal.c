#include "transaction/transaction.h"

#include "base/assert.h"
#include "http/neutral.h"

/* The host "retort.internal": a few things that Retort serves itself, through the cache like
 * anything else. The neutral resources are what replaced advertisements turn into. */

struct bytes_source {
    struct source source;
    struct slice left;
};

static enum source_status bytes_read(struct source *source, char *buffer, size_t capacity,
                                     size_t *got) {
    struct bytes_source *bytes = CONTAINER_OF(source, struct bytes_source, source);
    *got = bytes->left.length < capacity ? bytes->left.length : capacity;
    memcpy(buffer, bytes->left.base, *got);
    bytes->left.base += *got;
    bytes->left.length -= *got;
    return *got > 0 ? SOURCE_DATA : SOURCE_END;
}

static void bytes_close(struct source *source) {
    (void)source; /* in the transaction's arena */
}

static const struct source_class bytes_class = {"internal body", bytes_read, bytes_close, NULL};

bool transaction_is_internal(const struct transaction *transaction) {
    return slice_equal_nocase(transaction->url.host, SLICE("retort.internal"));
}

static void answer(struct transaction *transaction, unsigned status, struct slice type,
                   struct slice cache_control, struct slice body) {
    struct arena *arena = &transaction->arena;
    struct http_head *head = arena_alloc(arena, sizeof *head);
    http_head_init(head);
    head->version = 11;
    head->status = status;
    head->reason = slice_from(http_reason(status));
    http_head_add(head, SLICE("Content-Type"), type);
    http_head_add(head, SLICE("Cache-Control"), cache_control);
    transaction->response = head;
    transaction_note_moment(transaction);
    transaction->request_time = transaction->response_time = transaction->net->loop->wall;
    transaction->origin_name = SLICE("retort.internal");
    if (transaction->request->method_id == HTTP_METHOD_HEAD)
        return;
    struct bytes_source *source = arena_alloc(arena, sizeof *source);
    source_init(&source->source, &bytes_class, transaction->net->loop, (int64_t)body.length);
    source->left = body;
    transaction->response_body = &source->source;
}

void transaction_answer_internally(struct transaction *transaction) {
    struct slice path = url_path(&transaction->url);
    const struct neutral *neutral = neutral_find(slice_make(path.base + 1, path.length - 1));
    if (neutral != NULL)
        answer(transaction, 200, neutral->type, SLICE("public, max-age=86400"), neutral->body);
    else
        answer(transaction, 404, SLICE("text/plain"), SLICE("no-store"),
               SLICE("retort.internal has no such thing\n"));
}
