/*
 * The settings of inject, its counters, and the options that fill the settings.
 *
 *     uint64_t place = inject_settings_choice(exchange->arguments, "position", settings->position);
 *
 * Threads: constants; settings are read-only once the service has started.
 */
#ifndef RETORT_INJECT_SETTINGS_H
#define RETORT_INJECT_SETTINGS_H

#include "service/option.h"

enum inject_scope { INJECT_SCOPE_CLIENT, INJECT_SCOPE_SHARED };
enum inject_csp { INJECT_CSP_REFUSE, INJECT_CSP_NONCE, INJECT_CSP_HASH, INJECT_CSP_INSERT };
enum inject_counter {
    INJECT_INSERTED,
    INJECT_NO_PLACE,
    INJECT_LATE,
    INJECT_HELPER_FAILED,
    INJECT_POLICY,
};

struct inject_settings {
    char *helperd, *pool;
    uint64_t deadline, cache_ttl;  /* milliseconds */
    uint64_t scan_limit;           /* bytes */
    uint64_t scope, position, csp; /* enum inject_scope, scanner_place, inject_csp */
    bool send_url;
    struct service_list types;
};

/* Both end with NULL. */
extern const struct service_option inject_options[];
extern const char *const inject_counters[];

/* The value that an argument of the URI chooses: its word is one of the words of the option with
 * that name. `otherwise` when the argument is missing or its word is unknown. */
uint64_t inject_settings_choice(struct slice arguments, const char *name, uint64_t otherwise);

#endif
