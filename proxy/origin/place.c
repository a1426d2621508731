#include "origin/place.h"

#include "base/assert.h"
#include "net/secret_hash.h"

#include <stdio.h>

enum { BUCKETS = 64, TEXT_MAX = 300 };

struct origin_bucket {
    pthread_mutex_t lock;
    struct list_link places;
};

struct origin_places {
    unsigned magic;
#define ORIGIN_PLACES_MAGIC 0x041991a5u
    struct origin_bucket buckets[BUCKETS];
};

struct origin_places *origin_places_new(void) {
    struct origin_places *places;
    ALLOC_OBJ(places, ORIGIN_PLACES_MAGIC);
    for (unsigned i = 0; i < BUCKETS; i++) {
        pthread_mutex_init(&places->buckets[i].lock, NULL);
        list_init(&places->buckets[i].places);
    }
    return places;
}

void origin_places_free(struct origin_places **placesp) {
    struct origin_places *places = *placesp;
    *placesp = NULL;
    if (places == NULL)
        return;
    CHECK_OBJ(places, ORIGIN_PLACES_MAGIC);
    for (unsigned i = 0; i < BUCKETS; i++) {
        ASSERT(list_empty(&places->buckets[i].places));
        pthread_mutex_destroy(&places->buckets[i].lock);
    }
    FREE_OBJ(places);
}

static struct origin_place *origin_place_find(struct origin_bucket *bucket, const char *text) {
    LIST_FOR_EACH (link, &bucket->places) {
        struct origin_place *place = CONTAINER_OF(link, struct origin_place, link);
        if (strcmp(place->group->name, text) == 0)
            return place;
    }
    return NULL;
}

static void origin_place_set_rules(struct origins_rules *rules, const struct settings *settings) {
    rules->tries = 1;
    rules->max_connections = settings->origin.max_connections;
    rules->queue_max = settings->origin.queue_max;
    rules->queue_timeout = settings->origin.queue_timeout;
}

static struct origin_place *origin_place_make(struct origin_bucket *bucket, char *text,
                                              const struct settings *settings) {
    struct origin_place *place;
    struct origin_server_settings server = {.text = text, .weight = 1};
    struct origins_settings origins = {.name = text, .servers = &server, .server_count = 1};
    origin_place_set_rules(&origins.rules, settings);
    ALLOC_OBJ(place, ORIGIN_PLACE_MAGIC);
    place->bucket = bucket;
    place->group = origin_group_new(&origins);
    list_append(&bucket->places, &place->link);
    return place;
}

/* It may stem from before a reload. */
static void origin_place_renew(struct origin_place *place, const struct settings *settings) {
    pthread_mutex_lock(&place->group->lock);
    origin_place_set_rules(&place->group->rules, settings);
    pthread_mutex_unlock(&place->group->lock);
}

struct origin_place *origin_place_enter(struct origin_places *places, const struct url *url,
                                        const struct settings *settings) {
    char text[TEXT_MAX];
    CHECK_OBJ(places, ORIGIN_PLACES_MAGIC);
    int length = snprintf(text, sizeof text, "http://%s%.*s%s:%u", url->host_is_ipv6 ? "[" : "",
                          SLICE_PRINT(url->host), url->host_is_ipv6 ? "]" : "", url->port);
    if (length >= TEXT_MAX)
        return NULL; /* no name of a host is so long: it will not be found */
    uint64_t hash = secret_hash(slice_make(text, (size_t)length));
    struct origin_bucket *bucket = &places->buckets[hash % BUCKETS];
    pthread_mutex_lock(&bucket->lock);
    struct origin_place *place = origin_place_find(bucket, text);
    if (place != NULL)
        origin_place_renew(place, settings);
    else
        place = origin_place_make(bucket, text, settings);
    place->references++;
    pthread_mutex_unlock(&bucket->lock);
    return place;
}

void origin_place_leave(struct origin_place **placep) {
    struct origin_place *place = *placep;
    *placep = NULL;
    if (place == NULL)
        return;
    CHECK_OBJ(place, ORIGIN_PLACE_MAGIC);
    struct origin_bucket *bucket = place->bucket;
    pthread_mutex_lock(&bucket->lock);
    bool last = --place->references == 0;
    if (last)
        list_remove(&place->link);
    pthread_mutex_unlock(&bucket->lock);
    if (!last)
        return;
    origin_group_release(&place->group);
    FREE_OBJ(place);
}
