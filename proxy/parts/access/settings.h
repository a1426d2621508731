/*
 * The settings of the part access: settings->parts[PART_ACCESS]. An access section says what happens to the requests of a
 * URL class.
 *
 *     access staff { action = authenticate  with = { ldap } }
 *
 *     const struct accesses_settings *mine = accesses_of(settings);
 *     for (size_t i = 0; i < mine->count; i++)
 *         ... mine->list[i] ...                          in the file's order; access/rules.h decides
 *
 * Threads: read-only, but for the counts, which are atomic.
 */
#ifndef RETORT_ACCESS_SETTINGS_H
#define RETORT_ACCESS_SETTINGS_H

#include "settings/settings.h"
#include "text/text_template.h"

#include <stdatomic.h>

enum access_action {
    ACCESS_ACTION_ALLOW,
    ACCESS_ACTION_DENY,
    ACCESS_ACTION_AUTHENTICATE,
    ACCESS_ACTION_REDIRECT,
    ACCESS_ACTION_TUNNEL, /* allow, without cache and services */
};

struct access_settings {
    const struct url_class *url_class;
    enum access_action action;
    unsigned status; /* of deny and redirect; 0: the usual one */
    char *page;      /* of deny: the name of an error_page section; NULL: the usual one */
    char **with;     /* names of authenticators; ends with NULL; NULL: all there are */
    char *realm;     /* NULL: that of each authenticator */
    char *to;        /* of redirect */
    bool log_only;
    /* Made of the values. */
    struct text_template *to_template; /* of `to` */
    unsigned *authenticators;          /* of `with`: their places in settings->authenticators */
    size_t authenticator_count;
    unsigned asks;               /* url_class_asks of the class */
    bool purges, bans;           /* the class names the method PURGE, or BAN */
    struct access_count *counts; /* ACCESS_COUNTERS of them, `stride` apart */
    size_t stride;
};

/* How often a section has decided. Each worker counts apart. */
struct access_count {
    _Atomic uint64_t decided, logged;
};

/* Workers that share counts have the same remainder of this. */
enum { ACCESS_COUNTERS = 16 };

struct accesses_settings {
    struct access_settings *list; /* in the file's order */
    size_t count;
    /* There are some, or sections of other kinds whose classes ask for the user or the address of the host. */
    bool is_asked;
    /* There are some, none is only logged, and no section asks for the address or for credentials, or lets clients purge;
     * nobody can prove who he is. */
    bool is_plain;
    bool asks_later;             /* some class of them depends on the user or the address */
    bool asks_destination;       /* on the address */
    bool others_ask_destination; /* some class of another section does */
    bool logs_only;              /* some have log_only */
    bool purges;                 /* some let clients use PURGE or BAN */
    /* The section that allows a request that fits no class but those without conditions; NULL:
     * none does for certain. `always` are the bits of such a request; NULL: not known. */
    const struct access_settings *otherwise;
    const uint64_t *always;
    uint64_t *asking; /* a bit each: it asks for credentials, not only in the log */
    /* If asks_later: behind the rules of all kinds stands one more for each of them. A request fits it unless the section
     * can't be for it, whoever the user is and wherever the host leads; if the section asks for neither, no request fits
     * it. */
    size_t perhaps_first;
    struct access_count *counts;
    int64_t counted_since; /* seconds of the clock of the day; each snapshot counts anew */
};

static inline const struct accesses_settings *accesses_of(const struct settings *settings) {
    return settings->parts[PART_ACCESS];
}

extern const struct part_settings access_part_settings;

#endif
