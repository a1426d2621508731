#include "match/class_fields.h"

#include "base/assert.h"
#include "match/regex.h"

#include <stdio.h>
#include <stdlib.h>

struct class_field {
    char *name;
    enum http_name id; /* HTTP_OTHER: the name is compared */
    struct regexes value;
};

static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* The expression in "Name: REGEX"; NULL: there is no name before a colon. */
static const char *expression_in(const char *text, size_t *name_length) {
    *name_length = strspn(text, token);
    if (*name_length == 0 || text[*name_length] != ':')
        return NULL;
    const char *expression = text + *name_length + 1;
    return expression + strspn(expression, " ");
}

bool class_fields_check(const char *text, char *error, size_t error_size) {
    size_t length;
    const char *expression = expression_in(text, &length);
    if (expression != NULL)
        return regex_check(expression, error, error_size);
    snprintf(error, error_size,
             "is not a condition on a field: write its name, a colon and a regular expression, as "
             "in 'User-Agent: ^curl/'");
    return false;
}

void class_fields_compile(struct class_fields *fields, char **texts) {
    *fields = (struct class_fields){0};
    while (texts != NULL && texts[fields->count] != NULL)
        fields->count++;
    fields->each = xcalloc(fields->count + 1, sizeof *fields->each);
    for (size_t i = 0; i < fields->count; i++) {
        size_t length;
        const char *expression = expression_in(texts[i], &length);
        char *one[] = {(char *)(uintptr_t)expression, NULL};
        ASSERT(expression != NULL);
        fields->each[i].name = slice_dup(slice_make(texts[i], length));
        fields->each[i].id = http_name_lookup(slice_make(texts[i], length));
        regexes_compile(&fields->each[i].value, one);
    }
}

void class_fields_release(struct class_fields *fields) {
    for (size_t i = 0; i < fields->count; i++) {
        free(fields->each[i].name);
        regexes_release(&fields->each[i].value);
    }
    free(fields->each);
    *fields = (struct class_fields){0};
}

static bool field_has_name(const struct class_field *field, const struct http_field *sent) {
    return field->id != HTTP_OTHER
               ? sent->id == field->id
               : sent->id == HTTP_OTHER && slice_equal_nocase(slice_from(field->name), sent->name);
}

static bool field_find(const struct class_field *field, const struct http_head *head) {
    if (field->id != HTTP_OTHER && !http_head_has(head, field->id))
        return false;
    for (unsigned i = 0; i < head->field_count; i++)
        if (field_has_name(field, &head->fields[i]) &&
            regexes_find(&field->value, head->fields[i].value))
            return true;
    return false;
}

bool class_fields_find(const struct class_fields *fields, const struct http_head *head) {
    for (size_t i = 0; i < fields->count; i++)
        if (field_find(&fields->each[i], head))
            return true;
    return false;
}
