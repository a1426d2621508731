/* URL classes and the policies for them: url_class and policy sections. */
#include "settings/load.h"

#include "base/assert.h"
#include "config/value.h"
#include "match/class_lists.h"

#include <stdlib.h>
#include <string.h>

static bool apply_url_class(struct load *load, const struct document_section *section,
                            struct url_class **url_class) {
    struct url_class_conditions conditions = {0};
    char reason[600];
    if (!load_check_name(load, section))
        return false;
    if (strcmp(section->title, "all") == 0)
        return load_fail(load, section->line,
                         "url_class: \"all\" is built in; choose another name");
    if (section->value_count == 0)
        return load_fail(load, section->line,
                         "url_class \"%s\" has no condition; add one, or use the built-in class "
                         "\"all\" to match everything",
                         section->title);
    bool good = load_values(load, section, "url_class", &conditions);
    if (good) {
        *url_class = url_class_new(section->title, &conditions, reason, sizeof reason);
        good = *url_class != NULL || load_fail(load, section->line, "%s", reason);
    }
    load_release_values("url_class", &conditions);
    return good;
}

static struct url_class *find_class_to_name(void *arg, const char *name) {
    const struct settings *settings = arg;
    for (size_t i = 0; i < settings->url_class_count; i++)
        if (settings->url_classes[i] != NULL &&
            strcmp(url_class_name(settings->url_classes[i]), name) == 0)
            return settings->url_classes[i];
    return NULL;
}

/* The line of the section that defines the class; 0: the class is built in. */
static int line_of_class(const struct load *load, const struct url_class *url_class) {
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "url_class")
        if (strcmp(section->title, url_class_name(url_class)) == 0)
            return section->line;
    return 0;
}

/* Classes may name others that stand behind them, so this comes when all are there. */
static bool link_classes(struct load *load) {
    struct settings *settings = load->settings;
    char reason[700];
    settings->class_lists = class_lists_new(load->without_files);
    const struct url_class_surroundings around = {settings->class_lists, find_class_to_name,
                                                  settings};
    for (size_t i = 0; i < settings->url_class_count; i++)
        if (!url_class_link(settings->url_classes[i], &around, reason, sizeof reason))
            return load_fail(load, line_of_class(load, settings->url_classes[i]), "%s", reason);
    for (size_t i = 0; i < settings->url_class_count; i++)
        if (!url_class_settle(settings->url_classes[i], reason, sizeof reason))
            return load_fail(load, line_of_class(load, settings->url_classes[i]), "%s", reason);
    return true;
}

bool load_url_classes(struct load *load) {
    const struct url_class_conditions none = {0};
    struct settings *settings = load->settings;
    char reason[200];
    size_t i = 0;
    settings->url_class_count = 1 + document_section_count(load->document, "url_class");
    settings->url_classes = xcalloc(settings->url_class_count, sizeof *settings->url_classes);
    settings->url_classes[i++] = url_class_new("all", &none, reason, sizeof reason);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "url_class")
        if (!apply_url_class(load, section, &settings->url_classes[i++]))
            return false;
    return link_classes(load);
}

const struct url_class *settings_class(const struct settings *settings, const char *name) {
    return find_class_to_name((void *)(uintptr_t)settings, name);
}

bool load_section_class(struct load *load, const struct document_section *section,
                        const struct url_class **url_class) {
    *url_class = settings_class(load->settings, section->title);
    return *url_class != NULL ||
           load_fail(
               load, section->line,
               "%s: there is no url_class \"%s\"; add one, correct the name, or use the class "
               "\"all\"",
               section->kind->name, section->title);
}

/* Options that are used before there is a response. */
static bool is_about_requests(const struct option *option) {
    static const char *const names[] = {
        "ignore_client_no_cache", "strip_cookies", "query_drop", "query_keep", "query_sort",
        "query_ignore",           "query_sent"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option->name, names[i]) == 0)
            return true;
    return false;
}

static bool check_policy(struct load *load, const struct document_section *section,
                         const struct policy_settings *policy) {
    bool by_type = (url_class_asks(policy->url_class) & CLASS_ASKS_TYPE) != 0;
    for (size_t i = 0; by_type && i < section->value_count; i++)
        if (is_about_requests(section->values[i].option))
            return load_fail(load, section->values[i].line,
                             "%s can not be set for class %s: its content_type is known only when "
                             "the response arrives",
                             section->values[i].option->name, section->title);
    if (document_value(section, "ttl_min") != NULL && document_value(section, "ttl_max") != NULL &&
        policy->values.ttl_min > policy->values.ttl_max)
        return load_fail(load, load_line_of(section, "ttl_min"), "ttl_min is larger than ttl_max");
    if (policy->values.cache == POLICY_CACHE_ALWAYS && policy->values.override &&
        (url_class_asks(policy->url_class) & CLASS_ASKS_WHO) != 0)
        load_warn(
            load, section->line,
            "policy %s has override, and its class depends on who asks: pages that the origin "
            "makes for these clients, private ones too, are stored and given to all others; "
            "give the policy a class by host or path, or remove override",
            section->title);
    load->settings->policies_by_type = load->settings->policies_by_type || by_type;
    return true;
}

static bool apply_policy(struct load *load, const struct document_section *section,
                         struct policy_settings *policy) {
    if (!load_section_class(load, section, &policy->url_class))
        return false;
    if (section->value_count == 0)
        return load_fail(load, section->line,
                         "policy \"%s\" sets no option; add one, or remove the section",
                         section->title);
    if (!load_values(load, section, "policy", &policy->values))
        return false;
    OPTIONS_FOR_EACH (option, settings_table(), "policy")
        if (document_value(section, option->name) != NULL)
            policy_state(policy, option->at, value_size(option));
    return check_policy(load, section, policy);
}

bool load_policies(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->policy_count = document_section_count(load->document, "policy");
    settings->policies = xcalloc(settings->policy_count + 1, sizeof *settings->policies);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "policy")
        if (!apply_policy(load, section, &settings->policies[i++]))
            return false;
    return true;
}

void release_url_classes(struct settings *settings) {
    for (size_t i = 0; i < settings->url_class_count; i++)
        url_class_free(&settings->url_classes[i]);
    free(settings->url_classes);
    class_lists_free(&settings->class_lists);
}

void release_policies(struct settings *settings) {
    for (size_t i = 0; i < settings->policy_count; i++)
        load_release_values("policy", &settings->policies[i].values);
    free(settings->policies);
}
