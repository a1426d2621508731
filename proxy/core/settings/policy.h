/*
 * Policies: what the cache does differently for the requests of a URL class.
 *
 *     policy images { ttl = "1d"  query_drop = { "utm_*" } }
 *
 *     struct cache_policy policy;
 *     const uint64_t *bits = rules_find(settings->rules, &subject, arena);
 *     if (policy_resolve(settings->policies, settings->policy_count, bits, &policy)) ...
 *
 * When several policies match, each option is taken from the first policy in the file that sets it.
 * The lists in the result belong to the settings, so policy_resolve allocates nothing.
 *
 * Threads: read-only. Units: milliseconds.
 */
#ifndef RETORT_SETTINGS_POLICY_H
#define RETORT_SETTINGS_POLICY_H

#include "match/rules.h"

/* The value of a time that no policy sets. */
#define POLICY_UNSTATED UINT64_MAX

enum policy_cache { POLICY_CACHE_NORMAL, POLICY_CACHE_NEVER, POLICY_CACHE_ALWAYS };
enum policy_set_cookie {
    POLICY_SET_COOKIE_EXPLICIT, /* stored without the cookies, which the client gets that asked, if
                                   the response itself states its freshness */
    POLICY_SET_COOKIE_STORE,    /* stored with them */
    POLICY_SET_COOKIE_PASS,     /* not stored */
    POLICY_SET_COOKIE_STRIP,    /* stored without them; nobody gets them */
};

enum policy_query_sent { POLICY_QUERY_STORED, POLICY_QUERY_WHOLE };

struct cache_policy {
    enum policy_cache cache;
    enum policy_set_cookie set_cookie;
    enum policy_query_sent query_sent;
    bool override, ignore_client_no_cache, strip_cookies;
    bool query_sort, query_ignore;
    unsigned required_headers;
    unsigned max_variants; /* 0: not stated */
    uint64_t ttl, ttl_default, ttl_min, ttl_max, stale_if_error, stale_while_revalidate;
    char **negative_ttl;             /* rules, see negative.h; ends with NULL; NULL: not stated */
    char **query_drop, **query_keep; /* end with NULL; NULL: not stated */
};

enum { POLICY_OPTIONS_MAX = 32 };

/* policy CLASS { ... } */
struct policy_settings {
    const struct url_class *url_class;
    struct cache_policy values; /* only members listed in `stated` are valid */
    struct {
        uint16_t at, size;
    } stated[POLICY_OPTIONS_MAX]; /* offset and size of each member that the section sets */
    unsigned stated_count;
};

/* Sets all members to "not stated". */
void policy_init(struct cache_policy *policy);
/* Notes that the section sets the member at this offset and of this size. */
void policy_state(struct policy_settings *policy, size_t at, size_t size);
/* Combines the policies whose bits (match/rules.h) are set. Returns false when no bit is set;
 * `policy` is then as after policy_init. */
bool policy_resolve(const struct policy_settings *policies, size_t count, const uint64_t *bits,
                    struct cache_policy *policy);

/* Checks the name of a query parameter. A '*' at its end stands for any rest. */
bool policy_check_parameter(const char *text, char *error, size_t error_size);

#endif
