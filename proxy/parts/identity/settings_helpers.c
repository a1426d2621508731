/* What authenticator sections say about helpers. */
#include "identity/settings.h"

#include "base/assert.h"
#include "client/identity.h"
#include "service/helper_protocol.h"
#include "settings/load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static bool load_check_pool(struct load *load, const struct document_section *section,
                            const char *option, const char *pool) {
    if (pool == NULL || (pool[0] != '\0' && strlen(pool) < HELPER_POOL_MAX))
        return true;
    return load_fail(load, load_line_of(section, option),
                     "authenticator \"%s\": %s must be the name of a pool in helperd.conf, with at "
                     "most %d bytes",
                     section->title, option, HELPER_POOL_MAX - 1);
}

bool identity_load_helpers(struct load *load, const struct document_section *section,
                           const struct authenticator_settings *settings) {
    if (settings->helper != NULL && (settings->file != NULL || settings->group_file != NULL))
        return load_fail(load, load_line_of(section, "helper"),
                         "authenticator \"%s\" has a helper and a %s; remove one of the two",
                         section->title, settings->file != NULL ? "file" : "group_file");
    if (strlen(settings->helpers) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return load_fail(load, load_line_of(section, "helpers"),
                         "authenticator \"%s\": helpers wants a path of at most %zu bytes",
                         section->title, sizeof((struct sockaddr_un *)0)->sun_path - 1);
    return load_check_pool(load, section, "helper", settings->helper) &&
           load_check_pool(load, section, "group_helper", settings->group_helper);
}

/* Each of them is a question when a user proves himself. */
enum { ASKED_GROUPS_MAX = 128 };

/* Adds a group unless it is there. False: there are too many. */
static bool asked_groups_add(struct authenticator_settings *settings, const char *group) {
    size_t count = 0;
    for (; settings->asked_groups != NULL && settings->asked_groups[count] != NULL; count++)
        if (strcmp(settings->asked_groups[count], group) == 0)
            return true;
    if (count == ASKED_GROUPS_MAX)
        return false;
    settings->asked_groups =
        xrealloc(settings->asked_groups, (count + 2) * sizeof *settings->asked_groups);
    settings->asked_groups[count] = xstrdup(group);
    settings->asked_groups[count + 1] = NULL;
    return true;
}

static bool load_groups_of_class(struct load *load, const struct document_section *section,
                                 const struct document_section *class,
                                 struct authenticator_settings *settings) {
    for (size_t i = 0; i < class->value_count; i++) {
        const struct document_value *value = &class->values[i];
        if (strcmp(value->option->name, "group") != 0)
            continue;
        if (!identity_name_is_good(slice_from(value->text)))
            return load_fail(load, value->line,
                             "the group \"%s\" can't be asked of the group_helper of authenticator "
                             "\"%s\": a name has 1 to %d bytes of UTF-8 without control characters",
                             value->text, section->title, IDENTITY_NAME_MAX);
        if (!asked_groups_add(settings, value->text))
            return load_fail(load, value->line,
                             "classes name more than %d groups, too many to ask the group_helper "
                             "of authenticator \"%s\" for each; name fewer",
                             ASKED_GROUPS_MAX, section->title);
    }
    return true;
}

bool identity_load_groups(struct load *load, const struct document_section *section,
                          struct authenticator_settings *settings) {
    if (settings->group_helper == NULL)
        return true;
    DOCUMENT_FOR_EACH_SECTION (class, load->document, "url_class")
        if (!load_groups_of_class(load, section, class, settings))
            return false;
    return true;
}

void identity_release_groups(struct authenticator_settings *settings) {
    for (char **group = settings->asked_groups; group != NULL && *group != NULL; group++)
        free(*group);
    free(settings->asked_groups);
    settings->asked_groups = NULL;
}

static bool asks_helpers(const struct authenticator_settings *section) {
    return section->helper != NULL || section->group_helper != NULL;
}

/* Has a section before this one named the socket? */
static bool helpers_are_named(const struct identity_settings *mine, size_t end) {
    const char *path = mine->authenticators[end]->settings.helpers;
    for (size_t i = 0; i < end; i++) {
        const struct authenticator_settings *section = &mine->authenticators[i]->settings;
        if (asks_helpers(section) && strcmp(section->helpers, path) == 0)
            return true;
    }
    return false;
}

void identity_each_helpers(const void *of, helpers_see_fn *see, void *arg) {
    const struct identity_settings *mine = of;
    for (size_t i = 0; i < mine->authenticator_count; i++) {
        const struct authenticator_settings *section = &mine->authenticators[i]->settings;
        if (asks_helpers(section) && !helpers_are_named(mine, i))
            see(arg, &(struct helpers_user){.section = "authenticator",
                                            .title = section->name,
                                            .path = section->helpers,
                                            .loss = "nobody can prove who he is"});
    }
}
