/* Accept and Accept-Language. The first line of the input is the field, the second a candidate.
 * Quality values lie within their range; what is in front of a list does not depend on the pieces
 * behind its limit; a range for exactly this candidate decides alone. */
#include "base/assert.h"
#include "http/preference.h"
#include "lines.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_preference(struct slice field, struct slice candidate,
                             struct preference (*prefer)(struct slice, struct slice)) {
    struct preference preference = prefer(field, candidate);
    ASSERT(preference.quality <= 1000 && preference.at < PREFERENCE_RANGES);
    ASSERT(field.length > 0 || preference.quality == 1000);
}

/* In front of everything else. */
static void check_exact(struct slice field, struct slice candidate) {
    if (candidate.length == 0 || memchr(candidate.base, ',', candidate.length) != NULL ||
        memchr(candidate.base, ';', candidate.length) != NULL ||
        memchr(candidate.base, '"', candidate.length) != NULL ||
        slice_trim(candidate).length != candidate.length)
        return;
    size_t length = candidate.length + field.length + 16;
    char *text = malloc(length), *at = slice_put(text, candidate);
    at = slice_put(at, SLICE(";q=1.0,"));
    at = slice_put(at, field);
    struct slice whole = slice_make(text, (size_t)(at - text));
    ASSERT(preference_of_language(whole, candidate).quality == 1000);
    ASSERT(preference_of_language(whole, candidate).at == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice rest = slice_make((const char *)data, size), field = {0}, candidate = {0};
    if (!slice_next_line(&rest, &field) || !slice_next_line(&rest, &candidate))
        return 0;
    check_preference(field, candidate, preference_of_language);
    if (candidate.length > 0)
        check_preference(field, candidate, preference_of_type);
    check_exact(field, candidate);
    return 0;
}
