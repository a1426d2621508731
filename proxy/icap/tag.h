/*
 * The tag of an ICAP service: what its results go by (RFC 3507 §4.7), for all workers and over
 * reloads.
 *
 *     struct icap_tag_moment asked = icap_tag_moment(tag, endpoint);     when the service is asked
 *     struct icap_tag_sight sight = icap_tag_see(tag, endpoint, istag, &asked, now);   it answers
 *     ...
 *     if (icap_tag_value(tag) != sight.made) ...                  the result is of an older service
 *
 *     bumps = icap_tag_bump(tag);      all results up to now, and of what is under way, are old
 *     icap_tag_go_on(later, bumps);    and stay so, for whoever has kept the number elsewhere
 *
 * The value comes of the service's name and addresses, of the newest ISTag of each endpoint
 * (endpoints that say the same count as one), and of the bumps. It is never 0; that stands for: no
 * endpoint has said any ISTag yet. Of a service with ignore_istag the ISTags are left out.
 *
 * An answer to what was asked before an endpoint's newest ISTag was first seen says nothing of what
 * the endpoint is now: with another ISTag it is late, its result is old, and it changes nothing.
 *
 * A new ISTag is a shift: the server has become another (icap_health_shift); but not where each
 * answer has an ISTag of its own.
 *
 * A reload hands the tag on to the service of the same name and addresses: see icap/quota.h.
 *
 * Threads: any. Ownership: references.
 */
#ifndef RETORT_ICAP_TAG_H
#define RETORT_ICAP_TAG_H

#include "settings/settings.h"

#include <pthread.h>

struct icap_tag {
    unsigned magic;
#define ICAP_TAG_MAGIC 0x1ca97a60u
    _Atomic unsigned references;
    uint64_t base; /* of the name and the addresses */
    bool ignored;  /* what endpoints say */
    pthread_mutex_t lock;
    unsigned endpoint_count;
    struct {
        uint64_t hash;  /* of the newest ISTag; 0: none */
        uint64_t since; /* when it was first seen */
        bool confirmed; /* a second answer had it too */
    } seen[ICAP_ENDPOINTS_MAX];
    _Atomic uint64_t eras[ICAP_ENDPOINTS_MAX]; /* ISTags up to now */
    _Atomic uint64_t generation, value;
};

/* When an endpoint was asked. */
struct icap_tag_moment {
    uint64_t generation, era;
};

/* What an answer is. */
struct icap_tag_sight {
    uint64_t made; /* what its result is of */
    bool late;     /* of an older service than is known */
    bool shifted;  /* the first of a newer one */
};

struct icap_tag *icap_tag_new(const struct icap_service_settings *settings);
struct icap_tag *icap_tag_reference(struct icap_tag *tag);
void icap_tag_release(struct icap_tag **tagp);
/* Is it the tag of that service? */
bool icap_tag_is_of(const struct icap_tag *tag, const struct icap_service_settings *settings);

/* What results have to be of. */
static inline uint64_t icap_tag_value(const struct icap_tag *tag) {
    return atomic_load_explicit(&tag->value, memory_order_acquire);
}

static inline uint64_t icap_tag_generation(const struct icap_tag *tag) {
    return atomic_load_explicit(&tag->generation, memory_order_acquire);
}

static inline struct icap_tag_moment icap_tag_moment(const struct icap_tag *tag,
                                                     unsigned endpoint) {
    return (struct icap_tag_moment){
        icap_tag_generation(tag),
        atomic_load_explicit(&tag->eras[endpoint], memory_order_acquire),
    };
}

/* Notes an endpoint's ISTag. `now`: milliseconds of the loops' clock. */
struct icap_tag_sight icap_tag_see(struct icap_tag *tag, unsigned endpoint, struct slice istag,
                                   const struct icap_tag_moment *asked, uint64_t now);
/* The same for an answer that says none: what its endpoints have said counts. */
uint64_t icap_tag_of_generation(struct icap_tag *tag, uint64_t generation);
/* Returns the generation that has begun. */
uint64_t icap_tag_bump(struct icap_tag *tag);
/* From that generation on, should it be a later one. */
void icap_tag_go_on(struct icap_tag *tag, uint64_t generation);

#endif
