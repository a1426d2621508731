/*
 * The sections request_headers, response_headers and rewrite: rules that change heads and URLs.
 *
 *     const struct fields_settings *section = &settings->request_fields[i];
 *     if (section->where == FIELDS_AT_ORIGIN)
 *         field_rules_apply(section->rules, &changes);
 *
 * Threads: read-only, as all settings.
 */
#ifndef RETORT_SETTINGS_HEAD_RULES_H
#define RETORT_SETTINGS_HEAD_RULES_H

#include <stdbool.h>

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

#endif
