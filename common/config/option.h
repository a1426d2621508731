/*
 * Tables of options: everything about an option in one place. The parser of the file, the range
 * checks, the defaults and the manual are all made from its row.
 *
 *     static const struct option_section sections[] = {
 *         {.name = "", .documentation = "..."},
 *         {.name = "pool", .title = "NAME", .documentation = "..."},
 *         {.name = NULL}};
 *     static const struct option options[] = {
 *         {.section = "pool", .name = "queue", .type = OPTION_COUNT, .most = 65536, .fallback = "64",
 *          .at = offsetof(struct pool_settings, queue), .documentation = "...", .example = "128"},
 *         {.name = NULL}};
 *     static const struct option_table table = {options, sections, .manual = "retort-helperd(8)"};
 *
 *     OPTIONS_FOR_EACH(option, &table, "pool")
 *         printf("pool.%s, by default %s\n", option->name, option->fallback);
 *     const struct option *option = options_find(&table, "pool", "queue");
 *     const char *meant = options_suggest(&table, "pool", "quue");      "queue"
 *
 * A section stands at the top level, or, with a parent, inside another section that occurs once:
 *
 *     cache { disk "/var/cache/retort" { size = "10GB" } }
 *
 * A row contains the offset of its value in a destination. One destination is that of the top level
 * and of all sections that occur once; an element of a list is that of another section.
 *
 * Threads: constants.
 */
#ifndef RETORT_CONFIG_OPTION_H
#define RETORT_CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_BOOL,     /* bool */
    OPTION_COUNT,    /* unsigned */
    OPTION_INTEGER,  /* int, written as in C: -5, 0660, 0x1b0 */
    OPTION_SIZE,     /* size_t, bytes */
    OPTION_TIME,     /* uint64_t, milliseconds */
    OPTION_FLOAT,    /* double */
    OPTION_STRING,   /* char *, owned */
    OPTION_WORD,     /* an enum: its value is the word's place in option->words */
    OPTION_STRINGS,  /* char **, owned, ends with NULL; NULL when not stated */
    OPTION_ELEMENTS, /* an array of option->elements, and size_t */
};

/* When a change of an option can be in use. A number bounds or measures what is there, so an operator of the role
 * admin may change it at run time. Every other option can only be changed by who writes the configuration, except
 * where its row says otherwise: no row does that whose option lets somebody in or out of a rule, opens a way past a
 * rule, makes more reachable, names a file, a socket, a command or an address, decides whom or what is believed,
 * tells others of clients, or gives one client what was made for another. */
enum option_change {
    OPTION_BY_TYPE,          /* of a row: numbers at run time, all else by the file */
    OPTION_AT_RUN_TIME,      /* "retortctl set" may change it */
    OPTION_AT_START,         /* likewise, but the change waits for a restart */
    OPTION_BY_FILE,          /* only the configuration may */
    OPTION_BY_FILE_AT_START, /* of a row: likewise, and a change of it waits for a restart */
};

enum option_secret { OPTION_SHOWN, OPTION_SECRET, OPTION_SECRET_FIELD, OPTION_SECRET_NAMED };

/* What OPTION_ELEMENTS is a list of. */
struct option_elements {
    const char *name;  /* of one: "network" */
    const char *empty; /* the word that leaves the list empty */
    size_t size;       /* of one in the array */
    bool (*read)(void *element, const char *text, char *error, size_t error_size);
};

struct option {
    const char *section; /* "": top level */
    unsigned
        owner; /* whose destination `at` is in, where a table is put together from several; else 0 */
    const char *name;
    const char *
        after; /* of another owner: the option of its section that it stands behind in the manual; NULL: the last one */
    enum option_type type;
    bool required;
    bool empty;                /* an empty text is an element, or, alone, as good as none */
    bool bare_seconds;         /* a time without a unit is one of seconds */
    enum option_secret secret; /* a text that is shown to nobody, or not as a whole */
    bool pairs;                /* a list whose elements are NAME = VALUE */
    bool keyed;                /* a list whose elements are known by their first word */
    enum option_change change;
    const char *fallback;      /* the default, as it would be written */
    const char *fallback_note; /* shown instead when the default is not a fixed value */
    double least, most;        /* range of a number, in bytes or milliseconds; most 0: no range */
    const char *const *words;  /* words of OPTION_WORD; ends with NULL */
    const struct option_elements *elements;
    /* Checks whether one string, or an integer, is well formed; NULL: every one is. */
    bool (*check)(const char *text, char *error, size_t error_size);
    size_t at;                 /* offset of the value in the destination */
    size_t count_at;           /* offset of the number of elements */
    const char *documentation; /* sentences */
    const char *example;       /* the value alone, as written */
};

struct option_section {
    const char *name;
    unsigned owner; /* as that of an option */
    const char *
        after; /* of another owner: the section that it stands behind in the manual; NULL: the last one */
    const char *parent; /* the section that contains it; NULL: the top level */
    const char *title;  /* kind of its title: "ADDRESS"; NULL: it has no title and occurs once */
    bool repeats;       /* several sections may have the same title */
    const char *documentation;
    const char *example; /* whole lines; NULL: none */
};

/* Both lists end with a row whose name is NULL. Rows of one section stand together. */
struct option_table {
    const struct option *options;
    const struct option_section *sections; /* the top level, "", is the first */
    const char *manual;                    /* where they are explained: "retort.conf(5)" */
    /* Why the table has no such option, or section (`name` NULL), although it could; false: it could not. NULL: never. */
    bool (*explain)(const char *section, const char *name, char *reason, size_t size);
    /* What libconfuse takes is taken: in double quotes the escapes of C, the last of several values
     * of an option, an empty list. */
    bool lenient;
};

#define OPTIONS_FOR_EACH(option, table, of_section)                                                \
    for (const struct option *option = options_next((table)->options, of_section); option != NULL; \
         option = options_next(option + 1, of_section))

/* Returns the first row of the section at or after `from`, or NULL. */
const struct option *options_next(const struct option *from, const char *section);
const struct option *options_find(const struct option_table *table, const char *section,
                                  const char *name);
const struct option_section *options_find_section(const struct option_table *table,
                                                  const char *name);
/* Whether sections of that kind belong directly in `section`. */
bool option_section_is_in(const struct option_section *kind, const char *section);
/* Returns the option or section allowed in `section` that looks most like `name`, or NULL when
 * none is similar. */
const char *options_suggest(const struct option_table *table, const char *section,
                            const char *name);
/* Whether an option takes several values. */
bool option_is_list(const struct option *option);

#endif
