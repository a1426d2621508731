/* URL classes and the policies for them: url_class and policy sections. */
#include "settings/load.h"

#include "base/assert.h"
#include "settings/value.h"

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
    return true;
}

const struct url_class *load_find_class(const struct settings *settings, const char *name) {
    for (size_t i = 0; i < settings->url_class_count; i++)
        if (strcmp(url_class_name(settings->url_classes[i]), name) == 0)
            return settings->url_classes[i];
    return NULL;
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
    bool by_type = url_class_conditions(policy->url_class)->content_types != NULL;
    for (size_t i = 0; by_type && i < section->value_count; i++)
        if (is_about_requests(section->values[i].option))
            return load_fail(load, section->values[i].line,
                             "%s can not be set for class %s: its content_type is known only when "
                             "the response arrives",
                             section->values[i].option->name, section->title);
    if (document_value(section, "ttl_min") != NULL && document_value(section, "ttl_max") != NULL &&
        policy->values.ttl_min > policy->values.ttl_max)
        return load_fail(load, load_line_of(section, "ttl_min"), "ttl_min is larger than ttl_max");
    load->settings->policies_by_type = load->settings->policies_by_type || by_type;
    return true;
}

static bool apply_policy(struct load *load, const struct document_section *section,
                         struct policy_settings *policy) {
    policy->url_class = load_find_class(load->settings, section->title);
    if (policy->url_class == NULL)
        return load_fail(load, section->line,
                         "policy: there is no url_class \"%s\"; add one, correct the name, or use "
                         "the class \"all\"",
                         section->title);
    if (section->value_count == 0)
        return load_fail(load, section->line,
                         "policy \"%s\" sets no option; add one, or remove the section",
                         section->title);
    if (!load_values(load, section, "policy", &policy->values))
        return false;
    OPTIONS_FOR_EACH (option, "policy")
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
}

void release_policies(struct settings *settings) {
    for (size_t i = 0; i < settings->policy_count; i++)
        load_release_values("policy", &settings->policies[i].values);
    free(settings->policies);
}
