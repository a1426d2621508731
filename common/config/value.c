#include "config/value.h"

#include "base/assert.h"
#include "base/failure.h"
#include "base/slice.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static void *member(void *destination, size_t offset) {
    return (char *)destination + offset;
}

void value_write_bound(const struct option *option, double bound, char text[UNITS_TEXT]) {
    if (option->type == OPTION_SIZE)
        units_write_size(text, (uint64_t)bound);
    else if (option->type == OPTION_TIME)
        units_write_time(text, (uint64_t)bound);
    else
        snprintf(text, UNITS_TEXT, "%.10g", bound);
}

static bool value_in_range(const struct option *option, double value, char *error,
                           size_t error_size) {
    char least[UNITS_TEXT], most[UNITS_TEXT];
    if (value >= option->least && (option->most == 0 || value <= option->most))
        return true;
    value_write_bound(option, option->least, least);
    value_write_bound(option, option->most, most);
    if (option->most == 0)
        snprintf(error, error_size, "is out of range: at least %s", least);
    else
        snprintf(error, error_size, "is out of range: from %s to %s", least, most);
    return false;
}

static bool set_bool(void *at, const char *text, char *error, size_t error_size) {
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *(bool *)at = i % 2 == 1;
            return true;
        }
    }
    return failure(error, error_size, "is not true or false");
}

static bool set_count(const struct option *option, void *at, const char *text, char *error,
                      size_t error_size) {
    uint64_t value;
    if (!slice_to_uint64(slice_from(text), &value))
        return failure(error, error_size, "is not a whole number");
    if (!value_in_range(option, (double)value, error, error_size))
        return false;
    *(unsigned *)at = (unsigned)value;
    return true;
}

static bool set_integer(const struct option *option, void *at, const char *text, char *error,
                        size_t error_size) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 0);
    if (option->check != NULL && !option->check(text, error, error_size))
        return false;
    if (end == text || *end != '\0' || errno != 0 || value != (int)value)
        return failure(error, error_size, "is not a whole number");
    if (!value_in_range(option, (double)value, error, error_size))
        return false;
    *(int *)at = (int)value;
    return true;
}

static bool set_size(const struct option *option, void *at, const char *text, char *error,
                     size_t error_size) {
    uint64_t value;
    if (!units_read_size(slice_from(text), &value))
        return failure(error, error_size,
                       "is not a size: write bytes, or a number with KB, MB or GB, as in \"64KB\"");
    if (!value_in_range(option, (double)value, error, error_size))
        return false;
    *(size_t *)at = (size_t)value;
    return true;
}

static bool set_time(const struct option *option, void *at, const char *text, char *error,
                     size_t error_size) {
    uint64_t value;
    if (!units_read_time(slice_from(text), option->bare_seconds ? 1000 : 0, &value))
        return failure(error, error_size,
                       "is not a time: write a number with ms, s, m, h or d, as in \"5s\"");
    if (!value_in_range(option, (double)value, error, error_size))
        return false;
    *(uint64_t *)at = value;
    return true;
}

static bool set_float(const struct option *option, void *at, const char *text, char *error,
                      size_t error_size) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return failure(error, error_size, "is not a number");
    if (!value_in_range(option, value, error, error_size))
        return false;
    *(double *)at = value;
    return true;
}

static bool set_word(const struct option *option, void *at, const char *text, char *error,
                     size_t error_size) {
    for (int i = 0; option->words[i] != NULL; i++) {
        if (strcmp(text, option->words[i]) == 0) {
            memcpy(at, &i, sizeof i); /* every enum of the settings is as large as an int */
            return true;
        }
    }
    size_t length = (size_t)snprintf(error, error_size, "is not one of");
    for (int i = 0; option->words[i] != NULL && length < error_size; i++)
        length += (size_t)snprintf(error + length, error_size - length, "%s %s", i == 0 ? "" : ",",
                                   option->words[i]);
    return false;
}

static bool check_text(const struct option *option, const char *text, char *error,
                       size_t error_size) {
    if (text[0] == '\0' && !option->empty)
        return failure(error, error_size, "is empty");
    return option->check == NULL || option->check(text, error, error_size);
}

static bool set_string(const struct option *option, void *at, const char *text, char *error,
                       size_t error_size) {
    if (!check_text(option, text, error, error_size))
        return false;
    free(*(char **)at);
    *(char **)at = xstrdup(text);
    return true;
}

static bool append_string(const struct option *option, void *at, const char *text, char *error,
                          size_t error_size) {
    char ***strings = at;
    size_t count = 0;
    if (!check_text(option, text, error, error_size))
        return false;
    while (*strings != NULL && (*strings)[count] != NULL)
        count++;
    *strings = xrealloc(*strings, (count + 2) * sizeof **strings);
    (*strings)[count] = xstrdup(text);
    (*strings)[count + 1] = NULL;
    return true;
}

static bool append_element(const struct option *option, void *at, size_t *count, const char *text,
                           char *error, size_t error_size) {
    const struct option_elements *elements = option->elements;
    char **list = at, *element;
    if (strcmp(text, elements->empty) == 0 && *count == 0)
        return true;
    element = xcalloc(1, elements->size);
    bool good = elements->read(element, text, error, error_size);
    if (good) {
        *list = xrealloc(*list, (*count + 1) * elements->size);
        memcpy(*list + (*count)++ * elements->size, element, elements->size);
    }
    free(element);
    return good;
}

bool value_set(const struct option *option, void *destination, const char *text, char *error,
               size_t error_size) {
    void *at = member(destination, option->at);
    size_t *count = member(destination, option->count_at);
    if (text[0] == '\0' && option->empty && !option_is_list(option))
        return true;
    switch (option->type) {
    case OPTION_BOOL: return set_bool(at, text, error, error_size);
    case OPTION_COUNT: return set_count(option, at, text, error, error_size);
    case OPTION_INTEGER: return set_integer(option, at, text, error, error_size);
    case OPTION_SIZE: return set_size(option, at, text, error, error_size);
    case OPTION_TIME: return set_time(option, at, text, error, error_size);
    case OPTION_FLOAT: return set_float(option, at, text, error, error_size);
    case OPTION_STRING: return set_string(option, at, text, error, error_size);
    case OPTION_WORD: return set_word(option, at, text, error, error_size);
    case OPTION_STRINGS: return append_string(option, at, text, error, error_size);
    case OPTION_ELEMENTS: return append_element(option, at, count, text, error, error_size);
    }
    ASSERT(!"an option type without a parser");
    return false;
}

void value_set_fallback(const struct option *option, void *destination) {
    char error[200];
    if (option->fallback == NULL)
        return;
    if (option->type != OPTION_STRINGS) {
        ASSERT(value_set(option, destination, option->fallback, error, sizeof error));
        return;
    }
    struct slice rest = slice_from(option->fallback), element;
    while (slice_next_element(&rest, &element)) {
        char *text = slice_dup(element);
        ASSERT(value_set(option, destination, text, error, sizeof error));
        free(text);
    }
}

size_t value_size(const struct option *option) {
    switch (option->type) {
    case OPTION_BOOL: return sizeof(bool);
    case OPTION_COUNT: return sizeof(unsigned);
    case OPTION_INTEGER: return sizeof(int);
    case OPTION_SIZE: return sizeof(size_t);
    case OPTION_TIME: return sizeof(uint64_t);
    case OPTION_FLOAT: return sizeof(double);
    case OPTION_WORD: return sizeof(int);
    case OPTION_STRING:
    case OPTION_STRINGS:
    case OPTION_ELEMENTS: return sizeof(void *);
    }
    return 0;
}

void value_release(const struct option *option, void *destination) {
    void *at = member(destination, option->at);
    char **strings;
    switch (option->type) {
    case OPTION_STRINGS:
        strings = *(char ***)at;
        for (size_t i = 0; strings != NULL && strings[i] != NULL; i++)
            free(strings[i]);
        break;
    case OPTION_ELEMENTS: *(size_t *)member(destination, option->count_at) = 0; break;
    case OPTION_STRING: break;
    default: return;
    }
    free(*(void **)at);
    *(void **)at = NULL;
}

void *value_lone_destination(const struct option *option) {
    size_t end = option->at + value_size(option);
    size_t count_end = option->count_at + sizeof(size_t);
    return xcalloc(1, end > count_end ? end : count_end);
}

bool value_check(const struct option *option, const char *text, char *error, size_t error_size) {
    void *lone = value_lone_destination(option);
    bool good = value_set(option, lone, text, error, error_size);
    value_release(option, lone);
    free(lone);
    return good;
}
