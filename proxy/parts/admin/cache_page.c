#include "admin/cache_page.h"

#include "admin/cache_object_page.h"
#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "cache/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* LIST_TIME: nanoseconds. An answer looks at objects for so long, and then says where to go on. */
enum { WAIT_MOST = 3600 }; /* seconds */
enum { LIST_USUAL = 100, LIST_MOST = 1000, LIST_TIME = 200000000 };

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
 * with a mark and the number of the volume. JSON has it as a text: programs that read a number as
 * floating point would round it. */
enum { ON_DISK_BIT = 62, VOLUME_SHIFT = 48 };

static uint64_t disk_position(const struct second_level_walk *walk) {
    return UINT64_C(1) << ON_DISK_BIT | (uint64_t)walk->volume << VOLUME_SHIFT | walk->position;
}

static bool is_disk_position(uint64_t position, struct second_level_walk *walk) {
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

/* What an answer lists. */
struct listing {
    const struct cache_call *call;
    const struct chosen *chosen;
    json_t *objects;
    size_t limit;
    uint64_t until; /* nanoseconds of the monotonic clock */
};

static bool is_full(const struct listing *listing) {
    return json_array_size(listing->objects) >= listing->limit;
}

static bool is_time_over(const struct listing *listing) {
    return clocks_nanoseconds(CLOCK_MONOTONIC) >= listing->until;
}

static void list_object(const struct listing *listing, struct object *object) {
    json_array_append_new(listing->objects, cache_object_page_json(listing->call, object));
}

/* Lists up to `limit` objects or a few more, because a list can not stop inside a hash chain. */
static void list_memory(const struct listing *listing, struct cache_walk *walk) {
    while (!is_full(listing) && !cache_walk_is_over(walk) && !is_time_over(listing)) {
        cache_walk(listing->call->cache, walk, listing->limit - json_array_size(listing->objects));
        for (size_t i = 0; i < walk->count; i++)
            list_object(listing, walk->objects[i]);
    }
}

/* Adds objects that are only on disk, which are read one by one: at least one of them, so that a
 * slow disk is walked over as well. */
static void list_disk(const struct listing *listing, struct second_level_walk *walk) {
    do {
        struct object *object = second_level_walk(listing->call->second_level, walk);
        if (object != NULL && object_filter_fits(&listing->chosen->filter, object) &&
            !is_in_memory(listing->call, object))
            list_object(listing, object);
        object_release(&object);
    } while (!walk->over && !is_full(listing) && !is_time_over(listing));
}

static void cache_page_list(struct listing *listing, uint64_t after) {
    struct cache_walk walk = {
        .filter = &listing->chosen->filter, .until = listing->until, .position = after};
    struct second_level_walk disk;
    char next[24] = "";
    bool on_disk = is_disk_position(after, &disk);
    if (!on_disk) {
        disk = (struct second_level_walk){0};
        list_memory(listing, &walk);
    }
    if (!on_disk && !cache_walk_is_over(&walk)) {
        snprintf(next, sizeof next, "%llu", (unsigned long long)walk.position);
    } else if (listing->call->second_level != NULL) {
        if (!is_full(listing))
            list_disk(listing, &disk);
        if (!disk.over)
            snprintf(next, sizeof next, "%llu", (unsigned long long)disk_position(&disk));
    }
    cache_walk_end(&walk);
    page_json(listing->call->page, 200,
              json_pack("{s:o, s:s?}", "objects", listing->objects, "next",
                        next[0] != '\0' ? next : NULL));
}

void cache_page_objects(const struct cache_call *call) {
    struct chosen chosen;
    uint64_t after, limit;
    if (!cache_call_take_number(call, "after", 0, INT64_MAX, &after) ||
        !cache_call_take_number(call, "limit", LIST_USUAL, LIST_MOST, &limit) ||
        !cache_page_choose(call, &chosen))
        return;
    struct listing listing = {.call = call,
                              .chosen = &chosen,
                              .objects = json_array(),
                              .limit = limit == 0 ? 1 : (size_t)limit,
                              .until = clocks_nanoseconds(CLOCK_MONOTONIC) + LIST_TIME};
    cache_page_list(&listing, after);
    release_chosen(&chosen);
}

static enum purge_action action_of(const struct cache_call *call) {
    return cache_call_is_set(call, "soft") ? PURGE_STALE : PURGE_REMOVE;
}

/* Takes the answer. */
static void answer_kept(const struct cache_call *call, bool kept, json_t *answer) {
    if (kept) {
        page_json(call->page, 200, answer);
        return;
    }
    json_decref(answer);
    page_not_kept(call->page);
}

/* "2026-03-01T12:00:00.123Z" */
static void write_moment(uint64_t milliseconds, char *text, size_t size) {
    struct tm tm;
    time_t seconds = (time_t)(milliseconds / 1000);
    size_t length = strftime(text, size, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
    snprintf(text + length, size - length, ".%03uZ", (unsigned)(milliseconds % 1000));
}

/* Tells the other nodes of a fleet, and adds to the answer how far they have it. False: they do not hear of it, and an answer
 * has been made. */
static bool cache_page_spread(const struct cache_call *call, const struct removal_order *order,
                              uint64_t wait, json_t *answer) {
    struct removal_spread spread = {.told = false};
    PARTS_FOR_EACH (number, spread)
        if (call->calls->parts != NULL)
            part_table[number]->spread(call->calls->parts[number], order, wait * 1000, &spread);
    if (spread.error[0] != '\0' && !spread.told) {
        char reason[REMOVAL_ERROR + 100];
        snprintf(reason, sizeof reason,
                 "it is done here, but no other node of the fleet hears of it: %s", spread.error);
        page_error(call->page, 503, reason);
        json_decref(answer);
        return false;
    }
    if (!spread.told)
        return true;
    char all_by[40] = "";
    if (spread.all_by > 0)
        write_moment(spread.all_by, all_by, sizeof all_by);
    json_t *missing = json_array();
    for (unsigned i = 0; i < spread.missing_count; i++)
        json_array_append_new(missing, json_string(spread.missing[i]));
    json_object_update_new(answer, json_pack("{s:s?, s:I, s:I, s:o, s:s?}", "position",
                                             spread.position[0] != '\0' ? spread.position : NULL,
                                             "in_force", (json_int_t)spread.in_force, "nodes",
                                             (json_int_t)spread.nodes, "missing", missing, "all_by",
                                             all_by[0] != '\0' ? all_by : NULL));
    return true;
}

void cache_page_purge(const struct cache_call *call) {
    struct chosen chosen;
    uint64_t wait;
    bool narrow =
        cache_call_argument(call, "prefix") != NULL || cache_call_argument(call, "host") != NULL ||
        cache_call_argument(call, "tag") != NULL || cache_call_argument(call, "regex") != NULL;
    if (narrow == cache_call_is_set(call, "all")) {
        page_error(call->page, 400,
                   "choose what to purge: a prefix, a host, a tag, an expression, several of these "
                   "together, or only all");
        return;
    }
    if (!cache_call_take_number(call, "wait", 0, WAIT_MOST, &wait) ||
        !cache_page_choose(call, &chosen))
        return;
    struct removal_found found;
    const struct removal_order order = {.filter = &chosen.filter, .action = action_of(call)};
    bool kept =
        removal_of_all(call->cache, call->second_level, &chosen.filter, order.action, &found);
    json_t *answer =
        json_pack("{s:I, s:b}", "purged", (json_int_t)found.count, "counted", (int)found.counted);
    if (found.counted)
        log_info("%llu cached objects purged through the admin plane",
                 (unsigned long long)found.count);
    if (cache_page_spread(call, &order, wait, answer))
        answer_kept(call, kept, answer);
    release_chosen(&chosen);
}

void cache_page_delete(const struct cache_call *call) {
    const struct content_store store = cache_call_store(call);
    struct cache_name name;
    uint64_t count, wait;
    if (!cache_call_take_name(call, &name) ||
        !cache_call_take_number(call, "wait", 0, WAIT_MOST, &wait))
        return;
    const struct removal_order order = {.url = name.url, .action = action_of(call)};
    enum stored_result result = stored_delete(&store, &name, order.action, &count);
    json_t *answer = json_pack("{s:I}", "purged", (json_int_t)count);
    if (!cache_page_spread(call, &order, wait, answer))
        return;
    /* Another node may have had it. */
    if (result == STORED_NOTHING && json_object_get(answer, "nodes") == NULL) {
        json_decref(answer);
        cache_call_not_stored(call);
        return;
    }
    answer_kept(call, result != STORED_NOT_KEPT, answer);
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
    struct chosen chosen;
    uint64_t number, wait;
    if (!cache_call_take_number(call, "wait", 0, WAIT_MOST, &wait) ||
        !cache_page_choose(call, &chosen))
        return;
    const struct removal_order order = {
        .filter = &chosen.filter, .action = PURGE_REMOVE, .is_ban = true};
    bool kept = removal_by_ban(call->cache, call->second_level, &chosen.filter, &number);
    json_t *answer = json_pack("{s:I}", "number", (json_int_t)number);
    if (cache_page_spread(call, &order, wait, answer))
        answer_kept(call, kept, answer);
    release_chosen(&chosen);
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
