#include "origin/list.h"

#include "base/assert.h"
#include "origin/place_index.h"
#include "origin/source.h"

#include <stdlib.h>
#include <xxhash.h>

/* A place on its way into the list. */
struct origin_candidate {
    struct origin_place place;
    struct url url;
    uint64_t hash; /* of host and port */
    size_t at;     /* in the order of the settings */
};

enum { HOST_MOST = 255 }; /* bytes of a name that the hash is of */

static uint64_t origin_list_hash(const struct url *url) {
    char lower[HOST_MOST];
    size_t length = url->host.length < HOST_MOST ? url->host.length : HOST_MOST;
    slice_put_lower(lower, slice_make(url->host.base, length));
    return XXH3_64bits_withSeed(lower, length, url->port);
}

static void origin_list_add(struct origin_candidate *candidate, const struct origin_place *place,
                            size_t at) {
    candidate->place = *place;
    candidate->at = at;
    ASSERT(url_parse(&candidate->url, slice_from(place->text)));
    candidate->hash = origin_list_hash(&candidate->url);
}

static size_t origin_list_add_found(struct origin_candidate *list, size_t count,
                                    struct origin_source *source) {
    source->doubled = 0;
    for (size_t i = 0; i < source->targets.count; i++, count++) {
        const struct origin_target *target = &source->targets.list[i];
        origin_list_add(&list[count],
                        &(struct origin_place){
                            .text = target->text,
                            .named = source->named,
                            .reach = source->reach,
                            .source = source,
                            .weight = target->weight,
                            .priority = target->priority,
                            .rank = target->rank,
                            .backup = source->backup,
                            .drain = source->drain,
                        },
                        count);
    }
    return count;
}

static bool origin_list_are_same(const struct origin_candidate *a,
                                 const struct origin_candidate *b) {
    return a->hash == b->hash && a->url.port == b->url.port &&
           url_is_https(&a->url) == url_is_https(&b->url) &&
           slice_equal_nocase(a->url.host, b->url.host);
}

/* Is the candidate among those that were seen? Otherwise it is from now on. */
static bool origin_list_has_seen(struct place_index *seen, const struct origin_candidate *list,
                                 size_t number) {
    for (size_t cursor = 0, other; place_index_next(seen, list[number].hash, &cursor, &other);)
        if (origin_list_are_same(&list[other], &list[number]))
            return true;
    place_index_add(seen, list[number].hash, number);
    return false;
}

/* Which places are there already: among those of the settings, which have none twice, or before. */
static bool *origin_list_doubles(const struct origin_candidate *list, size_t count) {
    bool *doubled = xcalloc(count + 1, sizeof *doubled);
    struct place_index seen;
    place_index_init(&seen, count);
    for (size_t i = 0; i < count; i++)
        if (list[i].place.source == NULL)
            origin_list_has_seen(&seen, list, i);
    for (size_t i = 0; i < count; i++)
        if (list[i].place.source != NULL)
            doubled[i] = origin_list_has_seen(&seen, list, i);
    place_index_release(&seen);
    return doubled;
}

static int origin_list_compare(const void *a, const void *b) {
    const struct origin_candidate *one = a, *other = b;
    if (one->place.backup != other->place.backup)
        return one->place.backup ? 1 : -1;
    if (one->place.rank != other->place.rank)
        return one->place.rank < other->place.rank ? -1 : 1;
    return one->at < other->at ? -1 : 1;
}

static bool begins_tier(const struct origin_place *place, const struct origin_place *last) {
    return last == NULL || place->backup != last->backup || place->rank != last->rank;
}

static void origin_list_rank(struct origin_list *list, struct origin_candidate *all, size_t count) {
    const struct origin_place *last = NULL;
    qsort(all, count, sizeof *all, origin_list_compare);
    for (size_t i = 0; i < count; i++) {
        list->tiers += begins_tier(&all[i].place, last);
        all[i].place.tier = list->tiers - 1;
        last = &all[i].place;
        list->places[list->count++] = all[i].place;
    }
}

void origin_list_make(struct origin_list *list, const struct origin_place *entries, size_t count) {
    size_t most = count, found = 0, kept = 0;
    for (size_t i = 0; i < count; i++)
        most += entries[i].source != NULL ? entries[i].source->targets.count : 0;
    struct origin_candidate *all = xcalloc(most + 1, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].source != NULL) {
            found = origin_list_add_found(all, found, entries[i].source);
            continue;
        }
        origin_list_add(&all[found], &entries[i], found);
        found++;
    }
    bool *doubled = origin_list_doubles(all, found);
    for (size_t i = 0; i < found; i++) {
        if (doubled[i])
            all[i].place.source->doubled++;
        else
            all[kept++] = all[i];
    }
    free(doubled);
    *list = (struct origin_list){.places = xcalloc(kept + 1, sizeof *list->places)};
    origin_list_rank(list, all, kept);
    free(all);
}

void origin_list_release(struct origin_list *list) {
    free(list->places);
    *list = (struct origin_list){0};
}
