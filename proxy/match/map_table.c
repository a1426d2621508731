#include "match/map_table.h"

#include "base/assert.h"
#include "match/name_table.h"

#include <stdlib.h>

/* A rule, among those of its host by the order of their paths. */
struct rule {
    struct slice host, path; /* host "": any */
    const struct map_settings *map;
    const struct rule *shorter; /* the longest path that this one begins with; NULL: none */
};

/* Those of one host. */
struct group {
    const struct rule *rules;
    size_t count;
};

struct map_table {
    unsigned magic;
#define MAP_TABLE_MAGIC 0x4d415054u
    struct rule *rules;
    struct group *groups;
    size_t group_count;
    struct name_table hosts; /* with the numbers of groups */
    struct group any;
};

static int map_table_compare(struct slice a, struct slice b) {
    size_t least = a.length < b.length ? a.length : b.length;
    int difference = least == 0 ? 0 : memcmp(a.base, b.base, least);
    return difference != 0 ? difference : (a.length > b.length) - (a.length < b.length);
}

static int compare_rules(const void *a, const void *b) {
    const struct rule *x = a, *y = b;
    int by_host = map_table_compare(x->host, y->host);
    return by_host != 0 ? by_host : map_table_compare(x->path, y->path);
}

/* All paths with which one begins stand before it, and each begins with the one before. */
static void find_shorter(struct rule *rule) {
    const struct rule *candidate = rule - 1;
    while (candidate != NULL && !slice_starts_with(rule->path, candidate->path))
        candidate = candidate->shorter;
    rule->shorter = candidate;
}

static void make_groups(struct map_table *table, size_t count) {
    struct group *group = NULL;
    for (size_t i = 0; i < count; i++) {
        struct rule *rule = &table->rules[i];
        if (group != NULL && slice_equal(group->rules->host, rule->host)) {
            group->count++;
            find_shorter(rule);
            continue;
        }
        group = rule->host.length == 0 ? &table->any : &table->groups[table->group_count];
        *group = (struct group){rule, 1};
        if (group != &table->any)
            name_table_add(&table->hosts, rule->host, (uint32_t)table->group_count++);
    }
}

struct map_table *map_table_new(const struct map_settings *maps, size_t count) {
    struct map_table *table;
    ALLOC_OBJ(table, MAP_TABLE_MAGIC);
    table->rules = xcalloc(count + 1, sizeof *table->rules);
    table->groups = xcalloc(count + 1, sizeof *table->groups);
    for (size_t i = 0; i < count; i++)
        table->rules[i] = (struct rule){
            .host = slice_from(maps[i].host), .path = slice_from(maps[i].path), .map = &maps[i]};
    qsort(table->rules, count, sizeof *table->rules, compare_rules);
    make_groups(table, count);
    name_table_seal(&table->hosts);
    return table;
}

void map_table_free(struct map_table **tablep) {
    struct map_table *table = *tablep;
    *tablep = NULL;
    if (table == NULL)
        return;
    CHECK_OBJ(table, MAP_TABLE_MAGIC);
    name_table_release(&table->hosts);
    free(table->groups);
    free(table->rules);
    FREE_OBJ(table);
}

/* What the path begins with stands at or before where the path itself would stand. */
static const struct rule *find_in(const struct group *group, struct slice path) {
    size_t from = 0, to = group->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (map_table_compare(group->rules[middle].path, path) <= 0)
            from = middle + 1;
        else
            to = middle;
    }
    const struct rule *rule = from == 0 ? NULL : &group->rules[from - 1];
    while (rule != NULL && !slice_starts_with(path, rule->path))
        rule = rule->shorter;
    return rule;
}

static const struct rule *find_by_host(const struct map_table *table, struct slice host,
                                       struct slice path) {
    struct numbers found = name_table_find(&table->hosts, host);
    return found.count == 0 ? NULL : find_in(&table->groups[found.each[0]], path);
}

static struct slice without_port(struct slice host) {
    const char *bracket = host.length > 0 ? memchr(host.base, ']', host.length) : NULL;
    const char *from = bracket != NULL ? bracket : host.base;
    size_t rest = host.length - (size_t)(from - host.base);
    const char *colon = host.length > 0 ? memchr(from, ':', rest) : NULL;
    return colon == NULL ? host : slice_make(host.base, (size_t)(colon - host.base));
}

const struct map_settings *map_table_find(const struct map_table *table, struct slice host,
                                          struct slice path) {
    CHECK_OBJ(table, MAP_TABLE_MAGIC);
    const struct rule *rule = NULL;
    if (table->group_count > 0) {
        struct slice name = without_port(host);
        rule = find_by_host(table, host, path);
        const struct rule *other =
            name.length == host.length ? NULL : find_by_host(table, name, path);
        if (rule == NULL || (other != NULL && other->path.length > rule->path.length))
            rule = other;
    }
    if (rule == NULL)
        rule = find_in(&table->any, path);
    return rule == NULL ? NULL : rule->map;
}
