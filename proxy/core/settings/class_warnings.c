#include "settings/class_warnings.h"

#include "base/log.h"

#include <string.h>
#include <strings.h>

static const struct document_section *section_of_class(const struct load *load,
                                                       const struct url_class *url_class) {
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "url_class")
        if (strcmp(section->title, url_class_name(url_class)) == 0)
            return section;
    return NULL;
}

static bool names_class(char **names, const char *name) {
    for (; names != NULL && *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Does a section, or another class, name the class? */
static bool is_used(const struct load *load, const char *name) {
    const struct settings *settings = load->settings;
    for (size_t i = 0; i < load->document->section_count; i++) {
        const struct document_section *section = &load->document->sections[i];
        if (section->kind->title != NULL && strcmp(section->kind->title, "CLASS") == 0 &&
            strcmp(section->title, name) == 0)
            return true;
    }
    for (size_t i = 0; i < settings->url_class_count; i++) {
        const struct url_class_conditions *stated = url_class_conditions(settings->url_classes[i]);
        if (names_class(stated->nots, name) || names_class(stated->any_ofs, name))
            return true;
    }
    return false;
}

static bool is_listener(const struct settings *settings, const char *name) {
    for (size_t i = 0; i < settings->listen_count; i++)
        if (strcasecmp(settings->listens[i].name, name) == 0)
            return true;
    return false;
}

static void warn_about_listeners(const struct load *load, const struct document_section *section,
                                 const struct url_class *url_class) {
    char **names = url_class_conditions(url_class)->listeners;
    for (; names != NULL && *names != NULL; names++)
        if (!is_listener(load->settings, *names))
            load_warn(load, section->line,
                      "url_class %s: no listener has the name \"%s\"; listen.name sets it",
                      section->title, *names);
}

void class_warnings(const struct load *load) {
    for (size_t i = 0; i < load->settings->url_class_count; i++) {
        const struct url_class *url_class = load->settings->url_classes[i];
        const struct document_section *section = section_of_class(load, url_class);
        const char *reason = url_class_contradiction(url_class);
        if (section == NULL)
            continue;
        if (reason != NULL)
            load_warn(load, section->line, "url_class %s can never match: %s", section->title,
                      reason);
        warn_about_listeners(load, section, url_class);
        if (!is_used(load, section->title))
            load_tell(load, section->line, "no section uses url_class %s", section->title);
    }
}

void class_warnings_shadowed(const struct load *load, enum rule_kind kind,
                             bool (*ends)(const struct settings *settings, size_t at)) {
    const struct settings *settings = load->settings;
    const struct document_section *last = NULL; /* matches every request */
    size_t at = 0;
    DOCUMENT_FOR_EACH_SECTION (section, load->document, rule_kind_name(kind)) {
        const struct url_class *url_class = rule_kind_class(settings, kind, at);
        if (last != NULL)
            load_warn(load, section->line,
                      "%s %s is never reached: %s %s in line %d matches every request",
                      section->kind->name, section->title, last->kind->name, last->title,
                      document_line(last->line));
        if (last == NULL && url_class_is_for_all(url_class) && (ends == NULL || ends(settings, at)))
            last = section;
        at++;
    }
}
