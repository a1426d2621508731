#include "config/option.h"

#include <string.h>
#include <strings.h>

const struct option *options_next(const struct option *from, const char *section) {
    for (; from->name != NULL; from++)
        if (strcmp(from->section, section) == 0)
            return from;
    return NULL;
}

const struct option *options_find(const struct option_table *table, const char *section,
                                  const char *name) {
    OPTIONS_FOR_EACH (option, table, section)
        if (strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

const struct option_section *options_find_section(const struct option_table *table,
                                                  const char *name) {
    for (const struct option_section *kind = table->sections; kind->name != NULL; kind++)
        if (strcmp(kind->name, name) == 0)
            return kind;
    return NULL;
}

bool option_section_is_in(const struct option_section *kind, const char *section) {
    if (kind->name[0] == '\0')
        return false;
    return strcmp(kind->parent == NULL ? "" : kind->parent, section) == 0;
}

bool option_is_list(const struct option *option) {
    return option->type == OPTION_STRINGS || option->type == OPTION_ELEMENTS;
}

/* Suggestions. */

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The number of letters that must be inserted, removed or replaced to turn one word into the
 * other. */
static size_t word_distance(const char *a, const char *b) {
    enum { LONGEST = 40 };
    size_t row[LONGEST + 1], a_length = strlen(a), b_length = strlen(b);
    if (a_length > LONGEST || b_length > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = diagonal + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0);
            diagonal = row[j];
            row[j] = least_of(replaced, 1 + least_of(row[j], row[j - 1]));
        }
    }
    return row[b_length];
}

static void option_suggest_consider(const char *name, const char *candidate, const char **best,
                                    size_t *distance) {
    size_t this_distance = word_distance(name, candidate);
    if (this_distance < *distance) {
        *distance = this_distance;
        *best = candidate;
    }
}

const char *options_suggest(const struct option_table *table, const char *section,
                            const char *name) {
    const char *best = NULL;
    size_t distance = 2 + strlen(name) / 4; /* a suggestion that differs more would only confuse */
    OPTIONS_FOR_EACH (option, table, section)
        option_suggest_consider(name, option->name, &best, &distance);
    for (const struct option_section *s = table->sections; s->name != NULL; s++)
        if (option_section_is_in(s, section))
            option_suggest_consider(name, s->name, &best, &distance);
    return best;
}
