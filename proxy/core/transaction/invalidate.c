#include "transaction/invalidate.h"

#include "cache/key.h"
#include "cache/removal.h"
#include "transaction/transaction.h"

/* Invalidates stored responses that an unsafe method may have changed (RFC 9111 §4.4): the
 * target, and the URLs in Location and Content-Location on the same origin. */

static struct cache_name invalidate_name_of(struct transaction *transaction,
                                            struct slice url_text) {
    return cache_name_of(cache_url_by_settings(url_text, transaction->settings,
                                               request_client(transaction), &transaction->arena));
}

/* They are told in their order, so the last one is waited for. */
static void tell_removal(struct transaction *transaction, struct slice url) {
    struct removal_teller *teller = transaction->host->removals;
    bool untold = false;
    if (teller == NULL)
        return;
    struct removal_notice *notice =
        teller->removed(teller, url, transaction->host->mailbox, &transaction->task, &untold);
    transaction->net->counters.removals_untold += untold;
    if (notice == NULL)
        return;
    invalidate_end(transaction);
    transaction->told = notice;
}

static void remove_stored(struct transaction *transaction, const struct cache_name *name) {
    removal_of_name(transaction->host->cache, transaction->host->second_level, name);
    tell_removal(transaction, name->url);
}

static void invalidate_reference(struct transaction *transaction, struct slice reference) {
    struct url url;
    struct slice text = request_resolve(transaction, reference);
    /* An origin may not invalidate objects of another origin. */
    if (text.length > 0 && url_parse(&url, text) &&
        slice_equal(url.host, transaction->request.url.host) &&
        url.port == transaction->request.url.port) {
        struct cache_name name = invalidate_name_of(transaction, text);
        remove_stored(transaction, &name);
    }
}

/* The response itself is newer than the objects that it invalidates, unless another operation
 * has removed them since the origin was asked. */
void invalidate_stored(struct transaction *transaction) {
    struct cache *cache = transaction->host->cache;
    const struct http_head *response = transaction->response.head;
    if (transaction_is_unproven(transaction) ||
        http_method_is_safe(transaction->request.head->method_id) || response->status < 200 ||
        response->status >= 400)
        return;
    struct cache_name name = invalidate_name_of(transaction, transaction->request.url_text);
    bool disturbed = purges_has_key(cache_purges(cache), name.key, transaction->storing.since.keys);
    remove_stored(transaction, &name);
    invalidate_reference(transaction, http_head_value(response, HTTP_LOCATION));
    invalidate_reference(transaction, http_head_value(response, HTTP_CONTENT_LOCATION));
    if (!disturbed)
        storing_see_own_removal(transaction);
}

bool invalidate_is_told(struct transaction *transaction) {
    if (transaction->told != NULL && !transaction->told->done)
        return false;
    if (transaction->told != NULL && !transaction->told->told)
        transaction->net->counters.removals_untold++;
    invalidate_end(transaction);
    return true;
}

void invalidate_end(struct transaction *transaction) {
    if (transaction->told != NULL)
        transaction->told->leave(transaction->told);
    transaction->told = NULL;
}

bool invalidate_is_in_vain(const struct transaction *transaction) {
    const struct removal_teller *teller = transaction->host->removals;
    return teller != NULL && teller->are_elsewhere(teller);
}
