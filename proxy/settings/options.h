/*
 * The option table: everything about an option in one place. The parser of the file, the range
 * checks, the defaults, the JSON of the admin plane and the manual are all made from it.
 *
 *     OPTIONS_FOR_EACH(option, "cache")
 *         printf("cache.%s, by default %s\n", option->name, option->fallback);
 *
 *     const struct option *option = options_find("cache", "memory");
 *     const char *meant = options_suggest("cache", "memroy");           "memory"
 *
 * A section stands at the top level, or, with a parent, inside another section that occurs once:
 *
 *     cache { disk "/var/cache/retort" { size = "10GB" } }
 *
 * A row contains the offset of its value in a destination. The destination is struct settings for
 * the top level and for sections that occur once (cache, client, ...), and an element for other
 * sections (struct listen_settings for "listen", struct url_class_conditions for "url_class", ...).
 *
 * Threads: constants.
 */
#ifndef RETORT_SETTINGS_OPTIONS_H
#define RETORT_SETTINGS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_BOOL,     /* bool */
    OPTION_COUNT,    /* unsigned */
    OPTION_SIZE,     /* size_t, bytes */
    OPTION_TIME,     /* uint64_t, milliseconds */
    OPTION_FLOAT,    /* double */
    OPTION_STRING,   /* char *, owned */
    OPTION_WORD,     /* an enum: its value is the word's place in option->words */
    OPTION_STRINGS,  /* char **, owned, ends with NULL; NULL when not stated */
    OPTION_NETWORKS, /* struct network * and size_t; "all", or "none" with `nobody`, leaves both
                        empty */
    OPTION_PORTS,    /* uint16_t * and size_t; "none" leaves both empty */
};

/* When a change of an option can be in use. */
enum option_change {
    OPTION_BY_TYPE,          /* of a row: texts by the file, others at run time */
    OPTION_AT_RUN_TIME,      /* "retortctl set" may change it */
    OPTION_AT_START,         /* likewise, but the change waits for a restart */
    OPTION_BY_FILE,          /* only the configuration may */
    OPTION_BY_FILE_AT_START, /* of a row: likewise, and a change of it waits for a restart */
};

enum option_secret { OPTION_SHOWN, OPTION_SECRET, OPTION_SECRET_FIELD, OPTION_SECRET_NAMED };

struct option {
    const char *section; /* "": top level */
    const char *name;
    enum option_type type;
    bool required;
    bool nobody;               /* an empty OPTION_NETWORKS is nobody, not everybody */
    enum option_secret secret; /* a text that is shown to nobody, or not as a whole */
    bool pairs;                /* a list whose elements are NAME = VALUE */
    bool keyed;                /* a list whose elements are known by their first word */
    enum option_change change;
    const char *fallback;      /* the default, as it would be written */
    const char *fallback_note; /* shown instead when the default is not a fixed value */
    double least, most;        /* range of a number, in bytes or milliseconds; most 0: no range */
    const char *const *words;  /* words of OPTION_WORD; ends with NULL */
    /* Checks whether one string is well formed; NULL: every string is. */
    bool (*check)(const char *text, char *error, size_t error_size);
    size_t at;                 /* offset of the value in the destination */
    size_t count_at;           /* offset of the number of elements: networks, ports */
    const char *documentation; /* sentences */
    const char *example;       /* the value alone, as written */
};

struct option_section {
    const char *name;
    const char *parent; /* the section that contains it; NULL: the top level */
    const char *title;  /* kind of its title: "ADDRESS"; NULL: it has no title and occurs once */
    bool repeats;       /* several sections may have the same title */
    const char *documentation;
    const char *example; /* whole lines */
};

/* Both end with a row whose name is NULL. Rows of one section stand together. */
extern const struct option options[];
extern const struct option_section option_sections[]; /* the top level, "", is the first */

/* The destination of "adapt" while names are not yet resolved. */
struct adapt_names {
    char **services, **disabled; /* end with NULL; disabled NULL: none */
};

#define OPTIONS_FOR_EACH(option, of_section)                                                       \
    for (const struct option *option = options_next(options, of_section); option != NULL;          \
         option = options_next(option + 1, of_section))

/* Returns the first row of the section at or after `from`, or NULL. */
const struct option *options_next(const struct option *from, const char *section);
const struct option *options_find(const char *section, const char *name);
const struct option_section *options_find_section(const char *name);
/* Whether sections of that kind belong directly in `section`. */
bool option_section_is_in(const struct option_section *kind, const char *section);
/* Returns the option or section allowed in `section` that looks most like `name`, or NULL when
 * none is similar. */
const char *options_suggest(const char *section, const char *name);
/* At run time, at the start, or by the file. */
enum option_change option_change_of(const struct option *option);
/* Does a change wait for a restart, also one in the file? */
bool option_waits_for_start(const struct option *option);
/* "now", "restart" or "file". */
const char *option_change_name(const struct option *option);
/* Whether an option takes several values. */
bool option_is_list(const struct option *option);

/* An IP address, maybe with a port, or system. */
bool option_check_name_server(const char *text, char *error, size_t error_size);
/* A domain, or none, or system. */
bool option_check_domain(const char *text, char *error, size_t error_size);
/* An address or a network, or none. */
bool option_check_network(const char *text, char *error, size_t error_size);
/* For error_page and pac sections (load_pages.c). */
bool option_check_page_status(const char *text, char *error, size_t error_size);
bool option_check_language(const char *text, char *error, size_t error_size);
bool option_check_direct(const char *text, char *error, size_t error_size);
bool option_check_pac_proxy(const char *text, char *error, size_t error_size);
/* The name of a content coding, or none. */
bool option_check_coding(const char *text, char *error, size_t error_size);
/* A URL that spans are posted to. */
bool option_check_ip(const char *text, char *error, size_t error_size);
bool option_check_module_setting(const char *text, char *error, size_t error_size);
bool option_check_info(const char *text, char *error, size_t error_size);
bool option_check_collector(const char *text, char *error, size_t error_size);
bool option_check_service_name(const char *text, char *error, size_t error_size);
/* A token that may stand in Via. */
bool option_check_pseudonym(const char *text, char *error, size_t error_size);

#endif
