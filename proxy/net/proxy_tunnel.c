#include "net/proxy_tunnel.h"

#include "base/assert.h"
#include "http/head_parser.h"

#include <stdio.h>

enum { ANSWER_MOST = 16384, TUNNEL_ERROR = 400 };

struct proxy_tunnel {
    unsigned magic;
#define PROXY_TUNNEL_MAGIC 0x940c7414u
    char *head;
    size_t length, sent; /* of the head */
    size_t received;     /* of the answer */
    unsigned status;
    char error[TUNNEL_ERROR];
    char answer[ANSWER_MOST];
};

struct proxy_tunnel *proxy_tunnel_new(struct slice head) {
    struct proxy_tunnel *tunnel = xmalloc(sizeof *tunnel);
    tunnel->magic = PROXY_TUNNEL_MAGIC;
    tunnel->head = slice_dup(head);
    tunnel->length = head.length;
    proxy_tunnel_restart(tunnel);
    return tunnel;
}

void proxy_tunnel_free(struct proxy_tunnel **tunnelp) {
    struct proxy_tunnel *tunnel = *tunnelp;
    *tunnelp = NULL;
    if (tunnel == NULL)
        return;
    CHECK_OBJ(tunnel, PROXY_TUNNEL_MAGIC);
    free(tunnel->head);
    FREE_OBJ(tunnel);
}

void proxy_tunnel_restart(struct proxy_tunnel *tunnel) {
    CHECK_OBJ(tunnel, PROXY_TUNNEL_MAGIC);
    tunnel->sent = tunnel->received = 0;
    tunnel->status = 0;
    tunnel->error[0] = '\0';
}

static enum io_status tunnel_fail(struct proxy_tunnel *tunnel, const char *error) {
    snprintf(tunnel->error, sizeof tunnel->error, "%s", error);
    return IO_FAILED;
}

static enum io_status tunnel_ask(struct proxy_tunnel *tunnel, struct connection *connection) {
    size_t put;
    while (tunnel->sent < tunnel->length) {
        const struct iovec rest = {tunnel->head + tunnel->sent, tunnel->length - tunnel->sent};
        switch (connection_write(connection, &rest, 1, &put)) {
        case IO_DONE: tunnel->sent += put; break;
        case IO_WAIT: return IO_WAIT;
        default: return tunnel_fail(tunnel, connection_error(connection));
        }
    }
    return IO_DONE;
}

/* Bytes behind the head of an answer that opens the tunnel would be the server's, and a TLS server
 * waits for its client to begin. */
static enum io_status tunnel_judge(struct proxy_tunnel *tunnel, const struct http_head *answer,
                                   size_t length) {
    tunnel->status = answer->status;
    if (answer->status == 407)
        return tunnel_fail(tunnel, "the parent proxy does not accept the credentials in its "
                                   "origins section, or needs some: set credentials there");
    if (answer->status < 200 || answer->status > 299)
        return tunnel_fail(tunnel, "the parent proxy did not open the tunnel");
    if (length < tunnel->received)
        return tunnel_fail(tunnel,
                           "bytes came through the parent proxy before they were asked for");
    return IO_DONE;
}

/* Interim answers (1xx) are passed over. */
static enum io_status tunnel_parse(struct proxy_tunnel *tunnel) {
    struct http_head answer;
    for (;;) {
        ssize_t length = http_head_parse_response(&answer, tunnel->answer, tunnel->received, 0);
        if (length == 0)
            return IO_WAIT;
        if (length < 0)
            return tunnel_fail(tunnel, "the parent proxy's answer is not HTTP");
        if (answer.status >= 200)
            return tunnel_judge(tunnel, &answer, (size_t)length);
        tunnel->received -= (size_t)length;
        memmove(tunnel->answer, tunnel->answer + length, tunnel->received);
    }
}

static enum io_status tunnel_hear(struct proxy_tunnel *tunnel, struct connection *connection) {
    size_t got;
    for (;;) {
        if (tunnel->received == ANSWER_MOST)
            return tunnel_fail(tunnel, "the parent proxy's answer is too large");
        switch (connection_read(connection, tunnel->answer + tunnel->received,
                                ANSWER_MOST - tunnel->received, &got)) {
        case IO_DONE: tunnel->received += got; break;
        case IO_WAIT: return IO_WAIT;
        case IO_END:
            return tunnel_fail(tunnel, "the parent proxy closed the connection without answering");
        default: return tunnel_fail(tunnel, connection_error(connection));
        }
        enum io_status status = tunnel_parse(tunnel);
        if (status != IO_WAIT || !connection->readable)
            return status;
    }
}

enum io_status proxy_tunnel_continue(struct proxy_tunnel *tunnel, struct connection *connection) {
    CHECK_OBJ(tunnel, PROXY_TUNNEL_MAGIC);
    enum io_status status = tunnel_ask(tunnel, connection);
    return status == IO_DONE ? tunnel_hear(tunnel, connection) : status;
}

const char *proxy_tunnel_error(const struct proxy_tunnel *tunnel) {
    return tunnel->error;
}

unsigned proxy_tunnel_status(const struct proxy_tunnel *tunnel) {
    return tunnel->status;
}
