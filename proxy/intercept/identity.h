/*
 * Identities: servers whose certificates were verified lately, and how that ended. A client of a
 * server that is known needs no connection to it before it gets its leaf.
 *
 *     struct identities *identities = identities_new(10000);
 *
 *     struct identity_key key = {.name = name, .port = 443, .trust = trust->digest};
 *     switch (identity_ask(identities, &key, now, &identity, &turn, mailbox, &task)) {
 *     case IDENTITY_GOOD:    identity.not_after limits the leaf; no need to verify
 *     case IDENTITY_BAD:     identity.reason is for the error page
 *     case IDENTITY_WAITING: somebody else verifies this server; the task will run; ask again then
 *     case IDENTITY_UNKNOWN: verify the server, and call one of
 *         identity_note(identities, &key, &identity, lifetime, now);
 *         identity_forget(identities, &key);
 *     }
 *     identity_turn_end(&turn);        any time, at the latest before the task is freed
 *
 * What is remembered is found by all that decides trust, compared whole: the name, the port, the
 * digest of the trust (tls/trust.h) and, if the client chose one, the address. So a reload with
 * another trust finds nothing, and the old entries are evicted in time.
 *
 * Only one request at a time verifies a server that is not known; the others wait for the result.
 * When the one that verifies leaves without a result, one that waited takes its place. A request
 * waits once: after that it verifies for itself if there is still nothing known.
 *
 * A good result holds for the lifetime, but no longer than the server's certificate. When a later
 * connection to the server fails to verify, the caller notes that: it replaces the good result.
 *
 * Threads: any; a turn belongs to the thread of its mailbox. Units: lifetimes in seconds of a clock
 * that is never set back (loop_seconds); not_after in seconds since 1970.
 */
#ifndef RETORT_INTERCEPT_IDENTITY_H
#define RETORT_INTERCEPT_IDENTITY_H

#include "event/waiter.h"
#include "net/address.h"

#include <stdint.h>
#include <time.h>

enum { IDENTITY_TEXT = 256 };

enum identity_state { IDENTITY_UNKNOWN, IDENTITY_GOOD, IDENTITY_BAD, IDENTITY_WAITING };

struct identity_key {
    struct slice name; /* in lower case; what is too long for a name is never remembered */
    uint16_t port;
    const char *trust;                 /* digest, at most 64 bytes */
    const struct address *destination; /* NULL: an address of the name */
};

struct identity {
    enum identity_state state;  /* GOOD or BAD */
    int64_t not_after;          /* of the certificate; 0: unknown */
    char issuer[IDENTITY_TEXT]; /* of the certificate; "": unknown */
    char reason[IDENTITY_TEXT]; /* why it is BAD, a sentence */
};

struct identities;

/* The limit is the number of servers, at least 1. */
struct identities *identities_new(size_t limit);
void identities_free(struct identities **identitiesp);
void identities_set_limit(struct identities *identities, size_t limit);
/* Forgets all of them. Returns how many there were. */
size_t identities_clear(struct identities *identities);
size_t identities_count(struct identities *identities);
/* How many have made room for others. */
uint64_t identities_evicted(const struct identities *identities);

/* A request's place in a queue. It begins zeroed. */
enum { IDENTITY_KEY_ROOM = 512 };
struct identity_turn {
    struct identities *identities; /* NULL: it neither verifies nor waits */
    struct waiter *waiter;         /* while it waits */
    bool has_waited;
    size_t key_length;
    char key[IDENTITY_KEY_ROOM];
};

/* What is known of the server: GOOD or BAD with *identity, or UNKNOWN. */
enum identity_state identity_find(struct identities *identities, const struct identity_key *key,
                                  time_t now, struct identity *identity);
/* Like identity_find; after UNKNOWN the turn is the one that verifies. */
enum identity_state identity_ask(struct identities *identities, const struct identity_key *key,
                                 time_t now, struct identity *identity, struct identity_turn *turn,
                                 struct mailbox *mailbox, struct task *task);
/* Remembers a result, in place of any other, and wakes those who wait for it. A lifetime of 0 only
 * wakes them. */
void identity_note(struct identities *identities, const struct identity_key *key,
                   const struct identity *identity, time_t lifetime, time_t now);
/* Forgets the result, and wakes those who wait. */
void identity_forget(struct identities *identities, const struct identity_key *key);
void identity_turn_end(struct identity_turn *turn);

#endif
