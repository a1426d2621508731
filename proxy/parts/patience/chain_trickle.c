#include "patience/trickle.h"

/* The part of a chain for a last service that takes too long: the body trickles to the client, and
 * the verdict comes after the chain is done. */

/* The head that the last service was asked about goes to the client now. */
static void chain_begin_trickle(struct adapt_chain *chain) {
    struct adapt_message *message = chain->message;
    struct http_head *head = message->response;
    for (unsigned i = 0; i < chain->at; i++)
        if (chain->calls[i] != NULL)
            adapter_call_commit(chain->calls[i]);
    chain->sent_head.status = head->status;
    chain->sent_head.type = http_head_value(head, HTTP_CONTENT_TYPE);
    chain->sent_head.coding = http_head_value(head, HTTP_CONTENT_ENCODING);
    representation_changed(head, &chain->before, chain->arena);
    http_head_remove(head, HTTP_CONTENT_LENGTH);
    adapt_chain_give_back_challenge(message);
    chain->trickle = arena_alloc(chain->arena, sizeof *chain->trickle);
    trickle_start(chain->trickle, chain->calls[chain->at], chain->services[chain->at]->settings,
                  message->request->target, chain->net);
    message->body = trickle_body(chain->trickle);
    chain->modified = true;
    chain->state = ADAPT_DONE;
    loop_defer(chain->net->loop, chain->waker);
}

/* Does the adapted head agree with the head that the client has? */
static bool chain_fits_told(const struct adapt_chain *chain, const struct adapter_call *call) {
    const struct http_head *head = chain->adapted;
    return !call->result.head_given ||
           (head->status == chain->sent_head.status &&
            slice_equal(http_head_value(head, HTTP_CONTENT_TYPE), chain->sent_head.type) &&
            slice_equal(http_head_value(head, HTTP_CONTENT_ENCODING), chain->sent_head.coding));
}

static void chain_late_failure(struct adapt_chain *chain, struct adapter_call *call) {
    struct source *body;
    if (chain->services[chain->at]->settings->bypass && adapter_call_recover(call, &body)) {
        adapt_chain_bypass(chain, call->error);
        trickle_go_on(chain->trickle, &body);
        return;
    }
    adapt_chain_give_up(chain, call->error);
    trickle_cut(chain->trickle, call->error);
}

/* The verdict on what has trickled to the client. */
static void chain_take_late_verdict(struct adapt_chain *chain, struct adapter_call *call) {
    struct source *body;
    switch (call->verdict) {
    case ADAPTER_UNMODIFIED:
        chain->net->counters.icap_unmodified++;
        adapt_chain_record(chain, "UNMODIFIED");
        adapt_chain_note_inability(chain, call);
        body = adapter_call_body(call);
        trickle_go_on(chain->trickle, &body);
        break;
    case ADAPTER_MODIFIED:
        chain->net->counters.icap_modified++;
        adapt_chain_record(chain, "MODIFIED");
        adapter_call_commit(call);
        body = adapter_call_body(call);
        if (chain_fits_told(chain, call))
            trickle_go_on(chain->trickle, &body);
        else
            trickle_cut(chain->trickle, "it changed the response");
        break;
    default: chain_late_failure(chain, call); break;
    }
    chain->at++;
}

const struct trickle_class trickle_class = {
    .begin = chain_begin_trickle,
    .take_late_verdict = chain_take_late_verdict,
    .close = trickle_close,
};
