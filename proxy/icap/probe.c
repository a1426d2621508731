#include "icap/probe.h"

#include "base/assert.h"
#include "http/head_parser.h"
#include "icap/service.h"
#include "net/dial.h"

#include <stdio.h>

enum { HEAD_MAX = 64 * 1024, REQUEST_MAX = 4096 };

struct icap_probe {
    unsigned magic;
#define ICAP_PROBE_MAGIC 0x1ca990beu
    struct icap_endpoint *endpoint;
    struct net_context *net;
    icap_probe_fn *on_probed;
    struct dial dial;
    struct task dial_task;
    struct connection *connection;
    struct timer timer;
    struct net_buffer *in;
    char request[REQUEST_MAX];
    struct slice left;
};

/* Frees the probe first: the callback may start another. */
static void finish(struct icap_probe *probe, const struct icap_options *options,
                   const char *error) {
    struct icap_endpoint *endpoint = probe->endpoint;
    icap_probe_fn *on_probed = probe->on_probed;
    icap_probe_cancel(&endpoint->probe);
    on_probed(endpoint, options, error);
}

static void on_timeout(struct timer *timer) {
    finish(CONTAINER_OF(timer, struct icap_probe, timer), NULL, "OPTIONS was not answered in time");
}

/* True: the probe is over. */
static bool parse(struct icap_probe *probe) {
    struct http_head head;
    struct icap_options options;
    const char *error;
    struct slice bytes = net_buffer_bytes(probe->in);
    ssize_t used = http_head_parse_icap_response(&head, bytes.base, bytes.length, 0);
    if (used == 0)
        return false;
    if (used < 0)
        finish(probe, NULL, "the answer to OPTIONS is not ICAP");
    else if (icap_options_parse(&options, &head, &error))
        finish(probe, &options, NULL);
    else
        finish(probe, NULL, error);
    return true;
}

/* Until the socket is empty: there is one event for all that has come. */
static void receive(struct icap_probe *probe) {
    size_t got;
    while (probe->connection->readable) {
        if (probe->in == NULL)
            probe->in = net_buffer_take(probe->net);
        if (!net_buffer_make_room(probe->net, &probe->in, HEAD_MAX)) {
            finish(probe, NULL, "the answer to OPTIONS is too long");
            return;
        }
        switch (connection_read(probe->connection, probe->in->data + probe->in->end,
                                probe->in->capacity - probe->in->end, &got)) {
        case IO_DONE: break;
        case IO_WAIT: return;
        case IO_FAILED: finish(probe, NULL, connection_error(probe->connection)); return;
        default:
            finish(probe, NULL, "it closed the connection instead of answering OPTIONS");
            return;
        }
        probe->in->end += got;
        if (parse(probe))
            return;
    }
}

static void on_ready(struct connection *connection) {
    struct icap_probe *probe;
    CAST_OBJ(probe, connection->event.owner, ICAP_PROBE_MAGIC);
    struct iovec piece = {(void *)probe->left.base, probe->left.length};
    size_t sent;
    if (probe->left.length > 0 && connection_write(connection, &piece, 1, &sent) == IO_DONE) {
        probe->left.base += sent;
        probe->left.length -= sent;
    }
    if (connection->readable)
        receive(probe);
}

static void on_dialled(struct task *task) {
    struct icap_probe *probe = CONTAINER_OF(task, struct icap_probe, dial_task);
    CHECK_OBJ(probe, ICAP_PROBE_MAGIC);
    if (probe->dial.state == DIAL_FAILED) {
        finish(probe, NULL, probe->dial.error);
        return;
    }
    probe->connection = dial_take(&probe->dial, on_ready, probe);
    on_ready(probe->connection);
}

static struct slice write_request(struct icap_probe *probe) {
    int length = snprintf(probe->request, sizeof probe->request,
                          "OPTIONS %sEncapsulated: null-body=0\r\n\r\n", probe->endpoint->head);
    return slice_make(probe->request, length < REQUEST_MAX ? (size_t)length : 0);
}

struct icap_probe *icap_probe_start(struct icap_endpoint *endpoint, icap_probe_fn *on_probed) {
    const struct icap_service_settings *settings = endpoint->service->settings;
    struct icap_probe *probe;
    ALLOC_OBJ(probe, ICAP_PROBE_MAGIC);
    probe->endpoint = endpoint;
    probe->net = endpoint->service->net;
    probe->on_probed = on_probed;
    timer_init(&probe->timer, on_timeout);
    task_init(&probe->dial_task, on_dialled);
    probe->left = write_request(probe);
    probe->net->counters.icap_options++;
    probe->net->counters.icap_connections++;
    loop_timer_after(probe->net->loop, &probe->timer,
                     settings->connect_timeout + settings->timeout);
    dial_start_tls(&probe->dial, probe->net, endpoint->uri->host, endpoint->uri->port,
                   settings->connect_timeout, endpoint->tls, &probe->dial_task);
    return probe;
}

void icap_probe_cancel(struct icap_probe **probep) {
    struct icap_probe *probe = *probep;
    *probep = NULL;
    if (probe == NULL)
        return;
    CHECK_OBJ(probe, ICAP_PROBE_MAGIC);
    struct net_context *net = probe->net;
    task_cancel(&probe->dial_task);
    dial_cancel(&probe->dial);
    timer_cancel(&net->loop->timers, &probe->timer);
    connection_close(&probe->connection);
    net_buffer_give(net, &probe->in);
    FREE_OBJ(probe);
}
