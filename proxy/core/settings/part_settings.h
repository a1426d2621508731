/*
 * The settings of a part: its sections and options, the struct that they are loaded into, and the functions that load it.
 *
 *     static const struct option rows[] = {                        parts/events/part.c
 *         {ONE("admin", struct event_settings, consumers), .name = "event_consumers", COUNT(0, 32), DEFAULT("8"), ...},
 *         {.name = NULL},
 *     };
 *     const struct part_settings events_part_settings = {
 *         .options = rows, .size = sizeof(struct event_settings), .load = events_load,
 *     };
 *
 *     const struct event_settings *mine = settings->parts[PART_EVENTS];         each reader
 *
 * The table of all options (options.h) is the core's with those of the parts that are built. proxy/parts.def lists the names
 * of a part's sections and options, so that a retort without the part refuses them with a sentence.
 *
 * A part may add sections, options of the top level, and options to sections of the core that occur once. Their values are
 * in its own struct. The core frees these values; `release` frees everything else. What the core has to know itself, such as
 * whether a listener offers HTTP/2, is a value of the core, and only the row is the part's (core_options).
 *
 * Threads: constants. The functions: as those of settings/load.h.
 */
#ifndef RETORT_SETTINGS_PART_SETTINGS_H
#define RETORT_SETTINGS_PART_SETTINGS_H

#include "config/option.h"
#include "settings/rule_kinds.h"

struct document_section;
struct findings;
struct load;
struct rules;
struct service_settings;
struct settings;

/* Where the sections of a kind with a title stand: an array and its length in the struct of the part. */
struct section_place {
    const char *section;      /* NULL: the end of the list */
    size_t list_at, count_at; /* in the struct of the part */
    size_t size;              /* of an element */
    /* Sections that are for a URL class: the kind of their rules (RULE_KINDS: the part has rules of its own), and where an
     * element has its class. */
    bool of_class;
    enum rule_kind rule;
    size_t class_at;
    /* The title of others, and what it is. */
    const char *(*title)(const void *element);
    const char *title_name; /* NULL: "name" */
    bool at_start;          /* only a start applies them: those of the start are shown */
    bool only_stated;       /* lists that a section does not state are not shown */
    bool
        of_pointers; /* the list has pointers to elements; an element has its values at values_at */
    size_t values_at;
};

/* A user of retort-helperd: "authenticator staff". */
struct helpers_user {
    const char *section, *title;
    const char *path; /* of the socket */
    const char *loss; /* without an answer: "nobody can prove who he is" */
};
typedef void helpers_see_fn(void *arg, const struct helpers_user *user);

#define SECTION_LIST(of, list, count, type)                                                        \
    .list_at = offsetof(of, list), .count_at = offsetof(of, count), .size = sizeof(type)
#define SECTION_RULE(kind, type)                                                                   \
    .of_class = true, .rule = (kind), .class_at = offsetof(type, url_class)

struct part_settings {
    const struct option *options; /* ends with a row whose name is NULL */
    /* Likewise, options whose values the core reads itself: they stand in its structs, for sections with a title too. The core
     * loads and frees them. Without the part the values are zeros, unless the core says what they are then. */
    const struct option *core_options;
    const struct option_section *sections; /* likewise; NULL: none */
    const struct section_place *places;    /* NULL: none */
    size_t size;                           /* of the struct, which begins as zeros; 0: none */
    /* In the order of the parts. False: with a fault. `mine` is the struct. What URL classes and services name: */
    bool (*load)(struct load *load, void *mine);
    /* What names URL classes and services: */
    bool (*load_rules)(struct load *load, void *mine);
    /* A kind of services (part.services): reads a section, whose name is set, and frees what no option has. */
    struct {
        bool (*load)(struct load *load, const struct document_section *section,
                     struct service_settings *service);
        void (*release)(struct service_settings *service);
    } service;
    /* Adds rules of its own behind those of all sections; the first has this number. Of one part. */
    void (*add_rules)(struct rules *rules, size_t first, void *mine);
    /* The rules of all sections have been made (rule_kinds.h). */
    void (*finish)(const struct load *load, void *mine);
    void (*release)(void *mine);
    /* Adds what differs and waits for a restart (start_only.h). */
    void (*compare)(const void *first, const void *new, struct findings *left);
    /* Shows each socket of retort-helperd that the part's sections name, once. */
    void (*each_helpers)(const void *mine, helpers_see_fn *see, void *arg);
};

/* The struct that the value of the option is in, where its section has no title. */
const void *settings_home(const struct settings *settings, const struct option *option);

#endif
