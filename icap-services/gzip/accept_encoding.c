#include "gzip/accept_encoding.h"

/* qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ), in thousandths; 0 when bad. */
static int parse_quality(struct slice text) {
    if (text.length == 0 || text.length > 5 || (text.base[0] != '0' && text.base[0] != '1'))
        return 0;
    int quality = (text.base[0] - '0') * 1000;
    if (text.length > 1 && text.base[1] != '.')
        return 0;
    int weight = 100;
    for (size_t i = 2; i < text.length; i++, weight /= 10) {
        if (text.base[i] < '0' || text.base[i] > '9')
            return 0;
        quality += (text.base[i] - '0') * weight;
    }
    return quality <= 1000 ? quality : 0;
}

/* Cuts "name;q=0.5" into its name and its quality. */
static struct slice split_element(struct slice element, int *quality) {
    const char *semicolon = memchr(element.base, ';', element.length);
    *quality = 1000;
    if (semicolon == NULL)
        return element;
    struct slice name = slice_trim(slice_make(element.base, (size_t)(semicolon - element.base)));
    struct slice rest = slice_trim(
        slice_make(semicolon + 1, element.length - (size_t)(semicolon + 1 - element.base)));
    bool is_quality =
        rest.length >= 2 && (rest.base[0] == 'q' || rest.base[0] == 'Q') && rest.base[1] == '=';
    *quality = is_quality ? parse_quality(slice_make(rest.base + 2, rest.length - 2)) : 0;
    return name;
}

static bool same_coding(struct slice a, struct slice b) {
    const struct slice prefix = SLICE("x-");
    if (slice_starts_with_nocase(a, prefix))
        a = slice_make(a.base + 2, a.length - 2);
    return slice_equal_nocase(a, b);
}

/* The qualities that the value states for the coding itself and for "*"; -1: it does not name
 * it. */
static void find_qualities(struct slice value, struct slice coding, int *named, int *any) {
    struct slice rest = value, element;
    *named = *any = -1;
    while (slice_next_element(&rest, &element)) {
        int quality;
        struct slice name = split_element(element, &quality);
        if (slice_equal(name, SLICE("*")))
            *any = *any < 0 || quality < *any ? quality : *any;
        else if (same_coding(name, coding))
            *named = *named < 0 || quality < *named ? quality : *named;
    }
}

int accept_encoding_quality(struct slice value, struct slice coding) {
    int named, any;
    find_qualities(value, coding, &named, &any);
    return named >= 0 ? named : any;
}

int accept_encoding_named(struct slice value, struct slice coding) {
    int named, any;
    find_qualities(value, coding, &named, &any);
    return named;
}
