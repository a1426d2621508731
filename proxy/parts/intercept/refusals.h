/*
 * Refusals: which clients have refused our certificate for which servers, as apps with pinned
 * certificates do. After some refusals the connections of that client to that server are spliced.
 * A second table of the same kind holds the servers that ask for client certificates; it has no
 * clients (NULL).
 *
 *     struct refusals *refusals = refusals_new();
 *     struct refusal_rules rules = {.limit = 3, .lifetime = 86400, .entries = 10000, .share = 625};
 *     count = refusals_note(refusals, &rules, &client, SLICE("app.example:443"), now, &evicted);
 *     if (refusals_hold(refusals, &rules, &client, SLICE("app.example:443"), now)) ... splice ...
 *
 * A client is one IPv4 address, or one IPv6 network of 64 bits. It gets at most `share` entries, so
 * that it can't push out those of other clients; its own oldest entry makes room for its next one.
 * When all entries are in use, the oldest of all makes room. A client that refuses on purpose only
 * reaches that its own connections are spliced.
 *
 * Threads: any; one lock, held for short look-ups, and for a walk when the table is listed. Units:
 * seconds of a clock that is never set back (loop_seconds).
 */
#ifndef RETORT_INTERCEPT_REFUSALS_H
#define RETORT_INTERCEPT_REFUSALS_H

#include "net/address.h"

#include <time.h>

struct refusals;

/* From the settings of the caller, which may change with a reload. */
struct refusal_rules {
    unsigned limit;   /* refusals after which they hold; 0: they never do */
    time_t lifetime;  /* since the last refusal */
    unsigned entries; /* at most */
    unsigned share;   /* of one client */
};

struct refusals *refusals_new(void);
void refusals_free(struct refusals **refusalsp);

/* Notes a refusal of the place, "host:port". Returns how many there are now. *evicted is whether an
 * entry had to make room. */
unsigned refusals_note(struct refusals *refusals, const struct refusal_rules *rules,
                       const struct address *client, struct slice place, time_t now, bool *evicted);
/* Have there been so many refusals lately that the connection is to be spliced? */
bool refusals_hold(struct refusals *refusals, const struct refusal_rules *rules,
                   const struct address *client, struct slice place, time_t now);

/* The client has accepted our certificate for the place: earlier refusals count no more. A browser
 * breaks off some connections in the middle of the handshake, which looks like a refusal. */
void refusals_forget(struct refusals *refusals, const struct address *client, struct slice place);

/* One entry, as a list of them shows it. */
struct refusal_report {
    const char *client; /* "192.0.2.1", "2001:db8::/64"; "" for a server without a client */
    const char *place;
    unsigned count;
    time_t last;
};
/* Calls `each` for every entry, the newest first, under the lock. */
void refusals_each(struct refusals *refusals,
                   void (*each)(void *arg, const struct refusal_report *report), void *arg);
/* Removes the entries of the client (as a list shows it) and the host, with or without its port.
 * Empty: any. Returns how many. */
unsigned refusals_clear(struct refusals *refusals, struct slice client, struct slice host);

#endif
