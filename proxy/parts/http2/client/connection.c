#include "http2/client/connection.h"

#include "base/log.h"
#include "client/exchange.h"
#include "http2/client/exchange.h"
#include "http2/client/reply.h"
#include "http2/client/request_body.h"
#include "http2/client/tunnel.h"
#include "http2/fields.h"
#include "http2/settings.h"
#include "tls/certificate_set.h"
#include "tls/certificate_text.h"

#include <string.h>
#include <sys/random.h>

/*
 * A request of HTTP/2: the fields of its head become an exchange.
 */

/*
 * Which names a client may ask for on one connection. A client of HTTP/2 may use a connection for
 * every name that its certificate is for (RFC 9113 §9.1.1). When it goes beyond that, the server
 * answers with 421 (RFC 9110 §15.5.20), and the client opens another connection.
 *
 * This is for reverse listeners with certificates. A forward proxy is asked for all names, and the
 * step RECEIVE looks at intercepted connections itself.
 */

enum { NAME_MOST = 255 };

static bool choice_covers(const struct certificate_choice *choice, const char *host) {
    for (int kind = 0; kind < CERTIFICATE_KINDS; kind++)
        if (choice->of[kind] != NULL && certificate_names_include(choice->of[kind]->leaf, host))
            return true;
    return false;
}

/* Is the certificate that this connection was shown for the host as well? */
static bool certificate_covers(const struct certificate_set *set, struct slice asked,
                               struct slice host) {
    char text[NAME_MOST + 1];
    const struct certificate_choice *choice =
        asked.length > 0 ? certificate_set_find(set, asked) : NULL;
    if (host.length > NAME_MOST)
        return false;
    *slice_put(text, host) = '\0';
    return choice_covers(choice != NULL ? choice : certificate_set_default(set), text);
}

/* The authority is the request's ":authority" or Host. True as well if it is none: that is for
 * others to refuse. */
static bool coalescing_allows(const struct exchange_ends *ends,
                              const struct listen_settings *listen, struct slice authority) {
    struct url url;
    struct address address;
    if (listen == NULL || listen->mode != LISTEN_REVERSE || listen->tls.set == NULL ||
        ends->tls == NULL)
        return true;
    struct slice asked = slice_from(ends->tls->server_name);
    if (slice_equal_nocase(authority, asked) || !url_parse_authority(&url, authority, 0))
        return true;
    while (url.host.length > 0 && url.host.base[url.host.length - 1] == '.')
        url.host.length--;
    if (slice_equal_nocase(url.host, asked))
        return true;
    /* RFC 6066 §3: a client that connects to an address asks for no name. */
    if (asked.length == 0 && address_parse_ip(&address, url.host, 0))
        return true;
    return certificate_covers(listen->tls.set, asked, url.host);
}

static const struct url_scheme *scheme_of(const struct http2_connection *connection) {
    return &url_schemes[connection->client.ends.tls != NULL ? URL_HTTPS : URL_HTTP];
}

static void refuse_request(struct http2_exchange *exchange, unsigned status, const char *text) {
    exchange->base.error_status = status;
    exchange->base.error_text = text;
    exchange->connection->net->counters.client_bad_requests++;
}

static void refuse_too_large(struct http2_exchange *exchange) {
    exchange->connection->net->counters.client_heads_too_large++;
    http_head_init(&exchange->base.request);
    refuse_request(exchange, 431,
                   "the request head is larger than client.max_head or listen.max_head, or has too "
                   "many fields");
}

/* What a listener of that mode takes (client/exchange.h). Inside an intercepted connection the
 * requests are for its server. */
static bool takes_absolute(const struct http2_connection *connection) {
    const struct listen_settings *listen = connection->client.listen;
    return listen != NULL && listen->mode == LISTEN_FORWARD &&
           connection->client.ends.intercepted == NULL;
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* HTTP/1.1 needs a nonce of 16 bytes in base64 (RFC 6455 §4.1), which HTTP/2 does not have (RFC 8441
 * §5). */
static void add_websocket_key(struct http2_exchange *exchange) {
    char *at = exchange->websocket_key;
    unsigned char nonce[18] = {0};
    if (getrandom(nonce, 16, 0) != 16)
        return;
    for (unsigned i = 0; i < 18; i += 3) {
        unsigned bits = (unsigned)nonce[i] << 16 | (unsigned)nonce[i + 1] << 8 | nonce[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *at++ = base64_digits[bits >> shift & 63];
    }
    memcpy(exchange->websocket_key + 22, "==", 2);
    http_head_add(&exchange->base.request, SLICE("Sec-WebSocket-Key"),
                  slice_make(exchange->websocket_key, sizeof exchange->websocket_key));
}

static void read_meaning(struct http2_exchange *exchange, const struct http2_meaning *meaning,
                         bool ended) {
    struct exchange *base = &exchange->base;
    const struct http_head *request = &base->request;
    base->authority = meaning->authority;
    base->upgrade = meaning->protocol;
    base->takes_trailers = meaning->takes_trailers;
    base->is_head = request->method_id == HTTP_METHOD_HEAD;
    bool tunnel = request->method_id == HTTP_METHOD_CONNECT || meaning->protocol.length > 0;
    if (!ended && !tunnel)
        base->body_length = meaning->content_length;
    if (http_head_has(request, HTTP_EXPECT)) {
        struct slice expect = http_head_value(request, HTTP_EXPECT);
        exchange->expects_continue = slice_equal_nocase(expect, SLICE("100-continue"));
        base->expects_unknown = !exchange->expects_continue;
    }
    struct slice priority = http_head_value(request, HTTP_PRIORITY);
    if (priority.base != NULL)
        http2_stream_set_priority(&exchange->stream, priority);
    if (slice_equal_nocase(meaning->protocol, SLICE("websocket")))
        add_websocket_key(exchange);
}

/* A forward proxy looks at the scheme when it has the whole URL. */
static bool is_web(struct slice scheme) {
    return scheme.length == 0 || slice_equal_nocase(scheme, SLICE("https")) ||
           slice_equal_nocase(scheme, SLICE("http"));
}

static void check_url(struct http2_exchange *exchange, const struct http2_meaning *meaning) {
    const struct client_connection *client = &exchange->connection->client;
    struct exchange *base = &exchange->base;
    if (client->listen != NULL && base->request.target.length > client->listen->max_url) {
        refuse_request(exchange, 414, "the URL is longer than listen.max_url");
    } else if (meaning->protocol.length > 0 &&
               !slice_equal_nocase(meaning->protocol, SLICE("websocket"))) {
        refuse_request(exchange, 501, "the only protocol that a CONNECT may name is websocket");
    } else if (!takes_absolute(exchange->connection) && !is_web(meaning->scheme)) {
        refuse_request(exchange, 400, "the scheme of the request is neither http nor https");
    } else if (!coalescing_allows(&client->ends, client->listen, base->authority)) {
        exchange->connection->net->counters.client_misdirected++;
        base->error_status = 421;
        base->error_text = "the certificate of this connection is for other names: open a new "
                           "connection for this request";
    }
}

/* `ended`: the request has no body. A head that is too large becomes an exchange with an error
 * status, so that it is answered and logged. */
static bool http2_request_read(struct http2_exchange *exchange, struct hpack_list *list,
                               bool ended) {
    struct http2_connection *connection = exchange->connection;
    struct exchange *base = &exchange->base;
    struct http2_meaning meaning;
    base->version = SLICE("2.0");
    base->scheme = scheme_of(connection);
    switch (http2_fields_to_request(list, true, &base->request, &meaning)) {
    case HTTP2_FIELDS_MALFORMED:
        connection->net->counters.client_bad_requests++;
        log_debug("HTTP/2: a malformed request: %s", meaning.error);
        return false;
    case HTTP2_FIELDS_TOO_LARGE: refuse_too_large(exchange); return true;
    case HTTP2_FIELDS_GOOD: break;
    }
    if (!http2_stream_expect(&exchange->stream, meaning.content_length)) {
        connection->net->counters.client_bad_requests++;
        return false;
    }
    read_meaning(exchange, &meaning, ended);
    check_url(exchange, &meaning);
    if (takes_absolute(connection) && !http2_request_make_absolute(list, &base->request, &meaning))
        refuse_too_large(exchange);
    return true;
}

static bool http2_request_check_trailers(const struct hpack_list *list) {
    struct http_head trailers;
    struct http2_meaning meaning;
    return http2_fields_to_trailers(list, false, &trailers, &meaning) == HTTP2_FIELDS_GOOD;
}

void http2_host_init(struct http2_host *host, struct clients *clients) {
    *host = (struct http2_host){.clients = clients};
    http2_workspace_init(&host->workspace, clients->net);
}

void http2_host_release(struct http2_host *host) {
    while (host->free_exchanges != NULL) {
        struct http2_exchange *next = host->free_exchanges->next_free;
        free(host->free_exchanges);
        host->free_exchanges = next;
    }
    free(host->block);
    head_blocks_release(&host->head_blocks);
    http2_workspace_release(&host->workspace);
}

static void http2_connection_free(struct http2_connection *connection) {
    http2_session_release(&connection->session);
    connection->net->counters.client_http2_connections_open--;
    clients_remove(&connection->client);
    FREE_OBJ(connection);
}

void http2_connection_leave(struct http2_connection *connection) {
    CHECK_OBJ(connection, HTTP2_CONNECTION_MAGIC);
    connection->exchanges--;
    if (connection->lost && connection->exchanges == 0)
        http2_connection_free(connection);
}

/* The functions of struct http2_session_class. */

static struct http2_stream *on_open(struct http2_session *session) {
    struct http2_connection *connection = http2_connection_of_session(session);
    struct clients *clients = connection->client.clients;
    unsigned most = connection->net->settings->client.max_requests;
    connection->requests++;
    connection->net->counters.client_http2_streams++;
    if (connection->client.listen == NULL || clients->draining ||
        (most > 0 && connection->requests >= most))
        http2_session_drain(session);
    return clients_lack_memory(clients) ? NULL : &http2_exchange_new(connection)->stream;
}

static bool on_head(struct http2_stream *stream, struct hpack_list *list, bool ended) {
    struct http2_exchange *exchange = http2_exchange_of_stream(stream);
    if (!http2_request_read(exchange, list, ended))
        return false;
    http2_exchange_begin(exchange);
    return true;
}

/* Trailers of requests end here, as those of HTTP/1.1 do; they have to be well-formed. */
static bool on_trailers(struct http2_stream *stream, const struct hpack_list *list) {
    (void)stream;
    return http2_request_check_trailers(list);
}

static void on_body(struct http2_stream *stream) {
    struct http2_exchange *exchange = http2_exchange_of_stream(stream);
    if (exchange->tunnel.magic != 0)
        http2_tunnel_wake(exchange);
    else if (exchange->body_taken)
        http2_request_body_came(exchange);
}

static bool on_turn(struct http2_stream *stream) {
    struct http2_exchange *exchange = http2_exchange_of_stream(stream);
    if (exchange->tunnel.magic != 0) {
        exchange->tunnel_turn = true;
        http2_tunnel_wake(exchange);
        return false;
    }
    return exchange->base.state == EXCHANGE_SENDING && http2_reply_turn(exchange);
}

static void on_over(struct http2_stream *stream, enum http2_error error, bool processed) {
    (void)error, (void)processed;
    http2_exchange_lost(http2_exchange_of_stream(stream));
}

static void on_deadline(struct http2_stream *stream) {
    http2_request_body_is_late(http2_exchange_of_stream(stream));
}

static void on_closing(struct http2_session *session) {
    struct http2_connection *connection = http2_connection_of_session(session);
    clients_note_end(&connection->client, session->socket, NULL);
}

static void on_lost(struct http2_session *session) {
    struct http2_connection *connection = http2_connection_of_session(session);
    connection->lost = true;
    if (connection->exchanges == 0)
        http2_connection_free(connection);
}

static const struct http2_session_class session_class = {
    .name = "HTTP/2 client",
    .on_open = on_open,
    .on_head = on_head,
    .on_trailers = on_trailers,
    .on_body = on_body,
    .on_turn = on_turn,
    .on_over = on_over,
    .on_deadline = on_deadline,
    .on_closing = on_closing,
    .on_lost = on_lost,
};

/* The functions of struct client_connection_class. */

static struct http2_connection *http2_connection_of(struct client_connection *client) {
    struct http2_connection *connection = CONTAINER_OF(client, struct http2_connection, client);
    CHECK_OBJ(connection, HTTP2_CONNECTION_MAGIC);
    return connection;
}

static void http2_connection_drain(struct client_connection *client) {
    http2_session_drain(&http2_connection_of(client)->session);
}

static void http2_connection_abort(struct client_connection *client) {
    clients_note_end(client, http2_connection_of(client)->session.socket, "aborted");
    http2_session_abort(&http2_connection_of(client)->session);
}

static uint64_t http2_connection_requests(const struct client_connection *client) {
    return CONTAINER_OF(client, const struct http2_connection, client)->requests;
}

static double rate_of(const struct exchange *exchange, uint64_t now) {
    return (double)exchange->bytes_sent / (double)(now - exchange->started + 1);
}

static struct exchange *http2_connection_slowest(struct client_connection *client) {
    struct http2_connection *connection = http2_connection_of(client);
    uint64_t now = connection->net->loop->now_nanoseconds;
    struct exchange *slowest = NULL;
    LIST_FOR_EACH (link, &connection->session.streams) {
        struct http2_exchange *exchange =
            http2_exchange_of_stream(CONTAINER_OF(link, struct http2_stream, link));
        struct exchange *base = &exchange->base;
        if (base->state == EXCHANGE_SENDING && exchange->has_reader &&
            (slowest == NULL || rate_of(base, now) < rate_of(slowest, now)))
            slowest = base;
    }
    return slowest;
}

static const struct client_connection_class connection_class = {
    .name = "HTTP/2",
    .drain = http2_connection_drain,
    .abort = http2_connection_abort,
    .requests = http2_connection_requests,
    .slowest = http2_connection_slowest,
};

static struct http2_limits http2_limits_of(const struct settings *settings,
                                           const struct listen_settings *listen) {
    const struct http2_settings *mine = http2_settings_of(settings);
    return (struct http2_limits){
        .streams = mine->client.streams,
        .stream_window = (uint32_t)mine->client.window,
        .window = (uint32_t)mine->client.connection_window,
        .frame = (uint32_t)mine->client.frame_size,
        .max_head = listen != NULL ? listen->max_head : settings->client.max_head,
        .budget = mine->client.budget,
        .tunnels = true,
        .head_timeout = settings->client.header_timeout,
        .send_timeout = settings->client.send_timeout,
        .idle_timeout = settings->client.idle_timeout,
    };
}

static struct http2_counts http2_counts_of(struct counters *counters) {
    return (struct http2_counts){
        .bytes_in = &counters->client_bytes_in,
        .bytes_out = &counters->client_bytes_out,
        .resets_in = &counters->client_http2_resets_received,
        .resets_out = &counters->client_http2_resets_sent,
        .refused = &counters->client_http2_streams_refused,
        .stream_errors = &counters->client_http2_stream_errors,
        .protocol_errors = &counters->client_http2_protocol_errors,
        .flow_control_errors = &counters->client_http2_flow_control_errors,
        .compression_errors = &counters->client_http2_compression_errors,
        .calmed = &counters->client_http2_calmed,
    };
}

void http2_adopt(struct http2_host *host, const struct client_arrival *arrival) {
    struct clients *clients = host->clients;
    struct net_context *net = clients->net;
    struct http2_connection *connection;
    ALLOC_OBJ(connection, HTTP2_CONNECTION_MAGIC);
    connection->host = host;
    connection->net = net;
    clients_add(clients, &connection->client, &connection_class, arrival->client,
                arrival->listener);
    clients_note_arrival(&connection->client, arrival);
    net->counters.client_http2_connections++;
    net->counters.client_http2_connections_open++;
    struct http2_limits limits = http2_limits_of(net->settings, connection->client.listen);
    struct http2_counts counts = http2_counts_of(&net->counters);
    http2_session_init(&connection->session, &host->workspace, &session_class, HTTP2_SERVER,
                       &limits, &counts);
    http2_session_start(&connection->session, arrival->connection, arrival->ahead);
}
