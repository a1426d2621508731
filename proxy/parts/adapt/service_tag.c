#include "adapt/service_tag.h"

#include "base/assert.h"

#include <string.h>
#include <xxhash.h>

static uint64_t service_tag_hash_text(const char *text, uint64_t seed) {
    return XXH3_64bits_withSeed(text, strlen(text), seed);
}

static uint64_t service_tag_base_of(const struct service_settings *settings) {
    uint64_t hash = service_tag_hash_text(settings->name, settings->ignore_istag);
    for (unsigned i = 0; i < settings->endpoint_count; i++)
        hash = service_tag_hash_text(settings->uri_texts[i], hash);
    return hash;
}

struct service_tag *service_tag_reference(struct service_tag *tag) {
    CHECK_OBJ(tag, SERVICE_TAG_MAGIC);
    atomic_fetch_add(&tag->references, 1);
    return tag;
}

void service_tag_release(struct service_tag **tagp) {
    struct service_tag *tag = *tagp;
    *tagp = NULL;
    if (tag == NULL)
        return;
    CHECK_OBJ(tag, SERVICE_TAG_MAGIC);
    if (atomic_fetch_sub(&tag->references, 1) != 1)
        return;
    pthread_mutex_destroy(&tag->lock);
    FREE_OBJ(tag);
}

bool service_tag_is_of(const struct service_tag *tag, const struct service_settings *settings) {
    CHECK_OBJ(tag, SERVICE_TAG_MAGIC);
    return tag->base == service_tag_base_of(settings);
}

static bool service_tag_seen_before(const uint64_t *hashes, unsigned endpoint) {
    for (unsigned i = 0; i < endpoint; i++)
        if (hashes[i] == hashes[endpoint])
            return true;
    return false;
}

/* The sum of all tags, so that their order does not matter. `hash` replaces the tag of one
 * endpoint; 0: all known tags. */
static uint64_t service_tag_compute(const struct service_tag *tag, uint64_t generation,
                                    unsigned endpoint, uint64_t hash) {
    uint64_t parts[3] = {0, tag->base, generation}, hashes[ICAP_ENDPOINTS_MAX];
    bool any = tag->ignored;
    for (unsigned i = 0; i < tag->endpoint_count; i++) {
        hashes[i] = i == endpoint && hash != 0 ? hash : tag->seen[i].hash;
        if (hashes[i] == 0 || service_tag_seen_before(hashes, i))
            continue;
        parts[0] += hashes[i];
        any = true;
    }
    uint64_t value = XXH3_64bits(parts, sizeof parts);
    return !any ? 0 : value == 0 ? 1 : value;
}

static void service_tag_publish(struct service_tag *tag) {
    uint64_t value = service_tag_compute(tag, service_tag_generation(tag), 0, 0);
    atomic_store_explicit(&tag->value, value, memory_order_release);
}

struct service_tag *service_tag_new(const struct service_settings *settings) {
    struct service_tag *tag;
    ALLOC_OBJ(tag, SERVICE_TAG_MAGIC);
    atomic_init(&tag->references, 1);
    tag->base = service_tag_base_of(settings);
    tag->ignored = settings->ignore_istag;
    tag->endpoint_count = settings->endpoint_count;
    pthread_mutex_init(&tag->lock, NULL);
    service_tag_publish(tag);
    return tag;
}

/* Returns true when the service has really changed, and does not just send a new tag each time. */
static bool service_tag_is_shift(const struct service_tag *tag, unsigned endpoint, uint64_t now) {
    enum { UNSTEADY = 1000 };
    return tag->seen[endpoint].hash != 0 &&
           (tag->seen[endpoint].confirmed || now - tag->seen[endpoint].since >= UNSTEADY);
}

/* Under the lock. */
static bool service_tag_take_newest(struct service_tag *tag, unsigned endpoint, uint64_t hash,
                                    uint64_t now) {
    bool shift = service_tag_is_shift(tag, endpoint, now);
    tag->seen[endpoint].hash = hash;
    tag->seen[endpoint].since = now;
    tag->seen[endpoint].confirmed = false;
    atomic_fetch_add_explicit(&tag->eras[endpoint], 1, memory_order_release);
    service_tag_publish(tag);
    return shift;
}

struct service_tag_sight service_tag_see(struct service_tag *tag, unsigned endpoint,
                                         struct slice version,
                                         const struct service_tag_moment *asked, uint64_t now) {
    uint64_t hash = XXH3_64bits(version.base, version.length) | 1;
    struct service_tag_sight sight = {0, false, false};
    CHECK_OBJ(tag, SERVICE_TAG_MAGIC);
    ASSERT(endpoint < tag->endpoint_count);
    pthread_mutex_lock(&tag->lock);
    if (tag->ignored)
        hash = 0;
    else if (tag->seen[endpoint].hash == hash)
        tag->seen[endpoint].confirmed = true;
    else if (asked->era < atomic_load_explicit(&tag->eras[endpoint], memory_order_relaxed))
        sight.late = true;
    else
        sight.shifted = service_tag_take_newest(tag, endpoint, hash, now);
    sight.result = service_tag_compute(tag, asked->generation, endpoint, hash);
    pthread_mutex_unlock(&tag->lock);
    return sight;
}

uint64_t service_tag_of_generation(struct service_tag *tag, uint64_t generation) {
    CHECK_OBJ(tag, SERVICE_TAG_MAGIC);
    pthread_mutex_lock(&tag->lock);
    uint64_t value = service_tag_compute(tag, generation, 0, 0);
    pthread_mutex_unlock(&tag->lock);
    return value;
}

/* Under the lock. */
static void service_tag_begin_generation(struct service_tag *tag, uint64_t generation) {
    atomic_store_explicit(&tag->generation, generation, memory_order_release);
    service_tag_publish(tag);
}

uint64_t service_tag_bump(struct service_tag *tag) {
    CHECK_OBJ(tag, SERVICE_TAG_MAGIC);
    pthread_mutex_lock(&tag->lock);
    uint64_t generation = service_tag_generation(tag) + 1;
    service_tag_begin_generation(tag, generation);
    pthread_mutex_unlock(&tag->lock);
    return generation;
}

void service_tag_resume(struct service_tag *tag, uint64_t generation) {
    CHECK_OBJ(tag, SERVICE_TAG_MAGIC);
    pthread_mutex_lock(&tag->lock);
    if (generation > service_tag_generation(tag))
        service_tag_begin_generation(tag, generation);
    pthread_mutex_unlock(&tag->lock);
}
