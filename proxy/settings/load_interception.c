/* Interception: intercept and interception sections. */
#include "settings/load.h"

#include "base/assert.h"

#include <stdlib.h>

static bool apply_intercept(struct load *load, const struct document_section *section,
                            struct intercept_settings *intercept) {
    if (!load_section_class(load, section, &intercept->url_class))
        return false;
    const char *unknown = url_class_unknown_of_connection(intercept->url_class);
    if (unknown != NULL)
        return load_fail(
            load, section->line,
            "intercept: class %s has a %s, which is not known of a connection; use "
            "host, domain, sni, port, url_regex, client, user, group, listener, certificate or "
            "time",
            section->title, unknown);
    return load_values(load, section, "intercept", intercept);
}

static bool load_intercept_sections(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->intercept_count = document_section_count(load->document, "intercept");
    settings->intercepts = xcalloc(settings->intercept_count + 1, sizeof *settings->intercepts);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "intercept")
        if (!apply_intercept(load, section, &settings->intercepts[i++]))
            return false;
    return true;
}

bool load_interception(struct load *load) {
    struct settings *settings = load->settings;
    if (!load_values(load, document_section(load->document, "interception", NULL), "interception",
                     settings) ||
        !load_intercept_sections(load))
        return false;
    settings->intercept_rules = rules_new();
    for (size_t i = 0; i < settings->intercept_count; i++)
        rules_add(settings->intercept_rules, settings->intercepts[i].url_class);
    rules_seal(settings->intercept_rules);
    return true;
}

void release_interception(struct settings *settings) {
    rules_free(&settings->intercept_rules);
    free(settings->intercepts);
}
