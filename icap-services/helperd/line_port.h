/*
 * The supervisor's end of the socket to a helper that speaks one of Squid's line protocols
 * (service/helper_line.h).
 *
 *     struct line_port port;
 *     line_port_begin(&port, &settings->terms);                 for each new process
 *     if (!line_port_is_open(&port)) ...                        its helper speaks in packets
 *     if (line_port_send(&port, fd, &job->packet)) ...          a question
 *     switch (line_port_receive(&port, fd, &packet)) ...        its answer, as a result of a job
 *
 * A line that is not the answer to the question of the moment is HELPER_IO_BAD, and its helper must
 * go: an unknown result, control characters, another channel, two lines, or one that is too long.
 * Without a channel nothing tells a late second line from the answer to the next question. So a
 * question is sent only when nothing can be read, and helpers that can have channels should.
 *
 * The first field of a job is the protocol, "basic" or "external_acl". It is not passed on. Thus no
 * password is taken for a group because somebody has named the wrong pool.
 *
 * A password that was sent, and an answer that was read, are wiped. Threads: one.
 */
#ifndef RETORT_HELPERD_LINE_PORT_H
#define RETORT_HELPERD_LINE_PORT_H

#include "helperd/settings.h"
#include "service/helper_line.h"
#include "service/helper_protocol.h"

struct line_port {
    enum pool_protocol protocol;
    bool channels;    /* lines begin with a number */
    uint64_t channel; /* of the question of the moment */
    size_t length;    /* of the answer so far */
    char answer[HELPER_LINE_ANSWER];
};

void line_port_begin(struct line_port *port, const struct helper_terms *terms);
static inline bool line_port_is_open(const struct line_port *port) {
    return port->protocol != POOL_JOBS;
}
/* Can these parameters of a job be a question of that protocol? */
bool line_port_takes(enum pool_protocol protocol, const struct helper_packet *job);
/* False: the helper has gone, does not read, or has said something that nobody asked. */
bool line_port_send(struct line_port *port, int fd, const struct helper_packet *job);
/* HELPER_IO_DONE: `result` has the status HELPER_DONE and the answer, OK, ERR or BH, as its
 * parameters. Its id is the caller's to set. */
enum helper_io line_port_receive(struct line_port *port, int fd, struct helper_packet *result);

#endif
