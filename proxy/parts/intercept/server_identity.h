/*
 * Identities: servers whose certificates were verified lately, and how that ended. A client of a
 * server that is known needs no connection to it before it gets its leaf.
 *
 *     struct server_identities *identities = server_identities_new(10000);
 *
 *     struct server_identity_key key = {.name = name, .port = 443, .trust = trust->digest};
 *     switch (server_identity_ask(identities, &key, now, &identity, &turn, mailbox, &task)) {
 *     case SERVER_IDENTITY_GOOD:    identity.not_after limits the leaf; no need to verify
 *     case SERVER_IDENTITY_BAD:     identity.reason is for the error page
 *     case SERVER_IDENTITY_WAITING: somebody else verifies this server; the task will run; ask again then
 *     case SERVER_IDENTITY_UNKNOWN: verify the server, and call one of
 *         server_identity_note(identities, &key, &identity, lifetime, now);
 *         server_identity_forget(identities, &key);
 *     }
 *     server_identity_turn_end(&turn);        any time, at the latest before the task is freed
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
#ifndef RETORT_INTERCEPT_SERVER_IDENTITY_H
#define RETORT_INTERCEPT_SERVER_IDENTITY_H

#include "event/waiter.h"
#include "net/address.h"

#include <stdint.h>
#include <time.h>

enum { SERVER_IDENTITY_TEXT = 256 };

enum server_identity_state {
    SERVER_IDENTITY_UNKNOWN,
    SERVER_IDENTITY_GOOD,
    SERVER_IDENTITY_BAD,
    SERVER_IDENTITY_WAITING
};

struct server_identity_key {
    struct slice name; /* in lower case; what is too long for a name is never remembered */
    uint16_t port;
    const char *trust;                 /* digest, at most 64 bytes */
    const struct address *destination; /* NULL: an address of the name */
};

struct server_identity {
    enum server_identity_state state;  /* GOOD or BAD */
    int64_t not_after;                 /* of the certificate; 0: unknown */
    char issuer[SERVER_IDENTITY_TEXT]; /* of the certificate; "": unknown */
    char reason[SERVER_IDENTITY_TEXT]; /* why it is BAD, a sentence */
};

struct server_identities;

/* The limit is the number of servers, at least 1. */
struct server_identities *server_identities_new(size_t limit);
void server_identities_free(struct server_identities **identitiesp);
void server_identities_set_limit(struct server_identities *identities, size_t limit);
/* Forgets all of them. Returns how many there were. */
size_t server_identities_clear(struct server_identities *identities);
size_t server_identities_count(struct server_identities *identities);
/* How many have made room for others. */
uint64_t server_identities_evicted(const struct server_identities *identities);

/* A request's place in a queue. It begins zeroed. */
enum { IDENTITY_KEY_ROOM = 512 };
struct server_identity_turn {
    struct server_identities *identities; /* NULL: it neither verifies nor waits */
    struct waiter *waiter;                /* while it waits */
    bool has_waited;
    size_t key_length;
    char key[IDENTITY_KEY_ROOM];
};

/* What is known of the server: GOOD or BAD with *identity, or UNKNOWN. */
enum server_identity_state server_identity_find(struct server_identities *identities,
                                                const struct server_identity_key *key, time_t now,
                                                struct server_identity *identity);
/* Like server_identity_find; after UNKNOWN the turn is the one that verifies. */
enum server_identity_state server_identity_ask(struct server_identities *identities,
                                               const struct server_identity_key *key, time_t now,
                                               struct server_identity *identity,
                                               struct server_identity_turn *turn,
                                               struct mailbox *mailbox, struct task *task);
/* Remembers a result, in place of any other, and wakes those who wait for it. A lifetime of 0 only
 * wakes them. */
void server_identity_note(struct server_identities *identities,
                          const struct server_identity_key *key,
                          const struct server_identity *identity, time_t lifetime, time_t now);
/* Forgets the result, and wakes those who wait. */
void server_identity_forget(struct server_identities *identities,
                            const struct server_identity_key *key);
void server_identity_turn_end(struct server_identity_turn *turn);

#endif
