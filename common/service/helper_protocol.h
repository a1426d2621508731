/*
 * The helper protocol: services, retort-helperd and the helper processes use it to pass on jobs and
 * results.
 *
 * Transport: a Unix socket of type SOCK_SEQPACKET, so that one message is one packet and a cut
 * message can't be mistaken for a whole one. A message is a struct helper_message, then
 * `inline_length` bytes of parameters or of a small result, and with them at most one descriptor
 * (SCM_RIGHTS): a sealed memfd that holds the body. Both ends are on one machine, so numbers are in
 * host order; `version` catches ends from different builds.
 *
 *     service -> helperd      JOB     pool, id, milliseconds left, parameters, body, origin
 *     helperd -> helper       JOB     the same; one at a time
 *     helper  -> helperd      RESULT  id, status, small result or body
 *     helperd -> service      RESULT  the same
 *
 * A job of version HELPER_VERSION_ORIGIN ends with a struct helper_origin: the client, and the
 * expected cost. retort-helperd uses it, and also accepts jobs without it (HELPER_VERSION). All
 * other messages are of HELPER_VERSION, so helpers need to know no other version.
 *
 * A service has one job at a time on a connection; closing the connection cancels the job.
 *
 *     struct helper_packet packet;
 *     helper_packet_init(&packet, HELPER_JOB, id);
 *     packet.body = memfd;                               still belongs to the caller
 *     switch (helper_packet_send(fd, &packet)) ...
 *
 *     switch (helper_packet_receive(fd, &packet)) ...    checked: magic, version, kind, lengths,
 *     helper_packet_close_body(&packet);                 and that the memfd can not shrink
 *
 * helper_body_usable checks a body: it is a memfd, sealed against shrinking, growing and writing,
 * and has exactly the announced length. So the receiver may map it: nobody can change it, and
 * reading it can't cause a fault.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_SERVICE_HELPER_PROTOCOL_H
#define RETORT_SERVICE_HELPER_PROTOCOL_H

#include "base/slice.h"

enum {
    HELPER_MAGIC = 0x52744a31, /* "RtJ1" */
    HELPER_VERSION = 1,
    HELPER_VERSION_ORIGIN = 2,
    HELPER_POOL_MAX = 24,
    HELPER_CLIENT_MAX = 56,
    HELPER_INLINE_MAX = 16384,
};

enum helper_kind { HELPER_JOB = 1, HELPER_RESULT = 2 };

enum helper_status {
    HELPER_DONE,      /* the result is there */
    HELPER_UNCHANGED, /* the helper would give the same bytes back */
    HELPER_REFUSED,   /* the queue is full, or there is no such pool */
    HELPER_FAILED,    /* the helper died, or lacked what it needs for its work */
    HELPER_TIMEOUT,   /* the deadline passed, in the queue or at work */
    HELPER_UNUSABLE,  /* this input can't be worked on: broken, of no known kind, too large */
    HELPER_STATUS_COUNT
};

struct helper_message {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint64_t id;
    uint64_t body_length;
    uint32_t status;       /* RESULT */
    uint32_t milliseconds; /* JOB: time left */
    uint32_t inline_length;
    uint32_t has_body;
    char pool[HELPER_POOL_MAX]; /* JOB: NUL-terminated */
};

/* The client and the cost of a job. */
struct helper_origin {
    uint64_t cost;                  /* a larger number means more time; 0: not known */
    char client[HELPER_CLIENT_MAX]; /* the client's address, NUL-terminated; empty: not known */
};

struct helper_packet {
    struct helper_message message;
    /* message.inline_length bytes are used. There is room for an origin behind the longest text. */
    char parameters[HELPER_INLINE_MAX + sizeof(struct helper_origin)];
    int body;                    /* -1: none */
    size_t received;             /* bytes received, also when they are no valid packet */
    struct helper_origin origin; /* zeros when the message has none */
};

enum helper_io { HELPER_IO_DONE, HELPER_IO_AGAIN, HELPER_IO_CLOSED, HELPER_IO_BAD };

void helper_packet_init(struct helper_packet *packet, enum helper_kind kind, uint64_t id);
/* False: the parameters are longer than HELPER_INLINE_MAX. */
bool helper_packet_set_parameters(struct helper_packet *packet, struct slice bytes);
bool helper_packet_set_pool(struct helper_packet *packet, struct slice name);
/* For a job to retort-helperd. A client's address that is too long is cut. */
void helper_packet_set_origin(struct helper_packet *packet, struct slice client, uint64_t cost);
static inline struct slice helper_packet_parameters(const struct helper_packet *packet) {
    return slice_make(packet->parameters, packet->message.inline_length);
}

/* Neither blocks on a non-blocking socket. HELPER_IO_BAD: the other end does not speak this
 * protocol; close the socket. */
enum helper_io helper_packet_send(int fd, const struct helper_packet *packet);
enum helper_io helper_packet_receive(int fd, struct helper_packet *packet);
void helper_packet_close_body(struct helper_packet *packet);

const char *helper_status_text(enum helper_status status);
/* Could the same job succeed at another time? Such a result must not be remembered
 * (service_exchange.failed). An error of the input is the same each time, and may be remembered. */
static inline bool helper_status_is_outage(enum helper_status status) {
    return status == HELPER_REFUSED || status == HELPER_FAILED || status == HELPER_TIMEOUT;
}

/* Make a memfd for a body, and seal it so that it can be sent. -1 or false: errno says why. */
int helper_body_create(const char *name);
bool helper_body_seal(int fd);
/* Writes all bytes. False: errno says why. */
bool helper_body_write(int fd, const void *data, size_t length);
bool helper_body_usable(int fd, uint64_t length);

#endif
