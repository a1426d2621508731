/*
 * Options of a service: a table contains the name, type, default, range and meaning of each option.
 * With the table a host fills the settings struct of the service.
 *
 *     struct gzip_settings { uint64_t level; struct service_list types; };
 *     static const struct service_option options[] = {
 *         {"Level", SERVICE_OPTION_NUMBER, offsetof(struct gzip_settings, level), "6", 1, 9, NULL,
 *          "zlib level"},
 *         {NULL}};
 *     service_options_defaults(options, &settings);
 *     const struct service_option *option = service_option_find(options, SLICE("Level"));
 *     if (!service_option_set(option, &settings, SLICE("11"), error, sizeof error)) ...
 *     service_options_release(options, &settings);
 *
 * Each host decides how its configuration file names the options: c-icap's has `gzip.Level 9`.
 *
 *     type      in the struct         text
 *     TEXT      char *                anything
 *     LIST      struct service_list   one item; setting it again appends; the first setting that is
 *                                     not the default replaces the default
 *     NUMBER    uint64_t              decimal
 *     SIZE      uint64_t              bytes; K, M or G may follow: 16M
 *     DURATION  uint64_t              milliseconds: 500ms, 10s, 2m; a bare number is seconds
 *     SWITCH    bool                  on, off
 *     CHOICE    uint64_t              one of `choices` ("client|shared"): its index
 *
 * Threads: setting is done by one thread before the service starts. Errors: false and a sentence.
 */
#ifndef RETORT_SERVICE_OPTION_H
#define RETORT_SERVICE_OPTION_H

#include "base/slice.h"

enum service_option_type {
    SERVICE_OPTION_TEXT,
    SERVICE_OPTION_LIST,
    SERVICE_OPTION_NUMBER,
    SERVICE_OPTION_SIZE,
    SERVICE_OPTION_DURATION,
    SERVICE_OPTION_SWITCH,
    SERVICE_OPTION_CHOICE,
};

struct service_list {
    char **items;
    unsigned count;
    bool is_default;
};

struct service_option {
    const char *name;
    enum service_option_type type;
    size_t offset;
    const char *initial; /* LIST: items separated by blanks; NULL: empty */
    uint64_t low, high;  /* NUMBER, SIZE, DURATION */
    const char *choices;
    const char *help;
};

/* NULL: there is no option of that name. Upper and lower case are told apart. */
const struct service_option *service_option_find(const struct service_option *options,
                                                 struct slice name);
/* `settings` is uninitialised before the call, and belongs to the caller afterwards. */
void service_options_defaults(const struct service_option *options, void *settings);
bool service_option_set(const struct service_option *option, void *settings, struct slice text,
                        char *error, size_t error_size);
void service_options_release(const struct service_option *options, void *settings);

#endif
