#include "adremover/filter_internal.h"

#include "base/assert.h"

enum { PARAMETERS_MAX = 256 };

struct strip {
    const struct filter *filter;
    struct filter_request *request;
    struct slice parameters[PARAMETERS_MAX];
    bool removed[PARAMETERS_MAX];
    unsigned count;
    const struct rule *first; /* that removed something */
};

static struct slice filter_strip_name_of(struct slice parameter) {
    const char *equals = memchr(parameter.base, '=', parameter.length);
    return equals == NULL ? parameter
                          : slice_make(parameter.base, (size_t)(equals - parameter.base));
}

/* If there are more parameters than there is room for, the last one holds all the rest. It is too
 * long for the name in any rule. */
static void filter_strip_split(struct strip *strip, struct slice query) {
    while (query.length > 0 && strip->count < PARAMETERS_MAX) {
        const char *end = memchr(query.base, '&', query.length);
        size_t length = end == NULL || strip->count + 1 == PARAMETERS_MAX
                            ? query.length
                            : (size_t)(end - query.base);
        strip->parameters[strip->count++] = slice_make(query.base, length);
        size_t used = length < query.length ? length + 1 : length;
        query = slice_make(query.base + used, query.length - used);
    }
}

static bool regex_names(struct strip *strip, const struct regex *regex, struct slice parameter) {
    enum { BYTES_A_STEP = 4, STEPS_MORE = 1 << 15 };
    char lower[FILTER_URL_MAX];
    bool gave_up;
    if (!filter_request_work(strip->request, parameter.length / BYTES_A_STEP))
        return false;
    for (size_t i = 0; i < parameter.length; i++)
        lower[i] = (char)ascii_lower((unsigned char)parameter.base[i]);
    bool named = regex_matches(regex, parameter, lower, &gave_up);
    if (gave_up)
        filter_request_work(strip->request, STEPS_MORE);
    return named;
}

static bool names_parameter(struct strip *strip, const struct rule *rule, struct slice parameter) {
    const struct rule_extra *extra = rule->extra;
    bool named = extra->param_regex != NULL
                     ? regex_names(strip, extra->param_regex, parameter)
                     : extra->value.length == 0 ||
                           slice_equal(filter_strip_name_of(parameter), extra->value);
    return named != extra->value_inverse;
}

static bool cancels(void *arg, const struct rule *exception) {
    const struct rule *rule = arg;
    return exception->extra->value.length == 0 ||
           (slice_equal(exception->extra->value, rule->extra->value) &&
            exception->extra->value_inverse == rule->extra->value_inverse);
}

static bool filter_strip_apply(void *arg, const struct rule *rule) {
    struct strip *strip = arg;
    bool any = false;
    if (!filter_request_work(strip->request, strip->count))
        return true;
    for (unsigned i = 0; i < strip->count; i++)
        any |= !strip->removed[i] && names_parameter(strip, rule, strip->parameters[i]);
    if (!any || filter_search(strip->filter, FILTER_CLASS_STRIP_EXCEPTIONS, strip->request, NULL,
                              cancels, (void *)rule))
        return false;
    for (unsigned i = 0; i < strip->count; i++)
        strip->removed[i] |= names_parameter(strip, rule, strip->parameters[i]);
    if (strip->first == NULL)
        strip->first = rule;
    return false;
}

/* Writes the parameters that are left behind the `length` bytes of the URL that are there
 * already. */
static size_t filter_strip_join(const struct strip *strip, char *out, size_t length) {
    char separator = '?';
    for (unsigned i = 0; i < strip->count; i++) {
        if (strip->removed[i])
            continue;
        out[length++] = separator;
        memcpy(out + length, strip->parameters[i].base, strip->parameters[i].length);
        length += strip->parameters[i].length;
        separator = '&';
    }
    return length;
}

size_t filter_strip(const struct filter *filter, struct filter_request *request, char *out,
                    size_t capacity, struct slice *rule) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    struct slice url = request->url;
    const char *question = memchr(url.base, '?', url.length);
    if (filter->classes[FILTER_CLASS_STRIPS].count == 0 || question == NULL ||
        capacity < url.length)
        return 0;
    struct strip strip = {.filter = filter, .request = request};
    size_t before = (size_t)(question - url.base);
    filter_strip_split(&strip, slice_make(question + 1, url.length - before - 1));
    filter_search(filter, FILTER_CLASS_STRIPS, request, NULL, filter_strip_apply, &strip);
    if (strip.first == NULL || request->work_left == 0)
        return 0;
    memcpy(out, url.base, before);
    *rule = slice_make(strip.first->line, strip.first->line_length);
    return filter_strip_join(&strip, out, before);
}
