#include "icap/tag.h"

#include "base/assert.h"

#include <string.h>
#include <xxhash.h>

static uint64_t tag_hash_text(const char *text, uint64_t seed) {
    return XXH3_64bits_withSeed(text, strlen(text), seed);
}

static uint64_t base_of(const struct icap_service_settings *settings) {
    uint64_t hash = tag_hash_text(settings->name, settings->ignore_istag);
    for (unsigned i = 0; i < settings->endpoint_count; i++)
        hash = tag_hash_text(settings->uri_texts[i], hash);
    return hash;
}

struct icap_tag *icap_tag_reference(struct icap_tag *tag) {
    CHECK_OBJ(tag, ICAP_TAG_MAGIC);
    atomic_fetch_add(&tag->references, 1);
    return tag;
}

void icap_tag_release(struct icap_tag **tagp) {
    struct icap_tag *tag = *tagp;
    *tagp = NULL;
    if (tag == NULL)
        return;
    CHECK_OBJ(tag, ICAP_TAG_MAGIC);
    if (atomic_fetch_sub(&tag->references, 1) != 1)
        return;
    pthread_mutex_destroy(&tag->lock);
    FREE_OBJ(tag);
}

bool icap_tag_is_of(const struct icap_tag *tag, const struct icap_service_settings *settings) {
    CHECK_OBJ(tag, ICAP_TAG_MAGIC);
    return tag->base == base_of(settings);
}

static bool seen_before(const uint64_t *hashes, unsigned endpoint) {
    for (unsigned i = 0; i < endpoint; i++)
        if (hashes[i] == hashes[endpoint])
            return true;
    return false;
}

/* The sum, so that it does not matter which endpoint said which. With `hash` in place of what is
 * known of one of them; 0: what is known. */
static uint64_t compute(const struct icap_tag *tag, uint64_t generation, unsigned endpoint,
                        uint64_t hash) {
    uint64_t parts[3] = {0, tag->base, generation}, hashes[ICAP_ENDPOINTS_MAX];
    bool any = tag->ignored;
    for (unsigned i = 0; i < tag->endpoint_count; i++) {
        hashes[i] = i == endpoint && hash != 0 ? hash : tag->seen[i].hash;
        if (hashes[i] == 0 || seen_before(hashes, i))
            continue;
        parts[0] += hashes[i];
        any = true;
    }
    uint64_t value = XXH3_64bits(parts, sizeof parts);
    return !any ? 0 : value == 0 ? 1 : value;
}

static void tag_publish(struct icap_tag *tag) {
    uint64_t value = compute(tag, icap_tag_generation(tag), 0, 0);
    atomic_store_explicit(&tag->value, value, memory_order_release);
}

struct icap_tag *icap_tag_new(const struct icap_service_settings *settings) {
    struct icap_tag *tag;
    ALLOC_OBJ(tag, ICAP_TAG_MAGIC);
    atomic_init(&tag->references, 1);
    tag->base = base_of(settings);
    tag->ignored = settings->ignore_istag;
    tag->endpoint_count = settings->endpoint_count;
    pthread_mutex_init(&tag->lock, NULL);
    tag_publish(tag);
    return tag;
}

/* Is it a service that has become another, not one that never says the same twice? */
static bool is_shift(const struct icap_tag *tag, unsigned endpoint, uint64_t now) {
    enum { UNSTEADY = 1000 };
    return tag->seen[endpoint].hash != 0 &&
           (tag->seen[endpoint].confirmed || now - tag->seen[endpoint].since >= UNSTEADY);
}

/* Under the lock. */
static bool take_newest(struct icap_tag *tag, unsigned endpoint, uint64_t hash, uint64_t now) {
    bool shift = is_shift(tag, endpoint, now);
    tag->seen[endpoint].hash = hash;
    tag->seen[endpoint].since = now;
    tag->seen[endpoint].confirmed = false;
    atomic_fetch_add_explicit(&tag->eras[endpoint], 1, memory_order_release);
    tag_publish(tag);
    return shift;
}

struct icap_tag_sight icap_tag_see(struct icap_tag *tag, unsigned endpoint, struct slice istag,
                                   const struct icap_tag_moment *asked, uint64_t now) {
    uint64_t hash = XXH3_64bits(istag.base, istag.length) | 1;
    struct icap_tag_sight sight = {0, false, false};
    CHECK_OBJ(tag, ICAP_TAG_MAGIC);
    ASSERT(endpoint < tag->endpoint_count);
    pthread_mutex_lock(&tag->lock);
    if (tag->ignored)
        hash = 0;
    else if (tag->seen[endpoint].hash == hash)
        tag->seen[endpoint].confirmed = true;
    else if (asked->era < atomic_load_explicit(&tag->eras[endpoint], memory_order_relaxed))
        sight.late = true;
    else
        sight.shifted = take_newest(tag, endpoint, hash, now);
    sight.made = compute(tag, asked->generation, endpoint, hash);
    pthread_mutex_unlock(&tag->lock);
    return sight;
}

uint64_t icap_tag_of_generation(struct icap_tag *tag, uint64_t generation) {
    CHECK_OBJ(tag, ICAP_TAG_MAGIC);
    pthread_mutex_lock(&tag->lock);
    uint64_t value = compute(tag, generation, 0, 0);
    pthread_mutex_unlock(&tag->lock);
    return value;
}

/* Under the lock. */
static void begin_generation(struct icap_tag *tag, uint64_t generation) {
    atomic_store_explicit(&tag->generation, generation, memory_order_release);
    tag_publish(tag);
}

uint64_t icap_tag_bump(struct icap_tag *tag) {
    CHECK_OBJ(tag, ICAP_TAG_MAGIC);
    pthread_mutex_lock(&tag->lock);
    uint64_t generation = icap_tag_generation(tag) + 1;
    begin_generation(tag, generation);
    pthread_mutex_unlock(&tag->lock);
    return generation;
}

void icap_tag_go_on(struct icap_tag *tag, uint64_t generation) {
    CHECK_OBJ(tag, ICAP_TAG_MAGIC);
    pthread_mutex_lock(&tag->lock);
    if (generation > icap_tag_generation(tag))
        begin_generation(tag, generation);
    pthread_mutex_unlock(&tag->lock);
}
