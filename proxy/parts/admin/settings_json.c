/* The JSON of values and of a snapshot. Options are written by the option table; titles are written
 * here. */
#include "admin/settings_list.h"
#include "base/assert.h"
#include "base/units.h"
#include "config/shown.h"
#include "config/value.h"
#include "net/address.h"
#include "part.h"
#include "settings/options.h"
#include "settings/part_settings.h"
#include "settings/settings.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *text_to_json(const struct option *option, const char *text) {
    char *shown = shown_value(option, text);
    json_t *json = json_string(shown);
    free(shown);
    return json;
}

/* A list that is not stated is null: an empty one can't be written in a file. */
static json_t *strings_to_json(const struct option *option, char **strings) {
    if (strings == NULL)
        return json_null();
    json_t *array = json_array();
    for (size_t i = 0; strings[i] != NULL; i++)
        json_array_append_new(array, text_to_json(option, strings[i]));
    return array;
}

static json_t *networks_to_json(const struct option *option, const struct network *networks,
                                size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        char ip[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 8];
        inet_ntop(networks[i].v6 ? AF_INET6 : AF_INET, networks[i].prefix, ip, sizeof ip);
        snprintf(text, sizeof text, "%s/%u", ip, networks[i].bits);
        json_array_append_new(array, json_string(text));
    }
    if (count == 0)
        json_array_append_new(array, json_string(option->elements->empty));
    return array;
}

static json_t *ports_to_json(const uint16_t *ports, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(ports[i]));
    return array;
}

json_t *value_to_json(const struct option *option, const void *source) {
    const void *at = (const char *)source + option->at;
    const size_t *count = (const void *)((const char *)source + option->count_at);
    const char *string;
    char text[UNITS_TEXT];
    switch (option->type) {
    case OPTION_BOOL: return json_boolean(*(const bool *)at);
    case OPTION_COUNT: return json_integer(*(const unsigned *)at);
    case OPTION_INTEGER: return json_integer(*(const int *)at);
    case OPTION_SIZE: units_write_size(text, *(const size_t *)at); break;
    case OPTION_TIME: units_write_time(text, *(const uint64_t *)at); break;
    case OPTION_FLOAT: return json_real(*(const double *)at);
    case OPTION_STRING:
        string = *(char *const *)at;
        return string == NULL ? json_null() : text_to_json(option, string);
    case OPTION_WORD: return json_string(option->words[*(const int *)at]);
    case OPTION_STRINGS: return strings_to_json(option, *(char **const *)at);
    case OPTION_ELEMENTS:
        return option->elements == &option_ports
                   ? ports_to_json(*(uint16_t *const *)at, *count)
                   : networks_to_json(option, *(struct network *const *)at, *count);
    }
    return json_string(text);
}

json_t *value_text_to_json(const struct option *option, char *const *texts) {
    char error[400];
    bool good = texts != NULL || option->fallback != NULL;
    void *lone = value_lone_destination(option);
    if (texts == NULL)
        value_set_fallback(option, lone);
    for (size_t i = 0; good && texts != NULL && texts[i] != NULL; i++)
        good = value_set(option, lone, texts[i], error, sizeof error);
    json_t *json = good ? value_to_json(option, lone) : json_null();
    value_release(option, lone);
    free(lone);
    return json;
}

/* A snapshot. */

static void add_values(json_t *object, const char *section, const void *source) {
    OPTIONS_FOR_EACH (option, settings_table(), section)
        json_object_set_new(object, option->name, value_to_json(option, source));
}

/* Of a section without a title. What only a start applies is that of the start. */
static void add_own_values(json_t *object, const char *section, const struct settings *settings) {
    OPTIONS_FOR_EACH (option, settings_table(), section) {
        bool old = settings->start != NULL && option_waits_for_start(option);
        json_object_set_new(
            object, option->name,
            value_to_json(option, settings_home(old ? settings->start : settings, option)));
    }
}

static void add_files(json_t *root, const struct settings *settings) {
    json_t *files = json_array();
    for (size_t i = 0; settings->files[i] != NULL; i++)
        json_array_append_new(files, json_string(settings->files[i]));
    json_object_set_new(root, "files", files);
}

/* Adds an object to the array of its kind in `parent`. */
static json_t *add_element(json_t *parent, const char *section, const char *title_name,
                           const char *title, const void *source) {
    json_t *element = json_object();
    json_object_set_new(element, title_name, json_string(title));
    if (source != NULL)
        add_values(element, section, source);
    json_array_append_new(json_object_get(parent, section), element);
    return element;
}

static void add_listens(json_t *root, const struct settings *settings) {
    for (size_t i = 0; i < settings->listen_count; i++) {
        char text[ADDRESS_TEXT];
        address_format(&settings->listens[i].address, text);
        add_element(root, "listen", "address", text, &settings->listens[i]);
    }
}

static void add_maps(json_t *root, const struct settings *settings) {
    for (size_t i = 0; i < settings->map_count; i++) {
        const struct map_settings *map = &settings->maps[i];
        json_t *element = add_element(root, "map", "prefix", map->path, map);
        if (map->host != NULL)
            json_object_set_new(element, "prefix",
                                json_sprintf("http://%s%s", map->host, map->path));
    }
}

static void add_origins(json_t *root, const struct settings *settings) {
    for (size_t i = 0; i < settings->origins_group_count; i++)
        add_element(root, "origins", "name", settings->origins_groups[i].name,
                    &settings->origins_groups[i]);
    for (size_t i = 0; i < settings->parent_count; i++)
        add_element(root, "parent", "class", url_class_name(settings->parents[i].url_class),
                    &settings->parents[i]);
}

static void add_services_and_logs(json_t *root, const struct settings *settings) {
    for (size_t i = 0; i < settings->access_log_count; i++)
        add_element(root, "access_log", "path", settings->access_logs[i].path,
                    &settings->access_logs[i]);
    for (size_t i = 0; i < settings->icap_log_count; i++)
        add_element(root, "icap_log", "path", settings->icap_logs[i].path, &settings->icap_logs[i]);
    for (size_t i = 0; i < settings->service_count; i++)
        add_element(root, service_section(&settings->services[i]), "name",
                    settings->services[i].name, &settings->services[i]);
}

/* Conditions that are not stated are left out: null would look like one. */
static void add_url_classes(json_t *root, const struct settings *settings) {
    for (size_t i = 0; i < settings->url_class_count; i++) {
        const struct url_class *url_class = settings->url_classes[i];
        const char *conditions = (const char *)url_class_conditions(url_class);
        json_t *element = add_element(root, "url_class", "name", url_class_name(url_class), NULL);
        OPTIONS_FOR_EACH (option, settings_table(), "url_class")
            if (*(char **const *)(conditions + option->at) != NULL)
                json_object_set_new(element, option->name, value_to_json(option, conditions));
    }
}

static void add_adapts(json_t *root, const struct settings *settings) {
    for (size_t i = 0; i < settings->adapt_count; i++) {
        const struct adapt_settings *adapt = &settings->adapts[i];
        size_t count = adapt->service_count + adapt->disabled_count + adapt->unloaded_count;
        struct adapt_names names = {.services = xcalloc(count + 1, sizeof(char *))};
        for (size_t j = 0; j < count; j++)
            names.services[j] = adapt->services[j]->name;
        if (adapt->disabled_count > 0) {
            names.disabled = xcalloc(adapt->disabled_count + 1, sizeof(char *));
            memcpy(names.disabled, names.services + adapt->service_count,
                   adapt->disabled_count * sizeof(char *));
        }
        add_element(root, "adapt", "class", url_class_name(adapt->url_class), &names);
        free(names.disabled);
        free(names.services);
    }
}

/* Writes only options that the policy sets: another policy may set the rest. */
static void add_policies(json_t *root, const struct settings *settings) {
    for (size_t i = 0; i < settings->policy_count; i++) {
        const struct policy_settings *policy = &settings->policies[i];
        json_t *element =
            add_element(root, "policy", "class", url_class_name(policy->url_class), NULL);
        OPTIONS_FOR_EACH (option, settings_table(), "policy")
            for (unsigned j = 0; j < policy->stated_count; j++)
                if (policy->stated[j].at == option->at)
                    json_object_set_new(element, option->name,
                                        value_to_json(option, &policy->values));
    }
}

static void add_place(json_t *root, const struct section_place *place, const char *mine) {
    const char *list = *(const char *const *)(mine + place->list_at);
    const size_t count = *(const size_t *)(mine + place->count_at);
    const char *outer = options_find_section(settings_table(), place->section)->parent;
    json_t *parent = outer != NULL ? json_object_get(root, outer) : root;
    const char *title_name = place->of_class             ? "class"
                             : place->title_name != NULL ? place->title_name
                                                         : "name";
    for (size_t i = 0; i < count; i++) {
        const char *source = list + i * place->size;
        if (place->of_pointers)
            source = *(const char *const *)source + place->values_at;
        const char *title =
            place->of_class
                ? url_class_name(*(const struct url_class *const *)(source + place->class_at))
                : place->title(source);
        json_t *element = add_element(parent, place->section, title_name, title,
                                      place->only_stated ? NULL : source);
        OPTIONS_FOR_EACH (option, settings_table(), place->section)
            if (place->only_stated &&
                (option->type != OPTION_STRINGS || *(char **const *)(source + option->at) != NULL))
                json_object_set_new(element, option->name, value_to_json(option, source));
    }
}

static void add_parts(json_t *root, const struct settings *settings) {
    PARTS_FOR_EACH (part, settings)
        for (const struct section_place *place = part_table[part]->settings->places;
             place != NULL && place->section != NULL; place++) {
            bool old = place->at_start && settings->start != NULL;
            add_place(root, place, (old ? settings->start : settings)->parts[part]);
        }
}

json_t *settings_json(const struct settings *settings) {
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    json_t *root = json_object();
    json_object_set_new(root, "file", json_string(settings->path));
    add_files(root, settings);
    add_own_values(root, "", settings);
    for (const struct option_section *s = settings_table()->sections + 1; s->name != NULL; s++) {
        json_t *parent = s->parent == NULL ? root : json_object_get(root, s->parent);
        json_object_set_new(parent, s->name, s->title != NULL ? json_array() : json_object());
        if (s->title == NULL)
            add_own_values(json_object_get(root, s->name), s->name, settings);
    }
    add_listens(root, settings);
    add_maps(root, settings);
    add_origins(root, settings);
    add_services_and_logs(root, settings);
    add_url_classes(root, settings);
    add_adapts(root, settings);
    add_policies(root, settings);
    add_parts(root, settings);
    return root;
}

char *settings_to_json(const struct settings *settings) {
    json_t *root = settings_json(settings);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(10) | JSON_ENSURE_ASCII);
    json_decref(root);
    ASSERT(text != NULL);
    return text;
}
