/*
 * A text with variables, as the settings write it: the value of a header field, the URL of a
 * redirection, an error page. It is compiled once, when the settings are loaded, and written for
 * each request.
 *
 *     char error[500];
 *     struct text_template *text = text_template_new("for %{client_ip}", error, sizeof error);
 *     if (text == NULL) -> error says which name is unknown, and which there are
 *     ...
 *     struct slice value = text_template_write(text, transaction_variable, transaction,
 *                                              TEXT_AS_IS, &transaction->arena);
 *     text_template_free(&text);
 *
 * "%{name}" stands for the variable of that name (text/variables.def), "%{request.User-Agent}" and
 * "%{response.Server}" for a field of the request or the response. "%%" is a percent sign; a '%'
 * before anything else is itself, so a URL may have "%20".
 *
 * What a variable stands for was chosen by strangers, so it is escaped for the place where it is
 * written, and a field counts with TEXT_FIELD_MAX bytes. The text around it is the operator's and
 * stays as it is. Fields that carry credentials (http/secret_field.h) are refused: a page or a URL
 * that shows them would give them to scripts, logs and other servers.
 *
 * Threads: read-only once compiled. Memory: what is written belongs to the arena; nothing is
 * allocated apart from that.
 */
#ifndef RETORT_TEXT_TEXT_TEMPLATE_H
#define RETORT_TEXT_TEXT_TEMPLATE_H

#include "base/arena.h"

enum variable {
#define VARIABLE(enumerator, name, of, meaning) VARIABLE_##enumerator,
#include "text/variables.def"
#undef VARIABLE
    VARIABLE_COUNT,
    /* The field whose name is given, of the request and of the response. */
    VARIABLE_REQUEST_FIELD = VARIABLE_COUNT,
    VARIABLE_RESPONSE_FIELD,
    /* What a regular expression has found: all of it, and its groups 1 to 9. */
    VARIABLE_GROUP,
    VARIABLE_GROUP_LAST = VARIABLE_GROUP + 9,
};

/* What the variables of a text depend on (text/variables.def); a field of the request is the
 * client's. */
enum variable_source {
    VARIABLES_OF_URL = 1,
    VARIABLES_OF_USER = 2,
    VARIABLES_OF_CLIENT = 4,
    VARIABLES_OF_RESPONSE = 8,
    VARIABLES_OF_FETCH = 16,
    VARIABLES_OF_PAGE = 32,
};

enum text_escape {
    /* The value of a header field, in which control characters become blanks. */
    TEXT_AS_IS,
    /* A URL. Ahead of the first '?' or '#' of the text, the variables that are parts of a URL (url,
     * scheme, host, port, path, query, path_query) and groups keep the bytes that have a meaning in
     * one. Behind it only query and groups do. Everything else is percent-encoded, so no other
     * variable begins a new part of the URL: in "https://login/?back=%{url}" the whole URL is the
     * value of `back`. A path at the front of the text never begins with "//", which would name a
     * host (RFC 3986 §4.2). */
    TEXT_URL,
    /* HTML, in text and in quoted attributes. */
    TEXT_HTML,
    /* The inside of a JSON string. Bytes that are no UTF-8 become U+FFFD. */
    TEXT_JSON,
};

enum {
    TEXT_TEMPLATE_VARIABLES = 64, /* that one text may have */
    TEXT_FIELD_MAX = 4096, /* bytes that a field may stand for; a longer value is cut there */
};

struct text_template;

/* NULL: the text names an unknown variable, a field that carries credentials, or too many variables;
 * `error` says so. */
struct text_template *text_template_new(const char *text, char *error, size_t error_size);
/* For the replacement of a regular expression with that many groups, at most 9: "%{0}" is all that
 * it has found, "%{1}" and "$1" the first group, "$$" a dollar sign. */
struct text_template *text_template_new_for_groups(const char *text, unsigned groups, char *error,
                                                   size_t error_size);
void text_template_free(struct text_template **templatep);

/* Does the text name this variable? For a field: any field. */
bool text_template_names(const struct text_template *text, enum variable variable);
/* Bits of enum variable_source. */
unsigned text_template_sources(const struct text_template *text);

/* `value` gives what a variable stands for; its bytes are only read before text_template_write
 * returns. `field` is the name of the field for the two variables that are fields, or else empty. An
 * empty slice is written as nothing. A NUL stands behind the written text. */
struct slice text_template_write(const struct text_template *text,
                                 struct slice (*value)(void *arg, enum variable variable,
                                                       struct slice field),
                                 void *arg, enum text_escape escape, struct arena *arena);

#endif
