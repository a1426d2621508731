#include "icap/info.h"

#include "base/assert.h"
#include "http/chunked.h"
#include "icap/service.h"
#include "icap/wire.h"
#include "net/dial.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFO_NUMBER_MOST ((uint64_t)1 << 53)

enum info_unit { INFO_COUNT, INFO_BYTES };

static const struct info_line {
    const char *label;
    size_t at; /* in struct server_numbers */
    enum info_unit unit;
} info_lines[] = {
    {"Children number", offsetof(struct server_numbers, processes), INFO_COUNT},
    {"Closing Processes", offsetof(struct server_numbers, processes_closing), INFO_COUNT},
    {"Started Processes", offsetof(struct server_numbers, processes_started), INFO_COUNT},
    {"Crashed Processes", offsetof(struct server_numbers, processes_crashed), INFO_COUNT},
    {"Free Servers", offsetof(struct server_numbers, threads_free), INFO_COUNT},
    {"Used Servers", offsetof(struct server_numbers, threads_used), INFO_COUNT},
    {"REQUESTS", offsetof(struct server_numbers, requests), INFO_COUNT},
    {"FAILED REQUESTS", offsetof(struct server_numbers, failed_requests), INFO_COUNT},
    {"ALLOW 204", offsetof(struct server_numbers, unmodified), INFO_COUNT},
    {"BYTES IN", offsetof(struct server_numbers, bytes_in), INFO_BYTES},
    {"BYTES OUT", offsetof(struct server_numbers, bytes_out), INFO_BYTES},
};

enum { INFO_LINES = sizeof info_lines / sizeof *info_lines };

/* Takes the first word off the text. */
static struct slice info_word(struct slice *text) {
    *text = slice_trim(*text);
    const char *blank = memchr(text->base, ' ', text->length);
    size_t length = blank == NULL ? text->length : (size_t)(blank - text->base);
    struct slice word = slice_make(text->base, length);
    *text = slice_make(text->base + length, text->length - length);
    return word;
}

static bool info_number(struct slice *text, uint64_t *number) {
    return slice_to_uint64(info_word(text), number) && *number <= INFO_NUMBER_MOST;
}

/* "78", or "3 Kbs 78 bytes". */
static bool info_value(struct slice text, enum info_unit unit, uint64_t *value) {
    uint64_t first, rest;
    if (!info_number(&text, &first))
        return false;
    *value = first;
    if (unit == INFO_COUNT)
        return slice_trim(text).length == 0;
    if (!slice_equal(info_word(&text), SLICE("Kbs")) || !info_number(&text, &rest) ||
        !slice_equal(info_word(&text), SLICE("bytes")) || slice_trim(text).length > 0)
        return false;
    *value = first * 1024 + rest;
    return *value <= INFO_NUMBER_MOST;
}

static const struct info_line *info_find(struct slice label) {
    for (size_t i = 0; i < INFO_LINES; i++)
        if (slice_equal(label, slice_from(info_lines[i].label)))
            return &info_lines[i];
    return NULL;
}

bool icap_info_text_read(struct slice text, struct server_numbers *numbers) {
    unsigned seen = 0;
    struct slice line;
    while (slice_next_line(&text, &line)) {
        uint64_t value;
        const char *colon = memchr(line.base, ':', line.length);
        size_t length = colon == NULL ? 0 : (size_t)(colon - line.base);
        const struct info_line *known = info_find(slice_trim(slice_make(line.base, length)));
        if (known == NULL)
            continue;
        unsigned bit = 1u << (known - info_lines);
        if ((seen & bit) != 0 ||
            !info_value(slice_make(colon + 1, line.length - length - 1), known->unit, &value))
            return false;
        memcpy((char *)numbers + known->at, &value, sizeof value);
        seen |= bit;
    }
    return seen == (1u << INFO_LINES) - 1;
}

enum { INFO_REQUEST = 4096 };

struct icap_info {
    unsigned magic;
#define ICAP_INFO_MAGIC 0x1ca91f00u
    struct icap_endpoint *endpoint;
    struct icap_server *server;
    struct net_context *net;
    struct timer turn_timer; /* for the next question */
    struct timer timer;      /* for the answer */
    struct dial dial;
    struct task dial_task;
    struct connection *connection;
    struct net_buffer *in;
    char request[INFO_REQUEST];
    struct slice left;
    struct chunked_decoder decoder;
    char *text; /* NULL: the heads have not come yet */
    size_t length;
};

/* Ends the question, if there is one. */
static void info_end_question(struct icap_info *info) {
    task_cancel(&info->dial_task);
    dial_cancel(&info->dial);
    timer_cancel(&info->net->loop->timers, &info->timer);
    if (info->connection != NULL) {
        info->net->counters.icap_connections_open--;
        connection_close(&info->connection);
    }
    net_buffer_give(info->net, &info->in);
    free(info->text);
    info->text = NULL;
    info->length = 0;
}

static void info_fail(struct icap_info *info) {
    info_end_question(info);
    icap_server_failed(info->server);
}

static void info_on_timeout(struct timer *timer) {
    info_fail(CONTAINER_OF(timer, struct icap_info, timer));
}

/* False: the question has ended. */
static bool info_take_heads(struct icap_info *info) {
    struct http_head head;
    struct icap_encapsulated parts;
    ssize_t used =
        icap_head_parse(&head, info->in->data + info->in->begin, net_buffer_bytes(info->in).length);
    if (used == 0)
        return true;
    if (used < 0 || head.status != 200 ||
        !icap_encapsulated_parse(&parts, http_head_value(&head, HTTP_ENCAPSULATED),
                                 ICAP_INFO_HEAD) ||
        !parts.has_body || parts.body_is_request) {
        info_fail(info);
        return false;
    }
    size_t heads = (size_t)used + parts.body_at;
    if (net_buffer_bytes(info->in).length < heads)
        return true;
    info->text = malloc(ICAP_INFO_TEXT);
    if (info->text == NULL) {
        info_fail(info);
        return false;
    }
    info->in->begin += heads;
    chunked_init(&info->decoder);
    chunked_of_response(&info->decoder, NULL);
    return true;
}

static bool info_take_text(struct icap_info *info) {
    struct slice input = net_buffer_bytes(info->in);
    size_t got = 0;
    enum chunked_status status = chunked_decode(&info->decoder, &input, info->text + info->length,
                                                (size_t)ICAP_INFO_TEXT - info->length, &got);
    info->length += got;
    info->in->begin = info->in->end = 0;
    if (status == CHUNKED_MORE && input.length == 0)
        return true;
    struct server_numbers numbers;
    if (status == CHUNKED_END &&
        icap_info_text_read(slice_make(info->text, info->length), &numbers)) {
        info_end_question(info);
        icap_server_answered(info->server, &numbers);
    } else {
        info_fail(info);
    }
    return false;
}

static bool info_take(struct icap_info *info) {
    return (info->text != NULL || info_take_heads(info)) &&
           (info->text == NULL || info_take_text(info));
}

/* Reads until the socket is empty, because there is one event for all bytes. */
static void info_receive(struct icap_info *info) {
    size_t got;
    while (info->connection->readable) {
        if (info->in == NULL)
            info->in = net_buffer_take(info->net);
        enum io_status status =
            net_buffer_make_room(info->net, &info->in, ICAP_INFO_HEAD)
                ? connection_read(info->connection, info->in->data + info->in->end,
                                  info->in->capacity - info->in->end, &got)
                : IO_FAILED;
        if (status == IO_WAIT)
            return;
        if (status != IO_DONE) {
            info_fail(info);
            return;
        }
        info->in->end += got;
        if (!info_take(info))
            return;
    }
}

static void info_on_ready(struct connection *connection) {
    struct icap_info *info;
    CAST_OBJ(info, connection->event.owner, ICAP_INFO_MAGIC);
    struct iovec piece = {(void *)info->left.base, info->left.length};
    size_t sent;
    if (info->left.length > 0 && connection_write(connection, &piece, 1, &sent) == IO_DONE) {
        info->left.base += sent;
        info->left.length -= sent;
    }
    if (connection->readable)
        info_receive(info);
}

static void info_on_dialled(struct task *task) {
    struct icap_info *info = CONTAINER_OF(task, struct icap_info, dial_task);
    CHECK_OBJ(info, ICAP_INFO_MAGIC);
    if (info->dial.state == DIAL_FAILED) {
        info_fail(info);
        return;
    }
    info->connection = dial_take(&info->dial, info_on_ready, info);
    info->net->counters.icap_connections++;
    info->net->counters.icap_connections_open++;
    info_on_ready(info->connection);
}

/* The connection is closed afterwards, since the server has a thread for each. */
static void info_ask(struct icap_info *info) {
    static const char http[] = "GET / HTTP/1.1\r\nHost: retort.internal\r\n\r\n";
    char *head = icap_endpoint_write_head(info->endpoint, icap_server_uri(info->server));
    int length = snprintf(info->request, INFO_REQUEST,
                          "REQMOD %sConnection: close\r\nEncapsulated: req-hdr=0, "
                          "null-body=%zu\r\n\r\n%s",
                          head, sizeof http - 1, http);
    free(head);
    if (length >= INFO_REQUEST) {
        icap_server_failed(info->server);
        return;
    }
    info_end_question(info);
    info->left = slice_make(info->request, (size_t)length);
    loop_timer_after(info->net->loop, &info->timer, ICAP_INFO_PATIENCE);
    const struct dial_target target = icap_endpoint_target(info->endpoint, ICAP_INFO_PATIENCE);
    dial_start(&info->dial, info->net, &target, &info->dial_task);
}

static void info_on_turn(struct timer *timer) {
    struct icap_info *info = CONTAINER_OF(timer, struct icap_info, turn_timer);
    CHECK_OBJ(info, ICAP_INFO_MAGIC);
    loop_timer_after(info->net->loop, &info->turn_timer, ICAP_SERVER_EVERY);
    if (icap_server_claim(info->server, info->net->loop->now))
        info_ask(info);
}

struct icap_info *icap_info_start(struct icap_endpoint *endpoint, struct icap_server *server) {
    struct icap_info *info;
    if (server == NULL)
        return NULL;
    _Static_assert((int)ICAP_INFO_PATIENCE < (int)ICAP_SERVER_EVERY,
                   "a question ends before the next one");
    ALLOC_OBJ(info, ICAP_INFO_MAGIC);
    info->endpoint = endpoint;
    info->server = server;
    info->net = endpoint->service->net;
    timer_init(&info->turn_timer, info_on_turn);
    timer_init(&info->timer, info_on_timeout);
    task_init(&info->dial_task, info_on_dialled);
    loop_timer_after(info->net->loop, &info->turn_timer, 0);
    return info;
}

void icap_info_end(struct icap_info **infop) {
    struct icap_info *info = *infop;
    *infop = NULL;
    if (info == NULL)
        return;
    CHECK_OBJ(info, ICAP_INFO_MAGIC);
    info_end_question(info);
    timer_cancel(&info->net->loop->timers, &info->turn_timer);
    FREE_OBJ(info);
}
