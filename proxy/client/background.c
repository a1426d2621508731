#include "client/clients.h"
#include "client/redirection.h"
#include "identity/identity.h"

/* The exchange for which no client waits. Its request has no body, and its reply goes nowhere. */
struct background_exchange {
    struct exchange base;
    struct exchange_ends ends;
    struct address destination;
    struct exchange_behind behind;
    struct redirection redirection;
    char *request_bytes; /* what base.request points to; owned */
    char *told;          /* base.told; owned */
};

static void background_reply(struct exchange *exchange, const struct reply *reply) {
    (void)reply;
    exchange->state = EXCHANGE_SENT;
}

static void background_interim(struct exchange *exchange, const struct http_head *head) {
    (void)exchange;
    (void)head;
}

static struct duplex *background_open_tunnel(struct exchange *exchange, struct http_head *head,
                                             struct slice protocol) {
    (void)head;
    (void)protocol;
    exchange_abort(exchange);
    return NULL;
}

static void background_abort(struct exchange *exchange) {
    exchange->state = EXCHANGE_ABORTED;
}

static void background_finish(struct exchange *exchange) {
    struct background_exchange *own = CONTAINER_OF(exchange, struct background_exchange, base);
    exchange_release(exchange);
    intercepted_release(&own->ends.intercepted);
    identity_release(&own->base.identity);
    tls_facts_release(&own->ends.tls);
    free(own->request_bytes);
    free(own->told);
    free(own);
}

static const struct exchange_class background_class = {
    .name = "background",
    .reply = background_reply,
    .interim = background_interim,
    .open_tunnel = background_open_tunnel,
    .abort = background_abort,
    .finish = background_finish,
};

static void background_copy_request(struct background_exchange *own, const struct http_head *head) {
    struct http_head *request = &own->base.request;
    own->request_bytes = xmalloc(http_head_size(head));
    http_head_copy(request, head, own->request_bytes);
    http_head_remove(request, HTTP_RANGE); /* what is stored is whole */
    http_head_remove(request, HTTP_IF_RANGE);
    own->base.owned = true;
}

/* The settings of the listener are the current ones: the new transaction holds the current
 * snapshot, even if `exchange` has lived through reloads. */
bool exchange_repeat_in_background(const struct exchange *exchange, struct slice told) {
    struct clients *clients = exchange->clients;
    const struct listen_settings *listen =
        listen_set_find(clients->listen_set, &exchange->listen->address);
    if (listen == NULL)
        return false;
    struct background_exchange *own = xcalloc(1, sizeof *own);
    own->ends = *exchange->ends;
    own->destination = *exchange->ends->destination;
    own->ends.destination = &own->destination;
    if (own->ends.redirection != NULL) {
        own->redirection = *own->ends.redirection;
        own->ends.redirection = &own->redirection;
    }
    own->ends.tls = tls_facts_reference(own->ends.tls);
    if (own->ends.intercepted != NULL)
        intercepted_reference(own->ends.intercepted);
    exchange_init(&own->base, &background_class, clients, &own->ends, listen);
    if (exchange->behind != NULL)
        exchange_set_client(&own->base, &exchange->behind->address, &own->behind);
    background_copy_request(own, &exchange->request);
    own->base.background = true;
    own->base.told = own->told = slice_dup(told);
    if (exchange->identity != NULL)
        own->base.identity = identity_reference(exchange->identity);
    own->base.version = exchange->version;
    own->base.scheme = exchange->scheme;
    own->base.authority = http_head_value(&own->base.request, HTTP_HOST);
    clients->on_request(&own->base, clients->arg);
    return true;
}
