#include "icap/probe.h"

#include "base/assert.h"
#include "icap/service.h"
#include "icap/wire.h"
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
    bool reused; /* a pooled connection on which nothing has arrived yet */
    uint64_t heard_at;
    unsigned doubts; /* see icap_look_finds_lost */
    struct timer timer;
    struct net_buffer *in;
    char request[REQUEST_MAX];
    struct slice left;
    struct service_tag_moment asked;
};

static void probe_on_ready(struct connection *connection);

static struct slice write_request(struct icap_probe *probe) {
    const struct icap_endpoint *endpoint = probe->endpoint;
    probe->asked = service_tag_moment(endpoint->service->base.tag, endpoint->index);
    int length = snprintf(probe->request, sizeof probe->request,
                          "OPTIONS %sEncapsulated: null-body=0\r\n\r\n", endpoint->head);
    return slice_make(probe->request, length < REQUEST_MAX ? (size_t)length : 0);
}

static void drop_connection(struct icap_probe *probe, bool lost) {
    if (probe->connection == NULL)
        return;
    probe->net->counters.icap_connections_open--;
    if (lost)
        icap_lost_connections_add(&probe->endpoint->lost_connections, &probe->connection);
    else
        connection_close(&probe->connection);
}

/* Frees the probe first: the callback may start another. */
static void probe_finish(struct icap_probe *probe, struct icap_probe_answer *answer) {
    struct icap_endpoint *endpoint = probe->endpoint;
    icap_probe_fn *on_probed = probe->on_probed;
    if (answer->connection != NULL) {
        probe->net->counters.icap_connections_open--;
        probe->connection = NULL;
    }
    icap_probe_cancel(&endpoint->probe);
    on_probed(endpoint, answer);
}

/* The sentence may be one of its connection, which ends with the probe. */
static void probe_fail(struct icap_probe *probe, enum icap_failure failure, const char *error) {
    char kept[SERVICE_ERROR];
    struct icap_probe_answer answer = {.failure = failure, .error = kept};
    snprintf(kept, sizeof kept, "%s", error);
    probe_finish(probe, &answer);
}

static void probe_on_timeout(struct timer *timer) {
    probe_fail(CONTAINER_OF(timer, struct icap_probe, timer), ICAP_FAILURE_TIMEOUT,
               "it did not answer OPTIONS in time");
}

static void dial_anew(struct icap_probe *probe) {
    const struct icap_endpoint *endpoint = probe->endpoint;
    drop_connection(probe, false);
    probe->reused = false;
    probe->left = write_request(probe);
    const struct dial_target target =
        icap_endpoint_target(endpoint, endpoint->service->base.settings->connect_timeout);
    dial_start(&probe->dial, probe->net, &target, &probe->dial_task);
}

static void probe_broke_off(struct icap_probe *probe, const char *error) {
    if (probe->reused)
        dial_anew(probe);
    else
        probe_fail(probe, ICAP_FAILURE_CLOSED, error);
}

/* A permanent refusal: there is no such service, or not for us. */
static bool is_refusal(unsigned status) {
    return status == 404 || status == 405 || status == 407;
}

/* Returns true when exactly one whole answer has arrived. */
static bool is_reusable(const struct icap_probe *probe, const struct http_head *head, size_t used) {
    struct slice parts = http_head_value(head, HTTP_ENCAPSULATED);
    return probe->left.length == 0 && used == net_buffer_bytes(probe->in).length &&
           (parts.base == NULL || slice_equal_nocase(parts, SLICE("null-body=0"))) &&
           !http_head_has_token(head, HTTP_CONNECTION, SLICE("close"));
}

/* Parses the final answer. Those before it (1xx) say nothing; the time for the answer bounds them. */
static ssize_t parse_answer(struct icap_probe *probe, struct http_head *head) {
    enum { SWITCHING_PROTOCOLS = 101 };
    ssize_t used;
    while ((used = icap_head_parse(head, probe->in->data + probe->in->begin,
                                   net_buffer_bytes(probe->in).length)) > 0 &&
           head->status / 100 == 1 && head->status != SWITCHING_PROTOCOLS)
        probe->in->begin += (size_t)used;
    return used;
}

/* Returns true when the probe has ended. */
static bool probe_parse(struct icap_probe *probe) {
    struct http_head head;
    struct icap_options options;
    const char *error;
    ssize_t used = parse_answer(probe, &head);
    if (used == 0)
        return false;
    if (used < 0) {
        probe_fail(probe, ICAP_FAILURE_PROTOCOL, "its answer to OPTIONS is not ICAP");
    } else if (icap_options_parse(&options, &head, &error)) {
        struct icap_probe_answer answer = {.options = &options, .asked = probe->asked};
        if (is_reusable(probe, &head, (size_t)used))
            answer.connection = probe->connection;
        probe_finish(probe, &answer);
    } else {
        probe_fail(probe, is_refusal(head.status) ? ICAP_FAILURE_GONE : ICAP_FAILURE_SERVER, error);
    }
    return true;
}

/* Reads until the socket is empty, because there is one event for all bytes. */
static void probe_receive(struct icap_probe *probe) {
    size_t got;
    while (probe->connection != NULL && probe->connection->readable) {
        if (probe->in == NULL)
            probe->in = net_buffer_take(probe->net);
        if (!net_buffer_make_room(probe->net, &probe->in, HEAD_MAX)) {
            probe_fail(probe, ICAP_FAILURE_PROTOCOL, "its answer to OPTIONS is too long");
            return;
        }
        switch (connection_read(probe->connection, probe->in->data + probe->in->end,
                                probe->in->capacity - probe->in->end, &got)) {
        case IO_DONE: break;
        case IO_WAIT: return;
        case IO_FAILED: probe_broke_off(probe, connection_error(probe->connection)); return;
        default:
            probe_broke_off(probe, "it closed the connection instead of answering OPTIONS");
            return;
        }
        probe->reused = false;
        probe->heard_at = probe->net->loop->now;
        probe->in->end += got;
        if (probe_parse(probe))
            return;
    }
}

static void probe_on_ready(struct connection *connection) {
    struct icap_probe *probe;
    CAST_OBJ(probe, connection->event.owner, ICAP_PROBE_MAGIC);
    struct iovec piece = {(void *)probe->left.base, probe->left.length};
    size_t sent;
    if (probe->left.length > 0 && connection_write(connection, &piece, 1, &sent) == IO_DONE) {
        probe->left.base += sent;
        probe->left.length -= sent;
    }
    if (connection->readable)
        probe_receive(probe);
}

static void probe_begin(struct icap_probe *probe) {
    probe->heard_at = probe->net->loop->now;
    probe_on_ready(probe->connection);
}

static void probe_on_dialled(struct task *task) {
    struct icap_probe *probe = CONTAINER_OF(task, struct icap_probe, dial_task);
    CHECK_OBJ(probe, ICAP_PROBE_MAGIC);
    if (probe->dial.state == DIAL_FAILED) {
        probe_fail(probe, probe->dial.reached ? ICAP_FAILURE_HANDSHAKE : ICAP_FAILURE_CONNECT,
                   probe->dial.error);
        return;
    }
    probe->connection = dial_take(&probe->dial, probe_on_ready, probe);
    probe->net->counters.icap_connections++;
    probe->net->counters.icap_connections_open++;
    connection_keep_alive(probe->connection);
    if (icap_endpoint_is_lost(probe->endpoint))
        icap_health_reached(probe->endpoint->health, probe->net->loop);
    probe_begin(probe);
}

/* A given connection is used from the loop, because the callback must not run before the start
 * has returned. */
static void on_given(struct task *task) {
    struct icap_probe *probe = CONTAINER_OF(task, struct icap_probe, dial_task);
    CHECK_OBJ(probe, ICAP_PROBE_MAGIC);
    probe->dial_task.run = probe_on_dialled;
    probe_begin(probe);
}

struct icap_probe *icap_probe_start(struct icap_endpoint *endpoint, struct connection **connection,
                                    uint64_t patience, icap_probe_fn *on_probed) {
    struct icap_probe *probe;
    ALLOC_OBJ(probe, ICAP_PROBE_MAGIC);
    probe->endpoint = endpoint;
    probe->net = endpoint->service->net;
    probe->on_probed = on_probed;
    probe->net->counters.icap_options++;
    timer_init(&probe->timer, probe_on_timeout);
    task_init(&probe->dial_task, probe_on_dialled);
    loop_timer_after(probe->net->loop, &probe->timer,
                     endpoint->service->base.settings->connect_timeout + patience);
    probe->connection = *connection;
    *connection = NULL;
    if (probe->connection == NULL) {
        dial_anew(probe);
        return probe;
    }
    probe->reused = true;
    probe->net->counters.icap_connections_open++;
    probe->left = write_request(probe);
    connection_set_owner(probe->connection, probe_on_ready, probe);
    probe->dial_task.run = on_given;
    loop_defer(probe->net->loop, &probe->dial_task);
    return probe;
}

void icap_probe_hurry(struct icap_probe *probe, uint64_t patience) {
    dial_hurry(&probe->dial, patience);
}

void icap_probe_look(struct icap_probe *probe) {
    CHECK_OBJ(probe, ICAP_PROBE_MAGIC);
    if (probe->connection == NULL ||
        !icap_look_finds_lost(probe->endpoint, probe->connection, probe->heard_at, &probe->doubts))
        return;
    drop_connection(probe, true);
    probe_fail(probe, ICAP_FAILURE_LOST, ICAP_HOST_IS_SILENT);
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
    drop_connection(probe, icap_endpoint_is_lost(probe->endpoint));
    net_buffer_give(net, &probe->in);
    FREE_OBJ(probe);
}
