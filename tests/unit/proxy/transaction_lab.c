#include "transaction_lab.h"

#include "base/findings.h"
#include "cache/shared_fetch.h"
#include "cache/store.h"
#include "cache/vouching.h"
#include "net/egress.h"
#include "net/resolver.h"
#include "origin/group.h"
#include "origin/host.h"
#include "origin/http1/http1.h"
#include "origin/security.h"
#include "part.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void origin_listen(struct transaction_lab *lab) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    lab->listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(lab->listening, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(lab->listening, 16), 0);
    getsockname(lab->listening, (struct sockaddr *)&address, &length);
    snprintf(lab->origin, sizeof lab->origin, "127.0.0.1:%u", ntohs(address.sin_port));
}

static void origin_drop(struct transaction_lab *lab, unsigned i) {
    close(lab->fds[i]);
    lab->fds[i] = lab->fds[--lab->fd_count];
}

void transaction_lab_break(struct transaction_lab *lab) {
    while (lab->fd_count > 0)
        origin_drop(lab, 0);
    client_lab_run(lab->client);
}

void transaction_lab_say(struct transaction_lab *lab, const char *text) {
    size_t length = strlen(text);
    for (unsigned i = 0; i < lab->fd_count; i++)
        ck_assert_int_eq(send(lab->fds[i], text, length, MSG_NOSIGNAL), (ssize_t)length);
    client_lab_run(lab->client);
}

/* A request is there when its head is: bodies are not told apart. True: something has come. */
static bool origin_serve(struct transaction_lab *lab, unsigned i) {
    char *at = lab->asked + lab->got;
    ssize_t got = recv(lab->fds[i], at, TRANSACTION_LAB_ASKED - 1 - lab->got, 0);
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0) {
        origin_drop(lab, i);
        return true;
    }
    lab->got += (size_t)got;
    at[got] = '\0';
    if (strstr(at, "\r\n\r\n") == NULL)
        return true;
    lab->requests++;
    if (lab->reply != NULL)
        send(lab->fds[i], lab->reply, strlen(lab->reply), MSG_NOSIGNAL);
    return true;
}

static bool origin_turn(void *arg) {
    struct transaction_lab *lab = arg;
    int fd = accept4(lab->listening, NULL, NULL, SOCK_NONBLOCK);
    bool any = fd >= 0;
    if (fd >= 0) {
        ck_assert_uint_lt(lab->fd_count, TRANSACTION_LAB_ORIGINS);
        lab->fds[lab->fd_count++] = fd;
    }
    for (unsigned i = lab->fd_count; i-- > 0;)
        any |= origin_serve(lab, i);
    return any;
}

static void transaction_lab_on_request(struct exchange *exchange, void *arg) {
    struct transaction_lab *lab = arg;
    transaction_start(&lab->host, exchange);
}

static void start_transactions(struct transaction_lab *lab) {
    struct transaction_host *host = &lab->host;
    struct client_lab *client = lab->client;
    struct net_context *net = &client->net;
    const struct part *adapt = part_table[PART_ADAPT];
    struct findings findings = {0};
    steps_compile(client->settings);
    net->resolver = resolver_new(net);
    ck_assert_ptr_nonnull(net->resolver);
    ck_assert(egress_prepare(net));
    lab->groups = origin_groups_new(client->settings, NULL);
    if (adapt != NULL)
        adapt->process.prepare(NULL, client->settings, &findings);
    host->net = net;
    host->mailbox = &client->mailbox;
    host->cache = cache_new(16 << 20);
    host->vouching = &vouching_always;
    host->shared_fetches = shared_fetches_new();
    host->origin_hosts = origin_hosts_new();
    transaction_host_init(host);
    host->origins = origin_pool_new(
        net, &origin_http1_class,
        part_table[PART_HTTP2] != NULL ? part_table[PART_HTTP2]->protocol.origin : NULL);
    host->origin_securities = origin_securities_new(net);
    host->clients = &client->clients;
    host->snapshot = snapshot_new(host, client->settings, lab->groups);
    host->logs = access_logs_open(net, client->settings);
    list_init(&host->active);
    host->id_prefix = UINT64_C(0x1234567800000000);
}

/* The settings with the origin's address for each "@". */
static char *settings_text(const struct transaction_lab *lab, const char *settings) {
    char *text = xcalloc(1, 8192), *at = text;
    for (; *settings != '\0'; settings++) {
        ck_assert_int_lt(at - text, 8000);
        if (*settings == '@')
            at = stpcpy(at, lab->origin);
        else
            *at++ = *settings;
    }
    return text;
}

struct transaction_lab *transaction_lab_open(const char *settings) {
    struct transaction_lab *lab = xcalloc(1, sizeof *lab);
    lab->asked = xcalloc(1, TRANSACTION_LAB_ASKED);
    origin_listen(lab);
    char *text = settings_text(lab, settings);
    lab->client = client_lab_open(text);
    free(text);
    lab->client->arg = lab;
    lab->client->on_request = transaction_lab_on_request;
    lab->client->peer = origin_turn;
    start_transactions(lab);
    return lab;
}

void transaction_lab_close(struct transaction_lab *lab) {
    struct client_lab *client = lab->client;
    struct net_context *net = &client->net;
    struct transaction_host *host = &lab->host;
    client_lab_hang_up(client);
    transaction_lab_break(lab);
    ck_assert_msg(list_empty(&host->active), "a transaction is left over");
    access_logs_close(&host->logs);
    origin_securities_free(&host->origin_securities);
    origin_pool_free(&host->origins);
    snapshot_release(&host->snapshot);
    if (part_table[PART_ADAPT] != NULL)
        part_table[PART_ADAPT]->worker.leave(host);
    transaction_host_release(host);
    origin_hosts_free(&host->origin_hosts);
    shared_fetches_free(&host->shared_fetches);
    cache_free(&host->cache);
    origin_groups_release(&lab->groups);
    resolver_free(&net->resolver);
    egress_release(net);
    close(lab->listening);
    client->peer = NULL;
    client_lab_close(client);
    free(lab->asked);
    free(lab);
}

void transaction_lab_ask(struct transaction_lab *lab, const char *method, const char *path,
                         const char *fields) {
    char text[8192];
    snprintf(text, sizeof text, "%s http://%s%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method,
             lab->origin, path, lab->origin, fields);
    client_lab_send(lab->client, text);
}

const char *transaction_lab_asked(struct transaction_lab *lab) {
    lab->asked[lab->got] = '\0';
    lab->got = 0;
    return lab->asked;
}
