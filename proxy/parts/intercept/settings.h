/*
 * The settings of the part intercept, settings->parts[PART_INTERCEPT]: which connections are opened, and how.
 *
 *     intercept banks { action = splice }
 *     intercept all { action = bump }
 *     interception { not_tls = refuse }
 *     authority { certificate = "/etc/retort/ca.pem"  key = "/etc/retort/ca.key" }
 *
 *     const struct interception_settings *mine = interception_settings_of(settings);
 *     bits = rules_find(mine->rules, &subject, arena);
 *     rule = rules_next(bits, 0, mine->count);                    the first in the file
 *
 * Threads: read-only. Units: milliseconds, bytes.
 */
#ifndef RETORT_INTERCEPT_SETTINGS_H
#define RETORT_INTERCEPT_SETTINGS_H

#include "base/arena.h"
#include "settings/settings.h"

/* From the one that inspects least to the one that allows least: of two, the larger one is the more
 * restrictive. */
enum intercept_action {
    INTERCEPT_SPLICE, /* relay the bytes as they are */
    INTERCEPT_BUMP,   /* open the connection and serve the requests inside */
    INTERCEPT_BLOCK,  /* open it only to show a page that says why */
};

/* A section intercept CLASS { action = ... }. */
struct intercept_settings {
    const struct url_class *url_class;
    enum intercept_action action;
};

enum not_tls { NOT_TLS_TUNNEL, NOT_TLS_REFUSE };

struct interception_settings {
    struct intercept_settings *list; /* in the file's order */
    size_t count;
    struct rules *rules; /* a rule for each of them */
    enum not_tls not_tls;
    uint64_t hello_timeout;    /* for the whole ClientHello */
    size_t hello_size;         /* most bytes of a ClientHello */
    bool mirror_errors;        /* an origin that is not trusted: a leaf that is not trusted */
    bool show_denied;          /* what access denies: opened for the page that says so */
    bool client_certificates;  /* origins that ask for one are spliced */
    bool remove_alt_svc;       /* of responses */
    unsigned refusals;         /* of our leaf, after which a client's host is spliced; 0: never */
    uint64_t refusal_time;     /* for how long */
    unsigned refusal_entries;  /* of clients and hosts that are remembered */
    uint64_t identity_time;    /* how long an origin that was verified is remembered */
    uint64_t failure_time;     /* how long one that failed is */
    unsigned identity_entries; /* of origins that are remembered */
    unsigned leaf_cache;       /* minted certificates that are kept */
    bool ca_page;              /* http://retort.internal/ca */
    char *authority_certificate, *authority_key; /* paths; NULL: none */
    struct authority *authority;                 /* signs leaves; NULL: none */
};

extern const struct part_settings intercept_part_settings;

static inline const struct interception_settings *
interception_settings_of(const struct settings *settings) {
    return settings->parts[PART_INTERCEPT];
}

/*
 * Which action the intercept sections say for a connection; INTERCEPT_SPLICE when none matches.
 *
 * The name that the client asks for (SNI) decides. If the client connects to a host by name, and the two
 * names differ, the host is looked up too, and the more restrictive action of the two applies: a client
 * that names one host and asks for another (domain fronting) gains nothing. If the client connects to an
 * address, the host is looked up only when there is no name: nearly every rule is about names, and an
 * address would fall under the rule for the rest.
 */

struct intercept_subject {
    struct slice host; /* that the client connects to: lower case, without brackets */
    bool host_is_address;
    uint16_t port;
    struct slice name; /* SNI, lower case; empty: none that may be used */
    /* What is known of the CONNECT, or of the connection to a transparent listener: all but the
     * method, the host, the URL and the path is taken from here. */
    const struct class_subject *connection;
};

/* INTERCEPT_SPLICE when no section matches. */
enum intercept_action intercept_rules_decide(const struct interception_settings *settings,
                                             const struct intercept_subject *subject,
                                             struct arena *arena);

#endif
