#include "admin/settings_text.h"

#include <stdbool.h>
#include <string.h>

static void settings_text_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (strchr("\\\"$", *text) != NULL)
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void settings_text_value(FILE *out, const json_t *value) {
    size_t i;
    json_t *element;
    if (json_is_string(value)) {
        settings_text_string(out, json_string_value(value));
    } else if (json_is_array(value) && json_array_size(value) == 0) {
        fputs("none", out);
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, element) {
            fputs(i == 0 ? "{ " : ", ", out);
            settings_text_value(out, element);
        }
        fputs(" }", out);
    } else if (json_is_real(value)) {
        fprintf(out, "%.10g", json_real_value(value));
    } else if (json_is_integer(value)) {
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else {
        fputs(json_is_true(value) ? "true" : "false", out);
    }
}

static void put_setting(FILE *out, const char *indent, const char *name, const json_t *value) {
    if (json_is_null(value)) {
        fprintf(out, "%s# %s is not set\n", indent, name);
        return;
    }
    fprintf(out, "%s%s = ", indent, name);
    settings_text_value(out, value);
    fputc('\n', out);
}

static bool is_built_in(const char *section, const json_t *element) {
    return strcmp(section, "url_class") == 0 &&
           strcmp(json_string_value(json_object_get(element, "name")), "all") == 0;
}

static bool holds_sections(const json_t *value) {
    return json_is_array(value) &&
           (json_array_size(value) == 0 || json_is_object(json_array_get(value, 0)));
}

/* Prints a section inside another one on a single line. */
static void put_inner_section(FILE *out, const char *section, json_t *members) {
    const char *name;
    json_t *value;
    bool title = true;
    fprintf(out, "    %s ", section);
    json_object_foreach(members, name, value) {
        if (!title)
            fprintf(out, " %s = ", name);
        settings_text_value(out, value);
        if (title)
            fputs(" {", out);
        title = false;
    }
    fputs(" }\n", out);
}

/* The first member of an element is the section's title. */
static void put_section(FILE *out, const char *section, json_t *members, bool titled) {
    const char *name;
    json_t *value, *element;
    size_t i;
    bool title = titled;
    fprintf(out, "\n%s ", section);
    if (!titled)
        fputs("{\n", out);
    json_object_foreach(members, name, value) {
        if (title) {
            settings_text_string(out, json_string_value(value));
            fputs(" {\n", out);
        } else if (strcmp(name, "disk") == 0 && holds_sections(value)) {
            json_array_foreach(value, i, element) put_inner_section(out, name, element);
        } else {
            put_setting(out, "    ", name, value);
        }
        title = false;
    }
    fputs("}\n", out);
}

static void put_included(FILE *out, json_t *files) {
    json_t *file;
    size_t i;
    json_array_foreach(files, i, file) if (i > 0)
        fprintf(out, "# including %s\n", json_string_value(file));
}

/* What was included is shown itself, so that the whole is one file. */
void settings_text_write(FILE *out, const json_t *settings) {
    const char *name;
    json_t *value, *element;
    size_t i;
    json_object_foreach((json_t *)settings, name, value) {
        if (strcmp(name, "file") == 0)
            fprintf(out, "# %s, with defaults\n", json_string_value(value));
        else if (strcmp(name, "files") == 0)
            put_included(out, value);
        else if (strcmp(name, "include") == 0)
            continue;
        else if (json_is_object(value))
            put_section(out, name, value, false);
        else if (strcmp(name, "connect_ports") == 0 || !holds_sections(value))
            put_setting(out, "", name, value);
        else
            json_array_foreach(value, i, element) if (!is_built_in(name, element))
                put_section(out, name, element, true);
    }
}
