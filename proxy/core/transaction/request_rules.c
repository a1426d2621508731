#include "transaction/request_rules.h"

#include "client/intercepted.h"
#include "event/loop.h"
#include "match/regex.h"
#include "transaction/access.h"
#include "transaction/transaction.h"

/* The name that the client's TLS asks for; inside an intercepted connection that of the outside. */
static struct slice request_sni(const struct exchange_ends *ends) {
    if (ends->intercepted != NULL)
        return ends->intercepted->facts.sni;
    return ends->tls != NULL ? slice_from(ends->tls->server_name) : slice_make("", 0);
}

/* The subject of the client's certificate, if the listener trusts it. */
static struct slice request_certificate(const struct exchange_ends *ends) {
    bool trusted = ends->tls != NULL && strcmp(ends->tls->verified, "ok") == 0;
    return trusted ? slice_from(ends->tls->subject) : slice_make("", 0);
}

void request_subject(const struct transaction *transaction, struct class_subject *subject) {
    const struct request *request = &transaction->request;
    const struct exchange_ends *ends = transaction->exchange->ends;
    const struct listen_settings *listen = transaction->exchange->listen;
    *subject = (struct class_subject){
        .method = request->head->method,
        .host = request->url.host,
        .url = request->url_text,
        .path = url_path(&request->url),
        .scheme = request->url.scheme,
        .port = request->url.port,
        .client = request_client(transaction),
        .listener = slice_from(listen != NULL ? listen->name : ""),
        .head = request->head,
        .sni = request_sni(ends),
        .certificate = request_certificate(ends),
        .user = request->user,
        .destinations = request->destinations,
        .destination_count = request->destination_count,
        .wall = transaction->net->loop->wall,
    };
}

/* The rules of the settings that match a transaction. They are matched once, and again only when
 * the request has changed, or when more is known about it. */

/* Both are apart from request_rules, so that most requests save no registers for them. */
__attribute__((noinline)) static const uint64_t *
request_rules_find(struct transaction *transaction) {
    struct class_subject subject;
    request_subject(transaction, &subject);
    regex_take_gave_up();
    const uint64_t *bits = rules_find(transaction->settings->rules, &subject, &transaction->arena);
    transaction->request.rules_unsure = regex_take_gave_up();
    return bits;
}

/* An access section with action = tunnel: no service sees the request. */
__attribute__((noinline)) static void leave_services_out(struct transaction *transaction) {
    const struct settings *settings = transaction->settings;
    size_t words = rules_words(settings->rules), first = settings->rule_first[RULE_ADAPT];
    if (settings_next_rule(settings, RULE_ADAPT, transaction->request.rules, 0) ==
        settings->rule_count[RULE_ADAPT])
        return;
    uint64_t *bits = arena_alloc(&transaction->arena, words * sizeof *bits);
    memcpy(bits, transaction->request.rules, words * sizeof *bits);
    for (size_t rule = first; rule < first + settings->rule_count[RULE_ADAPT]; rule++)
        bits[rule / 64] &= ~((uint64_t)1 << rule % 64);
    transaction->request.rules = bits;
}

__attribute__((noinline)) static const uint64_t *
request_rules_match(struct transaction *transaction) {
    if (transaction->request.rules == NULL)
        transaction->request.rules = rules_glance(
            transaction->settings->rules, &transaction->request.url, transaction->request.url_text);
    if (transaction->request.rules == NULL)
        transaction->request.rules = request_rules_find(transaction);
    if (access_is_tunnel(transaction))
        leave_services_out(transaction);
    return transaction->request.rules;
}

const uint64_t *request_rules(struct transaction *transaction) {
    const uint64_t *rules = transaction->request.rules;
    return rules != NULL && !access_is_tunnel(transaction) ? rules
                                                           : request_rules_match(transaction);
}

const uint64_t *request_rules_without_type(struct transaction *transaction) {
    return rules_without_type(transaction->settings->rules, request_rules(transaction),
                              &transaction->arena);
}

const uint64_t *request_rules_for_response(struct transaction *transaction,
                                           const struct http_head *response) {
    return rules_with_type(transaction->settings->rules, request_rules(transaction),
                           http_head_value(response, HTTP_CONTENT_TYPE), &transaction->arena);
}
