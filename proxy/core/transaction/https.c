#include "transaction/https.h"

#include "transaction/steps/deliver.h"
#include "transaction/transaction.h"

#include <string.h>

enum { HTTPS_PORT = 443 };

static struct slice https_location(struct transaction *transaction) {
    const struct url *url = &transaction->request.url;
    unsigned port = transaction->exchange->listen->redirect_to_https;
    bool brackets = memchr(url->host.base, ':', url->host.length) != NULL;
    struct slice where =
        port == HTTPS_PORT ? SLICE("") : arena_printf(&transaction->arena, ":%u", port);
    struct slice pieces[] = {
        SLICE("https://"),
        brackets ? SLICE("[") : SLICE(""),
        url->host,
        brackets ? SLICE("]") : SLICE(""),
        where,
        url->path_query,
    };
    return arena_join(&transaction->arena, pieces, sizeof pieces / sizeof *pieces);
}

/* 301 would let a client turn a POST into a GET (RFC 9110 §15.4.2). */
enum step https_redirect(struct transaction *transaction) {
    const struct http_head *request = transaction->request.head;
    bool reads = request->method_id == HTTP_METHOD_GET || request->method_id == HTTP_METHOD_HEAD;
    if (slice_starts_with(url_path(&transaction->request.url),
                          SLICE("/.well-known/acme-challenge/")))
        return STEP_NEXT;
    request_own(transaction);
    struct http_head *head =
        delivery_make_page(transaction, RESULT_NONE, reads ? 301 : 308,
                           SLICE("<!DOCTYPE html>\n<title>Moved</title>\n"
                                 "<p>This page is at the same address with https.</p>\n"));
    http_head_add(head, SLICE("Location"), https_location(transaction));
    return STEP_DELIVER;
}

static bool is_reverse(const struct exchange *exchange) {
    return exchange->listen != NULL && exchange->listen->mode == LISTEN_REVERSE;
}

bool https_tells_of_client(const struct exchange *exchange) {
    return is_reverse(exchange) && exchange->listen->tls.client_certificate_fields &&
           exchange->ends->tls->subject[0] != '\0';
}

static const char client_prefix[] = "X-SSL-Client-";

/* Whoever could send these fields himself would be taken for somebody else. */
static void remove_client_fields(struct http_head *head) {
    for (unsigned i = 0; i < head->field_count;) {
        if (slice_starts_with_nocase(head->fields[i].name,
                                     slice_make(client_prefix, sizeof client_prefix - 1)))
            http_head_remove_text(head, head->fields[i].name);
        else
            i++;
    }
}

void https_tell_origin(struct transaction *transaction, struct http_head *head) {
    const struct exchange *exchange = transaction->exchange;
    const struct tls_facts *facts = exchange->ends->tls;
    if (!is_reverse(exchange))
        return;
    remove_client_fields(head);
    if (!exchange->listen->tls.client_certificate_fields)
        return;
    if (!https_is_personal(exchange)) {
        http_head_add(head, SLICE("X-SSL-Client-Verify"), SLICE("NONE"));
        return;
    }
    http_head_add(head, SLICE("X-SSL-Client-Verify"), SLICE("SUCCESS"));
    http_head_add(head, SLICE("X-SSL-Client-Subject"), slice_from(facts->subject));
    http_head_add(head, SLICE("X-SSL-Client-Issuer"), slice_from(facts->issuer));
    http_head_add(head, SLICE("X-SSL-Client-Serial"), slice_from(facts->serial));
    http_head_add(head, SLICE("X-SSL-Client-Fingerprint"), slice_from(facts->fingerprint));
}

static const char hsts_name[] = "Strict-Transport-Security";

/* Returns a stored head, or lines of one, without the origin's field. */
static struct slice without_hsts(struct transaction *transaction, struct slice head) {
    const char *end = head.base + head.length;
    for (const char *line = head.base; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        next = next != NULL ? next + 1 : end;
        if (slice_starts_with_nocase(slice_make(line, (size_t)(next - line)),
                                     SLICE("Strict-Transport-Security:"))) {
            struct slice before = slice_make(head.base, (size_t)(line - head.base));
            struct slice rest = slice_make(next, (size_t)(end - next));
            return arena_concat(&transaction->arena, before, rest);
        }
        line = next;
    }
    return head;
}

void https_secure_reply(struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    struct reply *reply = &transaction->delivery.reply;
    if (exchange->listen == NULL || exchange->listen->tls.hsts == NULL ||
        exchange->ends->tls == NULL)
        return;
    struct slice name = slice_make(hsts_name, sizeof hsts_name - 1);
    if (reply->head == NULL) {
        reply->stored = without_hsts(transaction, reply->stored);
    } else if (http_head_find_text(reply->head, name) != NULL) {
        struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
        http_head_assign(head, reply->head);
        http_head_remove_text(head, name);
        reply->head = head;
    }
    struct slice extra = transaction->settings->changes_replies
                             ? without_hsts(transaction, reply->extra)
                             : reply->extra;
    struct slice pieces[] = {extra, name, SLICE(": "), slice_from(exchange->listen->tls.hsts),
                             SLICE("\r\n")};
    reply->extra = arena_join(&transaction->arena, pieces, sizeof pieces / sizeof *pieces);
}
