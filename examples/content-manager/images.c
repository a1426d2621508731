#include "images.h"

#include "http/url.h"

#include <stdio.h>

static bool images_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f';
}

/* Takes the next attribute off the front. */
static bool next_attribute(struct slice *rest, struct slice *name, struct slice *value) {
    const char *at = rest->base, *end = rest->base + rest->length;
    while (at < end && (images_is_blank(*at) || *at == '/'))
        at++;
    const char *begin = at;
    while (at < end && !images_is_blank(*at) && *at != '=' && *at != '/')
        at++;
    *name = slice_make(begin, (size_t)(at - begin));
    *value = slice_make(at, 0);
    while (at < end && images_is_blank(*at))
        at++;
    if (at < end && *at == '=') {
        do
            at++;
        while (at < end && images_is_blank(*at));
        char quote = at < end && (*at == '"' || *at == '\'') ? *at++ : '\0';
        begin = at;
        while (at < end && (quote != '\0' ? *at != quote : !images_is_blank(*at)))
            at++;
        *value = slice_make(begin, (size_t)(at - begin));
        at += at < end && quote != '\0';
    }
    *rest = slice_make(at, (size_t)(end - at));
    return name->length > 0;
}

static bool tag_is(const struct images *images, const char *name) {
    size_t length = strlen(name);
    return images->length >= length &&
           slice_equal_nocase(slice_make(images->tag, length), slice_make(name, length)) &&
           (images->length == length || images_is_blank(images->tag[length]) ||
            images->tag[length] == '/');
}

static void end_tag(struct images *images, void (*see)(void *arg, struct slice source), void *arg) {
    struct slice name, value;
    images->place = IMAGES_TEXT;
    memset(images->last, 0, sizeof images->last);
    if (tag_is(images, "script"))
        images->place = IMAGES_IN_SCRIPT;
    if (!tag_is(images, "img"))
        return;
    struct slice rest = slice_make(images->tag + 3, images->length - 3);
    while (next_attribute(&rest, &name, &value))
        if (slice_equal_nocase(name, SLICE("src")) && value.length > 0) {
            see(arg, value);
            return;
        }
}

static void take_in_tag(struct images *images, char c, void (*see)(void *arg, struct slice source),
                        void *arg) {
    if (c == '>' && images->length <= IMAGES_TAG) {
        end_tag(images, see, arg);
    } else if (c == '>') {
        images->place = IMAGES_TEXT;
    } else if (images->length < IMAGES_TAG) {
        images->tag[images->length++] = c;
        if (images->length == 3 && memcmp(images->tag, "!--", 3) == 0) {
            images->place = IMAGES_IN_COMMENT;
            memset(images->last, 0, sizeof images->last);
        }
    } else {
        images->length = IMAGES_TAG + 1;
    }
}

/* Has the text ended that is passed over? */
static bool ends_with(struct images *images, char c, const char *text) {
    size_t length = strlen(text);
    memmove(images->last, images->last + 1, sizeof images->last - 1);
    images->last[sizeof images->last - 1] = c;
    return slice_equal_nocase(slice_make(images->last + sizeof images->last - length, length),
                              slice_make(text, length));
}

void images_scan(struct images *images, struct slice piece,
                 void (*see)(void *arg, struct slice source), void *arg) {
    for (size_t i = 0; i < piece.length; i++) {
        char c = piece.base[i];
        switch (images->place) {
        case IMAGES_TEXT:
            if (c == '<') {
                images->place = IMAGES_IN_TAG;
                images->length = 0;
            }
            break;
        case IMAGES_IN_TAG: take_in_tag(images, c, see, arg); break;
        case IMAGES_IN_COMMENT:
            if (ends_with(images, c, "-->"))
                images->place = IMAGES_TEXT;
            break;
        case IMAGES_IN_SCRIPT:
            if (ends_with(images, c, "</script"))
                images->place = IMAGES_TEXT;
        }
    }
}

/* URLs in HTML have &amp; for &. Control characters make none. */
static size_t copy_source(struct slice source, char *out, size_t capacity) {
    size_t length = 0;
    for (size_t i = 0; i < source.length; i++) {
        struct slice rest = slice_make(source.base + i, source.length - i);
        if ((unsigned char)source.base[i] <= ' ' || length + 1 >= capacity)
            return 0;
        out[length++] = source.base[i];
        if (slice_starts_with_nocase(rest, SLICE("&amp;")))
            i += 4;
    }
    return length;
}

static size_t join(char *out, size_t capacity, struct slice base, struct slice more) {
    int length = snprintf(out, capacity, "%.*s%.*s", SLICE_PRINT(base), SLICE_PRINT(more));
    return length > 0 && (size_t)length < capacity ? (size_t)length : 0;
}

/* The page's URL up to the last slash of its path. */
static struct slice folder_of(struct slice page, const struct url *url) {
    const char *path = url->path_query.base, *end = path + url->path_query.length;
    const char *query = memchr(path, '?', (size_t)(end - path));
    end = query != NULL ? query : end;
    while (end > path && end[-1] != '/')
        end--;
    return slice_make(page.base, (size_t)(end - page.base));
}

size_t images_resolve(struct slice page, struct slice source, char *out, size_t capacity) {
    char text[IMAGES_TAG];
    struct url url, own;
    struct slice clean = slice_make(text, copy_source(source, text, sizeof text));
    if (clean.length == 0 || clean.base[0] == '#' || !url_parse(&url, page) ||
        url.path_query.length == 0 || url.path_query.base[0] != '/')
        return 0;
    struct slice site = slice_make(page.base, (size_t)(url.path_query.base - page.base));
    if (url_parse(&own, clean))
        return url_is_web(&own) ? join(out, capacity, clean, SLICE("")) : 0;
    if (slice_starts_with(clean, SLICE("//")))
        return join(out, capacity, slice_make(page.base, url.scheme.length + 1), clean);
    if (clean.base[0] == '/')
        return join(out, capacity, site, clean);
    const char *colon = memchr(clean.base, ':', clean.length);
    const char *slash = memchr(clean.base, '/', clean.length);
    if (colon != NULL && (slash == NULL || colon < slash))
        return 0; /* data: and the like */
    return join(out, capacity, folder_of(page, &url), clean);
}

bool images_same_site(struct slice one, struct slice other) {
    struct url a, b;
    return url_parse(&a, one) && url_parse(&b, other) && a.port == b.port &&
           slice_equal_nocase(a.scheme, b.scheme) && slice_equal_nocase(a.host, b.host);
}
