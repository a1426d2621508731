/* Limits: limit sections and the section limits. */
#include "settings/load.h"

#include "base/assert.h"
#include "base/failure.h"
#include "settings/options.h"

#include <stdlib.h>
#include <string.h>

bool limit_parse_rate(const char *text, unsigned *units, unsigned *seconds) {
    static const struct {
        const char *name;
        unsigned seconds;
    } times[] = {{"/s", 1}, {"/min", 60}, {"/h", 3600}};
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    unsigned long number = strtoul(text, &end, 10);
    if (number == 0 || number > 1000000)
        return false;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (strcmp(end, times[i].name) == 0) {
            *units = (unsigned)number;
            *seconds = times[i].seconds;
            return true;
        }
    return false;
}

bool option_check_rate(const char *text, char *error, size_t error_size) {
    unsigned units, seconds;
    if (limit_parse_rate(text, &units, &seconds))
        return true;
    return failure(
        error, error_size,
        "is not a number of requests in a time: write \"10/s\", \"600/min\" or \"5000/h\", "
        "with a number from 1 to 1000000");
}

/* The same section has the same name after a reload, and no other section has it. */
static char *limit_name(const struct settings *settings, const struct limit_settings *limit) {
    static const char *const ways[] = {"by client", "by user", "by class"};
    char name[200];
    unsigned before = 0;
    for (const struct limit_settings *other = settings->limits; other < limit; other++)
        before += other->url_class == limit->url_class && other->by == limit->by;
    int length =
        snprintf(name, sizeof name, "%s %s", url_class_name(limit->url_class), ways[limit->by]);
    if (before > 0)
        snprintf(name + length, sizeof name - (size_t)length, " (%u)", before + 1);
    return xstrdup(name);
}

static void limit_set_demand(struct limit_settings *limit) {
    unsigned units, seconds;
    limit->demand.most_active = limit->concurrent;
    if (limit->requests != NULL && limit_parse_rate(limit->requests, &units, &seconds)) {
        if (limit->burst == 0)
            limit->burst = units;
        limit->demand.rate = bucket_rate_of(units, seconds, limit->burst);
    }
    limit->counts = limit->requests != NULL || limit->concurrent > 0 || limit->connections > 0 ||
                    limit->bandwidth > 0 || limit->upload_bandwidth > 0;
}

static bool check_limit(struct load *load, const struct document_section *section,
                        const struct limit_settings *limit) {
    if ((url_class_asks(limit->url_class) & CLASS_ASKS_TYPE) != 0)
        return load_fail(load, section->line,
                         "limit: class \"%s\" has a content_type, but a request is counted before "
                         "there is a response: use a class without it",
                         section->title);
    if (!limit->counts && limit->max_request == 0 && limit->max_response == 0)
        return load_fail(load, section->line,
                         "limit \"%s\" limits nothing; write, for example: requests = \"10/s\"",
                         section->title);
    if (limit->burst > 0 && limit->requests == NULL)
        return load_fail(load, load_line_of(section, "burst"),
                         "burst: the section limits no rate of requests; add: requests = \"10/s\"");
    return true;
}

static bool any_trusted_proxy(const struct settings *settings) {
    for (size_t i = 0; i < settings->listen_count; i++)
        if (settings->listens[i].trusted_proxy_count > 0)
            return true;
    return false;
}

static void limit_tell(const struct load *load, const struct document_section *section,
                       const struct limit_settings *limit) {
    if (limit->connections > 0 && limit->by != LIMIT_BY_CLASS && any_trusted_proxy(load->settings))
        load_tell(load, load_line_of(section, "connections"),
                  "limit %s: connections of trusted proxies (listen.trusted_proxies) are not "
                  "counted for clients or users; concurrent counts their requests",
                  section->title);
}

static bool apply_limit(struct load *load, const struct document_section *section,
                        struct limit_settings *limit) {
    if (!load_section_class(load, section, &limit->url_class) ||
        !load_values(load, section, "limit", limit))
        return false;
    limit_set_demand(limit);
    limit->name = limit_name(load->settings, limit);
    limit_tell(load, section, limit);
    return check_limit(load, section, limit);
}

bool load_limits(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    if (!load_values(load, document_section(load->document, "limits", NULL), "limits", settings))
        return false;
    settings->limit_count = document_section_count(load->document, "limit");
    settings->limits = xcalloc(settings->limit_count + 1, sizeof *settings->limits);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "limit")
        if (!apply_limit(load, section, &settings->limits[i++]))
            return false;
    return true;
}

void release_limits(struct settings *settings) {
    for (size_t i = 0; i < settings->limit_count; i++) {
        load_release_values("limit", &settings->limits[i]);
        free(settings->limits[i].name);
    }
    free(settings->limits);
}
