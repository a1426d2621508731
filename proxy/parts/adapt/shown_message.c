#include "adapt/shown_message.h"

#include "adapt/adaptation.h"
#include "adapt/decoding.h"
#include "adapt/representation.h"
#include "client/identity.h"
#include "client/requester.h"
#include "http/credentials.h"
#include "tls/facts.h"
#include "transaction/access.h"
#include "transaction/bumped.h"
#include "transaction/spans.h"
#include "transaction/transaction.h"

/* The message that services get, the same at each point: heads without hop-by-hop fields (RFC
 * 3507 §4.4.2), and separate fields of the proxy itself. */

/* The one that was asked, or in transparent mode the one that the client has connected to. */
static const struct address *server_address(const struct transaction *transaction) {
    if (transaction->fetch.call != NULL)
        return &transaction->fetch.call->address;
    const struct exchange_ends *ends = transaction->exchange->ends;
    return ends->redirection != NULL ? ends->destination : NULL;
}

static struct slice server_ip(struct transaction *transaction) {
    const struct address *address = server_address(transaction);
    if (address == NULL || address->length == 0)
        return slice_make("", 0);
    char *text = arena_alloc(&transaction->arena, ADDRESS_TEXT);
    return slice_make(text, address_format_ip(address, text));
}

/* The connection of the client, and what is known of the origin behind an intercepted one. What
 * ends with the client is copied. */
static const struct adapt_client_tls *client_tls(struct transaction *transaction) {
    const struct tls_facts *facts = transaction->exchange->ends->tls;
    const struct intercepted_facts *inside = bumped_facts(transaction);
    struct slice sni = early_tunnel_sni(transaction->early_tunnel);
    struct arena *arena = &transaction->arena;
    if (facts == NULL && inside == NULL && sni.length == 0)
        return NULL;
    struct adapt_client_tls *tls = arena_zalloc(arena, sizeof *tls);
    tls->sni = sni;
    if (facts != NULL) {
        tls->sni = arena_slice(arena, slice_from(facts->server_name));
        tls->version = slice_from(facts->version);
        tls->cipher = slice_from(facts->cipher);
        tls->subject = arena_slice(arena, slice_from(facts->subject));
        tls->subject_issuer = arena_slice(arena, slice_from(facts->issuer));
        tls->serial = arena_slice(arena, slice_from(facts->serial));
    }
    if (inside != NULL) {
        tls->sni = arena_slice(arena, inside->sni);
        tls->issuer = arena_slice(arena, inside->issuer);
        tls->verification = arena_slice(arena, inside->verification);
    }
    return tls;
}

/* The name is the one that was proved. Only a proxy that asks nobody passes on what is claimed. */
static void message_put_user(struct transaction *transaction, struct adapt_client *client) {
    struct arena *arena = &transaction->arena;
    const struct identity *identity = transaction->identity;
    if (identity != NULL) {
        client->user = arena_slice(arena, identity->name);
        client->authenticated_user = client_fields_authenticated(&identity->name, 1, arena);
        if (identity->group_count > 0)
            client->authenticated_groups =
                client_fields_authenticated(identity->groups, identity->group_count, arena);
    } else if (transaction->settings->authenticator_count == 0 &&
               client->proxy_authorization.length > 0) {
        char *user = arena_alloc(arena, HTTP_CREDENTIALS_USER);
        client->user = http_credentials_user(client->proxy_authorization, user);
    }
}

/* Services get the whole URL, in whatever form the client sent it. */
static void prepare_request(struct transaction *transaction, struct http_head *request) {
    request_keep_credentials(transaction, request);
    http_head_remove_hop_by_hop(request);
    http_head_remove(request, HTTP_PROXY_AUTHORIZATION);
    request->target = transaction->request.url_text;
}

void message_begin(struct transaction *transaction, struct adapt_message *message,
                   struct http_head *request, struct http_head *response) {
    prepare_request(transaction, request);
    *message = (struct adapt_message){
        .request = request,
        .response = response,
        .path = url_path(&transaction->request.url),
        .client.ip = request_client_ip(transaction),
        .client.port = address_port(request_client(transaction)),
        .client.server_ip = server_ip(transaction),
        .client.proxy_authorization = transaction->request.credentials,
        .client.access_rule = access_rule_name(transaction),
        .client.tls = client_tls(transaction),
        .client.requester =
            requester_of(transaction->exchange, transaction->identity, &transaction->arena),
        .client.of_service = transaction->exchange->of_service,
        .transaction_id = slice_from(transaction_id(transaction)),
        .opt_outs = &adaptation_begin(transaction)->opt_outs,
        .trace = transaction->spans != NULL ? &transaction->spans->adapt : NULL,
    };
    message_put_user(transaction, &message->client);
    if (response == NULL)
        return;
    message->client.proxy_authenticate = http_head_value(response, HTTP_PROXY_AUTHENTICATE);
    http_head_remove(response, HTTP_PROXY_AUTHENTICATE);
}

struct http_head *message_copy_request(struct transaction *transaction) {
    struct http_head *request = arena_alloc(&transaction->arena, sizeof *request);
    http_head_assign(request, transaction->request.head);
    return request;
}

void message_remove_untold(struct transaction *transaction, struct http_head *response,
                           struct adapter *const *services, unsigned count) {
    bool decode = false;
    for (unsigned i = 0; i < count; i++)
        decode |= services[i]->settings->decode;
    bool decoded =
        decode && decoding_would_begin(transaction->request.head, response, &transaction->arena);
    representation_untold(response, decoded, &transaction->arena);
}
