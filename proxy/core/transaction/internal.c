#include "transaction/internal.h"

#include "event/source.h"
#include "http/neutral.h"
#include "transaction/transaction.h"

/* The host "retort.internal": resources that Retort serves itself, through the cache like all
 * others. Its neutral resources replace advertisements; its other pages are those of parts. */

bool internal_is_asked(const struct transaction *transaction) {
    return slice_equal_nocase(transaction->request.url.host, SLICE("retort.internal"));
}

bool internal_has_pac(const struct settings *settings, struct slice path) {
    return settings->has_pac &&
           (slice_equal(path, SLICE("/proxy.pac")) || slice_equal(path, SLICE("/wpad.dat")));
}

void internal_respond(struct transaction *transaction, unsigned status, struct slice type,
                      struct slice cache_control, struct slice body) {
    struct arena *arena = &transaction->arena;
    struct loop *loop = transaction->net->loop;
    struct http_head *head = arena_alloc(arena, sizeof *head);
    http_head_init(head);
    head->status = status;
    head->reason = slice_from(http_reason(status));
    http_head_add(head, SLICE("Content-Type"), type);
    http_head_add(head, SLICE("Cache-Control"), cache_control);
    storing_note_moment(transaction);
    fetch_name_origin(transaction, SLICE("retort.internal"));
    struct source *source = NULL;
    if (transaction->request.head->method_id != HTTP_METHOD_HEAD)
        source = bytes_source_start(arena_alloc(arena, sizeof(struct bytes_source)), body, loop);
    response_set(&transaction->response, head, &source);
    response_set_times(&transaction->response, loop->wall, loop->wall);
}

/* Has a part a page of that path? */
static bool answer_by_part(struct transaction *transaction, struct slice path) {
    PARTS_FOR_EACH (number, worker.answer_internal)
        if (part_table[number]->worker.answer_internal(transaction, path))
            return true;
    return false;
}

void internal_answer(struct transaction *transaction) {
    struct slice path = url_path(&transaction->request.url);
    const struct neutral *neutral = neutral_find(slice_make(path.base + 1, path.length - 1));
    if (neutral != NULL)
        internal_respond(transaction, 200, neutral->type, SLICE("public, max-age=86400"),
                         neutral->body);
    else if (!answer_by_part(transaction, path))
        internal_respond(transaction, 404, SLICE("text/plain"), SLICE("no-store"),
                         SLICE("There is no such page at retort.internal.\n"));
}
