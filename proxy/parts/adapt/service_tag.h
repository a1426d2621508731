/*
 * The tag of a service: a number that says which state of the service a result comes from, for all
 * workers and over reloads. A result may be used again only while its tag is the service's tag.
 *
 *     struct service_tag_moment asked = service_tag_moment(tag, endpoint);     it is asked
 *     struct service_tag_sight sight =                                         it answers
 *         service_tag_see(tag, endpoint, version, &asked, now);
 *     if (service_tag_value(tag) != sight.result) ...        an older state of it made the result
 *
 *     uint64_t bumps = service_tag_bump(tag);     all results up to now are old, and those of calls
 *                                                 under way
 *     service_tag_resume(later, bumps);           after a restart: they stay old
 *
 * The value is made of the service's name and addresses, of the newest version that each endpoint
 * has stated (ICAP: its ISTag, RFC 3507 §4.7; equal versions count once), and of the bumps. It is 0
 * while no endpoint has stated a version, and only then. With ignore_istag the versions are left
 * out.
 *
 * An endpoint may be asked, then state a new version in another answer, and only then give the
 * first answer. If that has another version it is late: its result is old, and it changes nothing.
 *
 * A new version is a shift: the server has been replaced. A server whose every answer has another
 * version does not shift.
 *
 * A reload hands the tag on to the service of the same name and addresses: see
 * adapt/shared_service.h.
 *
 * Threads: any. Ownership: references.
 */
#ifndef RETORT_ADAPT_SERVICE_TAG_H
#define RETORT_ADAPT_SERVICE_TAG_H

#include "settings/settings.h"

#include <pthread.h>

struct service_tag {
    unsigned magic;
#define SERVICE_TAG_MAGIC 0x1ca97a60u
    _Atomic unsigned references;
    uint64_t base; /* of the name and the addresses */
    bool ignored;  /* the versions that endpoints state */
    pthread_mutex_t lock;
    unsigned endpoint_count;
    struct {
        uint64_t hash;  /* of the newest version; 0: none */
        uint64_t since; /* when it was first seen */
        bool confirmed; /* a second answer had it too */
    } seen[ICAP_ENDPOINTS_MAX];
    _Atomic uint64_t eras[ICAP_ENDPOINTS_MAX]; /* new versions up to now */
    _Atomic uint64_t generation, value;
};

/* When an endpoint was asked. */
struct service_tag_moment {
    uint64_t generation, era;
};

/* What an answer is. */
struct service_tag_sight {
    uint64_t result; /* the tag of its result */
    bool late;       /* an older version than is known */
    bool shifted;    /* the first with a newer version */
};

struct service_tag *service_tag_new(const struct service_settings *settings);
struct service_tag *service_tag_reference(struct service_tag *tag);
void service_tag_release(struct service_tag **tagp);
/* Is it the tag of that service? */
bool service_tag_is_of(const struct service_tag *tag, const struct service_settings *settings);

/* The tag that a result must have to be used. */
static inline uint64_t service_tag_value(const struct service_tag *tag) {
    return atomic_load_explicit(&tag->value, memory_order_acquire);
}

static inline uint64_t service_tag_generation(const struct service_tag *tag) {
    return atomic_load_explicit(&tag->generation, memory_order_acquire);
}

static inline struct service_tag_moment service_tag_moment(const struct service_tag *tag,
                                                           unsigned endpoint) {
    return (struct service_tag_moment){
        service_tag_generation(tag),
        atomic_load_explicit(&tag->eras[endpoint], memory_order_acquire),
    };
}

/* Notes the version that an endpoint states. `now`: milliseconds of the loops' clock. */
struct service_tag_sight service_tag_see(struct service_tag *tag, unsigned endpoint,
                                         struct slice version,
                                         const struct service_tag_moment *asked, uint64_t now);
/* The tag of a result that came without a version: what its endpoints have stated counts. */
uint64_t service_tag_of_generation(struct service_tag *tag, uint64_t generation);
/* Returns the generation that has begun. */
uint64_t service_tag_bump(struct service_tag *tag);
/* Goes on from that generation, if it is later than the present one. */
void service_tag_resume(struct service_tag *tag, uint64_t generation);

#endif
