#include "cache/object_filter.h"

#include "base/assert.h"
#include "http/url.h"

/* Most are told from a look at where the host begins. */
static bool has_host(struct slice text, struct slice host) {
    struct slice rest = text;
    struct url url;
    if (slice_starts_with(text, SLICE("http://")))
        rest = slice_make(text.base + 7, text.length - 7);
    if (rest.length > 0 && rest.base != text.base && rest.base[0] != '[' &&
        !slice_starts_with_nocase(rest, host))
        return false;
    return url_parse(&url, text) && slice_equal_nocase(url.host, host);
}

bool object_filter_fits(const struct object_filter *filter, const struct object *object) {
    struct slice url = object_url(object);
    return slice_starts_with(url, filter->prefix) &&
           (filter->host.length == 0 || has_host(url, filter->host)) &&
           (filter->tag.length == 0 || object_has_tag(object, filter->tag)) &&
           (filter->regex == NULL || regexes_find(filter->regex, url));
}

static struct slice copy(struct slice text) {
    return slice_make(text.length == 0 ? NULL : slice_dup(text), text.length);
}

struct object_filter object_filter_copy(const struct object_filter *filter) {
    struct object_filter made = {
        .prefix = copy(filter->prefix),
        .host = copy(filter->host),
        .tag = copy(filter->tag),
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
