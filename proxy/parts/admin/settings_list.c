#include "admin/settings_list.h"

#include "admin/option_path.h"
#include "admin/overrides.h"
#include "admin/settings.h"
#include "admin/settings_change.h"
#include "admin/settings_plan.h"
#include "base/assert.h"
#include "config/shown.h"
#include "settings/part_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A walk over all options of a snapshot. */
struct listing {
    const struct settings *settings;
    struct document *document;
    struct document *start; /* of settings->start; NULL: there is none */
    const char *wanted;     /* NULL: all */
    json_t *list;
    json_t *secrets; /* {name: texts} of what is not shown, to compare them; NULL: not asked for */
};

static bool list_wants(const struct listing *listing, const char *name) {
    size_t length = listing->wanted == NULL ? 0 : strlen(listing->wanted);
    return listing->wanted == NULL ||
           (strncmp(name, listing->wanted, length) == 0 && strchr(".#", name[length]) != NULL);
}

static json_t *place_to_json(const struct listing *listing, const struct document_value *value) {
    if (value == NULL)
        return json_string("default");
    const char *file = document_file(listing->document, value->line);
    int line = document_line(value->line);
    json_t *place = line > 0 ? json_sprintf("%s:%d", file, line) : json_string(file);
    return place != NULL ? place : json_string("?"); /* the path is not UTF-8 */
}

/* The caller frees the array, not the texts. */
static char **texts_of(const struct document_section *section, const struct option *option) {
    size_t count = 0;
    char **texts = xcalloc(section->value_count + 1, sizeof *texts);
    for (size_t i = 0; i < section->value_count; i++)
        if (section->values[i].option == option)
            texts[count++] = section->values[i].text;
    return texts;
}

/* `settings` and `document`: of one snapshot. A section without a title is in the snapshot itself,
 * where defaults are resolved. */
static json_t *value_in(const struct settings *settings, const struct document_section *section,
                        const struct option *option) {
    if (section == NULL || section->kind->title == NULL)
        return value_to_json(option, settings_home(settings, option));
    bool set = document_value(section, option->name) != NULL;
    char **texts = set ? texts_of(section, option) : NULL;
    json_t *value = value_text_to_json(option, texts);
    free(texts);
    return value;
}

/* What a restart would make of an option that only a start applies. */
static json_t *value_at_restart(const struct listing *listing,
                                const struct document_section *section,
                                const struct option *option) {
    bool workers = option->section[0] == '\0' && strcmp(option->name, "workers") == 0;
    return workers ? json_integer(listing->settings->configured_workers)
                   : value_in(listing->settings, section, option);
}

static const struct document_section *same_section(const struct document *document,
                                                   const struct document_section *section) {
    DOCUMENT_FOR_EACH_SECTION (other, document, section->kind->name)
        if (strcmp(other->title, section->title) == 0)
            return other;
    return NULL;
}

/* The value of the start. Null: it had no such section. */
static json_t *value_at_start(const struct listing *listing, const struct document_section *section,
                              const struct option *option) {
    if (section == NULL || section->kind->title == NULL)
        return value_to_json(option, settings_home(listing->settings->start, option));
    section = same_section(listing->start, section);
    return section == NULL ? json_null() : value_in(listing->settings->start, section, option);
}

/* Adds the value in use, and the one of the next start where that is another. */
static void list_value(const struct listing *listing, json_t *json,
                       const struct document_section *section, const struct option *option) {
    if (listing->start == NULL || !option_waits_for_start(option)) {
        json_object_set_new(json, "value", value_in(listing->settings, section, option));
        return;
    }
    json_t *now = value_at_start(listing, section, option);
    json_t *next = value_at_restart(listing, section, option);
    json_object_set_new(json, "value", now);
    if (!json_equal(now, next))
        json_object_set(json, "waits", next);
    json_decref(next);
}

/* Never part of an answer. */
static void note_secret(const struct listing *listing, const char *name,
                        const struct document_section *section, const struct option *option) {
    bool hidden = false;
    if (listing->secrets == NULL || section == NULL)
        return;
    json_t *texts = json_array();
    for (size_t i = 0; i < section->value_count; i++) {
        const struct document_value *value = &section->values[i];
        if (value->option == option) {
            hidden = hidden || shown_hides(option, value->text);
            json_array_append_new(texts, json_string(value->text));
        }
    }
    if (hidden)
        json_object_set(listing->secrets, name, texts);
    json_decref(texts);
}

/* The element that the key of the path names; NULL: there is none. */
static const struct document_value *named_element(const struct document_section *section,
                                                  const struct option_path *path) {
    size_t length = strlen(path->key);
    for (size_t i = 0; section != NULL && i < section->value_count; i++) {
        const char *text = section->values[i].text;
        if (section->values[i].option == path->option && strncmp(text, path->key, length) == 0 &&
            (text[length] == ' ' || text[length] == '\0'))
            return &section->values[i];
    }
    return NULL;
}

/* What stands behind the key. */
static json_t *element_to_json(const struct document_value *element,
                               const struct option_path *path) {
    if (element == NULL)
        return json_null();
    const char *rest = element->text + strlen(path->key);
    return json_string(rest + (*rest == ' '));
}

static void list_option(struct listing *listing, const struct document_section *section,
                        const struct option_path *path) {
    const struct document_value *value = path->key != NULL
                                             ? named_element(section, path)
                                             : document_value(section, path->option->name);
    char *name = option_path_name(path);
    json_t *shown = json_string(name), *json = json_object();
    json_object_set_new(json, "name", shown != NULL ? shown : json_string("?"));
    if (path->key != NULL)
        json_object_set_new(json, "value", element_to_json(value, path));
    else
        list_value(listing, json, section, path->option);
    json_object_set_new(json, "from", place_to_json(listing, value));
    json_object_set_new(json, "change", json_string(option_change_name(path->option)));
    if (option_waits_for_start(path->option))
        json_object_set_new(json, "at_start", json_true());
    json_array_append_new(listing->list, json);
    note_secret(listing, name, section, path->option);
    free(name);
}

static void list_wanted(struct listing *listing, const struct document_section *section,
                        const struct option_path *path) {
    char *name = option_path_name(path);
    if (list_wants(listing, name))
        list_option(listing, section, path);
    free(name);
}

/* `section` NULL: the file does not have it. */
static void list_section(struct listing *listing, const struct option_section *kind,
                         const struct document_section *section, unsigned number) {
    struct option_path path = {.kind = kind, .number = number};
    path.title = section == NULL ? NULL : section->title;
    OPTIONS_FOR_EACH (option, settings_table(), kind->name) {
        path.option = option;
        if (strcmp(option->name, "include") != 0 || kind->name[0] != '\0')
            list_wanted(listing, section, &path);
    }
}

/* The place of the section among those with its title; 0: it is the only one. */
static unsigned number_of(const struct document *document, const struct document_section *section) {
    unsigned number = 0;
    if (option_path_count(document, section->kind, section->title) == 1)
        return 0;
    for (const struct document_section *at = document->sections; at <= section; at++)
        number +=
            at->kind == section->kind && !at->dropped && strcmp(at->title, section->title) == 0;
    return number;
}

static void list_kind(struct listing *listing, const struct option_section *kind) {
    if (kind->title == NULL) {
        list_section(listing, kind, document_section(listing->document, kind->name, NULL), 0);
        return;
    }
    DOCUMENT_FOR_EACH_SECTION (section, listing->document, kind->name)
        list_section(listing, kind, section, number_of(listing->document, section));
}

/* One option, by any of the names that set and unset take. */
static void list_path(struct listing *listing, struct option_path *path) {
    const struct document_section *section =
        document_section(listing->document, path->kind->name, NULL);
    if (path->title != NULL) {
        size_t index = option_path_find(path, listing->document);
        if (index == SIZE_MAX)
            return;
        section = &listing->document->sections[index];
        path->number = number_of(listing->document, section);
    }
    if (path->key == NULL || named_element(section, path) != NULL)
        list_option(listing, section, path);
}

static json_t *settings_list_all(const struct settings *settings, const char *name,
                                 json_t *secrets) {
    char reason[400];
    struct listing listing = {
        .settings = settings,
        .document = settings_document(settings),
        .start = settings->start == NULL ? NULL : settings_document(settings->start),
        .wanted = name,
        .list = json_array(),
        .secrets = secrets,
    };
    struct option_path path;
    bool one = name != NULL && option_path_parse(&path, name, reason, sizeof reason);
    if (one)
        list_path(&listing, &path);
    for (const struct option_section *kind = settings_table()->sections; !one && kind->name != NULL;
         kind++)
        list_kind(&listing, kind);
    if (name != NULL)
        option_path_release(&path);
    document_free(&listing.document);
    document_free(&listing.start);
    return listing.list;
}

json_t *settings_list(const struct settings *settings, const char *name) {
    return settings_list_all(settings, name, NULL);
}

/* Comparing. */

/* {name: its entry in the list} */
static json_t *options_by_name(const struct settings *settings, json_t *secrets) {
    size_t i;
    json_t *option, *list = settings_list_all(settings, NULL, secrets), *named = json_object();
    json_array_foreach(list, i, option)
        json_object_set(named, json_string_value(json_object_get(option, "name")), option);
    json_decref(list);
    return named;
}

/* What the settings say, even if a restart has to apply it. */
static json_t *stated_value(const json_t *option) {
    json_t *waits = json_object_get(option, "waits");
    return waits != NULL ? waits : json_object_get(option, "value");
}

/* Either option may be NULL. */
static bool options_differ(const json_t *old, const json_t *new) {
    json_t *before = stated_value(old), *after = stated_value(new);
    if (before == NULL || after == NULL)
        return !json_is_null(before == NULL ? after : before);
    return !json_equal(before, after);
}

/* What waits for a restart has not changed: `old` is what stays in use until then. */
static void add_difference(json_t *list, const char *name, const json_t *old, const json_t *new) {
    json_t *difference = json_pack("{s:s}", "name", name);
    json_t *now = json_object_get(old != NULL ? old : new, "value"), *waits = NULL;
    bool at_start = json_is_true(json_object_get(old != NULL ? old : new, "at_start"));
    if (!at_start)
        now = json_object_get(old, "value");
    else
        waits =
            json_boolean(new == NULL ? !json_is_null(now) : json_object_get(new, "waits") != NULL);
    json_t *next = stated_value(new);
    json_object_set_new(difference, "old", now == NULL ? json_null() : json_incref(now));
    json_object_set_new(difference, "new", next == NULL ? json_null() : json_incref(next));
    if (waits != NULL)
        json_object_set_new(difference, "waits", waits);
    json_array_append_new(list, difference);
}

json_t *settings_differences(const struct settings *before, const struct settings *after) {
    json_t *old_secrets = json_object(), *new_secrets = json_object(), *list = json_array();
    json_t *olds = options_by_name(before, old_secrets);
    json_t *news = options_by_name(after, new_secrets);
    const char *name;
    json_t *option;
    json_object_foreach(news, name, option) {
        const json_t *old = json_object_get(olds, name);
        const json_t *secret = json_object_get(new_secrets, name);
        if (options_differ(old, option) ||
            (secret != NULL && !json_equal(json_object_get(old_secrets, name), secret)))
            add_difference(list, name, old, option);
    }
    json_object_foreach(olds, name, option) {
        if (json_object_get(news, name) == NULL && options_differ(option, NULL))
            add_difference(list, name, option, NULL);
    }
    json_decref(old_secrets);
    json_decref(new_secrets);
    json_decref(olds);
    json_decref(news);
    return list;
}

/* What was changed at run time. */

/* NULL: it is none of these. The caller frees it. */
static char *override_text_of(const json_t *value) {
    char number[64];
    switch (json_typeof(value)) {
    case JSON_STRING: return xstrdup(json_string_value(value));
    case JSON_TRUE: return xstrdup("true");
    case JSON_FALSE: return xstrdup("false");
    case JSON_INTEGER:
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return xstrdup(number);
    case JSON_REAL:
        snprintf(number, sizeof number, "%.10g", json_real_value(value));
        return xstrdup(number);
    default: return NULL;
    }
}

bool overrides_put_json(struct overrides *overrides, const char *name, const json_t *json,
                        char *error, size_t error_size) {
    struct override_value value = {.list = json_is_array(json)};
    size_t count = value.list ? json_array_size(json) : json_is_null(json) ? 0 : 1;
    for (size_t i = 0; i < count && i <= OVERRIDE_VALUES; i++)
        override_value_add(&value, override_text_of(value.list ? json_array_get(json, i) : json));
    bool good = overrides_put(overrides, name, &value, 0, error, error_size);
    override_value_release(&value);
    return good;
}

static json_t *override_value_to_json(const struct override *override) {
    if (override->values == NULL)
        return json_null();
    if (override->values[0] != NULL && override->values[1] == NULL)
        return json_string(override->values[0]);
    json_t *list = json_array();
    for (char **value = override->values; *value != NULL; value++)
        json_array_append_new(list, json_string(*value));
    return list;
}

json_t *overrides_to_json(const struct overrides *overrides) {
    json_t *values = json_object();
    for (size_t i = 0; i < overrides->count; i++)
        json_object_set_new(values, overrides->list[i].name,
                            override_value_to_json(&overrides->list[i]));
    return values;
}

/* What the files say of an option, without what was changed at run time. */
static json_t *configured_value(const struct settings *settings, const struct override *override) {
    struct option_path path = override_path(override);
    const struct document *files = admin_settings_of(settings)->plan->document;
    size_t index = option_path_find(&path, files);
    const struct document_section *section = index == SIZE_MAX ? NULL : &files->sections[index];
    bool stated = document_value(section, path.option->name) != NULL;
    char **texts = stated ? texts_of(section, path.option) : NULL;
    json_t *value = path.key != NULL ? element_to_json(named_element(section, &path), &path)
                                     : value_text_to_json(path.option, texts);
    free(texts);
    option_path_release(&path);
    return value != NULL ? value : json_null();
}

static json_t *change_to_json(const struct settings *settings, const struct override *override,
                              bool saved) {
    return json_pack("{s:s, s:o, s:o, s:b}", "name", override->name, "value",
                     override_value_to_json(override), "configured",
                     configured_value(settings, override), "saved", (int)saved);
}

json_t *settings_changes(const struct settings *settings) {
    json_t *list = json_array();
    const struct settings_plan *plan = admin_settings_of(settings)->plan;
    for (size_t i = 0; i < plan->saved->count; i++)
        if (overrides_find(plan->changes, plan->saved->list[i].name) == NULL)
            json_array_append_new(list, change_to_json(settings, &plan->saved->list[i], true));
    for (size_t i = 0; i < plan->changes->count; i++)
        json_array_append_new(list, change_to_json(settings, &plan->changes->list[i], false));
    return list;
}

json_t *settings_effective(const struct settings *settings) {
    json_t *root = settings_json(settings), *from = json_object(), *option;
    json_t *list = settings_list(settings, NULL);
    size_t i;
    json_array_foreach(list, i, option) json_object_set(
        from, json_string_value(json_object_get(option, "name")), json_object_get(option, "from"));
    json_object_set_new(root, "from", from);
    json_decref(list);
    return root;
}
