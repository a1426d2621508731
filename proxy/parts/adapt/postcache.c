#include "adapt/postcache.h"

#include "adapt/shown_message.h"
#include "transaction/transaction.h"

/* Does the same for all that services at respmod_postcache get of a response. */

void postcache_end(struct postcache *postcache) {
    pump_stop(&postcache->pump);
    source_close(&postcache->message.body);
    adapt_chain_close(&postcache->chain);
    body_release(&postcache->body);
}

struct http_head *postcache_head(struct transaction *transaction, const struct object *subject) {
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    if (subject == NULL) {
        http_head_assign(head, transaction->response.head);
        return head;
    }
    object_parse_head(subject, head);
    const struct body *body = subject->body;
    int64_t length = body->expected;
    if (body_state(body) == BODY_COMPLETE)
        length = (int64_t)body_length(body);
    if (length >= 0 && head->status != 204)
        http_head_set(head, HTTP_CONTENT_LENGTH,
                      arena_printf(&transaction->arena, "%ld", (long)length));
    return head;
}

static struct slice opaque_tag(struct slice etag) {
    return slice_starts_with(etag, SLICE("W/")) ? slice_make(etag.base + 2, etag.length - 2) : etag;
}

void postcache_forget_etag(struct http_head *head, struct slice old_etag) {
    if (slice_equal(opaque_tag(http_head_value(head, HTTP_ETAG)), opaque_tag(old_etag)))
        http_head_remove(head, HTTP_ETAG);
}

void postcache_start(struct postcache *postcache, struct transaction *transaction,
                     const struct object *subject, struct http_head *response,
                     struct adapter *const *chosen, unsigned count) {
    struct body *body = subject != NULL ? subject->body : transaction->storing.body;
    message_begin(transaction, &postcache->message, message_copy_request(transaction), response);
    if (response->status != 204)
        postcache->message.body = body_source_open(&postcache->source, body, transaction->net->loop,
                                                   transaction->host->mailbox);
    adapt_chain_start(&postcache->chain, adapt_set_of(transaction), chosen, count,
                      &postcache->message, &transaction->arena, transaction->net,
                      &transaction->task);
}
