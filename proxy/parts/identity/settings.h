/*
 * The sections authenticator and authentication.
 *
 *     const struct identity_settings *mine = identity_settings(settings);
 *     struct authenticator *first = mine->authenticators[0];         settings->authenticators[0] is its name
 *
 * Threads: read-only.
 */
#ifndef RETORT_IDENTITY_SETTINGS_H
#define RETORT_IDENTITY_SETTINGS_H

#include "identity/authenticator.h"
#include "settings/part_settings.h"
#include "settings/settings.h"

struct document_section;
struct load;

struct identity_settings {
    struct authenticator **authenticators; /* in the file's order */
    size_t authenticator_count;
    const char **names; /* theirs */
    struct authentication_settings authentication;
};

static inline const struct identity_settings *identity_settings(const struct settings *settings) {
    return settings->parts[PART_IDENTITY];
}

extern const struct part_settings identity_part_settings;

/* What authenticator sections say about helpers; settings_helpers.c. */

/* Checks it. */
bool identity_load_helpers(struct load *load, const struct document_section *section,
                           const struct authenticator_settings *settings);
/* Sets asked_groups: the groups that the group_helper is asked for. */
bool identity_load_groups(struct load *load, const struct document_section *section,
                          struct authenticator_settings *settings);
void identity_release_groups(struct authenticator_settings *settings);
/* See part_settings.each_helpers. */
void identity_each_helpers(const void *mine, helpers_see_fn *see, void *arg);

#endif
