/*
 * The section forwarding: what origins and the next proxies learn of clients and of this proxy.
 *
 *     if (settings->forwarding.x_forwarded_for == FORWARDING_APPEND) ...
 *
 * Threads: read-only, as all settings.
 */
#ifndef RETORT_SETTINGS_FORWARDING_H
#define RETORT_SETTINGS_FORWARDING_H

#include <stdbool.h>

/* What becomes of a field that lists clients and proxies. */
enum forwarding_mode {
    FORWARDING_APPEND,  /* the address of the connection is added */
    FORWARDING_OFF,     /* it stays as it came */
    FORWARDING_REPLACE, /* it has the client's address alone */
    FORWARDING_DELETE,
};

enum forwarding_untrusted { FORWARDING_KEEP, FORWARDING_DROP };

struct forwarding_settings {
    enum forwarding_mode x_forwarded_for, forwarded;
    enum forwarding_untrusted untrusted;      /* fields of clients that are no trusted proxies */
    bool x_forwarded_proto, x_forwarded_host; /* of reverse listeners */
    bool via;
};

#endif
