/* Who users are: authenticator and authentication sections. */
#include "settings/load.h"

#include "base/assert.h"
#include "identity/authenticator.h"

#include <stdlib.h>
#include <string.h>

enum { AUTHENTICATORS_MAX = 64 };

/* The options that only some types use. */
static const struct {
    const char *option;
    enum authenticator_type type;
} belongs[] = {
    {"file", AUTHENTICATOR_BASIC},          {"group_file", AUTHENTICATOR_BASIC},
    {"key_file", AUTHENTICATOR_BEARER},     {"issuer", AUTHENTICATOR_BEARER},
    {"audience", AUTHENTICATOR_BEARER},     {"user_claim", AUTHENTICATOR_BEARER},
    {"group_claim", AUTHENTICATOR_BEARER},  {"leeway", AUTHENTICATOR_BEARER},
    {"user", AUTHENTICATOR_CERTIFICATE},    {"helper", AUTHENTICATOR_BASIC},
    {"lower_case", AUTHENTICATOR_BASIC},    {"keytab", AUTHENTICATOR_NEGOTIATE},
    {"principal", AUTHENTICATOR_NEGOTIATE}, {"strip_realm", AUTHENTICATOR_NEGOTIATE},
};

static const char *authenticator_type_name(enum authenticator_type type) {
    return options_find(settings_table(), "authenticator", "type")->words[type];
}

static bool authenticator_check_options(struct load *load, const struct document_section *section,
                                        const struct authenticator_settings *settings) {
    for (size_t i = 0; i < sizeof belongs / sizeof belongs[0]; i++)
        if (belongs[i].type != settings->type && document_value(section, belongs[i].option) != NULL)
            return load_fail(load, load_line_of(section, belongs[i].option),
                             "authenticator \"%s\": %s belongs to type = %s, and this one has "
                             "type = %s; remove one of the two",
                             section->title, belongs[i].option,
                             authenticator_type_name(belongs[i].type),
                             authenticator_type_name(settings->type));
    if (settings->type == AUTHENTICATOR_BASIC && settings->file == NULL && settings->helper == NULL)
        return load_fail(load, section->line,
                         "authenticator \"%s\" has no file; write: file = \"/etc/retort/users\", "
                         "or name a helper",
                         section->title);
    if (!load_identity_helpers(load, section, settings))
        return false;
    if (settings->type == AUTHENTICATOR_BEARER && settings->key_file == NULL)
        return load_fail(load, section->line,
                         "authenticator \"%s\" has no key_file; write: key_file = "
                         "\"/etc/retort/tokens.jwks\"",
                         section->title);
    return true;
}

static void authenticator_release_values(struct authenticator_settings *settings) {
    free(settings->name);
    release_asked_groups(settings);
    load_release_values("authenticator", settings);
}

static bool load_authenticator(struct load *load, const struct document_section *section) {
    struct settings *settings = load->settings;
    struct authenticator_settings values = {.name = xstrdup(section->title)};
    char error[AUTHENTICATOR_ERROR];
    struct authenticator *authenticator = NULL;
    if (load_check_name(load, section) && load_values(load, section, "authenticator", &values) &&
        authenticator_check_options(load, section, &values) &&
        load_asked_groups(load, section, &values)) {
        if (values.realm == NULL)
            values.realm = xstrdup(settings->name);
        authenticator =
            authenticator_new(&values, authenticator_release_values, load->without_files, error);
        if (authenticator == NULL)
            load_fail(load, section->line, "authenticator \"%s\": %s", section->title, error);
    }
    if (authenticator == NULL) {
        authenticator_release_values(&values);
        return false;
    }
    settings->authenticators[settings->authenticator_count++] = authenticator;
    return true;
}

bool load_identity(struct load *load) {
    struct settings *settings = load->settings;
    if (!load_values(load, document_section(load->document, "authentication", NULL),
                     "authentication", settings))
        return false;
    size_t count = document_section_count(load->document, "authenticator");
    settings->authenticators = xcalloc(count + 1, sizeof(struct authenticator *));
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "authenticator") {
        if (settings->authenticator_count == AUTHENTICATORS_MAX)
            return load_fail(load, section->line,
                             "there are more than %d authenticator sections; remove some",
                             AUTHENTICATORS_MAX);
        if (!load_authenticator(load, section))
            return false;
    }
    return true;
}

struct authenticator *load_find_authenticator(const struct settings *settings, const char *name) {
    for (size_t i = 0; i < settings->authenticator_count; i++)
        if (strcmp(settings->authenticators[i]->settings.name, name) == 0)
            return settings->authenticators[i];
    return NULL;
}

void release_identity(struct settings *settings) {
    for (size_t i = 0; i < settings->authenticator_count; i++)
        authenticator_release(&settings->authenticators[i]);
    free(settings->authenticators);
}
