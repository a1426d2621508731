#include "access/purge_orders.h"
#include "access/state.h"
#include "cache/key.h"
#include "match/regex.h"
#include "transaction/fail.h"
#include "transaction/invalidate.h"
#include "transaction/steps/admit.h"

/* PURGE: carries out the methods PURGE and BAN of a client that an access section has let in.
 *
 *     PURGE http://www.example.com/a        removes the stored response, all its variants
 *     BAN http://www.example.com/img/       removes all whose URLs begin so, and match the regular
 *     X-Ban-Regex: \.jpe?g$                 expression
 */

enum { REGEX_MAX = 1000 };

static const struct slice ban_field = {"X-Ban-Regex", sizeof "X-Ban-Regex" - 1};

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

/* Other caches purge by the keys in such a field, whatever the URL is: to purge the URL alone, or all
 * that is below it, is not what the client asks for. */
static bool asks_for_keys(const struct http_head *request) {
    static const char *const fields[] = {"Surrogate-Key", "Cache-Tag", "xkey"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (http_head_find_text(request, slice_from(fields[i])) != NULL)
            return true;
    return false;
}

static enum step purge_start(struct transaction *transaction) {
    bool one = transaction->request.head->method_id == HTTP_METHOD_PURGE;
    if (asks_for_keys(transaction->request.head))
        return fail_with(transaction, 400,
                         "PURGE and BAN remove by URL, never by the keys in Surrogate-Key, "
                         "Cache-Tag or xkey: to remove by a key, POST to /v1/cache/purge?tag=KEY "
                         "at the admin plane, or run retortctl cache purge --tag KEY");
    struct slice url = transaction->request.url_text, regex = slice_make("", 0);
    if (!one && !take_regex(transaction, &regex))
        return STEP_DELIVER;
    if (one)
        url = cache_url_by_settings(url, transaction->settings, NULL, &transaction->arena);
    request_own(transaction);
    struct access_state *access = access_state(transaction);
    access->purge = purge_orders_send(transaction->host->parts[PART_ACCESS],
                                      one ? PURGE_ONE : PURGE_BELOW, url, regex, transaction);
    if (access->purge == NULL)
        return fail_later(transaction, 503, "too many orders to remove responses are waiting", 1);
    transaction->net->counters.client_purges++;
    return STEP_WAIT;
}

static enum step purge_answer(struct transaction *transaction) {
    const struct purge_order *order = access_state(transaction)->purge;
    if (invalidate_is_in_vain(transaction))
        return fail_later(transaction, 503,
                          "another process of the proxy serves new connections by now: repeat this "
                          "on a new one",
                          1);
    if (!order->kept)
        return fail_with(transaction, 500,
                         "the responses are removed, but a disk could not be written, so a restart "
                         "would bring them back");
    if (order->untold)
        return fail_with(
            transaction, 500,
            "the responses are removed here, but no other node of the fleet hears of it: "
            "retortctl fleet says why");
    bool none = order->kind == PURGE_ONE && order->count == 0;
    struct http_head *head = delivery_make_page(
        transaction, RESULT_NONE, none ? 404 : 200,
        arena_printf(&transaction->arena, "{\"purged\": %llu, \"counted\": %s}\n",
                     (unsigned long long)order->count, order->counted ? "true" : "false"));
    http_head_set(head, HTTP_CONTENT_TYPE, SLICE("application/json"));
    return STEP_DELIVER;
}

static enum step purge_run(struct transaction *transaction) {
    if (access_state(transaction)->purge == NULL)
        return purge_start(transaction);
    return access_state(transaction)->purge->done ? purge_answer(transaction) : STEP_WAIT;
}

static void purge_end(struct transaction *transaction) {
    struct access_state *access = access_state(transaction);
    if (access != NULL && access->purge != NULL)
        purge_order_leave(&access->purge);
}

static bool purge_is_needed(const struct settings *settings) {
    return accesses_of(settings)->purges;
}

static bool purge_is_wanted(struct transaction *transaction) {
    return admit_is_purge(transaction->request.head);
}

const struct step_row purge_step = {
    .name = "PURGE",
    .step = STEP_PURGE,
    .run = purge_run,
    .is_needed = purge_is_needed,
    .is_wanted = purge_is_wanted,
    .begins = true,
    .end = purge_end,
};
