/*
 * The settings of the part rewrite: settings->parts[PART_REWRITE]. The sections request_headers, response_headers and
 * rewrite are rules that change heads and URLs.
 *
 *     const struct fields_settings *section = &rewriting_settings_of(settings)->requests.sections[i];
 *     if (section->where == FIELDS_AT_ORIGIN)
 *         field_rules_apply(section->rules, &changes);
 *
 * Threads: read-only, as all settings.
 */
#ifndef RETORT_REWRITE_SETTINGS_H
#define RETORT_REWRITE_SETTINGS_H

#include "settings/settings.h"

struct field_rules;
struct url_class;
struct url_rule;

/* On which side of services and the cache. */
enum fields_where { FIELDS_AT_CLIENT, FIELDS_AT_ORIGIN, FIELDS_PLACES };

/* request_headers CLASS { } and response_headers CLASS { } */
struct fields_settings {
    const struct url_class *url_class;
    char **remove, **replace, **set, **add; /* as configured; each ends with NULL; NULL: none */
    enum fields_where where;
    bool on_errors;   /* of responses: pages of the proxy's own are changed too */
    bool name_fields; /* a value names a field of the request or the response */
    /* Of requests: */
    bool tells_user;  /* a value tells who asks */
    bool tells_rule;  /* a value names the access section that decided */
    bool tells_class; /* the class depends on who asks, so that a field is changed tells it */
    bool is_by_url;   /* the class depends on the URL alone */
    struct field_rules *rules; /* all of them, compiled */
};

/* rewrite CLASS { } */
struct rewrite_settings {
    const struct url_class *url_class;
    char *match, *to;
    bool last;
    struct url_rule *rule;
};

struct fields_list {
    struct fields_settings *sections; /* in the file's order */
    size_t count;
};

struct rewriting_settings {
    struct fields_list requests, responses;
    bool any_at_client;                /* requests of clients are changed */
    struct rewrite_settings *rewrites; /* in the file's order */
    size_t rewrite_count;
};

static inline const struct rewriting_settings *
rewriting_settings_of(const struct settings *settings) {
    return settings->parts[PART_REWRITE];
}

extern const struct part_settings rewrite_part_settings;

#endif
