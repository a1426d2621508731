/*
 * A source of servers: a name whose SRV records (RFC 2782) say which servers a group has. It keeps
 * what the name servers said last, until they say something else.
 *
 *     struct origin_source *source = origin_source_new("https://_https._tcp.shop.example", "shop.example");
 *     origin_source_answered(source, &answer, now)      a name server has answered: true, a change
 *     origin_source_unanswered(source, error, now)      none has: the servers stay as they are
 *     ... at source->ask_at it is time to ask again ...
 *     origin_source_release(source);
 *
 * A name that does not exist, or has no SRV records, has no servers. The same is true where the one
 * target is ".": "A Target of "." means that the service is decidedly not available at this
 * domain." A failure of the name servers says nothing about the servers. So they stay, however long
 * it lasts: each of them has its own health, and an address that is out of date serves no longer
 * than origin.dns_stale.
 *
 * Threads: under the lock of the group; what is fixed may be read without. Units: milliseconds of
 * the loops' clock.
 */
#ifndef RETORT_ORIGIN_SOURCE_H
#define RETORT_ORIGIN_SOURCE_H

#include "net/dns_message.h"
#include "net/egress.h"
#include "settings/origins.h"

/*
 * The servers that SRV records name (RFC 2782), as a group uses them: without those that occur
 * twice, in the order of their priorities, and no more of them than the settings allow.
 *
 *     struct origin_targets targets;
 *     unsigned left_out = origin_targets_make(&targets, answer.list, answer.count, "https", 100);
 *     ... targets.list[i].text is "https://a.example:8443" ...
 *     origin_targets_release(&targets);
 *
 * When there are too many, those of the lowest priorities stay, and among these the ones with the
 * largest weights. The result does not depend on the order in which a name server lists them.
 *
 * "Larger weights SHOULD be given a proportionately higher probability of being selected." And: "In
 * the presence of records containing weights greater than 0, records with weight 0 should have a
 * very small chance of being selected." So a weight of 0 counts as 1.
 *
 * Threads: any; a value.
 */

struct origin_target {
    char *text;        /* "scheme://host:port" */
    unsigned priority; /* as DNS says it: lower ones are asked first */
    unsigned rank;     /* 0: of the lowest priority here, 1: of the next one, ... */
    unsigned weight;   /* from 1 */
};

struct origin_targets {
    size_t count;
    struct origin_target *list;
};

/* Puts `list` in another order. Returns how many were left out, because there are more than `most`
 * or because no URL can have the name. */
unsigned origin_targets_make(struct origin_targets *targets, struct dns_target *list,
                             unsigned count, const char *scheme, unsigned most);
void origin_targets_release(struct origin_targets *targets);

enum origin_source_state {
    ORIGIN_SOURCE_AWAITED, /* no name server has said or failed to say anything yet */
    ORIGIN_SOURCE_FOUND,
    ORIGIN_SOURCE_NONE,    /* the name servers say that there are none */
    ORIGIN_SOURCE_UNKNOWN, /* they have never answered */
};

struct origin_source {
    unsigned magic;
#define ORIGIN_SOURCE_MAGIC 0x04195049u
    /* Fixed. */
    char *text;     /* the URL of the settings: "https://_https._tcp.shop.example" */
    char *question; /* "_https._tcp.shop.example" */
    char *named;    /* URL of what the servers are called: "https://shop.example" */
    bool https;
    /* Under the group's lock. */
    unsigned references; /* the group's, and those of who asks */
    bool listed;         /* the settings still have it */
    bool backup, drain;
    enum egress egress;
    uint64_t ttl_min, ttl_max;
    unsigned most; /* servers */
    enum origin_source_state state;
    struct origin_targets targets;
    unsigned left_out; /* servers of the last answer that are not in `targets` */
    unsigned doubled;  /* of `targets`, those that the group has from elsewhere too */
    bool failing;      /* the last question had no answer */
    const char *error; /* static text: that, or why there are no servers; NULL: all is well */
    uint64_t ttl;      /* as it is kept */
    uint64_t ask_at;   /* when to ask again */
};

/* `name`: what the servers are called in Host, SNI and certificates. */
struct origin_source *origin_source_new(const char *text, const char *name);
void origin_source_release(struct origin_source *source);
bool origin_source_is_for(const struct origin_source *source,
                          const struct origin_server_settings *server);
void origin_source_configure(struct origin_source *source,
                             const struct origin_server_settings *server,
                             const struct origins_settings *settings);

/* Takes a good answer: its kind is not DNS_ANSWER_BAD. True: the servers are others now. */
bool origin_source_answered(struct origin_source *source, const struct dns_targets *answer,
                            uint64_t now);
/* `error` is static text. True: the group knows now that it has to wait no longer. */
bool origin_source_unanswered(struct origin_source *source, const char *error, uint64_t now);

#endif
