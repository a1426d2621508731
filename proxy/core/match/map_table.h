/*
 * A table of maps: pairs of a host and the beginning of a path, each with a number. It answers
 * which map a request goes by.
 *
 *     struct map_table *table = map_table_new();
 *     map_table_add(table, SLICE("www.example.com"), SLICE("/img/"), 0);
 *     map_table_add(table, SLICE(""), SLICE("/"), 1);                       any host
 *     map_table_seal(table);                                      once, before the first question
 *     size_t map = map_table_find(table, SLICE("www.example.com:8080"), path);
 *     if (map != MAP_TABLE_NONE) ...
 *     map_table_free(&table);
 *
 * A map with a host goes before one without. Then the longest path wins. Then a host with a port
 * goes before the same host without a port, which stands for every port. Hosts are found by a hash,
 * paths by halving.
 *
 * Threads: read-only once sealed. The slices stay the caller's and must live as long as the table.
 */
#ifndef RETORT_MATCH_MAP_TABLE_H
#define RETORT_MATCH_MAP_TABLE_H

#include "base/slice.h"

#define MAP_TABLE_NONE SIZE_MAX

struct map_table;

struct map_table *map_table_new(void);
void map_table_free(struct map_table **tablep);
/* An empty host stands for every host. */
void map_table_add(struct map_table *table, struct slice host, struct slice path, size_t number);
void map_table_seal(struct map_table *table);
/* The number of the map for this Host ("host" or "host:port", lower case) and path;
 * MAP_TABLE_NONE: no map matches. */
size_t map_table_find(const struct map_table *table, struct slice host, struct slice path);

#endif
