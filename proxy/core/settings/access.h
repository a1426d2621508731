/*
 * The access sections of the configuration: what happens to the requests of a URL class.
 *
 *     access staff { action = authenticate  with = { ldap } }
 *
 *     for (size_t i = 0; i < settings->access_count; i++)
 *         ... settings->accesses[i] ...                  in the file's order; access/rules.h decides
 *
 * Threads: read-only, but for the counts, which are atomic.
 */
#ifndef RETORT_SETTINGS_ACCESS_H
#define RETORT_SETTINGS_ACCESS_H

#include "match/url_class.h"
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
    unsigned asks;     /* url_class_asks of the class */
    bool purges, bans; /* the class names the method PURGE, or BAN */
    uint32_t at;       /* its place in settings->accesses */
};

/* How often a section has decided. Each worker counts apart. */
struct access_count {
    _Atomic uint64_t decided, logged;
};

/* Workers that share counts have the same remainder of this. */
enum { ACCESS_COUNTERS = 16 };

#endif
