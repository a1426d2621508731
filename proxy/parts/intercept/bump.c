#include "intercept/bump.h"

#include "base/log.h"
#include "client/clients.h"
#include "http/head_parser.h"
#include "intercept/intercept.h"
#include "tls/server.h"
#include "transaction/access.h"
#include "transaction/bumped.h"
#include "transaction/fail.h"
#include "transaction/transaction.h"

#include <openssl/ssl.h>

/* Requests inside a connection that BUMP has opened. */

/* The page was written for the connection. So it closes behind the page, and the client's next
 * connection is judged anew. */
static enum step answer_by_service(struct transaction *transaction,
                                   const struct intercepted_facts *facts) {
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    if (http_head_parse_response(head, facts->page_head.base, facts->page_head.length, 0) <= 0)
        return fail_with(transaction, 502,
                         "an adaptation service sent an answer that can't be "
                         "used");
    delivery_set_page(transaction, RESULT_SERVICE, head, facts->page_body);
    delivery_close_connection(transaction);
    return STEP_DELIVER;
}

static enum step answer_by_redirection(struct transaction *transaction,
                                       const struct intercepted_facts *facts) {
    struct slice to = arena_slice(&transaction->arena, facts->page_location);
    delivery_redirect(transaction, facts->page_status, to);
    delivery_close_connection(transaction);
    return STEP_DELIVER;
}

static enum step answer_inside(struct transaction *transaction) {
    const struct intercepted_facts *facts = bumped_facts(transaction);
    request_own(transaction);
    if (facts->page_error.length == 0)
        return answer_by_service(transaction, facts);
    if (facts->page_location.length > 0)
        return answer_by_redirection(transaction, facts);
    const char *reason = arena_copy(&transaction->arena, facts->page_error);
    const char *name =
        facts->page_name.length > 0 ? arena_copy(&transaction->arena, facts->page_name) : NULL;
    enum step next = fail_page(transaction, facts->page_status, reason, name);
    delivery_close_connection(transaction);
    if (facts->page_status < 500)
        outcome_set_result(&transaction->outcome, RESULT_DENIED);
    return next;
}

const struct bumped_class opened_class = {
    .answer = answer_inside,
    .origin_failed = origin_proof_forget,
};

/* BUMP: opens a client's TLS connection, and lets HTTP serve the requests inside. */

static enum step bump_shake(struct transaction *transaction);

static struct bump *bump_of(const struct transaction *transaction) {
    return intercept_of(transaction)->bump;
}

static void bump_on_timeout(struct timer *timer) {
    struct bump *bump = CONTAINER_OF(timer, struct bump, timer);
    bump->timed_out = true;
    loop_defer(bump->transaction->net->loop, &bump->transaction->task);
}

static void bump_on_ready(struct connection *connection) {
    struct transaction *transaction;
    CAST_OBJ(transaction, connection->event.owner, TRANSACTION_MAGIC);
    loop_defer(transaction->net->loop, &transaction->task);
}

static void bump_new(struct transaction *transaction) {
    struct intercept *intercept = intercept_of(transaction);
    const struct url *url = &transaction->request.url;
    struct bump *bump = arena_zalloc(&transaction->arena, sizeof *bump);
    bump->transaction = transaction;
    timer_init(&bump->timer, bump_on_timeout);
    bump->facts = (struct intercepted_facts){
        .name = intercept->name,
        .port = url->port,
        .place = url->host,
        .connect = transaction->request.url_text,
        .identity = transaction->identity,
        .credentials = http_head_value(transaction->request.head, HTTP_PROXY_AUTHORIZATION),
        .sni = intercept->base.sni,
    };
    if (bump->facts.credentials.length == 0)
        bump->facts.credentials = transaction->request.credentials;
    intercept->bump = bump;
}

/* The connection can't be opened, and there is nothing else to do with it. */
static enum step bump_give_up(struct transaction *transaction, const char *reason) {
    outcome_set_error(&transaction->outcome, reason);
    outcome_set_page(&transaction->outcome, RESULT_ERROR, bump_step.name);
    connection_abort(&bump_of(transaction)->client);
    return STEP_LOG;
}

/* The handshake with the client. */

static struct leaf *bump_take_leaf(struct transaction *transaction, char error[LEAF_ERROR]) {
    const struct bump *bump = bump_of(transaction);
    const struct leaf_request request = {
        .name = bump->facts.name,
        .rsa = !intercept_of(transaction)->hello.verifies_ecdsa_p256,
        .refusable = bump->proof.refusable,
        .not_after = bump->proof.not_after,
    };
    return leaf_cache_take(interception_of(transaction)->leaves,
                           intercept_settings(transaction)->authority, &request,
                           transaction->net->loop->wall, error);
}

/* What the client is offered inside follows its listener. */
static struct tls_server *bump_server(const struct transaction *transaction) {
    const struct intercept_host *host = intercept_host_of(transaction);
    return listen_offers_http2(transaction->exchange->listen) ? host->inside : host->inside_http1;
}

/* Takes the connection out of the tunnel. Its TLS stream gets all that the client has sent. */
static bool prepare_stream(struct transaction *transaction) {
    struct bump *bump = bump_of(transaction);
    struct net_buffer *bytes, *behind;
    struct duplex *tunnel = intercept_take_client(transaction, &bytes);
    bump->client = duplex_take_connection(&tunnel, &behind);
    duplex_close(&tunnel);
    struct slice replay = net_buffer_bytes(bytes);
    if (behind != NULL)
        replay = arena_concat(&transaction->arena, replay, net_buffer_bytes(behind));
    bool prepared = bump->client != NULL &&
                    connection_prepare_secure(bump->client, bump_server(transaction), replay);
    net_buffer_give(transaction->net, &bytes);
    net_buffer_give(transaction->net, &behind);
    if (bump->client != NULL)
        connection_set_owner(bump->client, bump_on_ready, transaction);
    return prepared;
}

/* Handshakes take time of the processor, so client.max_handshakes limits how many there are. */
static bool enter_handshakes(struct transaction *transaction) {
    struct client_total *total = transaction->exchange->clients->total;
    unsigned most = transaction->settings->client.max_handshakes;
    bump_of(transaction)->shakes =
        atomic_fetch_add_explicit(&total->handshakes, 1, memory_order_relaxed) < most;
    if (!bump_of(transaction)->shakes) {
        atomic_fetch_sub_explicit(&total->handshakes, 1, memory_order_relaxed);
        transaction->net->counters.tls_handshakes_refused++;
    }
    return bump_of(transaction)->shakes;
}

static void leave_handshakes(struct transaction *transaction) {
    struct client_total *total = transaction->host->client_total;
    if (bump_of(transaction)->shakes)
        atomic_fetch_sub_explicit(&total->handshakes, 1, memory_order_relaxed);
    bump_of(transaction)->shakes = false;
}

static enum step start_shaking(struct transaction *transaction) {
    struct bump *bump = bump_of(transaction);
    char error[LEAF_ERROR];
    bump->state = BUMP_SHAKING;
    if (!enter_handshakes(transaction))
        return bump_give_up(transaction, "client.max_handshakes TLS handshakes are under way");
    if (!prepare_stream(transaction))
        return bump_give_up(transaction, "the client's connection can't be opened");
    if (intercept_settings(transaction)->authority == NULL)
        return bump_give_up(transaction,
                            "there is no authority section to sign a certificate with");
    struct leaf *leaf = bump_take_leaf(transaction, error);
    if (leaf == NULL)
        return bump_give_up(transaction, arena_copy(&transaction->arena, slice_from(error)));
    bool shown = tls_stream_show(bump->client->tls, leaf->certificate, leaf->chain, leaf->key);
    leaf_release(&leaf);
    if (!shown)
        return bump_give_up(transaction, "the certificate for the client can't be used");
    loop_timer_after(transaction->net->loop, &bump->timer,
                     transaction->settings->client.handshake_timeout);
    return bump_shake(transaction);
}

/* HTTP serves the requests inside from now on. */
static enum step hand_over(struct transaction *transaction) {
    struct bump *bump = bump_of(transaction);
    struct exchange *exchange = transaction->exchange;
    const struct address *listener = &exchange->listen->address;
    const struct address *destination = exchange->ends->destination;
    timer_cancel(&transaction->net->loop->timers, &bump->timer);
    leave_handshakes(transaction);
    if (exchange->clients->draining)
        return bump_give_up(transaction, "the proxy is about to stop");
    struct intercepted *intercepted = intercepted_new(&bump->facts, &opened_class);
    clients_adopt(exchange->clients,
                  &(struct client_arrival){
                      .connection = &bump->client,
                      .client = request_client(transaction),
                      .listener = listener,
                      .destination = address_equal(destination, listener) ? NULL : destination,
                      .intercepted = intercepted,
                      .rewritten = exchange->ends->rewritten,
                  });
    intercepted_release(&intercepted);
    interception_note_acceptance(interception_of(transaction), request_client(transaction),
                                 intercept_of(transaction)->place);
    if (intercept_of(transaction)->page.status == 0) {
        transaction->net->counters.intercept_bumped++;
        outcome_set_result(&transaction->outcome, RESULT_BUMP);
    }
    return STEP_LOG;
}

/* Alerts by which a client says that it does not like a certificate (RFC 8446 §6.2). */
static bool is_refusal_of_certificate(int alert) {
    return alert == SSL_AD_BAD_CERTIFICATE || alert == SSL_AD_UNSUPPORTED_CERTIFICATE ||
           alert == SSL_AD_CERTIFICATE_REVOKED || alert == SSL_AD_CERTIFICATE_EXPIRED ||
           alert == SSL_AD_CERTIFICATE_UNKNOWN || alert == SSL_AD_UNKNOWN_CA ||
           alert == SSL_AD_ACCESS_DENIED || alert == SSL_AD_DECRYPT_ERROR;
}

/* Some clients only close the connection when they don't like a certificate. */
static bool was_refused(const struct bump *bump) {
    int alert = tls_stream_alert(bump->client->tls);
    return is_refusal_of_certificate(alert) || (alert < 0 && bump->client->hangup);
}

static void note_refusal(struct transaction *transaction) {
    const struct interception_settings *settings = intercept_settings(transaction);
    struct counters *counters = &transaction->net->counters;
    struct slice place = intercept_of(transaction)->place, client = request_client_ip(transaction);
    bool evicted;
    counters->intercept_refusals++;
    if (settings->refusals == 0 || intercept_of(transaction)->page.status != 0)
        return;
    unsigned count = interception_note_refusal(interception_of(transaction), settings,
                                               request_client(transaction), place,
                                               loop_seconds(transaction->net->loop), &evicted);
    counters->intercept_refusals_evicted += evicted;
    if (count == settings->refusals)
        log_info("client %.*s has refused the certificate for %.*s %u times: its connections there "
                 "are spliced for interception.refusal_time; retortctl intercept clear ends that",
                 SLICE_PRINT(client), SLICE_PRINT(place), count);
}

static enum step client_failed(struct transaction *transaction) {
    struct bump *bump = bump_of(transaction);
    const char *reason =
        arena_copy(&transaction->arena, slice_from(connection_error(bump->client)));
    transaction->net->counters.intercept_handshake_failures++;
    if (was_refused(bump)) {
        note_refusal(transaction);
        reason = arena_concat(&transaction->arena, SLICE("the client refused the certificate: "),
                              slice_from(reason))
                     .base;
    }
    return bump_give_up(transaction, reason);
}

static enum step bump_shake(struct transaction *transaction) {
    struct bump *bump = bump_of(transaction);
    switch (connection_accept_secure(bump->client, bump_server(transaction), SLICE(""))) {
    case IO_DONE: return hand_over(transaction);
    case IO_WAIT: break;
    default: return client_failed(transaction);
    }
    if (!bump->timed_out)
        return STEP_WAIT;
    transaction->net->counters.client_timeouts++;
    return bump_give_up(transaction, "the client did not complete the TLS handshake within "
                                     "client.handshake_timeout");
}

/* Pages. */

/* The requests inside get a page of the proxy's own. */
static enum step show_error(struct transaction *transaction, unsigned status, const char *reason,
                            struct slice sentence) {
    struct bump *bump = bump_of(transaction);
    outcome_set_error(&transaction->outcome, reason);
    outcome_set_page(&transaction->outcome, RESULT_ERROR, bump_step.name);
    bump->facts.page_status = status;
    bump->facts.page_error = sentence;
    return start_shaking(transaction);
}

static enum step show_given_error(struct transaction *transaction) {
    const struct intercept_page *page = &intercept_of(transaction)->page;
    struct intercepted_facts *facts = &bump_of(transaction)->facts;
    transaction->net->counters.intercept_blocked += page->status < 500;
    facts->page_status = page->status;
    facts->page_error = page->error;
    facts->page_name = slice_from(page->name != NULL ? page->name : "");
    facts->page_location = page->location;
    facts->page_rule = access_rule_name(transaction);
    return start_shaking(transaction);
}

/* The status 407 means nothing inside the connection, which is no longer one to a proxy. */
static enum step show_answer(struct transaction *transaction) {
    struct bump *bump = bump_of(transaction);
    struct http_head *answer = intercept_of(transaction)->page.answer;
    transaction->net->counters.intercept_blocked++;
    http_head_remove_hop_by_hop(answer);
    http_head_remove_framing(answer);
    http_head_remove(answer, HTTP_PROXY_AUTHENTICATE);
    if (answer->status == 407) {
        answer->status = 403;
        answer->reason = slice_from(http_reason(403));
    }
    outcome_set_result(&transaction->outcome, RESULT_SERVICE);
    bump->facts.page_status = answer->status;
    bump->facts.page_head = http_head_text(answer, http_head_write_response, &transaction->arena);
    bump->facts.page_body = net_buffer_bytes(bump->page);
    return start_shaking(transaction);
}

/* Reads the body of a service's answer. */
static enum step read_page(struct transaction *transaction) {
    struct bump *bump = bump_of(transaction);
    struct net_buffer *page = bump->page;
    size_t got;
    for (;;) {
        if (page->end == page->capacity)
            return show_error(transaction, 502, "the page of an adaptation service is too large",
                              SLICE("the page of an adaptation service is too large"));
        switch (intercept_read_page(transaction, page->data + page->end, page->capacity - page->end,
                                    &got)) {
        case SOURCE_DATA: page->end += got; break;
        case SOURCE_WAIT: return STEP_WAIT;
        case SOURCE_END: return show_answer(transaction);
        default:
            return show_error(transaction, 502, "the page of an adaptation service broke off",
                              SLICE("the page of an adaptation service broke off"));
        }
    }
}

static enum step start_reading(struct transaction *transaction) {
    struct bump *bump = bump_of(transaction);
    bump->state = BUMP_READING;
    bump->page = net_buffer_take_large(transaction->net);
    if (bump->page == NULL)
        return show_error(transaction, 503, "there is no memory", SLICE("there is no memory"));
    return read_page(transaction);
}

/* The origin. */

/* Only the client has the key that the origin asks for. */
static enum step bump_splice(struct transaction *transaction) {
    bool evicted;
    interception_note_asking(interception_of(transaction), intercept_settings(transaction),
                             intercept_of(transaction)->server,
                             loop_seconds(transaction->net->loop), &evicted);
    transaction->net->counters.intercept_asking++;
    transaction->net->counters.intercept_refusals_evicted += evicted;
    intercept_splice(transaction);
    return STEP_NEXT;
}

static enum step bump_prove(struct transaction *transaction) {
    struct bump *bump = bump_of(transaction);
    struct origin_proof *proof = &bump->proof;
    enum origin_proof_state state = origin_proof_go_on(proof);
    bump->facts.issuer = proof->issuer;
    bump->facts.verification = proof->verification;
    switch (state) {
    case ORIGIN_PROOF_GOOD: return start_shaking(transaction);
    case ORIGIN_PROOF_FAILED:
        return show_error(transaction, proof->status, proof->reason, proof->sentence);
    case ORIGIN_PROOF_ASKS_CERTIFICATE: return bump_splice(transaction);
    default: return STEP_WAIT;
    }
}

static enum step bump_begin(struct transaction *transaction) {
    const struct intercept_page *page = &intercept_of(transaction)->page;
    if (page->status == 0 && intercept_of(transaction)->action == INTERCEPT_BLOCK &&
        fail_with(transaction, 403, "an adaptation service blocks connections to this server") !=
            STEP_BUMP)
        return STEP_LOG;
    bump_new(transaction);
    if (page->answer != NULL)
        return start_reading(transaction);
    if (page->status != 0)
        return show_given_error(transaction);
    origin_proof_begin(&bump_of(transaction)->proof, transaction, &bump_of(transaction)->facts);
    return bump_prove(transaction);
}

static enum step bump_run(struct transaction *transaction) {
    if (bump_of(transaction) == NULL)
        return bump_begin(transaction);
    switch (bump_of(transaction)->state) {
    case BUMP_PROVING: return bump_prove(transaction);
    case BUMP_READING: return read_page(transaction);
    case BUMP_SHAKING: break;
    }
    return bump_shake(transaction);
}

static void bump_end(struct transaction *transaction) {
    struct bump *bump = intercept_of(transaction) != NULL ? bump_of(transaction) : NULL;
    if (bump == NULL)
        return;
    timer_cancel(&transaction->net->loop->timers, &bump->timer);
    leave_handshakes(transaction);
    origin_proof_end(&bump->proof);
    connection_close(&bump->client);
    net_buffer_give(transaction->net, &bump->page);
}

const struct step_row bump_step = {
    .name = "BUMP",
    .step = STEP_BUMP,
    .run = bump_run,
    .is_needed = intercept_is_needed,
    .is_wanted = intercept_opens,
    .begins = true,
    .let_go = bump_end,
    .end = bump_end,
};
