#include "origin/call.h"
#include "rewrite/head_rules.h"
#include "rewrite/settings.h"
#include "rewrite/url_rules.h"
#include "transaction/fail.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

/* REWRITE: lets rewrite and request_headers sections change the request of the client, before
 * services and the cache see it. The step runs only while there are such sections
 * (settings->any_rewrite). */

/* Takes what a rule has made for the URL of the request. */
static bool rewrite_adopt(struct transaction *transaction, struct slice text) {
    const struct request *request = &transaction->request;
    struct http_head *head = request->head;
    struct url url;
    if (text.length > 0 && text.base[0] == '/')
        text = arena_concat(&transaction->arena, request->url.scheme, SLICE("://"),
                            request->authority, text);
    if (!url_parse(&url, text) || !origin_can_fetch(url.scheme) ||
        !request_set_url(transaction, &url))
        return false;
    head->target = request->url_text;
    return true;
}

/* One pass: each section is tried once, with the URL as those before it have made it. Returns false
 * when a result can't be used. */
static bool rewrite_url(struct transaction *transaction, bool *changed) {
    const struct settings *settings = transaction->settings;
    const uint64_t *bits = request_rules_without_type(transaction);
    size_t count = settings->rule_count[RULE_REWRITE];
    for (size_t i = settings_next_rule(settings, RULE_REWRITE, bits, 0); i < count;
         i = settings_next_rule(settings, RULE_REWRITE, bits, i + 1)) {
        const struct rewrite_settings *section = &rewriting_settings_of(settings)->rewrites[i];
        struct slice made;
        switch (url_rule_apply(section->rule, transaction->request.url_text, transaction_variable,
                               transaction, &transaction->arena, &made)) {
        case URL_RULE_DIFFERS: continue;
        case URL_RULE_GAVE_UP: return false;
        case URL_RULE_REWRITES: break;
        }
        if (!*changed)
            request_own(transaction);
        *changed = true;
        if (!rewrite_adopt(transaction, made))
            return false;
        if (section->last)
            break;
    }
    return true;
}

/* Returns STEP_NEXT when the request goes on. */
static enum step change_url(struct transaction *transaction) {
    bool changed = false;
    if (!rewrite_url(transaction, &changed)) {
        transaction->net->counters.rewrite_failures++;
        return fail_with(transaction, 500,
                         "a rewrite section made something that is no URL of http or https, or its "
                         "expression needs too much work for this URL");
    }
    if (changed) {
        transaction->net->counters.urls_rewritten++;
        request_changed(transaction);
        request_show_host(transaction, http_head_value(transaction->request.head, HTTP_HOST));
    }
    return STEP_NEXT;
}

/* A request in the background repeats one that has been changed already. A CONNECT has no URL. */
static bool rewrite_is_wanted(struct transaction *transaction) {
    return !transaction->exchange->background && transaction->request.kind != REQUEST_CONNECT;
}

static enum step rewrite_run(struct transaction *transaction) {
    const struct rewriting_settings *mine = rewriting_settings_of(transaction->settings);
    if (mine->rewrite_count > 0 && transaction->request.kind != REQUEST_FOR_SERVER) {
        enum step next = change_url(transaction);
        if (next != STEP_NEXT)
            return next;
    }
    if (mine->any_at_client && !head_rules_change_request(transaction))
        return fail_to_change(transaction);
    return STEP_NEXT;
}

static bool rewrite_is_needed(const struct settings *settings) {
    return settings->any_rewrite;
}

const struct step_row rewrite_step = {
    .name = "REWRITE",
    .step = STEP_REWRITE,
    .run = rewrite_run,
    .is_needed = rewrite_is_needed,
    .is_wanted = rewrite_is_wanted,
};
