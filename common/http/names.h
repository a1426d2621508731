/*
 * Field names and methods that Retort knows, each with a small number, so that code compares
 * integers and a head keeps a set of what it contains.
 *
 * The tables are in names.def (field names) and methods.def. To add a name, add a line there.
 *
 *     enum http_name id = http_name_lookup(SLICE("etag"));     HTTP_ETAG
 *     struct slice text = http_name_text(HTTP_ETAG);           "ETag"
 *
 * Threads: constant tables.
 */
#ifndef RETORT_HTTP_NAMES_H
#define RETORT_HTTP_NAMES_H

#include "base/slice.h"

enum http_name {
    HTTP_OTHER, /* a name that is not in the table */
#define HTTP_NAME(id, text) HTTP_##id,
#include "http/names.def"
#undef HTTP_NAME
    HTTP_NAME_COUNT
};

enum http_method {
    HTTP_METHOD_OTHER,
#define HTTP_METHOD(id, flags) HTTP_METHOD_##id,
#include "http/methods.def"
#undef HTTP_METHOD
    HTTP_METHOD_COUNT
};

/* Case-insensitive; HTTP_OTHER when unknown. */
enum http_name http_name_lookup(struct slice name);
struct slice http_name_text(enum http_name id);

/* Case-sensitive (RFC 9110 §9.1); HTTP_METHOD_OTHER when unknown. */
enum http_method http_method_lookup(struct slice method);
struct slice http_method_text(enum http_method id);
/* Is the method safe (RFC 9110 §9.2.1), or idempotent (§9.2.2)? False for unknown methods. */
bool http_method_is_safe(enum http_method id);
bool http_method_is_idempotent(enum http_method id);

/* The standard reason phrase of a status code, "Unknown" when there is none (RFC 9110 §15). */
const char *http_reason(unsigned status);

#endif
