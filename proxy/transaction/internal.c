#include "transaction/internal.h"

#include "event/bytes_source.h"
#include "http/neutral.h"
#include "transaction/ca_page.h"
#include "transaction/page.h"
#include "transaction/transaction.h"

/* The host "retort.internal": resources that Retort serves itself, through the cache like all
 * others. Its neutral resources replace advertisements; its other pages give clients the certificate
 * of the proxy's authority. */

bool internal_is_asked(const struct transaction *transaction) {
    return slice_equal_nocase(transaction->request.url.host, SLICE("retort.internal"));
}

bool internal_has_pac(const struct settings *settings, struct slice path) {
    return settings->pac.text != NULL &&
           (slice_equal(path, SLICE("/proxy.pac")) || slice_equal(path, SLICE("/wpad.dat")));
}

static void internal_respond(struct transaction *transaction, unsigned status, struct slice type,
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

/* The page for people may be an operator's. */
static void internal_give_ca_page(struct transaction *transaction, const struct ca_page *found) {
    struct ca_page_names names = {transaction->settings, &transaction->arena};
    struct page_text page = {.purpose = PAGE_FOR_AUTHORITY, .value = ca_page_value, .arg = &names};
    if (!found->is_text || !page_write(transaction, &page))
        page.body = found->body;
    internal_respond(transaction, 200, found->type, SLICE("no-store"), page.body);
    page_add_language(transaction->response.head, &page);
}

void internal_answer(struct transaction *transaction) {
    struct slice path = url_path(&transaction->request.url);
    struct ca_page page;
    const struct neutral *neutral = neutral_find(slice_make(path.base + 1, path.length - 1));
    if (neutral != NULL)
        internal_respond(transaction, 200, neutral->type, SLICE("public, max-age=86400"),
                         neutral->body);
    else if (ca_page_find(&page, transaction->settings, path, &transaction->arena))
        internal_give_ca_page(transaction, &page);
    else if (internal_has_pac(transaction->settings, path))
        internal_respond(transaction, 200, SLICE("application/x-ns-proxy-autoconfig"),
                         SLICE("no-store"), slice_from(transaction->settings->pac.text));
    else
        internal_respond(transaction, 404, SLICE("text/plain"), SLICE("no-store"),
                         SLICE("There is no such page at retort.internal.\n"));
}
