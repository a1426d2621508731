#include "settings/settings_list.h"

#include "base/assert.h"
#include "settings/option_path.h"
#include "settings/overrides.h"
#include "settings/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A walk over all options of a snapshot. */
struct listing {
    const struct settings *settings;
    struct document *document;
    const char *wanted; /* NULL: all */
    json_t *list;
};

static bool list_wants(const struct listing *listing, const char *name) {
    size_t length = listing->wanted == NULL ? 0 : strlen(listing->wanted);
    return listing->wanted == NULL || (strncmp(name, listing->wanted, length) == 0 &&
                                       (name[length] == '\0' || name[length] == '.'));
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

/* A section without a title is in the snapshot itself, where defaults are resolved. What waits for
 * a restart is not there yet. */
static json_t *list_value(const struct listing *listing, const struct document_section *section,
                          const struct option *option) {
    bool set = document_value(section, option->name) != NULL;
    bool waits = set && option_change_of(option) == OPTION_AT_START;
    if (section == NULL || (section->kind->title == NULL && !waits))
        return value_to_json(option, listing->settings);
    char **texts = set ? texts_of(section, option) : NULL;
    json_t *value = value_text_to_json(option, texts);
    free(texts);
    return value;
}

static void list_option(struct listing *listing, const struct document_section *section,
                        const struct option_path *path) {
    char *name = option_path_name(path);
    if (list_wants(listing, name)) {
        const struct document_value *value = document_value(section, path->option->name);
        json_t *shown = json_string(name);
        json_t *json = json_object();
        json_object_set_new(json, "name", shown != NULL ? shown : json_string("?"));
        json_object_set_new(json, "value", list_value(listing, section, path->option));
        json_object_set_new(json, "from", place_to_json(listing, value));
        json_object_set_new(json, "change", json_string(option_change_name(path->option)));
        json_array_append_new(listing->list, json);
    }
    free(name);
}

/* `section` NULL: the file does not have it. */
static void list_section(struct listing *listing, const struct option_section *kind,
                         const struct document_section *section, unsigned number) {
    struct option_path path = {.kind = kind, .number = number};
    path.title = section == NULL ? NULL : section->title;
    OPTIONS_FOR_EACH (option, kind->name) {
        path.option = option;
        if (strcmp(option->name, "include") != 0 || kind->name[0] != '\0')
            list_option(listing, section, &path);
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

json_t *settings_list(const struct settings *settings, const char *name) {
    struct listing listing = {
        .settings = settings,
        .document = settings_document(settings),
        .wanted = name,
        .list = json_array(),
    };
    for (const struct option_section *kind = option_sections; kind->name != NULL; kind++)
        list_kind(&listing, kind);
    document_free(&listing.document);
    return listing.list;
}

/* Comparing. */

/* {name: value} */
static json_t *values_by_name(const struct settings *settings) {
    size_t i;
    json_t *option, *list = settings_list(settings, NULL), *values = json_object();
    json_array_foreach(list, i, option)
        json_object_set(values, json_string_value(json_object_get(option, "name")),
                        json_object_get(option, "value"));
    json_decref(list);
    return values;
}

static void add_difference(json_t *list, const char *name, json_t *old, json_t *new) {
    json_t *difference = json_pack("{s:s}", "name", name);
    json_object_set_new(difference, "old", old == NULL ? json_null() : json_incref(old));
    json_object_set_new(difference, "new", new == NULL ? json_null() : json_incref(new));
    json_array_append_new(list, difference);
}

json_t *settings_differences(const struct settings *before, const struct settings *after) {
    json_t *olds = values_by_name(before), *news = values_by_name(after), *list = json_array();
    const char *name;
    json_t *value;
    json_object_foreach(news, name, value) {
        json_t *old = json_object_get(olds, name);
        if (!json_equal(old, value) && !(old == NULL && json_is_null(value)))
            add_difference(list, name, old, value);
    }
    json_object_foreach(olds, name, value) {
        if (json_object_get(news, name) == NULL && !json_is_null(value))
            add_difference(list, name, value, NULL);
    }
    json_decref(olds);
    json_decref(news);
    return list;
}

/* What stands behind the key in its element of the list. */
static json_t *configured_element(const struct document_section *section,
                                  const struct option_path *path) {
    size_t length = strlen(path->key);
    for (size_t i = 0; section != NULL && i < section->value_count; i++) {
        const char *text = section->values[i].text;
        if (section->values[i].option != path->option || strncmp(text, path->key, length) != 0 ||
            (text[length] != ' ' && text[length] != '\0'))
            continue;
        return json_string(text + length + (text[length] == ' '));
    }
    return json_null();
}

/* What the files say of an option, without what was changed at run time. */
static json_t *configured_value(const struct settings *settings, const struct override *override) {
    char error[400];
    struct option_path path;
    json_t *value = NULL;
    if (option_path_parse(&path, override->name, error, sizeof error)) {
        size_t index = option_path_find(&path, settings->document);
        const struct document_section *section =
            index == SIZE_MAX ? NULL : &settings->document->sections[index];
        bool stated = document_value(section, path.option->name) != NULL;
        char **texts = stated ? texts_of(section, path.option) : NULL;
        value = path.key != NULL ? configured_element(section, &path)
                                 : value_text_to_json(path.option, texts);
        free(texts);
    }
    option_path_release(&path);
    return value != NULL ? value : json_null();
}

static json_t *change_to_json(const struct settings *settings, const struct override *override,
                              bool saved) {
    json_t *values = json_null();
    if (override->values != NULL && override->values[0] != NULL && override->values[1] == NULL) {
        values = json_string(override->values[0]);
    } else if (override->values != NULL) {
        values = json_array();
        for (char **value = override->values; *value != NULL; value++)
            json_array_append_new(values, json_string(*value));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "name", override->name, "value", values, "configured",
                     configured_value(settings, override), "saved", (int)saved);
}

json_t *settings_changes(const struct settings *settings) {
    json_t *list = json_array();
    for (size_t i = 0; i < settings->saved->count; i++)
        if (overrides_find(settings->changes, settings->saved->list[i].name) == NULL)
            json_array_append_new(list, change_to_json(settings, &settings->saved->list[i], true));
    for (size_t i = 0; i < settings->changes->count; i++)
        json_array_append_new(list, change_to_json(settings, &settings->changes->list[i], false));
    return list;
}

json_t *settings_effective(const struct settings *settings) {
    char *text = settings_to_json(settings);
    json_t *root = json_loads(text, 0, NULL), *from = json_object(), *option;
    json_t *list = settings_list(settings, NULL);
    size_t i;
    free(text);
    json_array_foreach(list, i, option) json_object_set(
        from, json_string_value(json_object_get(option, "name")), json_object_get(option, "from"));
    json_object_set_new(root, "from", from);
    json_decref(list);
    return root;
}
