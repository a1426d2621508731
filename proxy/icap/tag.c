#include "icap/tag.h"

#include "base/assert.h"

#include <string.h>
#include <xxhash.h>

static uint64_t hash_text(const char *text, uint64_t seed) {
    return XXH3_64bits_withSeed(text, strlen(text), seed);
}

static uint64_t base_of(const struct icap_service_settings *settings) {
    uint64_t hash = hash_text(settings->name, settings->ignore_istag);
    for (unsigned i = 0; i < settings->endpoint_count; i++)
        hash = hash_text(settings->uri_texts[i], hash);
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

static bool seen_before(const struct icap_tag *tag, unsigned endpoint) {
    for (unsigned i = 0; i < endpoint; i++)
        if (tag->seen[i] == tag->seen[endpoint])
            return true;
    return false;
}

/* The sum, so that it does not matter which endpoint said which. */
static uint64_t compute(const struct icap_tag *tag, uint64_t generation) {
    uint64_t parts[3] = {0, tag->base, generation};
    bool any = tag->ignored;
    for (unsigned i = 0; i < tag->endpoint_count; i++) {
        if (tag->seen[i] == 0 || seen_before(tag, i))
            continue;
        parts[0] += tag->seen[i];
        any = true;
    }
    uint64_t value = XXH3_64bits(parts, sizeof parts);
    return !any ? 0 : value == 0 ? 1 : value;
}

static void publish(struct icap_tag *tag) {
    uint64_t value = compute(tag, icap_tag_generation(tag));
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
    publish(tag);
    return tag;
}

uint64_t icap_tag_see(struct icap_tag *tag, unsigned endpoint, struct slice istag,
                      uint64_t generation) {
    uint64_t hash = XXH3_64bits(istag.base, istag.length) | 1;
    CHECK_OBJ(tag, ICAP_TAG_MAGIC);
    ASSERT(endpoint < tag->endpoint_count);
    pthread_mutex_lock(&tag->lock);
    if (!tag->ignored && tag->seen[endpoint] != hash) {
        tag->seen[endpoint] = hash;
        publish(tag);
    }
    uint64_t value = compute(tag, generation);
    pthread_mutex_unlock(&tag->lock);
    return value;
}

uint64_t icap_tag_of_generation(struct icap_tag *tag, uint64_t generation) {
    CHECK_OBJ(tag, ICAP_TAG_MAGIC);
    pthread_mutex_lock(&tag->lock);
    uint64_t value = compute(tag, generation);
    pthread_mutex_unlock(&tag->lock);
    return value;
}

/* Under the lock. */
static void begin_generation(struct icap_tag *tag, uint64_t generation) {
    atomic_store_explicit(&tag->generation, generation, memory_order_release);
    publish(tag);
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
