#include "match/record_filter.h"

#include "base/assert.h"
#include "base/failure.h"
#include "http/url.h"

#include <stdatomic.h>
#include <stdio.h>

const char *const record_filter_names[] = {
    "service", "point", "host", "prefix", "regex", "verdict", "status", "sample", NULL,
};

static bool record_filter_refuse(char *error, const char *name, const char *text) {
    return failure(error, RECORD_FILTER_ERROR, "%s: %s", name, text);
}

static bool set_text(char **place, const char *value) {
    free(*place);
    *place = xstrdup(value);
    return true;
}

static bool record_filter_set_number(uint64_t *place, const char *name, const char *value,
                                     char *error) {
    if (slice_to_uint64(slice_from(value), place) && *place > 0)
        return true;
    return record_filter_refuse(error, name, "must be a number above 0");
}

static bool set_regex(struct record_filter *filter, const char *value, char *error) {
    char reason[200];
    if (!regex_check(value, reason, sizeof reason))
        return record_filter_refuse(error, "regex", reason);
    if (filter->regex != NULL)
        regexes_release(&filter->regexes);
    set_text(&filter->regex, value);
    regexes_compile(&filter->regexes, (char *[]){filter->regex, NULL});
    return true;
}

static bool record_filter_is_one_of(const char *value, const char *const *names) {
    for (; *names != NULL; names++)
        if (strcmp(value, *names) == 0)
            return true;
    return false;
}

bool record_filter_set(struct record_filter *filter, const char *name, const char *value,
                       char error[RECORD_FILTER_ERROR]) {
    static const char *const points[] = {"reqmod_precache", "reqmod_postcache", "respmod_precache",
                                         "respmod_postcache", NULL};
    static const char *const verdicts[] = {"unmodified", "modified",  "partial", "satisfied",
                                           "failed",     "abandoned", NULL};
    if (strcmp(name, "service") == 0)
        return set_text(&filter->service, value);
    if (strcmp(name, "point") == 0)
        return record_filter_is_one_of(value, points)
                   ? set_text(&filter->point, value)
                   : record_filter_refuse(error, name,
                                          "must be reqmod_precache, reqmod_postcache, "
                                          "respmod_precache or respmod_postcache");
    if (strcmp(name, "host") == 0)
        return set_text(&filter->host, value);
    if (strcmp(name, "prefix") == 0)
        return set_text(&filter->prefix, value);
    if (strcmp(name, "regex") == 0)
        return set_regex(filter, value, error);
    if (strcmp(name, "status") == 0)
        return record_filter_set_number(&filter->status, name, value, error);
    if (strcmp(name, "sample") == 0)
        return record_filter_set_number(&filter->sample, name, value, error);
    if (strcmp(name, "verdict") != 0)
        return record_filter_refuse(error, name,
                                    "is not a filter; the filters are service, point, host, "
                                    "prefix, regex, verdict, status and sample");
    return record_filter_is_one_of(value, verdicts)
               ? set_text(&filter->verdict, value)
               : record_filter_refuse(error, name,
                                      "must be unmodified, modified, partial, satisfied, failed or "
                                      "abandoned");
}

static bool fits_text(const char *wanted, struct slice text) {
    return wanted == NULL || slice_equal(slice_from(wanted), text);
}

static bool record_filter_has_host(const char *host, struct slice text) {
    struct url url;
    return host == NULL ||
           (url_parse(&url, text) && slice_equal_nocase(url.host, slice_from(host)));
}

bool record_filter_fits(struct record_filter *filter, const struct recorded_exchange *recorded) {
    return fits_text(filter->service, recorded->service) &&
           fits_text(filter->point, recorded->point) &&
           (filter->status == 0 || filter->status == recorded->status) &&
           (filter->prefix == NULL ||
            slice_starts_with(recorded->url, slice_from(filter->prefix))) &&
           record_filter_has_host(filter->host, recorded->url) &&
           (filter->regex == NULL || regexes_find(&filter->regexes, recorded->url));
}

bool record_filter_takes(struct record_filter *filter) {
    return filter->sample <= 1 || atomic_fetch_add(&filter->seen, 1) % filter->sample == 0;
}

bool record_filter_fits_verdict(const struct record_filter *filter,
                                const struct recorded_exchange *recorded) {
    return fits_text(filter->verdict, recorded->verdict);
}

void record_filter_release(struct record_filter *filter) {
    if (filter->regex != NULL)
        regexes_release(&filter->regexes);
    free(filter->service);
    free(filter->point);
    free(filter->host);
    free(filter->prefix);
    free(filter->regex);
    free(filter->verdict);
    *filter = (struct record_filter){0};
}
