#include "lists/url_set.h"

#include "base/assert.h"
#include "base/failure.h"
#include "http/url.h"
#include "lists/list_file.h"
#include "lists/name_set.h"

#include <stdio.h>
#include <stdlib.h>

struct url_set {
    unsigned magic;
#define URL_SET_MAGIC 0x55534554u
    bool sealed;
    bool any_scheme;        /* some entries name no scheme and begin with "//" */
    struct name_set *whole; /* URLs */
    char *block;            /* the beginnings, one behind the other */
    size_t used, capacity;
    struct beginning {
        size_t at, length; /* in the block, until the set is sealed; then: */
        struct slice text;
    } * beginnings; /* once sealed: in order, and none begins like another */
    size_t count, room;
};

struct url_set *url_set_new(void) {
    struct url_set *set;
    ALLOC_OBJ(set, URL_SET_MAGIC);
    set->whole = name_set_new();
    return set;
}

void url_set_free(struct url_set **setp) {
    struct url_set *set = *setp;
    *setp = NULL;
    if (set == NULL)
        return;
    CHECK_OBJ(set, URL_SET_MAGIC);
    name_set_free(&set->whole);
    free(set->block);
    free(set->beginnings);
    FREE_OBJ(set);
}

static bool not_a_url(char *error, size_t error_size, struct slice text, const char *reason) {
    return failure(error, error_size, "\"%.*s\" %s", (int)(text.length < 200 ? text.length : 200),
                   text.base, reason);
}

static void add_beginning(struct url_set *set, struct slice text) {
    if (set->count == set->room) {
        set->room = set->room * 2 + 16;
        set->beginnings = xrealloc(set->beginnings, set->room * sizeof *set->beginnings);
    }
    while (set->capacity - set->used < text.length) {
        set->capacity = set->capacity * 2 + 4096;
        set->block = xrealloc(set->block, set->capacity);
    }
    slice_put(set->block + set->used, text);
    set->beginnings[set->count++] = (struct beginning){.at = set->used, .length = text.length};
    set->used += text.length;
}

/* A dot, or "..", as the last segment: normalising would make another beginning of it. */
static bool ends_with_dots(struct slice text) {
    const char *slash = memrchr(text.base, '/', text.length);
    struct slice rest = slash == NULL
                            ? slice_make("", 0)
                            : slice_make(slash + 1, text.length - (size_t)(slash + 1 - text.base));
    return slice_equal(rest, SLICE(".")) || slice_equal(rest, SLICE(".."));
}

static bool url_has_scheme(struct slice text) {
    const char *colon = text.length > 2 ? memmem(text.base, text.length, "://", 3) : NULL;
    const char *slash = text.length > 0 ? memchr(text.base, '/', text.length) : NULL;
    return colon != NULL && slash == colon + 1;
}

bool url_set_add(struct url_set *set, struct slice text, char *error, size_t error_size) {
    enum { ROOM = LIST_FILE_LINE_MAX + 64 };
    char given[ROOM], out[3 * ROOM];
    struct slice entry = text;
    struct url url;
    CHECK_OBJ(set, URL_SET_MAGIC);
    ASSERT(!set->sealed);
    if (text.length == 0 || text.length > LIST_FILE_LINE_MAX)
        return not_a_url(error, error_size, text, "is not a URL");
    bool scheme = url_has_scheme(text), beginning = text.base[text.length - 1] == '*';
    if (beginning)
        entry.length--;
    char *end = slice_put(slice_put(given, scheme ? slice_make("", 0) : SLICE("http://")), entry);
    entry = slice_make(given, (size_t)(end - given));
    if (!url_parse(&url, entry) || !url_is_web(&url))
        return not_a_url(error, error_size, text,
                         "is not a URL: write \"http://www.example.com/page\", or "
                         "\"www.example.com/page\" for http and https");
    if (beginning && (url.path_query.length == 0 || ends_with_dots(entry)))
        return not_a_url(error, error_size, text,
                         "is not the beginning of a URL: a path stands before the *, as in "
                         "\"http://www.example.com/ads*\"; for whole domains use domain_file");
    struct slice normal = slice_make(out, url_normalise(&url, out, sizeof out));
    if (normal.length == 0)
        return not_a_url(error, error_size, text, "is too long");
    if (!scheme)
        normal = slice_make(out + strlen("http:"), normal.length - strlen("http:"));
    set->any_scheme = set->any_scheme || !scheme;
    if (beginning)
        add_beginning(set, normal);
    else if (!name_set_add(set->whole, normal, NAME_SET_ITSELF))
        return not_a_url(error, error_size, text, "does not fit: the list is too large");
    return true;
}

static int compare_texts(struct slice x, struct slice y) {
    size_t least = x.length < y.length ? x.length : y.length;
    int difference = least == 0 ? 0 : memcmp(x.base, y.base, least);
    return difference != 0 ? difference : (x.length > y.length) - (x.length < y.length);
}

static int compare_beginnings(const void *a, const void *b) {
    const struct beginning *x = a, *y = b;
    return compare_texts(x->text, y->text);
}

void url_set_seal(struct url_set *set) {
    CHECK_OBJ(set, URL_SET_MAGIC);
    size_t kept = 0;
    set->sealed = true;
    for (size_t i = 0; i < set->count; i++)
        set->beginnings[i].text =
            slice_make(set->block + set->beginnings[i].at, set->beginnings[i].length);
    if (set->count > 0)
        qsort(set->beginnings, set->count, sizeof *set->beginnings, compare_beginnings);
    for (size_t i = 0; i < set->count; i++)
        if (kept == 0 ||
            !slice_starts_with(set->beginnings[i].text, set->beginnings[kept - 1].text))
            set->beginnings[kept++] = set->beginnings[i];
    set->count = kept;
}

/* If an entry is the beginning of the text, it is the last one that is not behind the text. */
static bool has_beginning(const struct url_set *set, struct slice text) {
    size_t from = 0, to = set->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (compare_texts(set->beginnings[middle].text, text) <= 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from > 0 && slice_starts_with(text, set->beginnings[from - 1].text);
}

static bool url_set_has_text(const struct url_set *set, struct slice text) {
    return name_set_has(set->whole, text) || has_beginning(set, text);
}

bool url_set_has(const struct url_set *set, struct slice url) {
    CHECK_OBJ(set, URL_SET_MAGIC);
    ASSERT(set->sealed);
    if (url_set_has_text(set, url))
        return true;
    const char *slashes =
        url.length > 0 && set->any_scheme ? memchr(url.base, '/', url.length) : NULL;
    return slashes != NULL &&
           url_set_has_text(set, slice_make(slashes, url.length - (size_t)(slashes - url.base)));
}
