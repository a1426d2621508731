#include "adapt/adaptation.h"
#include "adapt/reqmod.h"
#include "adapt/told.h"
#include "origin/call.h"
#include "transaction/access.h"
#include "transaction/disclosed_identity.h"
#include "transaction/fail.h"
#include "transaction/internal.h"

/* REQMOD_POSTCACHE: asks services that change or answer requests on their way to the origin. They see
 * only what goes to the origin. What they make of a request is the origin's: the response is stored as
 * the answer to the client's request. */

static void reqmod_postcache_start(struct transaction *transaction) {
    struct outgoing *outgoing = arena_alloc(&transaction->arena, sizeof *outgoing);
    struct reqmod *reqmod = arena_alloc(&transaction->arena, sizeof *reqmod);
    adaptation_begin(transaction)->reqmod_postcache = reqmod;
    request_own(transaction);
    request_take_body(transaction);
    http_head_assign(&outgoing->head, transaction->request.head);
    outgoing->url = transaction->request.url;
    outgoing->url_text = transaction->request.url_text;
    outgoing->authority = transaction->request.authority;
    outgoing->changed = false;
    transaction->outgoing = outgoing;
    reqmod_start(transaction, reqmod, ADAPT_REQMOD_POSTCACHE, &outgoing->head);
    outgoing->by_who = reqmod->by_who;
}

/* The request for the origin may have another destination. */
static enum step adopt_outgoing(struct transaction *transaction) {
    struct reqmod *reqmod = adaptation_of(transaction)->reqmod_postcache;
    struct outgoing *outgoing = transaction->outgoing;
    struct http_head *request = &outgoing->head;
    struct url url;
    reqmod_take_body(transaction, reqmod);
    if (!reqmod->chain.modified)
        return STEP_NEXT;
    outgoing->changed = true;
    request->method_id = http_method_lookup(request->method);
    if (transaction->request.kind == REQUEST_CONNECT) {
        reqmod_change_connect(transaction, request);
        return STEP_NEXT;
    }
    if (!reqmod_parse_target(transaction, request, &url) ||
        !request_write_url(transaction, &url, &outgoing->url, &outgoing->url_text,
                           &outgoing->authority) ||
        !origin_can_fetch(outgoing->url.scheme))
        return reqmod_fail_url(transaction);
    if (told_who_asks(transaction, &reqmod->chain, reqmod->by_who))
        disclosed_identity_note_outgoing(transaction, reqmod->before);
    if (!slice_equal(request->method, transaction->request.head->method))
        return fail_with(transaction, 502,
                         "an adaptation service at reqmod_postcache changed the method");
    const char *denial =
        transaction->access != NULL ? transaction->access->class->denial(transaction) : NULL;
    return denial != NULL ? fail_denied(transaction, denial) : STEP_NEXT;
}

/* The response is the answer to what these services have made. */
static void reqmod_postcache_note(struct adapting *adapting, const struct adapt_chain *chain) {
    adapting->unable |= chain->unable || chain->bypassed;
    adapting->for_one |= chain->left_out;
}

static enum step reqmod_postcache_run(struct transaction *transaction) {
    if (adaptation_of(transaction)->reqmod_postcache == NULL)
        reqmod_postcache_start(transaction);
    struct reqmod *reqmod = adaptation_of(transaction)->reqmod_postcache;
    if (reqmod->chain.state == ADAPT_RUNNING)
        return STEP_WAIT;
    reqmod_postcache_note(transaction->adapting, &reqmod->chain);
    switch (reqmod->chain.state) {
    case ADAPT_DONE: return adopt_outgoing(transaction);
    case ADAPT_SATISFIED:
        lookup_forget(transaction); /* no stored response is used for the answer */
        return reqmod_adopt_response(transaction, reqmod);
    default: return reqmod_fail(transaction, reqmod);
    }
}

static void reqmod_postcache_end(struct transaction *transaction) {
    request_close_body(transaction);
    reqmod_close(transaction, adaptation_of(transaction)->reqmod_postcache);
}

static bool reqmod_postcache_is_needed(const struct settings *settings) {
    return settings->asks_at[ADAPT_REQMOD_POSTCACHE];
}

static bool reqmod_postcache_is_wanted(struct transaction *transaction) {
    return !internal_is_asked(transaction) &&
           reqmod_is_wanted_at(transaction, ADAPT_REQMOD_POSTCACHE);
}

static const struct adapt_chain *reqmod_postcache_chain(const struct transaction *transaction) {
    const struct reqmod *reqmod = adaptation_of(transaction)->reqmod_postcache;
    return reqmod != NULL ? &reqmod->chain : NULL;
}

const struct step_row reqmod_postcache_step = {
    .name = "REQMOD_POSTCACHE",
    .step = STEP_REQMOD_POSTCACHE,
    .run = reqmod_postcache_run,
    .is_needed = reqmod_postcache_is_needed,
    .is_wanted = reqmod_postcache_is_wanted,
    .begins = true,
    .let_go = reqmod_postcache_end,
    .end = reqmod_postcache_end,
    .chain = reqmod_postcache_chain,
};
