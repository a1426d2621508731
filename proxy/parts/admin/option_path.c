#include "admin/option_path.h"

#include "base/assert.h"
#include "base/failure.h"
#include "base/slice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_PATH_SECTION = 64 };

/* Cuts "[KEY]" off the end of the name. A '[' of an IPv6 address follows no letter. */
static void option_path_take_key(struct option_path *path, char *name) {
    size_t length = strlen(name);
    if (length == 0 || name[length - 1] != ']')
        return;
    for (size_t i = 1; i < length; i++) {
        bool after_letter = (name[i - 1] >= 'a' && name[i - 1] <= 'z') || name[i - 1] == '_';
        if (name[i] != '[' || !after_letter)
            continue;
        path->key = slice_dup(slice_make(name + i + 1, length - i - 2));
        name[i] = '\0';
        return;
    }
}

/* The section whose name the text begins with, in the section `inside`; the text moves on. */
static const struct option_section *take_kind(const char **text, const char *inside) {
    size_t length = strcspn(*text, ".");
    for (const struct option_section *kind = settings_table()->sections; kind->name != NULL;
         kind++) {
        if (strlen(kind->name) != length || strncmp(kind->name, *text, length) != 0 ||
            !option_section_is_in(kind, inside))
            continue;
        *text += length;
        *text += **text == '.';
        return kind;
    }
    return NULL;
}

/* "all#2" of a section that may stand there several times. */
static void take_number(struct option_path *path) {
    uint64_t number;
    char *mark = path->kind->repeats ? strrchr(path->title, '#') : NULL;
    if (mark == NULL || !slice_to_uint64(slice_from(mark + 1), &number) || number == 0 ||
        number > UINT32_MAX)
        return;
    path->number = (unsigned)number;
    *mark = '\0';
}

/* What only a part understands that is not built is refused as in a file. */
static bool is_of_other_part(const char *section, const char *name, char *error,
                             size_t error_size) {
    const struct option_table *table = settings_table();
    return table->explain != NULL && table->explain(section, name, error, error_size);
}

static bool fail_for_section(const char *text, char *error, size_t error_size) {
    char name[OPTION_PATH_SECTION];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "."), text);
    return !is_of_other_part("", name, error, error_size) &&
           failure(error, error_size, "there is no section \"%.100s\"", text);
}

/* `text` is what stands before the option: "icap_service.gray". */
static bool take_section(struct option_path *path, const char *text, char *error,
                         size_t error_size) {
    const char *rest = text;
    path->kind = &settings_table()->sections[0];
    if (text[0] == '\0')
        return true;
    path->kind = take_kind(&rest, "");
    if (path->kind == NULL)
        return fail_for_section(text, error, error_size);
    const struct option_section *child =
        rest[0] == '\0' ? NULL : take_kind(&rest, path->kind->name);
    if (child != NULL)
        path->kind = child;
    if (path->kind->title == NULL && rest[0] != '\0')
        return failure(error, error_size, "the section %s has no title; write %s.OPTION",
                       path->kind->name, path->kind->name);
    if (path->kind->title == NULL)
        return true;
    if (rest[0] == '\0')
        return failure(error, error_size, "the section %s has a title; write %s.%s.OPTION",
                       path->kind->name, path->kind->name, path->kind->title);
    path->title = xstrdup(rest);
    take_number(path);
    return true;
}

static bool option_path_take_option(struct option_path *path, const char *name, char *error,
                                    size_t error_size) {
    const char *section = path->kind->name;
    path->option = options_find(settings_table(), section, name);
    if (path->option != NULL)
        return true;
    if (is_of_other_part(section, name, error, error_size))
        return false;
    const char *meant = options_suggest(settings_table(), section, name);
    return failure(error, error_size, "there is no option \"%.100s\"%s%s%s%s%s", name,
                   section[0] == '\0' ? "" : " in section ", section,
                   meant == NULL ? "; retort.conf(5) lists them all" : "; did you mean \"",
                   meant == NULL ? "" : meant, meant == NULL ? "" : "\"?");
}

static bool parse_name(struct option_path *path, char *name, char *error, size_t error_size) {
    option_path_take_key(path, name);
    char *dot = strrchr(name, '.');
    const char *option = dot == NULL ? name : dot + 1;
    if (dot != NULL)
        *dot = '\0';
    if (!take_section(path, dot == NULL ? "" : name, error, error_size) ||
        !option_path_take_option(path, option, error, error_size))
        return false;
    if (path->key != NULL && !path->option->keyed)
        return failure(error, error_size, "%s has no elements that can be named", option);
    return true;
}

bool option_path_parse(struct option_path *path, const char *name, char *error, size_t error_size) {
    char *text = xstrdup(name);
    *path = (struct option_path){0};
    bool good = parse_name(path, text, error, error_size);
    free(text);
    return good;
}

void option_path_release(struct option_path *path) {
    free(path->title);
    free(path->key);
    *path = (struct option_path){0};
}

char *option_path_name(const struct option_path *path) {
    char *name;
    size_t length;
    FILE *out = open_memstream(&name, &length);
    ASSERT(out != NULL);
    if (path->kind->parent != NULL)
        fprintf(out, "%s.", path->kind->parent);
    if (path->kind->name[0] != '\0')
        fprintf(out, "%s.", path->kind->name);
    if (path->title != NULL)
        fputs(path->title, out);
    if (path->number > 0)
        fprintf(out, "#%u", path->number);
    fprintf(out, "%s%s", path->title != NULL ? "." : "", path->option->name);
    if (path->key != NULL)
        fprintf(out, "[%s]", path->key);
    ASSERT(fclose(out) == 0);
    return name;
}

static bool is_meant(const struct document_section *section, const struct option_section *kind,
                     const char *title) {
    if (section->kind != kind || section->dropped)
        return false;
    return title == NULL || strcmp(section->title, title) == 0;
}

size_t option_path_count(const struct document *document, const struct option_section *kind,
                         const char *title) {
    size_t count = 0;
    for (size_t i = 0; i < document->section_count; i++)
        count += is_meant(&document->sections[i], kind, title);
    return count;
}

size_t option_path_find(const struct option_path *path, const struct document *document) {
    size_t count = option_path_count(document, path->kind, path->title), number = 0;
    if (path->number == 0 && count != 1)
        return SIZE_MAX;
    for (size_t i = 0; i < document->section_count; i++)
        if (is_meant(&document->sections[i], path->kind, path->title) &&
            ++number == (path->number == 0 ? 1 : path->number))
            return i;
    return SIZE_MAX;
}
