#include "cache/object_filter.h"

#include "base/assert.h"

/* Bytes: a longer URL is not searched for an expression under a lock. */
enum { QUICK_MOST = 512 };

/* The URL is not parsed, which would take ten times as long. It is normalised, so its host ends at
 * a character that no host contains. */
static bool object_filter_has_host(struct slice url, struct slice host) {
    const char *colon = memchr(url.base, ':', url.length);
    size_t before = colon == NULL ? url.length : (size_t)(colon - url.base) + 3; /* "://" */
    if (before >= url.length)
        return false;
    bool bracket = url.base[before] == '[';
    struct slice rest = slice_make(url.base + before + bracket, url.length - before - bracket);
    if (!slice_starts_with_nocase(rest, host))
        return false;
    size_t end = 0;
    while (end < rest.length && strchr(bracket ? "]" : "/?:", rest.base[end]) == NULL)
        end++;
    return end == host.length;
}

struct slice object_filter_host(struct slice url) {
    const char *colon = memchr(url.base, ':', url.length);
    size_t begin = colon == NULL ? url.length : (size_t)(colon - url.base) + 3, end; /* "://" */
    if (begin >= url.length)
        return slice_make(url.base, 0);
    bool bracket = url.base[begin] == '[';
    begin += bracket;
    for (end = begin; end < url.length && strchr(bracket ? "]" : "/?:", url.base[end]) == NULL;)
        end++;
    return slice_make(url.base + begin, end - begin < 256 ? end - begin : 0);
}

static bool url_fits(const struct object_filter *filter, struct slice url) {
    return slice_starts_with(url, filter->prefix) &&
           (filter->host.length == 0 || object_filter_has_host(url, filter->host));
}

bool object_filter_may_fit(const struct object_filter *filter, const struct object *object) {
    struct slice url = object_url(object);
    return (filter->tag.length == 0 || object_may_have_tag(object, filter->tag)) &&
           url_fits(filter, url) &&
           (filter->regex == NULL || url.length > QUICK_MOST ||
            regexes_may_find(filter->regex, url));
}

bool object_filter_fits(const struct object_filter *filter, const struct object *object) {
    struct slice url = object_url(object);
    return url_fits(filter, url) &&
           (filter->tag.length == 0 || object_has_tag(object, filter->tag)) &&
           (filter->regex == NULL || regexes_find(filter->regex, url));
}

static struct slice object_filter_copy_text(struct slice text) {
    return slice_make(text.length == 0 ? NULL : slice_dup(text), text.length);
}

struct object_filter object_filter_copy(const struct object_filter *filter) {
    struct object_filter made = {
        .prefix = object_filter_copy_text(filter->prefix),
        .host = object_filter_copy_text(filter->host),
        .tag = object_filter_copy_text(filter->tag),
    };
    if (filter->regex != NULL) {
        struct regexes *regex = xcalloc(1, sizeof *regex);
        char *text = xstrdup(filter->regex_text);
        regexes_compile(regex, (char *[]){text, NULL});
        made.regex = regex;
        made.regex_text = text;
    }
    return made;
}

void object_filter_release(struct object_filter *filter) {
    free((char *)filter->prefix.base);
    free((char *)filter->host.base);
    free((char *)filter->tag.base);
    if (filter->regex != NULL)
        regexes_release((struct regexes *)filter->regex);
    free((struct regexes *)filter->regex);
    free((char *)filter->regex_text);
    *filter = (struct object_filter){0};
}
