#include "settings/options.h"

#include <string.h>
#include <strings.h>

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

const char *options_suggest(const char *section, const char *name) {
    const char *best = NULL;
    size_t distance = 2 + strlen(name) / 4; /* a suggestion that differs more would only confuse */
    OPTIONS_FOR_EACH (option, section)
        option_suggest_consider(name, option->name, &best, &distance);
    for (const struct option_section *s = option_sections; s->name != NULL; s++)
        if (option_section_is_in(s, section))
            option_suggest_consider(name, s->name, &best, &distance);
    return best;
}
