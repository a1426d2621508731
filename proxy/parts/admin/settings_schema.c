/* The JSON schema of the settings, made from the option table. */
#include "admin/settings_list.h"
#include "settings/options.h"

#include <ctype.h>
#include <string.h>

static json_t *nullable(const char *type) {
    return json_pack("{s:[s, s]}", "type", type, "null");
}

static json_t *words_schema(const struct option *option) {
    json_t *words = json_array();
    for (size_t i = 0; option->words[i] != NULL; i++)
        json_array_append_new(words, json_string(option->words[i]));
    return json_pack("{s:o}", "enum", words);
}

static json_t *number_schema(const struct option *option, const char *type) {
    json_t *schema = json_pack("{s:s, s:f}", "type", type, "minimum", option->least);
    if (option->most > 0)
        json_object_set_new(schema, "maximum", json_real(option->most));
    return schema;
}

static json_t *list_schema(const char *of) {
    json_t *schema = nullable("array");
    json_object_set_new(schema, "items", json_pack("{s:s}", "type", of));
    return schema;
}

static json_t *type_schema(const struct option *option) {
    switch (option->type) {
    case OPTION_BOOL: return json_pack("{s:s}", "type", "boolean");
    case OPTION_COUNT:
    case OPTION_INTEGER: return number_schema(option, "integer");
    case OPTION_FLOAT: return number_schema(option, "number");
    case OPTION_SIZE:
        return json_pack("{s:s, s:s}", "type", "string", "pattern", "^(0|[0-9]+(B|KB|MB|GB))$");
    case OPTION_TIME:
        return json_pack("{s:s, s:s}", "type", "string", "pattern", "^(0|[0-9]+(ms|s|m|h|d))$");
    case OPTION_WORD: return words_schema(option);
    case OPTION_STRING: return nullable("string");
    case OPTION_STRINGS: return list_schema("string");
    case OPTION_ELEMENTS:
        return list_schema(option->elements == &option_ports ? "integer" : "string");
    }
    return json_object();
}

static const char *const type_names[] = {
    [OPTION_BOOL] = "bool", [OPTION_COUNT] = "count",   [OPTION_SIZE] = "size",
    [OPTION_TIME] = "time", [OPTION_FLOAT] = "float",   [OPTION_STRING] = "text",
    [OPTION_WORD] = "word", [OPTION_STRINGS] = "texts", [OPTION_INTEGER] = "count",
};

static json_t *option_schema(const struct option *option) {
    json_t *schema = type_schema(option);
    json_object_set_new(schema, "x-type",
                        option->type == OPTION_ELEMENTS
                            ? json_sprintf("%ss", option->elements->name)
                            : json_string(type_names[option->type]));
    json_object_set_new(schema, "x-change", json_string(option_change_name(option)));
    json_object_set_new(schema, "description", json_string(option->documentation));
    if (option->fallback != NULL)
        json_object_set_new(schema, "x-default", json_string(option->fallback));
    return schema;
}

static json_t *section_schema(const struct option_section *kind) {
    json_t *properties = json_object();
    char title[40];
    size_t length = 0;
    for (; kind->title != NULL && kind->title[length] != '\0' && length + 1 < sizeof title;
         length++)
        title[length] = (char)tolower((unsigned char)kind->title[length]);
    title[length] = '\0';
    if (kind->title != NULL)
        json_object_set_new(properties, title, json_pack("{s:s}", "type", "string"));
    OPTIONS_FOR_EACH (option, settings_table(), kind->name)
        json_object_set_new(properties, option->name, option_schema(option));
    json_t *schema = json_pack("{s:s, s:o, s:b, s:s}", "type", "object", "properties", properties,
                               "additionalProperties", 0, "description", kind->documentation);
    if (kind->title != NULL)
        json_object_set_new(schema, "required", json_pack("[s]", title));
    return schema;
}

static void add_section(json_t *parent, const struct option_section *kind) {
    json_t *schema = section_schema(kind);
    if (kind->title != NULL)
        schema = json_pack("{s:s, s:o}", "type", "array", "items", schema);
    json_object_set_new(json_object_get(parent, "properties"), kind->name, schema);
}

json_t *settings_schema(void) {
    json_t *root = section_schema(settings_table()->sections);
    json_t *properties = json_object_get(root, "properties");
    json_object_set_new(root, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
    json_object_set_new(root, "title", json_string("The settings of retort"));
    json_object_set_new(properties, "file", json_pack("{s:s}", "type", "string"));
    json_object_set_new(properties, "files", list_schema("string"));
    json_object_set_new(
        properties, "from",
        json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type", "string"));
    for (const struct option_section *kind = settings_table()->sections + 1; kind->name != NULL;
         kind++)
        add_section(kind->parent == NULL ? root : json_object_get(properties, kind->parent), kind);
    return root;
}
