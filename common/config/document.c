#include "config/document.h"

#include "base/assert.h"
#include "config/shown.h"
#include "config/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULT_LONGEST = 6000 };

void faults_add_list(struct faults *faults, int place, const char *file, int line,
                     const char *format, va_list arguments) {
    char text[FAULT_LONGEST];
    if (faults->count == FAULTS_MAX) {
        faults->more++;
        return;
    }
    int length = snprintf(text, sizeof text, line > 0 ? "%s:%d: " : "%s: ", file, line);
    if ((size_t)length < sizeof text)
        vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    faults->kept[faults->count++] = (struct fault){.place = place, .text = xstrdup(text)};
}

void faults_add(struct faults *faults, int place, const char *file, int line, const char *format,
                ...) {
    va_list arguments;
    va_start(arguments, format);
    faults_add_list(faults, place, file, line, format, arguments);
    va_end(arguments);
}

/* Faults of one place keep the order in which they were found. */
static void sort_faults(struct faults *faults) {
    for (unsigned i = 1; i < faults->count; i++) {
        struct fault moved = faults->kept[i];
        unsigned at = i;
        for (; at > 0 && faults->kept[at - 1].place > moved.place; at--)
            faults->kept[at] = faults->kept[at - 1];
        faults->kept[at] = moved;
    }
}

void faults_join(struct faults *faults, char *error, size_t size) {
    enum { LAST_LINE = 80 };
    size_t used = 0;
    unsigned more = faults->more;
    error[0] = '\0';
    sort_faults(faults);
    for (unsigned i = 0; i < faults->count; i++) {
        size_t length = strlen(faults->kept[i].text);
        if (used + 1 + length + LAST_LINE >= size) {
            more++;
            continue;
        }
        used += (size_t)snprintf(error + used, size - used, "%s%s", used == 0 ? "" : "\n",
                                 faults->kept[i].text);
    }
    if (more > 0)
        snprintf(error + used, size - used, "\nand %u more errors", more);
}

void faults_release(struct faults *faults) {
    for (unsigned i = 0; i < faults->count; i++)
        free(faults->kept[i].text);
    *faults = (struct faults){0};
}

void document_free(struct document **documentp) {
    struct document *document = *documentp;
    *documentp = NULL;
    if (document == NULL)
        return;
    CHECK_OBJ(document, DOCUMENT_MAGIC);
    for (size_t i = 0; i < document->section_count; i++) {
        struct document_section *section = &document->sections[i];
        for (size_t j = 0; j < section->value_count; j++)
            free(section->values[j].text);
        free(section->values);
        free(section->title);
    }
    free(document->sections);
    for (size_t i = 0; i < document->file_count; i++)
        free(document->files[i]);
    free(document->files);
    free(document->path);
    FREE_OBJ(document);
}

size_t document_add_section(struct document *document, const struct option_section *kind,
                            const char *title, int place) {
    document->sections =
        xrealloc(document->sections, (document->section_count + 1) * sizeof *document->sections);
    struct document_section *section = &document->sections[document->section_count];
    *section = (struct document_section){.kind = kind, .line = place};
    section->title = title == NULL ? NULL : xstrdup(title);
    return document->section_count++;
}

void document_add_value(struct document *document, size_t number, const struct option *option,
                        const char *text, int place) {
    struct document_section *section = &document->sections[number];
    section->values =
        xrealloc(section->values, (section->value_count + 1) * sizeof *section->values);
    section->values[section->value_count++] =
        (struct document_value){.option = option, .text = xstrdup(text), .line = place};
}

void document_remove_values(struct document *document, size_t number, const struct option *option) {
    struct document_section *section = &document->sections[number];
    size_t kept = 0;
    for (size_t i = 0; i < section->value_count; i++) {
        if (section->values[i].option == option)
            free(section->values[i].text);
        else
            section->values[kept++] = section->values[i];
    }
    section->value_count = kept;
}

int document_add_file(struct document *document, const char *path) {
    document->files =
        xrealloc(document->files, (document->file_count + 1) * sizeof *document->files);
    document->files[document->file_count] = xstrdup(path);
    return (int)document->file_count++ << DOCUMENT_LINE_BITS;
}

/* The same file and line in a document that may have other files. */
static int document_same_place(struct document *document, const struct document *from, int place) {
    const char *file = document_file(from, place);
    for (size_t i = 0; i < document->file_count; i++)
        if (strcmp(document->files[i], file) == 0)
            return (int)i << DOCUMENT_LINE_BITS | document_line(place);
    return document_add_file(document, file) | document_line(place);
}

void document_take_section(struct document *document, size_t number, const struct document *from,
                           const struct document_section *taken) {
    struct document_section *section = &document->sections[number];
    for (size_t i = 0; i < section->value_count; i++)
        free(section->values[i].text);
    section->value_count = 0;
    section->line = document_same_place(document, from, taken->line);
    for (size_t i = 0; i < taken->value_count; i++)
        document_add_value(document, number, taken->values[i].option, taken->values[i].text,
                           document_same_place(document, from, taken->values[i].line));
}

static void copy_section(struct document *copy, const struct document_section *section) {
    size_t number = document_add_section(copy, section->kind, section->title, section->line);
    struct document_section *made = &copy->sections[number];
    for (size_t i = 0; i < section->value_count; i++) {
        const struct document_value *value = &section->values[i];
        document_add_value(copy, number, value->option, value->text, value->line);
        made->values[i].faulty = value->faulty;
    }
    made->incomplete = section->incomplete;
    made->blamed = section->blamed;
    made->faulty = section->faulty;
    made->dropped = section->dropped;
}

struct document *document_copy(const struct document *document) {
    struct document *copy;
    CHECK_OBJ(document, DOCUMENT_MAGIC);
    ALLOC_OBJ(copy, DOCUMENT_MAGIC);
    copy->table = document->table;
    copy->path = xstrdup(document->path);
    for (size_t i = 0; i < document->file_count; i++)
        document_add_file(copy, document->files[i]);
    for (size_t i = 0; i < document->section_count; i++)
        copy_section(copy, &document->sections[i]);
    return copy;
}

const struct document_section *document_section(const struct document *document, const char *kind,
                                                const struct document_section *after) {
    const struct document_section *end = document->sections + document->section_count;
    const struct document_section *section = after == NULL ? document->sections : after + 1;
    for (; section < end; section++)
        if (!section->dropped && strcmp(section->kind->name, kind) == 0)
            return section;
    return NULL;
}

size_t document_section_count(const struct document *document, const char *kind) {
    size_t count = 0;
    DOCUMENT_FOR_EACH_SECTION (section, document, kind)
        count++;
    return count;
}

const struct document_value *document_value(const struct document_section *section,
                                            const char *name) {
    for (size_t i = 0; section != NULL && i < section->value_count; i++)
        if (strcmp(section->values[i].option->name, name) == 0)
            return &section->values[i];
    return NULL;
}

const char *document_file(const struct document *document, int place) {
    size_t file = (size_t)place >> DOCUMENT_LINE_BITS;
    return file < document->file_count ? document->files[file] : document->path;
}

int document_line(int place) {
    return place & ((1 << DOCUMENT_LINE_BITS) - 1);
}

static bool stands_at(const struct document_section *section, int place) {
    bool found = section->line == place && section->kind->name[0] != '\0';
    for (size_t i = 0; !found && i < section->value_count; i++)
        found = section->values[i].line == place;
    return found;
}

/* A message with the name of a faulty section is a consequence: it would not be there if the section
 * were good. So is one about the whole configuration with its kind. */
static bool names_what_is_missing(const struct document *document, int place, const char *message) {
    char quoted[300];
    for (size_t i = 1; i < document->section_count; i++) {
        const struct document_section *section = &document->sections[i];
        if (!section->faulty)
            continue;
        bool by_kind = section->title == NULL || place == 0;
        if (by_kind && section->kind->name[0] == '\0') /* of a kind that this table lacks */
            continue;
        snprintf(quoted, sizeof quoted, by_kind ? "%s" : "\"%s\"",
                 by_kind ? section->kind->name : section->title);
        if (strstr(message, quoted) != NULL)
            return true;
    }
    return false;
}

/* Blames all that stands at the place: several sections may stand in one line. Returns whether it
 * is news. */
static bool blame_place(struct document *document, int place) {
    bool news = false, found = false;
    for (size_t i = 0; i < document->section_count; i++) {
        struct document_section *section = &document->sections[i];
        if (section->dropped || !stands_at(section, place))
            continue;
        found = true;
        news = news || !(section->faulty || (section->incomplete && section->line == place));
        section->blamed = true;
        for (size_t j = 0; j < section->value_count; j++)
            section->values[j].faulty |= section->values[j].line == place;
    }
    return news || !found;
}

void document_blame(struct document *document, struct faults *faults, int place, const char *format,
                    va_list arguments) {
    char message[4000];
    vsnprintf(message, sizeof message, format, arguments);
    bool follows = names_what_is_missing(document, place, message);
    char *shown = shown_text(message);
    if (blame_place(document, place) && !follows)
        faults_add(faults, place, document_file(document, place), document_line(place), "%s",
                   shown);
    free(shown);
}

bool document_fail(struct document *document, struct faults *faults, int place, const char *format,
                   ...) {
    va_list arguments;
    va_start(arguments, format);
    document_blame(document, faults, place, format, arguments);
    va_end(arguments);
    return false;
}

bool document_fail_value(struct document *document, struct faults *faults,
                         const struct document_value *value, const char *between,
                         const char *reason) {
    const char *name = value->option->name;
    char *shown = shown_value(value->option, value->text);
    if (value->option->secret == OPTION_SECRET)
        document_fail(document, faults, value->line, "%s: the value%s%s", name, between, reason);
    else
        document_fail(document, faults, value->line, "%s: \"%s\"%s%s", name, shown, between,
                      reason);
    free(shown);
    return false;
}

bool document_read_values(struct document *document, struct faults *faults,
                          const struct document_section *section, const char *kind, unsigned owner,
                          void *destination) {
    char reason[400];
    OPTIONS_FOR_EACH (option, document->table, kind) {
        if (option->owner != owner || document_value(section, option->name) != NULL)
            continue;
        if (option->required)
            return document_fail(document, faults, section->line,
                                 "%s \"%s\" has no %s; write: %s = %s", kind, section->title,
                                 option->name, option->name, option->example);
        value_set_fallback(option, destination);
    }
    bool good = true;
    for (size_t i = 0; section != NULL && i < section->value_count; i++) {
        const struct document_value *value = &section->values[i];
        if (value->option->owner == owner &&
            !value_set(value->option, destination, value->text, reason, sizeof reason))
            good = document_fail_value(document, faults, value, " ", reason);
    }
    return good;
}

void document_release_values(const struct option_table *table, const char *kind, unsigned owner,
                             void *destination) {
    OPTIONS_FOR_EACH (option, table, kind)
        if (option->owner == owner)
            value_release(option, destination);
}

/* Is this value, or another one of its option, to blame? */
static bool option_is_faulty(const struct document_section *section, const struct option *option) {
    for (size_t i = 0; i < section->value_count; i++)
        if (section->values[i].option == option && section->values[i].faulty)
            return true;
    return false;
}

/* Drops the options with a faulty value, or all when only the section itself is to blame. */
static void drop_values(struct document_section *section) {
    size_t kept = 0;
    bool any = false;
    for (size_t i = 0; i < section->value_count; i++)
        any = any || section->values[i].faulty;
    for (size_t i = 0; i < section->value_count; i++)
        section->values[i].faulty = !any || option_is_faulty(section, section->values[i].option);
    for (size_t i = 0; i < section->value_count; i++) {
        if (section->values[i].faulty)
            free(section->values[i].text);
        else
            section->values[kept++] = section->values[i];
    }
    section->value_count = kept;
}

bool document_drop_faulty(struct document *document) {
    bool dropped = false;
    for (size_t i = 0; i < document->section_count; i++) {
        struct document_section *section = &document->sections[i];
        if (!section->blamed)
            continue;
        dropped = dropped || section->title != NULL || section->value_count > 0;
        if (section->title == NULL)
            drop_values(section);
        section->dropped = section->title != NULL;
        section->faulty = i > 0;
        section->blamed = false;
    }
    return dropped;
}
