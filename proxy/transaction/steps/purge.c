#include "transaction/steps/purge.h"

#include "cache/key.h"
#include "match/regex.h"
#include "transaction/fail.h"
#include "transaction/purge_orders.h"
#include "transaction/transaction.h"

enum { REGEX_MAX = 1000 };

static const struct slice ban_field = {"X-Ban-Regex", sizeof "X-Ban-Regex" - 1};

bool purge_is_allowed(const struct http_head *request, const struct access_settings *section) {
    if (section == NULL || section->action == ACCESS_ACTION_TUNNEL)
        return false;
    return request->method_id == HTTP_METHOD_PURGE ? section->purges : section->bans;
}

enum step purge_refuse(struct transaction *transaction) {
    transaction->net->counters.client_purges_refused++;
    return fail_with(transaction, 405,
                     "PURGE and BAN are not supported: the operator of the proxy can remove stored "
                     "responses with retortctl cache purge or retortctl cache delete, or let "
                     "clients do it by an access section for a class with that method");
}

/* False: an error page is there. */
static bool take_regex(struct transaction *transaction, struct slice *regex) {
    char reason[300];
    const struct http_field *field = http_head_find_text(transaction->request.head, ban_field);
    *regex = slice_make("", 0);
    if (field == NULL)
        return true;
    const char *text = arena_copy(&transaction->arena, field->value);
    *regex = slice_from(text);
    if (field->value.length <= REGEX_MAX && regex_check(text, reason, sizeof reason))
        return true;
    fail_with(transaction, 400, "X-Ban-Regex is no regular expression, or longer than 1000 bytes");
    return false;
}

static enum step purge_start(struct transaction *transaction) {
    bool one = transaction->request.head->method_id == HTTP_METHOD_PURGE;
    struct slice url = transaction->request.url_text, regex = slice_make("", 0);
    if (!one && !take_regex(transaction, &regex))
        return STEP_DELIVER;
    if (one)
        url = cache_url_by_settings(url, transaction->settings, NULL, &transaction->arena);
    request_own(transaction);
    transaction->purge =
        purge_orders_send(transaction->host->purge_orders, one ? PURGE_ONE : PURGE_BELOW, url,
                          regex, transaction->host->mailbox, &transaction->task);
    if (transaction->purge == NULL)
        return fail_later(transaction, 503, "too many orders to remove responses are waiting", 1);
    transaction->net->counters.client_purges++;
    return STEP_WAIT;
}

static enum step purge_answer(struct transaction *transaction) {
    const struct purge_order *order = transaction->purge;
    if (order->retired)
        return fail_later(transaction, 503,
                          "another process of the proxy serves new connections by now: repeat this "
                          "on a new one",
                          1);
    if (!order->kept)
        return fail_with(transaction, 500,
                         "the responses are removed, but a disk could not be written, so a restart "
                         "would bring them back");
    bool none = order->kind == PURGE_ONE && order->count == 0;
    struct http_head *head = delivery_make_page(
        transaction, RESULT_NONE, none ? 404 : 200,
        arena_printf(&transaction->arena, "{\"purged\": %llu, \"counted\": %s}\n",
                     (unsigned long long)order->count, order->counted ? "true" : "false"));
    http_head_set(head, HTTP_CONTENT_TYPE, SLICE("application/json"));
    return STEP_DELIVER;
}

enum step step_purge(struct transaction *transaction) {
    if (transaction->purge == NULL)
        return purge_start(transaction);
    return transaction->purge->done ? purge_answer(transaction) : STEP_WAIT;
}

void purge_end(struct transaction *transaction) {
    purge_order_leave(&transaction->purge);
}
