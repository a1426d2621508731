/*
 * The table of limits: what each client, user or class has used of each limit section, for all
 * workers together. `retortctl limits` shows it.
 *
 *     struct limit_table *table = limit_table_new(100000);
 *     char name[LIMIT_NAME];
 *     struct limit_key key = {.section = section};
 *     key.name = address_network_key(&address, 32, 64, name);
 *     struct limit_demand demand = {.rate = rate, .most_active = 8};
 *     struct limit_entry *entry = limit_table_take(table, &key, &demand, now, &verdict);
 *     if (entry == NULL) ... verdict says why, verdict.wait when to try again ...
 *     ...
 *     limit_table_leave(table, &entry);             the request, or the connection, is over
 *
 * Whoever has an entry holds it: it stays where it is, and counts as active. An entry that nobody
 * holds and whose buckets are full says nothing that a new one would not say, so it makes room when
 * the table is full. If there is none, the entry of those looked at that has used least makes room,
 * but never one that was refused and could begin anew by that: a client with many addresses does
 * not free itself by using them. If there is no such entry either, the newcomer is refused; unless
 * most of those looked at are of one network (a /48 or /32 of IPv6, a /24 or /16 of IPv4) and the
 * newcomer is not: then one of them makes room. So a client with a large network can't fill the
 * table and keep all others out.
 *
 * An entry is found by a hash with a secret (base/table.h), and compared by its whole key.
 *
 * Threads: any; each part of the table has a lock of its own, held for a short look-up, and for a
 * walk over the part when the table is listed. Units: nanoseconds (limits/bucket.h), bytes.
 */
#ifndef RETORT_LIMITS_LIMIT_TABLE_H
#define RETORT_LIMITS_LIMIT_TABLE_H

#include "base/slice.h"
#include "client/pace.h"
#include "limits/bucket.h"
#include "net/address.h"

enum {
    LIMIT_USER = 255,                 /* bytes of a user's name that tell users apart */
    LIMIT_NAME = LIMIT_USER + 1 + 32, /* bytes of the name in a key */
    LIMIT_NAME_TEXT = LIMIT_USER + 8, /* bytes of the name as text */
};

struct limit_entry;
struct limit_table;

struct limit_key {
    const void *section; /* what the limit belongs to; never followed */
    struct slice name;   /* of address_network_key, or from a function below */
};

/* The names in keys. `out` has LIMIT_NAME bytes, and the name lies in there. */
struct slice limit_name_of_user(struct slice user, char *out);
struct slice limit_name_of_all(char *out);
/* Writes the name for people: "192.0.2.0/24", "2001:db8::/64", "user anna", "all". Returns the
 * length. `out` has LIMIT_NAME_TEXT bytes. */
size_t limit_name_text(struct slice name, char *out);

/* What is to be taken. */
struct limit_demand {
    struct bucket_rate rate; /* interval 0: no unit is taken */
    unsigned most_active;    /* 0: any number may be active */
};

enum limit_reason { LIMIT_NONE, LIMIT_RATE, LIMIT_ACTIVE, LIMIT_TABLE_FULL };

struct limit_verdict {
    enum limit_reason reason; /* LIMIT_NONE: the entry was given */
    uint64_t wait;            /* LIMIT_RATE: nanoseconds */
    bool evicted;             /* an entry that was still of use made room */
};

struct limit_table *limit_table_new(size_t room);
void limit_table_free(struct limit_table **tablep);
/* How many entries there may be from now on. Those that are needed stay. */
void limit_table_set_room(struct limit_table *table, size_t room, uint64_t now);

/* The entry of the key, which the caller holds and has to leave. NULL: it is over the limit. */
struct limit_entry *limit_table_take(struct limit_table *table, const struct limit_key *key,
                                     const struct limit_demand *demand, uint64_t now,
                                     struct limit_verdict *verdict);
void limit_table_leave(struct limit_table *table, struct limit_entry **entryp);
/* As limit_table_leave, when nothing came of it: the unit is given back too. */
void limit_table_return(struct limit_table *table, struct limit_entry **entryp,
                        const struct limit_demand *demand);
/* See bucket_reserve and bucket_give_back. The caller holds the entry. */
uint64_t limit_table_reserve(struct limit_table *table, struct limit_entry *entry,
                             enum pace_way way, uint64_t cost, uint64_t credit, uint64_t now);
void limit_table_give_back(struct limit_table *table, struct limit_entry *entry, enum pace_way way,
                           uint64_t cost);

/* An entry as a list shows it. */
struct limit_report {
    const void *section;
    const char *name; /* see limit_name_text */
    unsigned active;
    uint64_t taken, refused;      /* since the entry was made */
    uint64_t busy[PACE_WAYS + 1]; /* nanoseconds until the buckets are full: bytes each way, then
                                      requests */
};
/* Calls `each` for all entries until it returns false; under a lock. */
void limit_table_each(struct limit_table *table, uint64_t now,
                      bool (*each)(void *arg, const struct limit_report *report), void *arg);
/* Lets the entries begin anew for which `wanted` is true. What is active stays active. Returns how
 * many. */
size_t limit_table_clear(struct limit_table *table, uint64_t now,
                         bool (*wanted)(void *arg, const struct limit_report *report), void *arg);
size_t limit_table_count(struct limit_table *table);

#endif
