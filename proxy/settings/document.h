/*
 * A parsed configuration file: sections and their values, each with its line. Names are checked
 * against the option table; values are still text. libconfuse parses the grammar.
 *
 *     struct document *document = document_parse("/etc/retort/retort.conf", error);
 *     DOCUMENT_FOR_EACH_SECTION(section, document, "listen") {
 *         const struct document_value *mode = document_value(section, "mode");
 *         if (mode != NULL) printf("line %d: %s\n", mode->line, mode->text);
 *     }
 *     document_free(&document);
 *
 * document_scan checks the text before libconfuse. It refuses what the lexer of libconfuse would
 * change silently: a backslash lost in double quotes, a '*' outside quotes, a missing '}' at the
 * end.
 *
 * Threads: document_parse may be called from any thread; a lock inside serialises the calls,
 * because the lexer of libconfuse is global. A document belongs to its caller.
 */
#ifndef RETORT_SETTINGS_DOCUMENT_H
#define RETORT_SETTINGS_DOCUMENT_H

#include "settings/options.h"
#include "settings/settings.h"

struct document_value {
    const struct option *option;
    char *text;
    int line;
};

struct document_section {
    const struct option_section *kind;
    char *title;                   /* NULL when sections of this kind have no title */
    int line;                      /* the line of its '{' */
    struct document_value *values; /* in the file's order */
    size_t value_count;
};

struct document {
    unsigned magic;
#define DOCUMENT_MAGIC 0x444f4355u
    char *path;
    struct document_section
        *sections; /* the first is the top level; the rest in the order of their '{' */
    size_t section_count;
};

struct document *document_parse(const char *path, char error[SETTINGS_ERROR]);
void document_free(struct document **documentp);

/* Returns the next section of that kind after `after` (NULL: the first one), or NULL. */
const struct document_section *document_section(const struct document *document, const char *kind,
                                                const struct document_section *after);
size_t document_section_count(const struct document *document, const char *kind);
/* Returns the first value of the option, or NULL when the section does not set it. `section` may
 * be NULL. */
const struct document_value *document_value(const struct document_section *section,
                                            const char *name);

#define DOCUMENT_FOR_EACH_SECTION(section, document, kind)                                         \
    for (const struct document_section *section = document_section(document, kind, NULL);          \
         section != NULL; section = document_section(document, kind, section))

/* Checks the raw text. Returns false with the line and a message. */
bool document_scan(const char *text, size_t length, int *line, char *error, size_t error_size);

#endif
