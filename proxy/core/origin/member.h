/*
 * A member of a group: one server, its health, and what is counted of it. Members are known by
 * their place, and stay while the group has the place, over reloads and answers of name servers.
 *
 *     const struct origin_place place = {.text = "http://10.0.0.1", .weight = 1};
 *     struct origin_member *member = origin_member_new(&place);
 *     if (origin_member_is_at(member, &place)) origin_member_configure(member, &place);
 *     origin_member_release(member);
 *
 * Threads: under the lock of the group; what is fixed may be read without, by whoever holds it.
 */
#ifndef RETORT_ORIGIN_MEMBER_H
#define RETORT_ORIGIN_MEMBER_H

#include "base/table.h"
#include "http/url.h"
#include "net/egress.h"

struct origin_source;

/* A server that a group is to have. The strings are those of the settings or of a source. */
struct origin_place {
    /* What it is known by. */
    const char *text;  /* URL with its host and port */
    const char *named; /* URL with what it is called in Host, SNI and its certificate; NULL: text */
    enum egress egress; /* which addresses its name may lead to */
    /* How the group uses it now. */
    struct origin_source *source; /* that has named it; NULL: the settings name it */
    unsigned weight;
    unsigned priority, rank; /* of the SRV record */
    bool backup;             /* asked only while no other server is up */
    bool drain;              /* gets no new requests */
    unsigned tier;           /* 0 is asked first; origin/member.h */
};

enum origin_member_state { ORIGIN_MEMBER_UP, ORIGIN_MEMBER_DOWN };

struct origin_member {
    struct table_entry entry; /* while the group makes its list anew */
    unsigned magic;
#define ORIGIN_MEMBER_MAGIC 0x0419e3b0u
    /* Fixed: may be read by whoever holds it, without the lock. */
    uint64_t number; /* never given again */
    uint64_t seed;   /* its own random order of all keys */
    char *text;
    struct url url; /* slices of text: where it is */
    char *named_text;
    struct url named; /* what it is called; slices of named_text */
    enum egress egress;
    char *host_port; /* "host:port" */
    /* Under the group's lock. */
    unsigned references;          /* its group's, the slots', the checks' */
    bool listed;                  /* the group still has it */
    struct origin_source *source; /* NULL: the settings name it */
    unsigned weight, priority, tier;
    bool backup;
    bool drain; /* it gets no new requests */
    enum origin_member_state state;
    unsigned failures; /* in a row */
    bool probing;      /* a request is out that decides whether it comes up */
    uint64_t back_off;
    uint64_t retry_at;  /* while it is down; TIMER_NEVER: a check decides */
    uint64_t failed_at; /* when it failed last */
    uint64_t up_since;  /* when it came back; 0: it has never been down */
    unsigned active;    /* requests under way */
    int64_t credit;     /* what it is owed by round robin */
    uint64_t turn;      /* when it was chosen last, in requests of the group */
    uint64_t requests, failed, downs;
    char *error; /* why it failed last; NULL: it never has */
};

/* One reference. */
struct origin_member *origin_member_new(const struct origin_place *place);
void origin_member_release(struct origin_member *member);
bool origin_member_is_at(const struct origin_member *member, const struct origin_place *place);
/* Uses the member as the place says from now on. */
void origin_member_configure(struct origin_member *member, const struct origin_place *place);

/*
 * The list of the servers that a group is to have: those of its settings and those that its sources
 * have found, in the order in which they are asked. It says nothing of their health.
 *
 *     struct origin_list list;
 *     origin_list_make(&list, entries, count);
 *     ... list.places[i], whose tiers grow; list.tiers ...
 *     origin_list_release(&list);
 *
 * Servers of one tier share the requests. The next tier is asked while all before it are down. The
 * servers of the settings, and those of the lowest priority of each SRV name, are in the first one;
 * each higher priority of a name is one tier further. "A client MUST attempt to contact the target
 * host with the lowest-numbered priority it can reach" (RFC 2782). The tiers of backups come behind
 * all these.
 *
 * A server is in the list once. One that the settings name goes before one that DNS names.
 *
 * Threads: under the lock of the group; the strings are those of the entries and the sources.
 */

struct origin_list {
    struct origin_place *places;
    size_t count;
    unsigned tiers;
};

/* An entry with a source stands for what the source has found. Sets `doubled` of the sources. */
void origin_list_make(struct origin_list *list, const struct origin_place *entries, size_t count);
void origin_list_release(struct origin_list *list);

#endif
