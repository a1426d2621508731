/* Rules of reverse mode: map sections. */
#include "settings/load.h"

#include "base/assert.h"
#include "http/dot_segments.h"
#include "match/map_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The host as in a Host field, with its port unless that is 80. The URL must be in canonical
 * form. */
static char *load_map_host_of(const struct url *url) {
    char text[300];
    snprintf(text, sizeof text, "%s%.*s%s", url->host_is_ipv6 ? "[" : "", SLICE_PRINT(url->host),
             url->host_is_ipv6 ? "]" : "");
    if (url->port != 80)
        snprintf(text + strlen(text), sizeof text - strlen(text), ":%u", url->port);
    return slice_dup(slice_from(text));
}

static bool is_http(const struct url *url) {
    return slice_equal_nocase(url->scheme, SLICE("http"));
}

static bool map_prefix(struct load *load, const struct document_section *section,
                       struct map_settings *map) {
    struct url url;
    bool any_host = section->title[0] == '/';
    struct slice title = slice_from(section->title);
    bool parsed = any_host ? url_parse_authority(&url, SLICE("any"), url_schemes[URL_HTTP].port) &&
                                 url_set_target(&url, &url_schemes[URL_HTTP], title)
                           : url_parse(&url, title);
    if (!parsed || !is_http(&url) || url.host.length > 255)
        return load_fail(load, section->line,
                         "map: \"%s\" is not a prefix; write \"http://HOST/PATH\" or \"/PATH\"",
                         section->title);
    if (strpbrk(section->title, "?#") != NULL)
        return load_fail(load, section->line,
                         "map: \"%s\" has a query or fragment; only a path may follow the host",
                         section->title);
    if (dot_segments_may_be_seen(url.path_query))
        return load_fail(load, section->line,
                         "map: \"%s\" has a \".\" or \"..\" segment, which Retort removes from "
                         "URLs before it compares them; write the path without it",
                         section->title);
    size_t room = url_room(&url);
    char *text = xmalloc(room);
    url_rewrite(&url, text, room);
    map->host = any_host ? NULL : load_map_host_of(&url);
    map->path = slice_dup(url.path_query);
    free(text);
    return true;
}

/* NAME or NAME/PATH. */
static bool map_to_group(struct load *load, const struct document_section *section,
                         struct map_settings *map) {
    int line = load_line_of(section, "origin");
    size_t length = strcspn(map->origin_text, "/");
    map->origins = load_find_origins(load->settings, slice_make(map->origin_text, length));
    if (map->origins == NULL)
        return load_fail(
            load, line,
            "origin: \"%s\" is neither a URL nor the name of an origins section; write "
            "\"http://HOST:PORT/PATH\", or add: origins %.*s { servers = ... }",
            map->origin_text, (int)length, map->origin_text);
    if (strpbrk(map->origin_text, "?#") != NULL)
        return load_fail(load, line,
                         "origin: \"%s\" has a query or fragment; only a path may follow",
                         map->origin_text);
    map->origin.path_query = slice_from(map->origin_text + length);
    return true;
}

static bool map_parent(struct load *load, const struct document_section *section,
                       struct map_settings *map) {
    int line = load_line_of(section, "parent");
    if (map->parent_text == NULL)
        return true;
    map->parents = load_find_origins(load->settings, slice_from(map->parent_text));
    if (map->parents == NULL)
        return load_fail(load, line,
                         "parent: there is no origins section \"%s\"; add one or correct the name",
                         map->parent_text);
    if (map->origins != NULL)
        return load_fail(load, line,
                         "parent: the origin is a group of servers; only an origin with a single "
                         "URL can have a parent");
    return true;
}

static bool map_origin(struct load *load, const struct document_section *section,
                       struct map_settings *map) {
    int line = load_line_of(section, "origin");
    if (strchr(map->origin_text, ':') == NULL)
        return map_to_group(load, section, map);
    if (!url_parse(&map->origin, slice_from(map->origin_text)))
        return load_fail(load, line, "origin: \"%s\" is not a URL; write \"http://HOST:PORT/PATH\"",
                         map->origin_text);
    if (!url_is_web(&map->origin))
        return load_fail(load, line,
                         "origin: \"%s\" is not an http or https URL; write "
                         "\"http://HOST:PORT/PATH\" or \"https://HOST:PORT/PATH\"",
                         map->origin_text);
    if (strpbrk(map->origin_text, "?#") != NULL)
        return load_fail(load, line,
                         "origin: \"%s\" has a query or fragment; only a path may follow",
                         map->origin_text);
    return true;
}

/* Requests with such a path are refused, so the origin would never get one. */
static bool map_stays(struct load *load, const struct document_section *section,
                      const struct map_settings *map) {
    struct slice path = map->origin.path_query;
    if (!dot_segments_may_be_seen(path))
        return true;
    return load_fail(
        load, load_line_of(section, "origin"),
        "origin: \"%s\" has a \".\" or \"..\" segment; write the path that it leads to",
        map->origin_text);
}

static bool apply_map(struct load *load, const struct document_section *section,
                      struct map_settings *map) {
    return load_values(load, section, "map", map) && map_prefix(load, section, map) &&
           map_origin(load, section, map) && map_stays(load, section, map) &&
           map_parent(load, section, map);
}

static bool host_has_port(const char *host) {
    const char *bracket = strrchr(host, ']');
    return strchr(bracket != NULL ? bracket : host, ':') != NULL;
}

static int rank_of(const struct map_settings *map) {
    return map->host == NULL ? 0 : host_has_port(map->host) ? 2 : 1;
}

/* Hosts first, then the longest path, then the more exact host. */
static int compare_maps(const void *a, const void *b) {
    const struct map_settings *x = a, *y = b;
    size_t x_length = strlen(x->path), y_length = strlen(y->path);
    if ((x->host == NULL) != (y->host == NULL))
        return x->host == NULL ? 1 : -1;
    if (x_length != y_length)
        return x_length > y_length ? -1 : 1;
    if (rank_of(x) != rank_of(y))
        return rank_of(y) - rank_of(x);
    int by_host = x->host == NULL ? 0 : strcmp(x->host, y->host);
    return by_host != 0 ? by_host : strcmp(x->path, y->path);
}

static void fill_map_table(struct settings *settings) {
    settings->map_table = map_table_new();
    for (size_t i = 0; i < settings->map_count; i++)
        map_table_add(settings->map_table, slice_from(settings->maps[i].host),
                      slice_from(settings->maps[i].path), i);
    map_table_seal(settings->map_table);
}

bool load_maps(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->map_count = document_section_count(load->document, "map");
    settings->maps = xcalloc(settings->map_count + 1, sizeof *settings->maps);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "map") {
        struct map_settings *map = &settings->maps[i++];
        if (!apply_map(load, section, map))
            return false;
        for (struct map_settings *other = settings->maps; other < map; other++)
            if (compare_maps(other, map) == 0)
                return load_fail(load, section->line,
                                 "map: \"%s\" means the same as the prefix of another map section; "
                                 "remove one of them",
                                 section->title);
    }
    qsort(settings->maps, settings->map_count, sizeof *settings->maps, compare_maps);
    fill_map_table(settings);
    return true;
}

void warn_about_maps(const struct load *load) {
    const struct settings *settings = load->settings;
    bool reverse = false;
    for (size_t i = 0; i < settings->listen_count; i++)
        reverse = reverse || settings->listens[i].mode == LISTEN_REVERSE;
    if (settings->map_count > 0 && !reverse)
        load_warn(load, document_section(load->document, "map", NULL)->line,
                  "map sections are used by reverse listeners only, and there is none; add: listen "
                  "\":8080\" { mode = reverse }");
    if (settings->map_count == 0 && reverse)
        load_warn(
            load, 0,
            "there is a reverse listener but no map section, so it answers every request with "
            "404; add: map \"/\" { origin = \"http://HOST:PORT/\" }");
}

void release_maps(struct settings *settings) {
    map_table_free(&settings->map_table);
    for (size_t i = 0; i < settings->map_count; i++) {
        load_release_values("map", &settings->maps[i]);
        free(settings->maps[i].host);
        free(settings->maps[i].path);
    }
    free(settings->maps);
}
