/*
 * The map sections, to be asked for the one that a request goes by.
 *
 *     struct map_table *table = map_table_new(settings->maps, settings->map_count);
 *     const struct map_settings *map = map_table_find(table, SLICE("www.example.com:8080"), path);
 *     map_table_free(&table);
 *
 * A rule with a host goes before one without; then the longest path wins; then a host with a port
 * goes before the same one without, which stands for every port. Hosts are found by hash, paths by
 * halving.
 *
 * Threads: read-only once made.
 */
#ifndef RETORT_MATCH_MAP_TABLE_H
#define RETORT_MATCH_MAP_TABLE_H

#include "settings/settings.h"

struct map_table;

/* The maps must live as long. */
struct map_table *map_table_new(const struct map_settings *maps, size_t count);
void map_table_free(struct map_table **tablep);
/* The rule for this Host ("host" or "host:port", lower case) and path; NULL when none matches. */
const struct map_settings *map_table_find(const struct map_table *table, struct slice host,
                                          struct slice path);

#endif
