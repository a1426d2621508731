#include "cache/key.h"

#include "http/url.h"

/* A query with more parameters is taken as it stands. */
enum { PARAMETERS_MAX = 128 };

struct parameters {
    struct slice each[PARAMETERS_MAX]; /* "name=value" */
    unsigned count;
};

static struct slice key_name_of(struct slice parameter) {
    const char *equals = memchr(parameter.base, '=', parameter.length);
    return equals == NULL ? parameter
                          : slice_make(parameter.base, (size_t)(equals - parameter.base));
}

static bool key_is_named(struct slice pattern, struct slice name) {
    if (pattern.base[pattern.length - 1] != '*')
        return slice_equal(pattern, name);
    return slice_starts_with(name, slice_make(pattern.base, pattern.length - 1));
}

static bool is_listed(char *const *patterns, struct slice name) {
    for (; *patterns != NULL; patterns++)
        if (key_is_named(slice_from(*patterns), name))
            return true;
    return false;
}

static bool key_counts(const struct cache_policy *policy, struct slice parameter) {
    struct slice name = key_name_of(parameter);
    if (parameter.length == 0 ||
        (policy->query_keep != NULL && !is_listed(policy->query_keep, name)))
        return false;
    return policy->query_drop == NULL || !is_listed(policy->query_drop, name);
}

static int key_compare(struct slice a, struct slice b) {
    size_t least = a.length < b.length ? a.length : b.length;
    int difference = least == 0 ? 0 : memcmp(a.base, b.base, least);
    return difference != 0 ? difference : (a.length > b.length) - (a.length < b.length);
}

/* Sorts by name. Parameters of one name keep their order, since that order may mean something. */
static void sort(struct parameters *parameters) {
    for (unsigned i = 1; i < parameters->count; i++) {
        struct slice moving = parameters->each[i];
        unsigned at = i;
        for (;
             at > 0 && key_compare(key_name_of(moving), key_name_of(parameters->each[at - 1])) < 0;
             at--)
            parameters->each[at] = parameters->each[at - 1];
        parameters->each[at] = moving;
    }
}

/* False: the query has too many parameters. */
static bool key_choose(struct parameters *parameters, const struct cache_policy *policy,
                       struct slice query) {
    parameters->count = 0;
    while (query.length > 0) {
        const char *end = memchr(query.base, '&', query.length);
        size_t length = end == NULL ? query.length : (size_t)(end - query.base);
        struct slice parameter = slice_make(query.base, length);
        if (key_counts(policy, parameter)) {
            if (parameters->count == PARAMETERS_MAX)
                return false;
            parameters->each[parameters->count++] = parameter;
        }
        length += end != NULL;
        query = slice_make(query.base + length, query.length - length);
    }
    return true;
}

static struct slice write(struct slice before, const struct parameters *parameters, size_t most,
                          struct arena *arena) {
    char *text = arena_alloc(arena, most), *at = slice_put(text, before);
    for (unsigned i = 0; i < parameters->count; i++) {
        *at++ = i == 0 ? '?' : '&';
        at = slice_put(at, parameters->each[i]);
    }
    return slice_make(text, (size_t)(at - text));
}

struct slice cache_url_by_policy(struct slice url, const struct cache_policy *policy,
                                 struct arena *arena) {
    const char *mark = policy == NULL ? NULL : memchr(url.base, '?', url.length);
    if (mark == NULL || (policy->query_drop == NULL && policy->query_keep == NULL &&
                         !policy->query_sort && !policy->query_ignore))
        return url;
    struct slice before = slice_make(url.base, (size_t)(mark - url.base));
    if (policy->query_ignore)
        return before;
    struct parameters parameters;
    if (!key_choose(&parameters, policy, slice_make(mark + 1, url.length - before.length - 1)))
        return url;
    if (policy->query_sort)
        sort(&parameters);
    return write(before, &parameters, url.length, arena);
}

struct slice cache_url_by_settings(struct slice url_text, const struct settings *settings,
                                   const struct address *client, struct arena *arena) {
    struct cache_policy policy;
    struct url url;
    if (settings->policy_count == 0 || !url_parse(&url, url_text))
        return url_text;
    const struct class_subject subject = {
        .method = SLICE("GET"),
        .host = url.host,
        .url = url_text,
        .path = url_path(&url),
        .client = client,
    };
    const uint64_t *bits = rules_find(settings->rules, &subject, arena);
    bits = rules_without_type(settings->rules, bits, arena);
    policy_resolve(settings->policies, settings->policy_count, bits, &policy);
    return cache_url_by_policy(url_text, &policy, arena);
}
