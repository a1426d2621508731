/*
 * The configuration of retort-helperd: a libconfuse file, read whole into a struct that is not
 * changed afterwards.
 *
 *     socket = "/run/retort/helperd.sock"
 *     pool gray {
 *         command   = {"/usr/libexec/retort/gray-helper"}
 *         processes = 2
 *         nice      = 10
 *         queue     = 64
 *         deadline  = "10s"
 *         max_jobs  = 0
 *     }
 *
 *     struct helperd_settings *settings = helperd_settings_read(path);   NULL: errors are logged
 *     helperd_settings_free(&settings);
 */
#ifndef RETORT_HELPERD_SETTINGS_H
#define RETORT_HELPERD_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { NICE_LOW = -20, NICE_HIGH = 19, POOL_PROCESSES_MAX = 256, POOL_QUEUE_MAX = 65536 };

struct pool_settings {
    char *name;
    char **command; /* ends with NULL */
    unsigned processes;
    int nice;
    unsigned queue;
    uint64_t deadline; /* milliseconds */
    uint64_t max_jobs; /* a helper is replaced after so many; 0: never */
};

struct helperd_settings {
    char *socket;
    char *socket_group; /* NULL: as the process */
    unsigned socket_mode;
    char *log; /* NULL: stderr */
    unsigned clients;
    struct pool_settings *pools;
    unsigned pool_count;
};

struct helperd_settings *helperd_settings_read(const char *path);
void helperd_settings_free(struct helperd_settings **settingsp);

#endif
