#include "admin/operator_line.h"

#include "base/failure.h"

#include <stdio.h>
#include <string.h>

static const char *const role_names[] = {"nobody", "read", "operate", "admin"};

const char *operator_role_name(enum operator_role role) {
    return role_names[role];
}

static enum operator_role operator_role_of(struct slice name) {
    for (int role = OPERATOR_READ; role <= OPERATOR_ADMIN; role++)
        if (slice_equal(name, slice_from(role_names[role])))
            return (enum operator_role)role;
    return OPERATOR_NOBODY;
}

struct slice operator_line_take_word(struct slice *text) {
    struct slice rest = slice_trim(*text);
    size_t length = 0;
    while (length < rest.length && rest.base[length] != ' ' && rest.base[length] != '\t')
        length++;
    *text = slice_make(rest.base + length, rest.length - length);
    return slice_make(rest.base, length);
}

bool operator_line_consists_of(struct slice text, const char *signs) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (size_t i = 0; i < text.length; i++)
        if (text.base[i] == '\0' ||
            (strchr(letters, text.base[i]) == NULL && strchr(signs, text.base[i]) == NULL))
            return false;
    return true;
}

/* NULL: the line is good, or says nothing. */
static const char *see_line(struct slice text, operator_line_see *see, void *arg) {
    struct operator_line line = {.role = OPERATOR_NOBODY};
    struct slice name = operator_line_take_word(&text);
    if (name.length == 0 || name.base[0] == '#')
        return NULL;
    if (name.length <= OPERATOR_NAME && operator_line_consists_of(name, "._-"))
        memcpy(line.name, name.base, name.length);
    line.role = operator_role_of(operator_line_take_word(&text));
    line.rest = slice_trim(text);
    return see(arg, &line);
}

bool operator_lines_each(struct slice text, const char *path, operator_line_see *see, void *arg,
                         char *error, size_t error_size) {
    struct slice line;
    for (unsigned number = 1; slice_next_line(&text, &line); number++) {
        if (line.length > 0 && line.base[line.length - 1] == '\r')
            line.length--;
        const char *fault = see_line(line, see, arg);
        if (fault == NULL)
            continue;
        return failure(error, error_size, "%s:%u: %s", path, number, fault);
    }
    return true;
}
