#include "http/preference.h"

bool preference_is_better(struct preference a, struct preference b) {
    if (a.quality != b.quality || a.quality == 0)
        return a.quality > b.quality;
    return a.fit != b.fit ? a.fit > b.fit : a.at < b.at;
}

/* How well a range fits: the larger, the more specific; 0: not at all. */
typedef unsigned preference_fit_fn(struct slice range, struct slice candidate);

/* "0.815" in thousandths. False: it is no quality value. */
static bool read_quality(struct slice text, unsigned *quality) {
    enum { LONGEST = 5 };
    unsigned factor = 100;
    if (text.length == 0 || text.length > LONGEST || (text.base[0] != '0' && text.base[0] != '1') ||
        (text.length > 1 && text.base[1] != '.'))
        return false;
    *quality = text.base[0] == '1' ? 1000 : 0;
    for (size_t i = 2; i < text.length; i++, factor /= 10) {
        if (text.base[i] < '0' || text.base[i] > '9')
            return false;
        *quality += (unsigned)(text.base[i] - '0') * factor;
    }
    return *quality <= 1000;
}

/* Takes the text before the next ';' off the front. */
static struct slice take_part(struct slice *rest) {
    const char *mark = rest->length > 0 ? memchr(rest->base, ';', rest->length) : NULL;
    size_t length = mark != NULL ? (size_t)(mark - rest->base) : rest->length;
    struct slice part = slice_trim(slice_make(rest->base, length));
    length += mark != NULL;
    *rest = slice_make(rest->base + length, rest->length - length);
    return part;
}

/* "RANGE;name=value;q=0.5". A range whose quality can't be read is skipped. */
static bool read_range(struct slice element, struct slice *range, unsigned *quality) {
    *range = take_part(&element);
    *quality = 1000;
    while (element.length > 0) {
        struct slice part = take_part(&element);
        if (part.length >= 2 && ascii_lower((unsigned char)part.base[0]) == 'q' &&
            part.base[1] == '=' &&
            !read_quality(slice_make(part.base + 2, part.length - 2), quality))
            return false;
    }
    return range->length > 0;
}

static struct preference preference_find(struct slice field, struct slice candidate,
                                         preference_fit_fn *fit) {
    struct preference best = {.quality = field.length == 0 ? 1000 : 0};
    struct slice rest = field, element, range;
    unsigned quality;
    for (unsigned at = 0; at < PREFERENCE_RANGES && slice_next_element(&rest, &element); at++) {
        if (!read_range(element, &range, &quality))
            continue;
        unsigned this_fit = fit(range, candidate);
        if (this_fit < best.fit || this_fit == 0 ||
            (this_fit == best.fit && quality <= best.quality))
            continue;
        best = (struct preference){.quality = quality, .fit = this_fit, .at = at};
    }
    return best;
}

static unsigned fit_of_type(struct slice range, struct slice type) {
    const char *slash = memchr(type.base, '/', type.length);
    size_t main_type = slash != NULL ? (size_t)(slash - type.base) + 1 : type.length;
    if (slice_equal_nocase(range, type))
        return 3;
    if (range.length == main_type + 1 && range.base[main_type] == '*' &&
        slice_equal_nocase(slice_make(range.base, main_type), slice_make(type.base, main_type)))
        return 2;
    return slice_equal(range, SLICE("*/*")) ? 1 : 0;
}

/* Is `below` a language below `tag`, as de-AT is below de? */
static bool preference_is_below(struct slice below, struct slice tag) {
    return below.length > tag.length && below.base[tag.length] == '-' &&
           slice_starts_with_nocase(below, tag);
}

static unsigned fit_of_language(struct slice range, struct slice language) {
    if (slice_equal_nocase(range, language))
        return 4;
    if (preference_is_below(language, range))
        return 3;
    if (preference_is_below(range, language))
        return 2;
    return slice_equal(range, SLICE("*")) ? 1 : 0;
}

struct preference preference_of_type(struct slice accept, struct slice type) {
    return preference_find(accept, type, fit_of_type);
}

struct preference preference_of_language(struct slice accept_language, struct slice language) {
    return preference_find(accept_language, language, fit_of_language);
}
