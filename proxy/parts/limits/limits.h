/*
 * What all workers share of the limits: the table of what is used (limits/limit_table.h), and the
 * sections with what they have refused. A section lives as long as the process, and keeps its
 * entries over a reload under which its name stays the same.
 *
 *     struct limits *limits = limits_new(100000);
 *     struct limit_section *section = limits_section(limits, "staff by user");
 *     limit_section_refused(section, LIMIT_COUNT_RATE);
 *     limits_free(&limits);
 *
 * Threads: any.
 */
#ifndef RETORT_LIMITS_LIMITS_H
#define RETORT_LIMITS_LIMITS_H

#include "client/clients.h"
#include "limits/limit_table.h"

#include <pthread.h>
#include <stdatomic.h>

/* Why a section refuses. */
enum limit_count {
    LIMIT_COUNT_RATE,
    LIMIT_COUNT_CONCURRENT,
    LIMIT_COUNT_CONNECTIONS,
    LIMIT_COUNT_REQUEST_SIZE,
    LIMIT_COUNT_RESPONSE_SIZE,
    LIMIT_COUNT_TABLE,
    LIMIT_COUNTS
};

struct limit_section {
    unsigned magic;
#define LIMIT_SECTION_MAGIC 0x11a175ecu
    struct limit_section *next;
    _Atomic bool current; /* the settings at work have it */
    _Atomic uint64_t refused[LIMIT_COUNTS];
    char name[];
};

struct limits {
    unsigned magic;
#define LIMITS_MAGIC 0x11a17500u
    struct limit_table *table;
    pthread_mutex_t lock; /* for the list, which only grows */
    struct limit_section *sections;
    /* What client.max_connections_per_client and client.max_half_open count. */
    struct limit_section *connections, *half_open;
    struct client_counter counter;
};

/* How the connections of clients are counted (counter.c). */
extern const struct client_counter limits_counter;

struct limits *limits_new(size_t room);
void limits_free(struct limits **limitsp);
/* The settings change: no section but the two of connections is current any more. */
void limits_begin_change(struct limits *limits);
/* The section of that name, which is current from now on. */
struct limit_section *limits_section(struct limits *limits, const char *name);
/* The list of all sections. What stands in it stays, so the caller needs no lock. */
const struct limit_section *limits_first(struct limits *limits);
/* As limits_section, of those there are. NULL: there is none. */
struct limit_section *limits_find(struct limits *limits, const char *name);
/* The name of what was counted: "rate". */
const char *limit_count_name(enum limit_count count);

/* What the connections of a section are counted under, apart from its requests. */
static inline const void *limit_section_connections(const struct limit_section *section) {
    return section->refused;
}
static inline void limit_section_refused(struct limit_section *section, enum limit_count count) {
    atomic_fetch_add_explicit(&section->refused[count], 1, memory_order_relaxed);
}

/*
 * What a client's connection holds of limits: the entries (limits/limit_table.h) that count it until it is
 * closed, each once. A connection may carry requests of many users. In each section it counts for
 * CONNECTION_HOLDS_MAX of them at a time: one more takes the place of the user for whom it has counted
 * longest. Threads: the worker's.
 */

struct connection_hold;

enum { CONNECTION_HOLDS_MAX = 8 }; /* of one section */

/* True as well: the connection is counted under the key already. */
bool connection_holds_take(struct connection_hold **holdsp, struct limits *limits,
                           const struct limit_key *key, const struct limit_demand *demand,
                           uint64_t now, struct limit_verdict *verdict);
void connection_holds_release(struct connection_hold **holdsp, struct limits *limits);

#endif
