#include "admin/cache_page.h"

#include "admin/cache_object_page.h"
#include "base/assert.h"
#include "base/log.h"
#include "content/url.h"

#include <stdio.h>
#include <stdlib.h>

enum { LIST_USUAL = 100, LIST_MOST = 1000 };

/* Many objects. */

struct chosen {
    struct object_filter filter;
    struct regexes regex;
};

static void release_chosen(struct chosen *chosen) {
    regexes_release(&chosen->regex);
}

/* False: an answer has been made. */
static bool cache_page_choose(const struct cache_call *call, struct chosen *chosen) {
    char reason[300];
    const char *prefix = cache_call_argument(call, "prefix"),
               *regex = cache_call_argument(call, "regex");
    *chosen = (struct chosen){0};
    if (regex != NULL && !regex_check(regex, reason, sizeof reason)) {
        page_error(call->page, 400, reason);
        return false;
    }
    if (regex != NULL) {
        regexes_compile(&chosen->regex, (char *[]){(char *)regex, NULL});
        chosen->filter.regex = &chosen->regex;
        chosen->filter.regex_text = regex;
    }
    chosen->filter.host = content_host(slice_from(cache_call_argument(call, "host")), call->arena);
    chosen->filter.tag = slice_from(cache_call_argument(call, "tag"));
    chosen->filter.prefix = slice_from(prefix);
    struct slice normalised = content_prefix(chosen->filter.prefix, call->arena);
    if (normalised.base != NULL)
        chosen->filter.prefix = normalised;
    return true;
}

/* The position in a list as one number: in memory the position of the walk; on disk the same
 * with a mark and the number of the volume. */
enum { ON_DISK_BIT = 62, VOLUME_SHIFT = 48 };

static uint64_t disk_position(const struct disk_walk *walk) {
    return UINT64_C(1) << ON_DISK_BIT | (uint64_t)walk->volume << VOLUME_SHIFT | walk->position;
}

static bool is_disk_position(uint64_t position, struct disk_walk *walk) {
    walk->volume = (unsigned)(position >> VOLUME_SHIFT) & 0x3fff;
    walk->position = position & ((UINT64_C(1) << VOLUME_SHIFT) - 1);
    return (position >> ON_DISK_BIT & 1) != 0;
}

static bool is_in_memory(const struct cache_call *call, const struct object *object) {
    struct cache_walk walk = {0};
    bool found = false;
    const struct cache_name name = object_name(object);
    cache_walk_name(call->cache, &walk, &name);
    for (size_t i = 0; i < walk.count; i++)
        found = found || object_same_variant(walk.objects[i], object);
    cache_walk_end(&walk);
    return found;
}

/* Adds objects that are only on disk, which are read one by one. Returns true at the end. */
static bool list_disk(const struct cache_call *call, const struct chosen *chosen, json_t *objects,
                      size_t limit, struct disk_walk *walk) {
    struct object *object;
    while (json_array_size(objects) < limit) {
        if (disk_walk(call->disk, walk, &object, 1) == 0)
            return true;
        if (object_filter_fits(&chosen->filter, object) && !is_in_memory(call, object))
            json_array_append_new(objects, cache_object_page_json(call, object));
        object_release(&object);
    }
    return false;
}

/* Lists up to `limit` objects or a few more, because a list can not stop inside a hash chain. */
static void cache_page_list(const struct cache_call *call, const struct chosen *chosen,
                            uint64_t after, size_t limit) {
    struct cache_walk walk = {.filter = &chosen->filter, .position = after};
    struct disk_walk disk;
    json_t *objects = json_array(), *next = NULL;
    bool on_disk = is_disk_position(after, &disk);
    if (!on_disk)
        disk = (struct disk_walk){0};
    while (!on_disk && json_array_size(objects) < limit &&
           cache_walk(call->cache, &walk, limit - json_array_size(objects)))
        for (size_t i = 0; i < walk.count; i++)
            json_array_append_new(objects, cache_object_page_json(call, walk.objects[i]));
    if (!on_disk && json_array_size(objects) >= limit)
        next = json_integer((json_int_t)walk.position);
    else if (call->disk != NULL && !list_disk(call, chosen, objects, limit, &disk))
        next = json_integer((json_int_t)disk_position(&disk));
    cache_walk_end(&walk);
    page_json(
        call->page, 200,
        json_pack("{s:o, s:o}", "objects", objects, "next", next == NULL ? json_null() : next));
}

void cache_page_objects(const struct cache_call *call) {
    struct chosen chosen;
    uint64_t after, limit;
    if (!cache_call_take_number(call, "after", 0, INT64_MAX, &after) ||
        !cache_call_take_number(call, "limit", LIST_USUAL, LIST_MOST, &limit) ||
        !cache_page_choose(call, &chosen))
        return;
    cache_page_list(call, &chosen, after, limit == 0 ? 1 : (size_t)limit);
    release_chosen(&chosen);
}

static enum purge_action action_of(const struct cache_call *call) {
    return cache_call_is_set(call, "soft") ? PURGE_STALE : PURGE_REMOVE;
}

void cache_page_purge(const struct cache_call *call) {
    struct chosen chosen;
    bool narrow =
        cache_call_argument(call, "prefix") != NULL || cache_call_argument(call, "host") != NULL ||
        cache_call_argument(call, "tag") != NULL || cache_call_argument(call, "regex") != NULL;
    if (narrow == cache_call_is_set(call, "all")) {
        page_error(call->page, 400,
                   "choose what to purge: a prefix, a host, a tag, an expression, several of these "
                   "together, or only all");
        return;
    }
    if (!cache_page_choose(call, &chosen))
        return;
    /* The disk is purged first. Objects that are stored from now on are not affected. */
    bool kept = disk_purge(call->disk, &chosen.filter, action_of(call));
    uint64_t count;
    bool counted = content_purge_soon(call->cache, &chosen.filter, action_of(call), &count);
    release_chosen(&chosen);
    if (counted)
        log_info("%llu cached objects purged through the admin plane", (unsigned long long)count);
    if (!kept)
        page_not_kept(call->page);
    else
        page_json(call->page, 200,
                  json_pack("{s:I, s:b}", "purged", (json_int_t)count, "counted", (int)counted));
}

void cache_page_delete(const struct cache_call *call) {
    const struct content_store store = cache_call_store(call);
    struct cache_name name;
    uint64_t count;
    if (!cache_call_take_name(call, &name))
        return;
    enum stored_result result = stored_delete(&store, &name, action_of(call), &count);
    cache_call_answer_change(call, result, "purged", count);
}

/* Bans. */

static void cache_page_add_ban(void *arg, const struct ban *ban) {
    json_array_append_new(arg,
                          json_pack("{s:I, s:o, s:I}", "number", (json_int_t)ban->number, "regex",
                                    cache_call_text(slice_from(ban->filter.regex_text)), "made",
                                    (json_int_t)ban->made));
}

void cache_page_bans(const struct cache_call *call) {
    json_t *bans = json_array();
    bans_each(cache_bans(call->cache), cache_page_add_ban, bans);
    page_json(call->page, 200, json_pack("{s:o}", "bans", bans));
}

void cache_page_ban(const struct cache_call *call) {
    char reason[300];
    const char *regex = cache_call_argument(call, "regex");
    struct chosen chosen;
    if (!cache_page_choose(call, &chosen))
        return;
    bool kept = disk_purge(call->disk, &chosen.filter, PURGE_REMOVE);
    release_chosen(&chosen);
    uint64_t number = cache_ban(call->cache, regex, reason, sizeof reason);
    if (number == 0)
        page_error(call->page, 400, reason);
    else if (kept)
        cache_call_answer_count(call, "number", number);
    else
        page_not_kept(call->page);
}

/* One URL. */

void cache_page_lifetime(const struct cache_call *call) {
    const struct content_store store = cache_call_store(call);
    struct cache_name name;
    uint64_t seconds, count;
    if (!cache_call_take_name(call, &name) ||
        !cache_call_take_number(call, "seconds", 0, INT32_MAX, &seconds))
        return;
    enum stored_result result = stored_expire(&store, &name, (int64_t)seconds, &count);
    cache_call_answer_change(call, result, "changed", count);
}

static void cache_page_set_pin(const struct cache_call *call, bool pinned) {
    const struct content_store store = cache_call_store(call);
    struct cache_name name;
    uint64_t count;
    if (!cache_call_take_name(call, &name))
        return;
    enum stored_result result = stored_pin(&store, &name, pinned, &count);
    cache_call_answer_change(call, result, "changed", count);
}

void cache_page_pin(const struct cache_call *call) {
    cache_page_set_pin(call, true);
}

void cache_page_unpin(const struct cache_call *call) {
    cache_page_set_pin(call, false);
}
