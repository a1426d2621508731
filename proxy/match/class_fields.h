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
#ifndef RETORT_MATCH_CLASS_FIELDS_H
#define RETORT_MATCH_CLASS_FIELDS_H

#include "http/head.h"

struct class_fields {
    struct class_field *each;
    size_t count;
};

bool class_fields_check(const char *text, char *error, size_t error_size);
/* texts ends with NULL; NULL: none. */
void class_fields_compile(struct class_fields *fields, char **texts);
void class_fields_release(struct class_fields *fields);
bool class_fields_find(const struct class_fields *fields, const struct http_head *head);

#endif
