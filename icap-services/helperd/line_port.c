#include "helperd/line_port.h"

#include <errno.h>
#include <sys/socket.h>

void line_port_begin(struct line_port *port, const struct helper_terms *terms) {
    port->protocol = terms->protocol;
    port->channels = terms->channels;
    port->channel = 0;
    port->length = 0;
}

/* Takes the protocol off the front of the fields. False: they are of another protocol. */
static bool line_port_take_protocol(enum pool_protocol protocol, struct slice *fields) {
    static const char basic[] = "basic", external_acl[] = "external_acl";
    bool is_basic = protocol == POOL_SQUID_BASIC;
    struct slice name = is_basic ? slice_make(basic, sizeof basic)
                                 : slice_make(external_acl, sizeof external_acl); /* with the NUL */
    if (!slice_starts_with(*fields, name))
        return false;
    *fields = slice_make(fields->base + name.length, fields->length - name.length);
    return true;
}

bool line_port_takes(enum pool_protocol protocol, const struct helper_packet *job) {
    struct slice fields = helper_packet_parameters(job);
    if (protocol == POOL_JOBS)
        return true;
    unsigned least = protocol == POOL_SQUID_BASIC ? 2 : 1;
    unsigned most = protocol == POOL_SQUID_BASIC ? 2 : HELPER_LINE_FIELDS;
    return job->body < 0 && line_port_take_protocol(protocol, &fields) &&
           helper_line_fields_valid(fields, least, most);
}

/* Is the helper there, and silent? */
static bool line_port_is_silent(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool line_port_send(struct line_port *port, int fd, const struct helper_packet *job) {
    char line[HELPER_LINE_QUESTION];
    struct slice fields = helper_packet_parameters(job);
    port->channel++;
    port->length = 0;
    if (!line_port_take_protocol(port->protocol, &fields))
        return false;
    size_t length =
        helper_line_write(line, sizeof line, fields, port->channels ? &port->channel : NULL);
    bool sent = length > 0 && line_port_is_silent(fd) &&
                send(fd, line, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length;
    explicit_bzero(line, sizeof line);
    return sent;
}

/* Makes the result of a whole line. */
static bool line_port_take(const struct line_port *port, struct slice line,
                           struct helper_packet *result) {
    struct helper_line_answer answer;
    uint64_t channel;
    if (port->channels && (!helper_line_take_channel(&line, &channel) || channel != port->channel))
        return false;
    if (!helper_line_valid(line) || !helper_line_read(line, &answer))
        return false;
    helper_packet_init(result, HELPER_RESULT, 0);
    result->message.status = HELPER_DONE;
    return helper_packet_set_parameters(result, line);
}

enum helper_io line_port_receive(struct line_port *port, int fd, struct helper_packet *result) {
    ssize_t length =
        recv(fd, port->answer + port->length, sizeof port->answer - port->length, MSG_DONTWAIT);
    result->body = -1;
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? HELPER_IO_AGAIN : HELPER_IO_CLOSED;
    if (length == 0)
        return HELPER_IO_CLOSED;
    port->length += (size_t)length;
    const char *end = memchr(port->answer, '\n', port->length);
    if (end == NULL)
        return port->length < sizeof port->answer ? HELPER_IO_AGAIN : HELPER_IO_BAD;
    size_t line = (size_t)(end - port->answer);
    bool alone = line + 1 == port->length;
    if (line > 0 && port->answer[line - 1] == '\r')
        line--;
    bool good = alone && line_port_take(port, slice_make(port->answer, line), result);
    explicit_bzero(port->answer, port->length);
    port->length = 0;
    return good ? HELPER_IO_DONE : HELPER_IO_BAD;
}
