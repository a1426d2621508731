/*
 * A parsed configuration: the sections and values of a file and of the files that it includes, each
 * with its place. Names are checked against the option table; values are still text.
 *
 *     struct faults faults = {0};
 *     struct document *document = document_parse("/etc/retort/retort.conf", &table, &faults);
 *     DOCUMENT_FOR_EACH_SECTION(section, document, "listen") {
 *         const struct document_value *mode = document_value(section, "mode");
 *         if (mode != NULL) printf("%s\n", mode->text);
 *     }
 *     document_free(&document);
 *
 * A place is a file and a line in one number: the lines of the main file are their own places.
 * document_file and document_line take it apart again.
 *
 * A fault is noted with its place (document_blame). What is at fault can be dropped, and the rest
 * be loaded, to find the other faults (settings.c).
 *
 * Threads: a document belongs to its caller.
 */
#ifndef RETORT_CONFIG_DOCUMENT_H
#define RETORT_CONFIG_DOCUMENT_H

#include "config/option.h"

#include <stdarg.h>
#include <stddef.h>

/*
 * Faults: what is wrong in a configuration, each with its file and line, so that an operator sees all of it at
 * once. At most FAULTS_MAX are kept; `more` counts the others.
 *
 *     faults_add(&faults, section->line, "/etc/retort/retort.conf", 12, "there is no \"%s\"", name);
 *     if (faults.count > 0)
 *         faults_join(&faults, error, sizeof error);        one line each, in the order of the files
 *     faults_release(&faults);
 */

enum { FAULTS_MAX = 20 };

struct faults {
    unsigned count, more;
    struct fault {
        int place; /* see document.h; the order */
        char *text;
    } kept[FAULTS_MAX];
};

/* Line 0: the fault is one of the whole file. */
void faults_add(struct faults *faults, int place, const char *file, int line, const char *format,
                ...) __attribute__((format(printf, 5, 6)));
void faults_add_list(struct faults *faults, int place, const char *file, int line,
                     const char *format, va_list arguments) __attribute__((format(printf, 5, 0)));
/* Writes what is kept, as lines without a newline behind the last; faults that do not fit are
 * counted. */
void faults_join(struct faults *faults, char *error, size_t size);
void faults_release(struct faults *faults);

enum {
    DOCUMENT_LINE_BITS = 22,
    DOCUMENT_FILES = 500,      /* most files of a configuration */
    DOCUMENT_DEPTH = 8,        /* a file that a file includes that a file includes ... */
    DOCUMENT_BYTES = 64 << 20, /* of all files together */
};

struct document_value {
    const struct option *option;
    char *text;
    int line; /* its place */
    bool faulty;
};

struct document_section {
    const struct option_section *kind;
    char *title;                   /* NULL when sections of this kind have no title */
    int line;                      /* the place of its '{' */
    struct document_value *values; /* in the file's order */
    size_t value_count;
    bool incomplete; /* something in it could not be taken; what it lacks is not told */
    bool blamed;     /* something is wrong with it */
    bool faulty;     /* it was blamed before: what else is wrong with it is not told */
    bool dropped;    /* it has a title and is faulty: it is there no more */
};

struct document {
    unsigned magic;
#define DOCUMENT_MAGIC 0x444f4355u
    const struct option_table *table; /* what may stand in it */
    char *path;                       /* of the main file */
    char **files;                     /* all of them; the first is the main file */
    size_t file_count;
    size_t bytes; /* of all of them */
    bool broken;  /* the grammar is, or a file is missing: there is no sense in loading it */
    struct document_section
        *sections; /* the first is the top level; the rest in the order of their '{' */
    size_t section_count;
};

/* Returns NULL when the grammar is broken. A document with faults of other kinds is returned; do
 * not use what is loaded from it. */
struct document *document_parse(const char *path, const struct option_table *table,
                                struct faults *faults);
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

const char *document_file(const struct document *document, int place);
int document_line(int place);

/* Notes a fault at a place: in the section or value that stands there. Place 0 is nowhere. The
 * message is not added when it follows from an earlier fault: the section at that place is faulty
 * already, or the message names a section that is. */
void document_blame(struct document *document, struct faults *faults, int place, const char *format,
                    va_list arguments) __attribute__((format(printf, 4, 0)));
/* The same; returns false. */
bool document_fail(struct document *document, struct faults *faults, int place, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));
/* The same about a value, as far as it may be shown: "OPTION: "VALUE" is not a size". */
bool document_fail_value(struct document *document, struct faults *faults,
                         const struct document_value *value, const char *between,
                         const char *reason);
/* Writes the options of one section of this kind that are of the owner, or their defaults, into the
 * destination. `section` may be NULL. False: with faults. */
bool document_read_values(struct document *document, struct faults *faults,
                          const struct document_section *section, const char *kind, unsigned owner,
                          void *destination);
/* Frees what it wrote there. */
void document_release_values(const struct option_table *table, const char *kind, unsigned owner,
                             void *destination);
/* Drops what was blamed. False: nothing was. */
bool document_drop_faulty(struct document *document);

/* The whole document again. */
struct document *document_copy(const struct document *document);

/* For parse.c and overrides.c: adds a section, or a value to one. The index of a section stays the
 * same. */
size_t document_add_section(struct document *document, const struct option_section *kind,
                            const char *title, int place);
void document_add_value(struct document *document, size_t section, const struct option *option,
                        const char *text, int place);
void document_remove_values(struct document *document, size_t section, const struct option *option);
/* Returns the place of its line 0. */
int document_add_file(struct document *document, const char *path);
/* Gives a section the place and the values of one of another document. */
void document_take_section(struct document *document, size_t section, const struct document *from,
                           const struct document_section *taken);

#endif
