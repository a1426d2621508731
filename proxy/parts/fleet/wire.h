/*
 * A connection to a server that speaks RESP (the protocol of Redis and Valkey), for a thread that waits for its answers.
 *
 *     struct wire *wire = wire_open(&target, error);
 *     wire_put(wire, 3, (struct slice[]){SLICE("HSET"), key, value});
 *     struct reply *reply = wire_take(wire, error);               of the first command that has no answer yet; NULL: see error
 *     reply_free(&reply);
 *     wire_close(&wire);
 *
 * Commands are sent when the first answer is taken. After an error the wire is of no use.
 *
 * Threads: that which has opened it. Units: milliseconds. Errors: a sentence.
 */
#ifndef RETORT_FLEET_WIRE_H
#define RETORT_FLEET_WIRE_H

#include "base/slice.h"
#include "fleet/place.h"

#include <stdatomic.h>

struct tls_trust_settings;
struct wire;

/* Of one answer: bytes, elements with those of lists in it, and lists in one another. What has more is refused. */
enum { WIRE_ANSWER_MAX = 64 << 20, WIRE_ELEMENTS_MAX = 100000, WIRE_DEPTH_MAX = 5 };

enum reply_type { REPLY_TEXT, REPLY_NUMBER, REPLY_NOTHING, REPLY_LIST, REPLY_ERROR };

struct reply {
    enum reply_type type;
    struct slice text; /* of a text or an error */
    int64_t number;
    size_t count;
    struct reply **elements;
};

void reply_free(struct reply **replyp);

struct wire_target {
    struct slice host;
    uint16_t port;
    const struct tls_trust_settings *trust; /* NULL: no TLS */
    uint64_t timeout;                       /* for the connection, and for each answer */
    const atomic_bool *stop;                /* ends each wait */
};

struct wire *wire_open(const struct wire_target *target, char error[FLEET_ERROR]);
void wire_close(struct wire **wirep);
void wire_put(struct wire *wire, size_t count, const struct slice *words);
struct reply *wire_take(struct wire *wire, char error[FLEET_ERROR]);
/* The same for a command that may wait for `patience` itself. */
struct reply *wire_take_within(struct wire *wire, uint64_t patience, char error[FLEET_ERROR]);

#endif
