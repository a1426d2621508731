/*
 * The conditions of a URL class as text, as they stand in the configuration file, and the checks of
 * their values. struct url_class (url_class.h) is made from them.
 *
 *     struct url_class_conditions conditions = {.hosts = hosts, .ports = ports};
 *     if (!url_class_conditions_check(&conditions, error, sizeof error)) ...
 *     url_class_conditions_copy(&own, &conditions);
 *     url_class_conditions_release(&own);
 *
 * Threads: values.
 */
#ifndef RETORT_MATCH_CLASS_CONDITIONS_H
#define RETORT_MATCH_CLASS_CONDITIONS_H

#include "base/slice.h"
#include "http/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each is a list of strings that ends with NULL. A list that is NULL is not stated. A condition
 * with several values matches when one of them does; the files of a condition add values to it. */
struct url_class_conditions {
    char **hosts;        /* exact names, "*.example.com" for the names below */
    char **domains;      /* the name itself and all below it */
    char **path_regexes; /* PCRE2, searched in the path without the query, case-sensitive */
    char **url_regexes;  /* searched in the whole URL */
    char **methods;
    char **content_types;   /* "text/html", or "image/" and a star */
    char **clients;         /* addresses and networks */
    char **ports;           /* "443", "8000-8999" */
    char **schemes;         /* "http", "https" */
    char **destinations;    /* addresses and networks that the host resolves to */
    char **users;           /* proven names; "*": any */
    char **groups;          /* that a proven user is in */
    char **certificates;    /* subjects of clients' certificates, or their common names */
    char **listeners;       /* names of listeners */
    char **request_headers; /* "Name: REGEX", see below */
    char **snis;            /* as hosts */
    char **times;           /* see below */
    char **nots;            /* names of classes none of which may match */
    char **any_ofs;         /* names of classes one of which must match */
    /* Paths of lists (class_lists.h). */
    char **host_files;
    char **domain_files;
    char **client_files;
    char **destination_files;
    char **url_files;
};

/* False, with the value and what is wrong in `error`. */
bool url_class_conditions_check(const struct url_class_conditions *conditions, char *error,
                                size_t error_size);
void url_class_conditions_copy(struct url_class_conditions *to,
                               const struct url_class_conditions *from);
void url_class_conditions_release(struct url_class_conditions *conditions);
/* How many strings there are in such a list. */
size_t url_class_values(char **values);

/* Whether one value of a condition is well formed; a reason in `error` when it is not. */
bool url_class_check_host(const char *text, char *error, size_t error_size);
bool url_class_check_domain(const char *text, char *error, size_t error_size);
bool url_class_check_method(const char *text, char *error, size_t error_size);
bool url_class_check_content_type(const char *text, char *error, size_t error_size);
bool url_class_check_client(const char *text, char *error, size_t error_size);
bool url_class_check_port(const char *text, char *error, size_t error_size);
bool url_class_check_scheme(const char *text, char *error, size_t error_size);
bool url_class_check_time(const char *text, char *error, size_t error_size);
bool url_class_check_text(const char *text, char *error, size_t error_size);
bool url_class_check_path(const char *text, char *error, size_t error_size);

/* Parses "443" or "8000-8999". */
bool url_class_parse_ports(const char *text, uint16_t *from, uint16_t *to);

enum { URL_CLASS_TYPE_MAX = 256 };

/*
 * Conditions on the fields of a request, "Name: REGEX": the expression is searched in the value of
 * each field of that name.
 *
 *     if (!class_fields_check("User-Agent: curl", error, sizeof error)) ...
 *     class_fields_compile(&fields, texts);                each text was checked before
 *     if (class_fields_find(&fields, head)) ...            one of them was found
 *     class_fields_release(&fields);
 *
 * Names are compared without case, expressions (match/regex.h) with it. "Name:" alone asks for a
 * field with any value.
 *
 * Threads: read-only once compiled.
 */

struct class_fields {
    struct class_field *each;
    size_t count;
};

bool class_fields_check(const char *text, char *error, size_t error_size);
/* texts ends with NULL; NULL: none. */
void class_fields_compile(struct class_fields *fields, char **texts);
void class_fields_release(struct class_fields *fields);
bool class_fields_find(const struct class_fields *fields, const struct http_head *head);

/*
 * Hours of the week, as classes name them: days, a time of day, or both.
 *
 *     struct class_hours hours;
 *     class_hours_clear(&hours);
 *     class_hours_add(&hours, "mon-fri 08:00-17:30", error, sizeof error);
 *     class_hours_add(&hours, "sat,sun", ...);           whole days
 *     class_hours_add(&hours, "fri 22:00-06:00", ...);   until six on Saturday
 *     if (class_hours_have(&hours, wall)) ...
 *
 * Times are those of the machine's time zone. The end does not belong to the hours; 24:00 is the
 * end of the day. When clocks are changed, the hours follow the clock on the wall.
 *
 * Threads: read-only once made. Each thread remembers the minute that it has looked up last, so
 * that a question seldom asks for the time zone.
 */

enum { MINUTES_OF_DAY = 24 * 60, MINUTES_OF_WEEK = 7 * MINUTES_OF_DAY };

struct class_hours {
    uint64_t minutes[(MINUTES_OF_WEEK + 63) / 64]; /* a bit each, from Sunday 00:00 */
};

void class_hours_clear(struct class_hours *hours);
/* False, with what is wrong in `error`; the hours are then as before. */
bool class_hours_add(struct class_hours *hours, const char *text, char *error, size_t error_size);
/* `wall`: seconds since 1970; 0: not known, and no hours have it. */
bool class_hours_have(const struct class_hours *hours, int64_t wall);

#endif
