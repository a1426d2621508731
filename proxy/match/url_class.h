/*
 * URL classes: named sets of requests (and responses) that services are enabled for.
 *
 *     url_class photos { host = { "img.example.com" }  path_regex = "\\.jpe?g$" }
 *
 * A class matches when every condition that it states matches; a condition with several values
 * matches when one of them does. The built-in class "all" states none. A class with a content_type
 * matches only where there is a response.
 *
 *     struct class_subject subject = { .method = ..., .host = ..., .url = ..., .path = ... };
 *     if (url_class_matches(class, &subject)) ...
 *
 * Requests are compared with many classes at once by struct rules (rules.h).
 *
 * Threads: classes are read-only; matching keeps PCRE2's scratch memory per thread.
 */
#ifndef RETORT_MATCH_URL_CLASS_H
#define RETORT_MATCH_URL_CLASS_H

#include "net/address.h"

struct url_class;

/* The request (and response) that a class is compared with. Slices may have any content; they are
 * not changed. */
struct class_subject {
    struct slice method;
    struct slice host;         /* lower case, without port */
    struct slice url;          /* absolute, normalised */
    struct slice path;         /* path without the query */
    struct slice content_type; /* of the response, with parameters; base NULL: no response yet */
    bool response_pending;     /* no response yet: could a later response match? */
    const struct address *client;
};

bool url_class_matches(const struct url_class *url_class, const struct class_subject *subject);
/* The condition that need not be compared, because the caller knows that it holds. */
enum url_class_known {
    URL_CLASS_KNOWN_NOTHING,
    URL_CLASS_KNOWN_HOST,
    URL_CLASS_KNOWN_DOMAIN,
    URL_CLASS_KNOWN_CLIENT
};
/* Compares only the conditions on the request, whatever is known of the response. */
bool url_class_matches_request(const struct url_class *url_class,
                               const struct class_subject *subject, enum url_class_known known);
/* The form of a host that classes compare: without the dot of the root. */
static inline struct slice url_class_host(struct slice host) {
    if (host.length > 1 && host.base[host.length - 1] == '.')
        host.length--;
    return host;
}
/* Writes the media type of a Content-Type in small letters, with a NUL at the end. It is cut off if
 * it is longer than any type that a class can name. Returns its length. */
enum { URL_CLASS_TYPE_MAX = 256 };
size_t url_class_type_name(struct slice content_type, char out[URL_CLASS_TYPE_MAX]);
const char *url_class_name(const struct url_class *url_class);

/* The conditions of a class. Strings and lists end with NULL. A list that is NULL is not stated. */
struct url_class_conditions {
    char **hosts;        /* exact names, "*.example.com" for the names below */
    char **domains;      /* the name itself and all below it */
    char **path_regexes; /* PCRE2, searched in the path without the query, case-sensitive */
    char **url_regexes;  /* searched in the whole URL */
    char **methods;
    char **content_types; /* "text/html", or "image/" and a star */
    char **clients;       /* addresses and networks */
};

/* NULL on error with a message in `error`. The strings are copied. */
struct url_class *url_class_new(const char *name, const struct url_class_conditions *conditions,
                                char *error, size_t error_size);
void url_class_free(struct url_class **url_classp);
/* As given to url_class_new; lives as long as the class. */
const struct url_class_conditions *url_class_conditions(const struct url_class *url_class);

/* Whether one value of a condition is well formed; a reason in `error` when it is not. */
bool url_class_check_host(const char *text, char *error, size_t error_size);
bool url_class_check_domain(const char *text, char *error, size_t error_size);
bool url_class_check_method(const char *text, char *error, size_t error_size);
bool url_class_check_content_type(const char *text, char *error, size_t error_size);
bool url_class_check_client(const char *text, char *error, size_t error_size);

#endif
