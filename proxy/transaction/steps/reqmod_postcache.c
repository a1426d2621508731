#include "transaction/steps/reqmod_postcache.h"

#include "origin/scheme.h"
#include "transaction/access_permit.h"
#include "transaction/disclosure.h"
#include "transaction/fail.h"
#include "transaction/internal.h"
#include "transaction/steps/intercept.h"
#include "transaction/steps/reqmod.h"
#include "transaction/transaction.h"

/* REQMOD_POSTCACHE: asks services that change or answer requests on their way to the origin. */

enum step reqmod_postcache_or_fetch(struct transaction *transaction) {
    bool wanted = transaction->adapt->any[ADAPT_REQMOD_POSTCACHE] &&
                  !internal_is_asked(transaction) &&
                  reqmod_is_wanted_at(transaction, ADAPT_REQMOD_POSTCACHE);
    return wanted ? STEP_REQMOD_POSTCACHE : intercept_next(transaction);
}

static void reqmod_postcache_start(struct transaction *transaction) {
    struct reqmod_postcache *outgoing = arena_alloc(&transaction->arena, sizeof *outgoing);
    transaction->reqmod_postcache = outgoing;
    request_own(transaction);
    request_take_body(transaction);
    http_head_assign(&outgoing->head, transaction->request.head);
    outgoing->url = transaction->request.url;
    outgoing->url_text = transaction->request.url_text;
    outgoing->authority = transaction->request.authority;
    reqmod_start(transaction, &outgoing->reqmod, ADAPT_REQMOD_POSTCACHE, &outgoing->head);
}

/* The request for the origin may have another destination. */
static enum step adopt_outgoing(struct transaction *transaction) {
    struct reqmod_postcache *outgoing = transaction->reqmod_postcache;
    struct http_head *request = &outgoing->head;
    struct url url;
    reqmod_take_body(transaction, &outgoing->reqmod);
    if (!outgoing->reqmod.chain.modified)
        return intercept_next(transaction);
    request->method_id = http_method_lookup(request->method);
    if (transaction->request.kind == REQUEST_CONNECT) {
        intercept_narrow(transaction, request);
        return intercept_next(transaction);
    }
    if (!reqmod_parse_target(transaction, request, &url) ||
        !request_write_url(transaction, &url, &outgoing->url, &outgoing->url_text,
                           &outgoing->authority) ||
        !origin_can_fetch(outgoing->url.scheme))
        return reqmod_fail_url(transaction);
    disclosure_note_services(transaction, &outgoing->reqmod, FIELDS_AT_ORIGIN);
    if (!slice_equal(request->method, transaction->request.head->method))
        return fail_with(transaction, 502,
                         "an adaptation service at reqmod_postcache changed the method");
    const char *denial = access_denial(transaction);
    return denial != NULL ? fail_denied(transaction, denial) : STEP_FETCH;
}

enum step step_reqmod_postcache(struct transaction *transaction) {
    if (transaction->reqmod_postcache == NULL)
        reqmod_postcache_start(transaction);
    struct reqmod *reqmod = &transaction->reqmod_postcache->reqmod;
    switch (reqmod->chain.state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: return adopt_outgoing(transaction);
    case ADAPT_SATISFIED:
        lookup_forget(transaction); /* no stored response is used for the answer */
        return reqmod_adopt_response(transaction, reqmod);
    default: return reqmod_fail(transaction, reqmod);
    }
}

void reqmod_postcache_close(struct transaction *transaction) {
    if (transaction->reqmod_postcache != NULL)
        reqmod_close(transaction, &transaction->reqmod_postcache->reqmod);
}
