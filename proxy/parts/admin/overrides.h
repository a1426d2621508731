/*
 * Overrides: options that were changed at run time, over what the files of the configuration say.
 * They are names and values as text. settings.c applies them to a copy of the parsed files, and
 * what comes of that is checked and loaded as any configuration is.
 *
 *     struct overrides *changes = overrides_new();
 *     struct override_value value = {.texts = NULL};
 *     override_value_add(&value, xstrdup("1GB"));
 *     if (!overrides_put(changes, "cache.memory", &value, 0, error, sizeof error)) ...
 *     override_value_release(&value);
 *     int place = document_add_file(document, "retortctl set");
 *     overrides_apply(changes, false, document, place, &dropped);
 *     overrides_apply(changes, true, document, place, &dropped);
 *     overrides_free(&changes);
 *
 * Which options may be changed is said by option_change_of: numbers, words and networks, and texts
 * that their rows name. A path, a program, an address to listen at or a secret is never among
 * them: whoever may change settings could run programs or read files with it.
 *
 * A file keeps the overrides that shall outlive the process. It is written as a whole under another
 * name and renamed, so that a crash leaves the old file or the new one. It has the grammar of a
 * configuration, with quotes:
 *
 *     "cache.memory" = "1GB"
 *     "adapt.all.disabled" = { "gray", "gzip" }
 *
 * Threads: a list belongs to its caller.
 */
#ifndef RETORT_ADMIN_OVERRIDES_H
#define RETORT_ADMIN_OVERRIDES_H

#include "admin/option_path.h"
#include "base/findings.h"
#include "config/document.h"
#include "settings/settings.h"

enum { OVERRIDES_MAX = 1000, OVERRIDE_VALUES = 1000, OVERRIDE_TEXT = 4096, OVERRIDE_ERROR = 6000 };

enum overrides_written {
    OVERRIDES_WRITTEN,
    OVERRIDES_UNSURE, /* the file is there; if the machine crashes, the older one may come back */
    OVERRIDES_FAILED  /* the older file is there */
};

struct override {
    char *name;    /* as option_path_name has it */
    char **values; /* end with NULL; NULL: as the files of the configuration say */
    int line;      /* in the file that keeps it; 0: it is not kept */
    bool lost;     /* it had no effect when it was last applied */
};

/* What somebody wants an option to be. */
struct override_value {
    char **
        texts; /* NULL among them: something that is no value. All NULL: as the files of the configuration say */
    size_t count;
    bool list; /* written as one, also of one text or none */
};

struct overrides {
    unsigned magic;
#define OVERRIDES_MAGIC 0x4f564552u
    struct override *list;
    size_t count;
};

struct overrides *overrides_new(void);
struct overrides *overrides_copy(const struct overrides *overrides);
void overrides_free(struct overrides **overridesp);
/* NULL: there is none of that name. */
const struct override *overrides_find(const struct overrides *overrides, const char *name);

/* Checks the name, whether the option can be changed at run time, and the value by itself. `line`: see struct override.
 * False with a sentence. */
bool overrides_put(struct overrides *overrides, const char *name,
                   const struct override_value *value, int line, char *error, size_t error_size);
/* Adds a text, which is the value's from here on. */
void override_value_add(struct override_value *value, char *text);
void override_value_release(struct override_value *value);
/* Forgets one. False: there was none. */
bool overrides_remove(struct overrides *overrides, const char *name);
/* Gives one another name of the same option. False: the other name is there too. */
bool overrides_rename(struct overrides *overrides, const char *name, const char *new_name);
/* Forgets those that are lost. */
void overrides_remove_lost(struct overrides *overrides);
/* Have both the same names and values, in the same order? */
bool overrides_equal(const struct overrides *a, const struct overrides *b);
/* Puts all of `more` over these. */
void overrides_join(struct overrides *overrides, const struct overrides *more);

/* What it changes. The caller releases the path. */
struct option_path override_path(const struct override *override);
/* The name of an option that only a start applies; NULL: there is none. */
const char *overrides_at_start(const struct overrides *overrides);
/* The override whose option the text names, in the section of one of `asked` if there is such a one. NULL: there is
 * none. `one`: it is the only one. */
const char *overrides_named(const struct overrides *overrides, const char *text,
                            const struct overrides *asked, bool *one);
/* Does the document have the sections and elements that they change? False with a sentence. */
bool overrides_fit(const struct overrides *overrides, const struct document *document, char *error,
                   size_t error_size);
/* Changes the document: options as a whole, or, with `elements`, elements of lists. Whole options
 * come first, in whichever order they were changed: a list that is replaced would lose what was
 * changed in it. `place`: of line 0 of the file that they come from (document_add_file). An
 * override whose section or element is not there is lost, and gets a finding. */
void overrides_apply(struct overrides *overrides, bool elements, struct document *document,
                     int place, struct findings *dropped);

/* Reads the file. A file that is not there has no overrides. NULL: after a fault. */
struct overrides *overrides_read(const char *path, enum settings_purpose purpose,
                                 struct faults *faults);
/* Does the file have these? Somebody may have edited it. */
bool overrides_are_in(const struct overrides *overrides, const char *path);
/* Writes the file and waits until it is on the disk. With a sentence, unless it is written. */
enum overrides_written overrides_write(const struct overrides *overrides, const char *path,
                                       char *error, size_t error_size);

#endif
