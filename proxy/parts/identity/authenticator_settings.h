/*
 * The options of a section authenticator NAME { ... }.
 *
 *     authenticator staff { type = basic  file = "/etc/retort/users"  realm = "Staff" }
 *
 *     const struct authenticator_settings *options = &authenticator->settings;
 *     if (options->type == AUTHENTICATOR_BASIC && options->file != NULL) ...
 *
 * What a type does not use is NULL or has its default; settings.c refuses options that a section
 * sets and its type does not use.
 *
 * Threads: read-only. Units: milliseconds.
 */
#ifndef RETORT_IDENTITY_AUTHENTICATOR_SETTINGS_H
#define RETORT_IDENTITY_AUTHENTICATOR_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum authenticator_type {
    AUTHENTICATOR_BASIC,
    AUTHENTICATOR_BEARER,
    AUTHENTICATOR_CERTIFICATE,
    AUTHENTICATOR_NEGOTIATE,
};

/* What of a certificate is the user's name. */
enum certificate_user { CERTIFICATE_USER_CN, CERTIFICATE_USER_EMAIL, CERTIFICATE_USER_SUBJECT };

struct authenticator_settings {
    char *name;
    enum authenticator_type type;
    char *realm;              /* NULL: the proxy's name */
    uint64_t remember;        /* how long credentials that were good need no new check */
    uint64_t remember_failed; /* and those that were not */
    bool forward_credentials; /* the field Authorization goes on to origins and services */
    char *file, *group_file;  /* basic; NULL: none */
    char *key_file;           /* bearer; NULL: none */
    char *issuer;             /* bearer: the claim `iss`; NULL: any */
    char **audience;          /* bearer: one of them is in `aud`; NULL: any */
    char *user_claim, *group_claim;
    uint64_t leeway; /* bearer: how far clocks may differ */
    enum certificate_user user;
    char *helper;             /* basic: the pool that compares passwords; NULL: file does */
    char *group_helper;       /* the pool that knows groups; NULL: none */
    char *helpers;            /* the socket of retort-helperd */
    uint64_t helper_timeout;  /* for one answer about a password, and for all about groups */
    bool lower_case;          /* of names that a helper has accepted */
    char **asked_groups;      /* those that classes name, each once, then NULL; NULL: none */
    char *keytab, *principal; /* negotiate; NULL: the system's; any */
    bool strip_realm;
};

/* The section authentication { ... }. */
struct authentication_settings {
    unsigned threads;            /* that check passwords; 0: as many as there are workers */
    unsigned queue_max;          /* checks that may wait for a thread */
    unsigned remember_entries;   /* results that are remembered */
    unsigned attempt_entries;    /* clients and users whose failures are counted */
    unsigned attempts;           /* failures of a client as one user before it must wait */
    unsigned attempts_client;    /* failures of a client as any users */
    unsigned attempts_user;      /* failures of a user from any clients */
    uint64_t wait_min, wait_max; /* how long a client must wait */
    uint64_t attempts_forget;    /* after which time without failures they are forgotten */
};

#endif
