/*
 * Fills the disks of a configuration, without a proxy: for tests of what a start takes.
 *
 *     fill_volume CONFIGURATION COUNT BYTES
 *
 * Stores COUNT objects with bodies of BYTES for the URLs http://fill.invalid/0, /1, ..., as a
 * forward proxy would have; each body begins with its number and goes on with dots. Ends without
 * closing the volumes, as if killed.
 */
#include "base/log.h"
#include "cache/store.h"
#include "disk/disk.h"
#include "settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY = 64 << 20, AT_A_TIME = 2000, LIFETIME = 10 * 365 * 86400 };

static void fill_body(char *bytes, size_t size, unsigned long number) {
    char text[32];
    int length = snprintf(text, sizeof text, "%lu\n", number);
    memset(bytes, '.', size);
    memcpy(bytes, text, (size_t)length < size ? (size_t)length : size);
}

static bool store(struct cache *cache, struct second_level *disk, unsigned long number, char *bytes,
                  size_t size) {
    char url[64];
    struct http_head request, response;
    struct freshness freshness = {.lifetime = LIFETIME, .response_time = time(NULL)};
    struct cache_arrival arrival = {.since = cache_now(cache)};
    struct second_level_moment since = second_level_now(disk);
    struct slice key =
        slice_make(url, (size_t)snprintf(url, sizeof url, "http://fill.invalid/%lu", number));
    http_head_init(&request);
    request.method_id = HTTP_METHOD_GET;
    http_head_init(&response);
    response.version = 11;
    response.status = 200;
    response.reason = SLICE("OK");
    http_head_add(&response, SLICE("Content-Type"), SLICE("text/plain"));
    http_head_add(&response, SLICE("Cache-Control"), SLICE("max-age=315360000"));
    fill_body(bytes, size, number);
    struct body *body = body_of_bytes(slice_make(bytes, size));
    struct object *object =
        object_new(cache_key_of(key), key, &request, &response, &freshness, body);
    object->scope = OBJECT_FORWARD_LOCAL; /* as the tests have their listener */
    bool stored = cache_insert(cache, object, &arrival);
    if (stored)
        second_level_store(disk, object, &since);
    object_release(&object);
    body_release(&body);
    return stored;
}

int main(int argc, char **argv) {
    char error[SETTINGS_ERROR] = "";
    if (argc != 4) {
        fputs("usage: fill_volume CONFIGURATION COUNT BYTES\n", stderr);
        return 2;
    }
    log_open(STDERR_FILENO, "fill_volume", LOG_LEVEL_INFO);
    struct settings *settings = settings_load(argv[1], error);
    struct cache *cache = cache_new(MEMORY);
    struct second_level *disk = settings == NULL ? NULL : disk_open(settings, cache, false, error);
    if (disk == NULL) {
        fprintf(stderr, "fill_volume: %s\n", error);
        return 1;
    }
    unsigned long count = strtoul(argv[2], NULL, 10);
    size_t size = strtoul(argv[3], NULL, 10);
    char *bytes = malloc(size + 1);
    for (unsigned long number = 0; number < count; number++) {
        if (!store(cache, disk, number, bytes, size))
            return 1;
        if (number % AT_A_TIME == AT_A_TIME - 1)
            second_level_commit(disk);
    }
    second_level_commit(disk);
    _exit(0);
}
