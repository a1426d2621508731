#include "admin/overrides.h"

#include "admin/option_path.h"
#include "base/assert.h"
#include "base/failure.h"
#include "config/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct overrides *overrides_new(void) {
    struct overrides *overrides;
    ALLOC_OBJ(overrides, OVERRIDES_MAGIC);
    return overrides;
}

static void free_values(char **values) {
    for (size_t i = 0; values != NULL && values[i] != NULL; i++)
        free(values[i]);
    free(values);
}

void overrides_free(struct overrides **overridesp) {
    struct overrides *overrides = *overridesp;
    *overridesp = NULL;
    if (overrides == NULL)
        return;
    CHECK_OBJ(overrides, OVERRIDES_MAGIC);
    for (size_t i = 0; i < overrides->count; i++) {
        free(overrides->list[i].name);
        free_values(overrides->list[i].values);
    }
    free(overrides->list);
    FREE_OBJ(overrides);
}

static struct override *find_override(const struct overrides *overrides, const char *name) {
    CHECK_OBJ(overrides, OVERRIDES_MAGIC);
    for (size_t i = 0; i < overrides->count; i++)
        if (strcmp(overrides->list[i].name, name) == 0)
            return &overrides->list[i];
    return NULL;
}

const struct override *overrides_find(const struct overrides *overrides, const char *name) {
    return find_override(overrides, name);
}

/* Takes the values. */
static void keep_override(struct overrides *overrides, const char *name, char **values, int line) {
    struct override *override = find_override(overrides, name);
    if (override == NULL) {
        overrides->list =
            xrealloc(overrides->list, (overrides->count + 1) * sizeof *overrides->list);
        override = &overrides->list[overrides->count++];
        *override = (struct override){.name = xstrdup(name)};
    }
    free_values(override->values);
    override->values = values;
    override->line = line;
}

static char **copy_values(char **values) {
    size_t count = 0;
    while (values != NULL && values[count] != NULL)
        count++;
    char **copy = values == NULL ? NULL : xcalloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = xstrdup(values[i]);
    return copy;
}

void overrides_join(struct overrides *overrides, const struct overrides *more) {
    CHECK_OBJ(more, OVERRIDES_MAGIC);
    for (size_t i = 0; i < more->count; i++)
        keep_override(overrides, more->list[i].name, copy_values(more->list[i].values),
                      more->list[i].line);
}

static bool values_equal(char **a, char **b) {
    size_t i = 0;
    if (a == NULL || b == NULL)
        return a == b;
    while (a[i] != NULL && b[i] != NULL && strcmp(a[i], b[i]) == 0)
        i++;
    return a[i] == NULL && b[i] == NULL;
}

bool overrides_equal(const struct overrides *a, const struct overrides *b) {
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->list[i].name, b->list[i].name) == 0 &&
               values_equal(a->list[i].values, b->list[i].values);
    return same;
}

struct overrides *overrides_copy(const struct overrides *overrides) {
    struct overrides *copy = overrides_new();
    overrides_join(copy, overrides);
    return copy;
}

bool overrides_remove(struct overrides *overrides, const char *name) {
    struct override *override = find_override(overrides, name);
    if (override == NULL)
        return false;
    free(override->name);
    free_values(override->values);
    size_t behind = (size_t)(overrides->list + overrides->count - override) - 1;
    memmove(override, override + 1, behind * sizeof *override);
    overrides->count--;
    return true;
}

bool overrides_rename(struct overrides *overrides, const char *name, const char *new_name) {
    struct override *override = find_override(overrides, name);
    ASSERT(override != NULL);
    if (find_override(overrides, new_name) != NULL)
        return strcmp(name, new_name) == 0;
    free(override->name);
    override->name = xstrdup(new_name);
    return true;
}

void overrides_remove_lost(struct overrides *overrides) {
    CHECK_OBJ(overrides, OVERRIDES_MAGIC);
    for (size_t i = overrides->count; i-- > 0;)
        if (overrides->list[i].lost)
            overrides_remove(overrides, overrides->list[i].name);
}

/* What the caller asks for. */

/* A line end or another control byte has no business in a value, and would be one in the file. */
static bool check_override_bytes(const char *name, const char *text, char *error,
                                 size_t error_size) {
    if (strlen(text) > OVERRIDE_TEXT)
        return failure(error, error_size, "%.200s: the value is longer than %d bytes", name,
                       OVERRIDE_TEXT);
    for (const char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return failure(error, error_size, "%.200s: the value has a control character", name);
    return true;
}

/* The element whose first word is the key, with `text` behind it. */
static char *keyed_text(const char *key, const char *text) {
    char *whole;
    ASSERT(asprintf(&whole, "%s%s%s", key, text[0] == '\0' ? "" : " ", text) >= 0);
    return whole;
}

static bool check_value(const struct option_path *path, const char *name, const char *text,
                        char *error, size_t error_size) {
    char reason[400];
    if (!check_override_bytes(name, text, error, error_size))
        return false;
    char *whole = path->key == NULL ? xstrdup(text) : keyed_text(path->key, text);
    bool good = value_check(path->option, whole, reason, sizeof reason);
    free(whole);
    return good || failure(error, error_size, "%.200s: \"%.1000s\" %s", name, text, reason);
}

static bool check_path(const struct option_path *path, const char *name, char *error,
                       size_t error_size) {
    if (path->key != NULL && !check_override_bytes(name, path->key, error, error_size))
        return false;
    if (path->title != NULL && !check_override_bytes(name, path->title, error, error_size))
        return false;
    return option_change_of(path->option) != OPTION_BY_FILE ||
           failure(error, error_size,
                   "%.200s can not be changed at run time: write it into the configuration "
                   "and reload",
                   name);
}

static bool check_values(const struct option_path *path, const char *name,
                         const struct override_value *value, char *error, size_t error_size) {
    bool many = option_is_list(path->option) && path->key == NULL, good = true;
    if (value->list && (!many || value->count == 0 || value->count > OVERRIDE_VALUES))
        return failure(error, error_size,
                       !many               ? "%.200s takes one value, not a list"
                       : value->count == 0 ? "%.200s: the list is empty; unset the option instead"
                                           : "%.200s: the list is too long",
                       name);
    for (size_t i = 0; good && i < value->count; i++)
        good = value->texts[i] != NULL
                   ? check_value(path, name, value->texts[i], error, error_size)
                   : failure(error, error_size, "%.200s: write a string, a number, true or false",
                             name);
    return good;
}

static bool put_checked(struct overrides *overrides, const struct option_path *path,
                        const struct override_value *value, int line, char *error,
                        size_t error_size) {
    char *name = option_path_name(path);
    bool full = overrides->count >= OVERRIDES_MAX && find_override(overrides, name) == NULL;
    bool good = check_path(path, name, error, error_size) &&
                (!full || failure(error, error_size,
                                  "%d options are changed at run time already: write changes "
                                  "into the configuration, and unset them",
                                  OVERRIDES_MAX)) &&
                check_values(path, name, value, error, error_size);
    if (good)
        keep_override(overrides, name, copy_values(value->texts), line);
    free(name);
    return good;
}

bool overrides_put(struct overrides *overrides, const char *name,
                   const struct override_value *value, int line, char *error, size_t error_size) {
    struct option_path path;
    bool good = option_path_parse(&path, name, error, error_size) &&
                put_checked(overrides, &path, value, line, error, error_size);
    option_path_release(&path);
    return good;
}

void override_value_add(struct override_value *value, char *text) {
    value->texts = xrealloc(value->texts, (value->count + 2) * sizeof *value->texts);
    value->texts[value->count++] = text;
    value->texts[value->count] = NULL;
}

void override_value_release(struct override_value *value) {
    for (size_t i = 0; i < value->count; i++)
        free(value->texts[i]);
    free(value->texts);
    *value = (struct override_value){.texts = NULL};
}

struct option_path override_path(const struct override *override) {
    char reason[400];
    struct option_path path;
    bool good = option_path_parse(&path, override->name, reason, sizeof reason);
    ASSERT(good); /* it was parsed when it was put */
    return path;
}

const char *overrides_at_start(const struct overrides *overrides) {
    CHECK_OBJ(overrides, OVERRIDES_MAGIC);
    for (size_t i = 0; i < overrides->count; i++) {
        struct option_path path = override_path(&overrides->list[i]);
        bool found =
            overrides->list[i].values != NULL && option_change_of(path.option) == OPTION_AT_START;
        option_path_release(&path);
        if (found)
            return overrides->list[i].name;
    }
    return NULL;
}

static bool change_section(const struct overrides *overrides, const struct option_path *path) {
    bool found = false;
    for (size_t i = 0; !found && i < overrides->count; i++) {
        struct option_path other = override_path(&overrides->list[i]);
        found = other.kind == path->kind &&
                (path->title == NULL || strcmp(other.title, path->title) == 0);
        option_path_release(&other);
    }
    return found;
}

static bool has_name(const char *text, const char *name) {
    static const char signs[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name))
        if ((at == text || strchr(signs, at[-1]) == NULL) &&
            (at[length] == '\0' || strchr(signs, at[length]) == NULL))
            return true;
    return false;
}

const char *overrides_named(const struct overrides *overrides, const char *text,
                            const struct overrides *asked, bool *one) {
    const char *named = NULL;
    bool named_near = false;
    *one = false;
    for (size_t i = 0; i < overrides->count; i++) {
        struct option_path path = override_path(&overrides->list[i]);
        bool hit = has_name(text, path.option->name), near = hit && change_section(asked, &path);
        option_path_release(&path);
        if (!hit || (named_near && !near))
            continue;
        bool first = named == NULL || (near && !named_near);
        named = first ? overrides->list[i].name : named;
        named_near = near;
        *one = first;
    }
    return named;
}

/* Applying. */

static bool has_word(const char *text, const char *word) {
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && (text[length] == '\0' || text[length] == ' ');
}

/* The element of a list with this first word; NULL: there is none. */
static struct document_value *find_element(const struct option_path *path,
                                           const struct document_section *section) {
    for (size_t i = 0; i < section->value_count; i++)
        if (section->values[i].option == path->option &&
            has_word(section->values[i].text, path->key))
            return &section->values[i];
    return NULL;
}

static bool apply_keyed(const struct option_path *path, struct document_section *section,
                        const char *text, int place) {
    struct document_value *value = find_element(path, section);
    if (value == NULL)
        return false;
    free(value->text);
    value->text = keyed_text(path->key, text);
    value->line = place;
    return true;
}

static bool path_fits(const struct option_path *path, const struct document *document, char *error,
                      size_t error_size) {
    const char *kind = path->kind->name, *title = path->title;
    size_t section = option_path_find(path, document);
    size_t count = option_path_count(document, path->kind, title);
    if (section == SIZE_MAX && title == NULL)
        return true;
    if (section == SIZE_MAX && count > 1)
        return failure(error, error_size,
                       "there are %zu sections %s \"%.200s\": write %s.%.200s#1.%s for the "
                       "first one",
                       count, kind, title, kind, title, path->option->name);
    if (section == SIZE_MAX)
        return failure(error, error_size, "there is no section %s \"%.200s\"", kind, title);
    return path->key == NULL || find_element(path, &document->sections[section]) != NULL ||
           failure(error, error_size, "%s.%.200s.%s has no element that begins with \"%.200s\"",
                   kind, title, path->option->name, path->key);
}

bool overrides_fit(const struct overrides *overrides, const struct document *document, char *error,
                   size_t error_size) {
    bool good = true;
    CHECK_OBJ(overrides, OVERRIDES_MAGIC);
    for (size_t i = 0; good && i < overrides->count; i++) {
        struct option_path path;
        if (overrides->list[i].values == NULL)
            continue;
        good = option_path_parse(&path, overrides->list[i].name, error, error_size) &&
               path_fits(&path, document, error, error_size);
        option_path_release(&path);
    }
    return good;
}

static bool apply_path(const struct option_path *path, char **values, struct document *document,
                       int place) {
    size_t section = option_path_find(path, document);
    if (section == SIZE_MAX && path->title == NULL)
        section = document_add_section(document, path->kind, NULL, place);
    if (section == SIZE_MAX)
        return false;
    if (path->key != NULL)
        return apply_keyed(path, &document->sections[section], values[0], place);
    document_remove_values(document, section, path->option);
    for (char **value = values; *value != NULL; value++)
        document_add_value(document, section, path->option, *value, place);
    return true;
}

void overrides_apply(struct overrides *overrides, bool elements, struct document *document,
                     int place, struct findings *dropped) {
    CHECK_OBJ(overrides, OVERRIDES_MAGIC);
    for (size_t i = 0; i < overrides->count; i++) {
        struct override *override = &overrides->list[i];
        if (override->values == NULL)
            continue;
        struct option_path path = override_path(override);
        if ((path.key != NULL) == elements) {
            override->lost = !apply_path(&path, override->values, document, place + override->line);
            if (override->lost)
                findings_add(dropped,
                             "%s, which was changed at run time, is not in the configuration: "
                             "unset it",
                             override->name);
        }
        option_path_release(&path);
    }
}
