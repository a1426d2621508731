#include "origin/member.h"

#include "base/arena.h"
#include "base/assert.h"
#include "origin/source.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static _Atomic uint64_t next_number = 1;

struct origin_member *origin_member_new(const struct origin_place *place) {
    struct origin_member *member;
    ALLOC_OBJ(member, ORIGIN_MEMBER_MAGIC);
    member->number = atomic_fetch_add(&next_number, 1);
    member->text = xstrdup(place->text);
    ASSERT(url_parse(&member->url, slice_from(member->text)));
    member->named_text = xstrdup(place->named != NULL ? place->named : place->text);
    ASSERT(url_parse(&member->named, slice_from(member->named_text)));
    member->egress = place->egress;
    bool v6 = member->url.host_is_ipv6;
    int length = asprintf(&member->host_port, "%s%.*s%s:%u", v6 ? "[" : "",
                          SLICE_PRINT(member->url.host), v6 ? "]" : "", member->url.port);
    ASSERT(length > 0);
    /* The order depends on host and port and not on the number, so it is the same in all proxies
     * and after each start. */
    member->seed = XXH3_64bits(member->host_port, (size_t)length);
    member->references = 1;
    return member;
}

void origin_member_release(struct origin_member *member) {
    CHECK_OBJ(member, ORIGIN_MEMBER_MAGIC);
    if (--member->references > 0)
        return;
    ASSERT(member->active == 0);
    free(member->text);
    free(member->named_text);
    free(member->host_port);
    free(member->error);
    FREE_OBJ(member);
}

bool origin_member_is_at(const struct origin_member *member, const struct origin_place *place) {
    const char *named = place->named != NULL ? place->named : place->text;
    return strcmp(member->text, place->text) == 0 && member->egress == place->egress &&
           strcmp(member->named_text, named) == 0;
}

void origin_member_configure(struct origin_member *member, const struct origin_place *place) {
    CHECK_OBJ(member, ORIGIN_MEMBER_MAGIC);
    member->listed = true;
    member->source = place->source;
    member->weight = place->weight;
    member->priority = place->priority;
    member->tier = place->tier;
    member->backup = place->backup;
    member->drain = place->drain;
}

/* A place on its way into the list. */
struct origin_candidate {
    struct table_entry entry; /* of those that were seen */
    struct origin_place place;
    struct url url;
    size_t at; /* in the order of the settings */
};

static void origin_list_add(struct origin_candidate *candidate, const struct origin_place *place,
                            size_t at) {
    candidate->place = *place;
    candidate->at = at;
    ASSERT(url_parse(&candidate->url, slice_from(place->text)));
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
                            .egress = source->egress,
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

/* What is the same of all places of a server. */
static struct slice origin_list_key(struct arena *arena, const struct url *url) {
    char *lower = arena_alloc(arena, url->host.length + 1);
    slice_put_lower(lower, url->host);
    return arena_printf(arena, "%d %u %.*s", url_is_https(url), url->port, (int)url->host.length,
                        lower);
}

/* Is the candidate among those that were seen? Otherwise it is from now on. */
static bool origin_list_has_seen(struct table *seen, struct origin_candidate *candidate,
                                 struct arena *arena) {
    struct slice key = origin_list_key(arena, &candidate->url);
    if (table_find(seen, key) != NULL)
        return true;
    table_add(seen, &candidate->entry, key);
    return false;
}

/* Which places are there already: among those of the settings, which have none twice, or before. */
static bool *origin_list_doubles(struct origin_candidate *list, size_t count) {
    bool *doubled = xcalloc(count + 1, sizeof *doubled);
    struct table seen;
    struct arena arena;
    table_init(&seen);
    arena_init(&arena);
    for (size_t i = 0; i < count; i++)
        if (list[i].place.source == NULL)
            origin_list_has_seen(&seen, &list[i], &arena);
    for (size_t i = 0; i < count; i++)
        if (list[i].place.source != NULL)
            doubled[i] = origin_list_has_seen(&seen, &list[i], &arena);
    table_release(&seen);
    arena_release(&arena);
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
