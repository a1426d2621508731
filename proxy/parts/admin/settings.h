/*
 * The settings of the part admin, settings->parts[PART_ADMIN]: where the admin plane listens, and who may call it.
 *
 *     const struct admin_settings *mine = admin_settings_of(settings);
 *     if (mine->listen != NULL) ...                                     there is an admin plane
 *
 * Threads: read-only, as all settings.
 */
#ifndef RETORT_ADMIN_SETTINGS_H
#define RETORT_ADMIN_SETTINGS_H

#include "admin/admin_tls.h"
#include "settings/settings.h"

struct operator_subjects;
struct operator_tokens;

struct admin_settings {
    char *listen;        /* "/path" or "127.0.0.1:port"; NULL: no admin plane */
    char *token_file;    /* NULL: there are no tokens */
    char **certificates; /* as of a listener; NULL: the admin plane speaks clear text */
    enum tls_version min_version;
    enum client_certificate client_certificate;
    char *client_ca, *client_crl; /* NULL: none */
    char *certificate_roles;      /* the file; NULL: certificates give no role */
    char *audit_log;              /* NULL: changes are told in the error log */
    char *helpers;                /* the socket of retort-helperd */
    uint64_t history_step;        /* milliseconds */
    struct address address;
    struct operator_tokens *tokens;     /* of token_file */
    struct operator_subjects *subjects; /* of certificate_roles */
    struct admin_tls *tls;              /* NULL: it speaks clear text */
    char *saved_settings;               /* as configured */
    struct settings_plan *plan;         /* what the snapshot was made from */
};

extern const struct part_settings admin_part_settings;

static inline const struct admin_settings *admin_settings_of(const struct settings *settings) {
    return settings->parts[PART_ADMIN];
}

#endif
