/*
 * The part proxy_protocol: load balancers say for whom they connect, and servers are told.
 *
 * A connection that a load balancer announces: it begins with a header of the PROXY protocol, which
 * says who the client is (proxy_protocol/header.h). Nothing else happens before the header is there.
 *
 * On a listener with listen.proxy_protocol the header is not optional, because a client that could
 * choose whether to send one could choose its address. So a connection from an address that is not
 * listed there is closed at once, and one without a good header is closed when that is certain, or
 * after client.header_timeout. When the header is read, to its last byte and no further, the
 * connection goes the way of any other through clients->accept, as the connection of the client
 * that the header names: to TLS, to transparent mode, or to HTTP.
 *
 * Threads: the worker's. Ownership: its own, until the connection is handed over or closed.
 */
#include "part.h"

#include "base/assert.h"
#include "base/log.h"
#include "client/clients.h"
#include "proxy_protocol/header.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

#include <errno.h>
#include <unistd.h>

enum { COMPLAINT_PAUSE = 60000 }; /* milliseconds */

struct proxy_protocol {
    unsigned magic;
#define PROXY_PROTOCOL_MAGIC 0xa4404ced
    struct client_connection client; /* the client is the load balancer */
    struct event event;              /* its descriptor is in `fd`, also while it is not watched */
    int fd;                          /* -1: handed over */
    struct timer timer;
};

static void proxy_protocol_free(struct proxy_protocol *announced) {
    struct loop *loop = announced->client.clients->net->loop;
    timer_cancel(&loop->timers, &announced->timer);
    loop_remove(loop, &announced->event);
    if (announced->fd >= 0)
        close(announced->fd);
    clients_remove(&announced->client);
    FREE_OBJ(announced);
}

/* A load balancer that is set up wrongly may connect a thousand times a second. */
static void proxy_protocol_complain(struct clients *clients, const struct address *from,
                                    const char *what) {
    char text[ADDRESS_IP_TEXT];
    uint64_t now = clients->net->loop->now;
    if (now < clients->proxy_protocol_complains_again)
        return;
    clients->proxy_protocol_complains_again = now + COMPLAINT_PAUSE;
    address_format_ip(from, text);
    log_warn("a connection from %s was closed: %s (listen.proxy_protocol)", text, what);
}

static void proxy_protocol_fail(struct proxy_protocol *announced, const char *what) {
    struct clients *clients = announced->client.clients;
    clients->net->counters.proxy_headers_bad++;
    proxy_protocol_complain(clients, &announced->client.ends.client, what);
    proxy_protocol_free(announced);
}

/* The next owner counts the connection for itself. */
static void proxy_protocol_hand_over(struct proxy_protocol *announced,
                                     const struct proxy_header *header) {
    struct clients *clients = announced->client.clients;
    struct address client = announced->client.ends.client, listener = announced->client.listener;
    int fd = announced->fd;
    clients->net->counters.proxy_headers++;
    clients->net->counters.client_connections--;
    atomic_fetch_add_explicit(&clients->total->count, 1, memory_order_relaxed);
    announced->fd = -1;
    proxy_protocol_free(announced);
    clients->accept(clients, &(struct client_accepted){
                                 .fd = fd,
                                 .client = header->has_addresses ? &header->source : &client,
                                 .listener = &listener,
                                 .destination = header->has_addresses ? &header->destination : NULL,
                             });
}

/* Takes the header out of the socket, and not a byte behind it. */
static void proxy_protocol_take(struct proxy_protocol *announced, const struct proxy_header *header,
                                size_t length) {
    char bytes[PROXY_HEADER_MAX];
    if (recv(announced->fd, bytes, length, 0) == (ssize_t)length)
        proxy_protocol_hand_over(announced, header);
    else
        proxy_protocol_fail(announced, "it was lost");
}

/* `ended`: nothing more comes. False: the connection is gone from here. */
static bool proxy_protocol_go_on(struct proxy_protocol *announced, bool ended) {
    char bytes[PROXY_HEADER_MAX];
    struct proxy_header header;
    ssize_t got = recv(announced->fd, bytes, sizeof bytes, MSG_PEEK), used = 0;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got > 0)
        used = proxy_header_parse(&header, bytes, (size_t)got);
    if (used > 0)
        proxy_protocol_take(announced, &header, (size_t)used);
    else if (used < 0)
        proxy_protocol_fail(announced,
                            "it does not begin with a header of the PROXY protocol; let the "
                            "load balancer send one (HAProxy: send-proxy-v2)");
    else if (got <= 0 || ended)
        proxy_protocol_fail(announced, "it ended before the header of the PROXY protocol");
    else
        return true;
    return false;
}

static void proxy_protocol_on_event(struct event *event, uint32_t events) {
    struct proxy_protocol *announced = CONTAINER_OF(event, struct proxy_protocol, event);
    CHECK_OBJ(announced, PROXY_PROTOCOL_MAGIC);
    proxy_protocol_go_on(announced, events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
}

static void proxy_protocol_on_timeout(struct timer *timer) {
    struct proxy_protocol *announced = CONTAINER_OF(timer, struct proxy_protocol, timer);
    CHECK_OBJ(announced, PROXY_PROTOCOL_MAGIC);
    proxy_protocol_fail(announced, "no header of the PROXY protocol came in time");
}

/* The functions of struct client_connection_class. */

static struct proxy_protocol *proxy_protocol_of(struct client_connection *client) {
    struct proxy_protocol *announced = CONTAINER_OF(client, struct proxy_protocol, client);
    CHECK_OBJ(announced, PROXY_PROTOCOL_MAGIC);
    return announced;
}

static void proxy_protocol_end(struct client_connection *client) {
    proxy_protocol_free(proxy_protocol_of(client));
}

static struct exchange *proxy_protocol_slowest(struct client_connection *client) {
    (void)client;
    return NULL;
}

static const struct client_connection_class proxy_protocol_class = {
    .name = "PROXY header",
    .drain = proxy_protocol_end,
    .abort = proxy_protocol_end,
    .slowest = proxy_protocol_slowest,
};

static bool is_trusted(const struct listen_settings *listen, const struct address *from) {
    for (size_t i = 0; i < listen->proxy_network_count; i++)
        if (network_contains(&listen->proxy_networks[i], from))
            return true;
    return false;
}

static void proxy_protocol_refuse(struct clients *clients, const struct client_accepted *accepted) {
    clients->net->counters.proxy_headers_untrusted++;
    proxy_protocol_complain(
        clients, accepted->client,
        "its address may not send headers of the PROXY protocol, and the listener "
        "takes no connections without them");
    close(accepted->fd);
    atomic_fetch_sub_explicit(&clients->total->count, 1, memory_order_relaxed);
}

/* The loop says also that a connection has ended, which no peek does while bytes are left. */
static void proxy_protocol_watch(struct proxy_protocol *announced) {
    struct loop *loop = announced->client.clients->net->loop;
    if (loop_add(loop, &announced->event, announced->fd, EPOLLIN | EPOLLRDHUP | EPOLLET,
                 proxy_protocol_on_event))
        return;
    log_error("cannot watch a client connection: %s", strerror(errno));
    proxy_protocol_free(announced);
}

/* The header is mostly there by now: then nothing has to be watched. */
static void proxy_protocol_accept(struct clients *clients, const struct client_accepted *accepted,
                                  const struct listen_settings *listen) {
    struct proxy_protocol *announced;
    if (!is_trusted(listen, accepted->client)) {
        proxy_protocol_refuse(clients, accepted);
        return;
    }
    ALLOC_OBJ(announced, PROXY_PROTOCOL_MAGIC);
    event_init(&announced->event);
    timer_init(&announced->timer, proxy_protocol_on_timeout);
    announced->fd = accepted->fd;
    clients_add(clients, &announced->client, &proxy_protocol_class, accepted->client,
                accepted->listener);
    loop_timer_after(clients->net->loop, &announced->timer,
                     clients->net->settings->client.header_timeout);
    if (proxy_protocol_go_on(announced, false))
        proxy_protocol_watch(announced);
}

/* Settings. */

/* enum proxy_header_version. */
static const char *const words[] = {"off", "v1", "v2", NULL};

static const struct option core_rows[] = {
    {ONE("listen", struct listen_settings, proxy_texts), .name = "proxy_protocol",
     .after = "local_destinations", STRINGS, .check = option_check_network, DEFAULT("none"),
     DOC "Lists the addresses and networks of load balancers that connect to the listener and "
         "begin each connection with a header of the PROXY protocol (version 1 or 2). The client "
         "that the header names is then the client for allow, access rules, limits, logs and "
         "services. The header is not optional: a connection from another address is closed and "
         "counted in retort_proxy_headers_untrusted_total; one without a good header is closed "
         "and counted in retort_proxy_headers_bad_total, at the latest after "
         "client.header_timeout. A header without addresses (LOCAL, UNKNOWN), as health checks "
         "have, leaves the load balancer's own address. The value none means that the listener "
         "takes no headers.",
     .example = "{ \"10.0.0.4\", \"10.0.0.5\" }"},
    {ONE("origins", struct origins_settings, proxy_protocol), .name = "proxy_protocol",
     .after = "check_timeout", WORD(words), DEFAULT("off"),
     DOC "Begins each connection to a server of the group with a header of the PROXY protocol, in "
         "version 1 (a line of text) or 2 (binary), which names the client and the address that "
         "the client has connected to. The header comes before TLS. A connection then serves "
         "requests of one client address and port only. Health checks send a header without "
         "addresses. Servers must expect the header: without it, or with one that they do not "
         "expect, they refuse the connection.",
     .example = "v2"},
    {.name = NULL},
};

/* The texts were checked when they were read; "none" is no network. */
static void proxy_protocol_trust(struct listen_settings *listen) {
    size_t count = 0;
    while (listen->proxy_texts != NULL && listen->proxy_texts[count] != NULL)
        count++;
    listen->proxy_networks = xcalloc(count + 1, sizeof *listen->proxy_networks);
    for (size_t i = 0; i < count; i++)
        listen->proxy_network_count +=
            network_parse(&listen->proxy_networks[listen->proxy_network_count],
                          slice_from(listen->proxy_texts[i]));
}

static bool proxy_protocol_load(struct load *load, void *mine) {
    (void)mine;
    for (size_t i = 0; i < load->settings->listen_count; i++)
        proxy_protocol_trust(&load->settings->listens[i]);
    return true;
}

static const struct part_settings proxy_protocol_settings = {
    .core_options = core_rows,
    .load = proxy_protocol_load,
};

const struct part part_proxy_protocol = {
    .settings = &proxy_protocol_settings,
    .proxy_protocol = {.accept = proxy_protocol_accept, .write = proxy_header_write},
};
