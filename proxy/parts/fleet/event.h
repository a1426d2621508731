/*
 * An event of a fleet: what one node tells all others, as one line of text in the stream of the engine.
 *
 *     VERSION KIND NODE EPOCH NUMBER BEFORE MAC BODY
 *     1 purge n7 5f0c…e1 17 9a3f…44 c41b…09 {"tag":"shoes"}
 *
 *     const struct fleet_event event = {.kind = FLEET_PURGE, .node = "n7", .epoch = e, .number = 17, .body = json};
 *     char *text = fleet_event_write(&event, &key);
 *     if (!fleet_event_read(&event, slice_from(text), &key)) ...     nobody with the key has written it
 *
 * A node numbers its events from 1, without a gap. An epoch is a random number that a node chooses when it begins to number: in
 * an empty state directory, or when it finds that its directory is an old copy. BEFORE is the digest of the node's event before,
 * zeros for the first one of an epoch. So a reader knows whether it has read all events of a node (chains.h).
 *
 * An event of the kind "alive" has no number of its own: number and before are those of the node's last event. It is what a node
 * appends every third of the lease, and reads back.
 *
 * MAC is HMAC-SHA256 (RFC 2104), by the key of the fleet, of the fleet's name and all of the text but the MAC. So an engine that
 * somebody else controls can hold events back, but can't make any.
 *
 * Threads: pure. Ownership: `body` of an event that was read is a piece of the text.
 */
#ifndef RETORT_FLEET_EVENT_H
#define RETORT_FLEET_EVENT_H

#include "base/slice.h"

#include <stdint.h>

enum {
    FLEET_NAME_MAX = 64, /* bytes of the name of a fleet or node, with a NUL */
    FLEET_DIGEST = 16,   /* of SHA-256 */
    FLEET_DIGEST_TEXT = 2 * FLEET_DIGEST + 1,
    FLEET_KEY_LEAST = 32,
    FLEET_KEY_MAX = 256,
    FLEET_BODY_MAX = 64 * 1024,
    FLEET_TEXT_MAX = FLEET_BODY_MAX + 512,
};

enum fleet_event_kind {
    FLEET_ALIVE,
    FLEET_START, /* the first of an epoch */
    FLEET_PURGE,
    FLEET_KINDS,
};

struct fleet_digest {
    unsigned char bytes[FLEET_DIGEST];
};

struct fleet_key {
    char fleet[FLEET_NAME_MAX];
    size_t length;
    unsigned char bytes[FLEET_KEY_MAX];
};

struct fleet_event {
    enum fleet_event_kind kind;
    char node[FLEET_NAME_MAX];
    uint64_t epoch, number;
    struct fleet_digest before;
    struct slice body; /* JSON */
};

/* Letters, digits, '-', '_' and '.': a name of a fleet or node. */
bool fleet_name_is_good(struct slice name);

/* The text, which ends with a NUL, on the heap. */
char *fleet_event_write(const struct fleet_event *event, const struct fleet_key *key);
/* False: it is no event of this fleet. */
bool fleet_event_read(struct fleet_event *event, struct slice text, const struct fleet_key *key);
/* Of a kind that this program does not know: it has a number, and counts, but nothing is done. */
bool fleet_event_is_known(const struct fleet_event *event);

struct fleet_digest fleet_digest_of(struct slice text);
bool fleet_digest_equal(const struct fleet_digest *a, const struct fleet_digest *b);
void fleet_digest_write(const struct fleet_digest *digest, char text[FLEET_DIGEST_TEXT]);
bool fleet_digest_read(struct fleet_digest *digest, struct slice text);

#endif
