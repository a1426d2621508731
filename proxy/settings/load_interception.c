/* Interception: intercept and interception sections. */
#include "settings/load.h"

#include "base/assert.h"

#include <stdlib.h>

static bool apply_intercept(struct load *load, const struct document_section *section,
                            struct intercept_settings *intercept) {
    intercept->url_class = load_find_class(load->settings, section->title);
    if (intercept->url_class == NULL)
        return load_fail(load, section->line,
                         "intercept: there is no url_class \"%s\"; add one, correct the name, or "
                         "use the class \"all\"",
                         section->title);
    const struct url_class_conditions *conditions = url_class_conditions(intercept->url_class);
    if (conditions->content_types != NULL || conditions->path_regexes != NULL)
        return load_fail(load, section->line,
                         "intercept: class %s has a path_regex or a content_type, but of a "
                         "connection only the server's name and the client are known; use host, "
                         "domain, url_regex or client",
                         section->title);
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
