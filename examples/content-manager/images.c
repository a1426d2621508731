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

/* srcset: URLs with a width or a density each, and commas between (HTML, "Parsing a srcset
 * attribute"). A URL may have commas inside. */
static bool next_candidate(struct slice *rest, struct slice *source) {
    const char *at = rest->base, *end = rest->base + rest->length;
    while (at < end && (images_is_blank(*at) || *at == ','))
        at++;
    const char *begin = at;
    while (at < end && !images_is_blank(*at))
        at++;
    const char *behind = at;
    while (behind > begin && behind[-1] == ',')
        behind--;
    *source = slice_make(begin, (size_t)(behind - begin));
    const char *described = behind == at ? end : at; /* a comma right behind the URL ends it */
    for (bool inside = false; at < described && (inside || *at != ','); at++)
        inside = *at == '(' || (inside && *at != ')');
    *rest = slice_make(at, (size_t)(end - at));
    return source->length > 0;
}

static void see_candidates(struct slice sources, const struct images_reader *reader) {
    struct slice source;
    for (unsigned i = 0; next_candidate(&sources, &source) && (i == 0 || reader->all_sizes); i++)
        reader->see_image(reader->arg, source);
}

/* The first attribute of a name counts. */
static bool is_first(struct slice name, const char *wanted, bool *seen) {
    bool first = !*seen && slice_equal_nocase(name, slice_from(wanted));
    *seen = *seen || first;
    return first;
}

static void end_tag(struct images *images, const struct images_reader *reader) {
    struct slice name, value;
    images->place = IMAGES_TEXT;
    memset(images->last, 0, sizeof images->last);
    if (tag_is(images, "script"))
        images->place = IMAGES_IN_SCRIPT;
    bool image = tag_is(images, "img"), source = tag_is(images, "source"),
         base = tag_is(images, "base") && !images->has_base;
    bool src = !image, srcset = !image && !source;
    if (!image && !source && !base)
        return;
    struct slice rest = slice_make(images->tag, images->length);
    for (next_attribute(&rest, &name, &value); next_attribute(&rest, &name, &value);) {
        if (is_first(name, "src", &src) && value.length > 0) {
            reader->see_image(reader->arg, value);
        } else if (is_first(name, "srcset", &srcset)) {
            see_candidates(value, reader);
        } else if (base && is_first(name, "href", &images->has_base)) {
            reader->see_base(reader->arg, value);
        }
    }
}

/* A quote counts behind "=" alone, and until the same one: there may be a ">" inside. */
static void take_quote(struct images *images, char c) {
    if (images->quote != '\0')
        images->quote = c == images->quote ? '\0' : images->quote;
    else if ((c == '"' || c == '\'') && images->behind_equals)
        images->quote = c;
    images->behind_equals = c == '=' || (images->behind_equals && images_is_blank(c));
}

static void begin_tag(struct images *images) {
    images->place = IMAGES_IN_TAG;
    images->length = 0;
    images->quote = '\0';
    images->behind_equals = false;
}

static void take_in_tag(struct images *images, char c, const struct images_reader *reader) {
    bool ends = c == '>' && images->quote == '\0';
    take_quote(images, c);
    if (ends && images->length <= IMAGES_TAG) {
        end_tag(images, reader);
    } else if (ends) {
        images->place = IMAGES_TEXT;
    } else if (images->length < IMAGES_TAG) {
        images->tag[images->length++] = c;
        if (images->length == 3 && memcmp(images->tag, "!--", 3) == 0) {
            images->place = IMAGES_IN_COMMENT;
            memset(images->last, '-', sizeof images->last); /* "<!-->" is a whole comment */
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

void images_scan(struct images *images, struct slice piece, const struct images_reader *reader) {
    for (size_t i = 0; i < piece.length; i++) {
        char c = piece.base[i];
        switch (images->place) {
        case IMAGES_TEXT:
            if (c == '<')
                begin_tag(images);
            break;
        case IMAGES_IN_TAG: take_in_tag(images, c, reader); break;
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

static bool is_character_reference(struct slice rest) {
    return rest.length > 2 && rest.base[0] == '&' && rest.base[1] == '#' &&
           (rest.base[2] == 'x' || rest.base[2] == 'X' ||
            (rest.base[2] >= '0' && rest.base[2] <= '9'));
}

/* As browsers read it: blanks around it do not count, nor do ends of lines and tabs inside. URLs in
 * HTML have &amp; for &. Other characters that no URL has are encoded. 0: it does not fit, or is
 * written with numbers of characters. */
static size_t copy_source(struct slice source, char *out, size_t capacity) {
    size_t length = 0;
    while (source.length > 0 && images_is_blank(source.base[0]))
        source = slice_make(source.base + 1, source.length - 1);
    while (source.length > 0 && images_is_blank(source.base[source.length - 1]))
        source.length--;
    for (size_t i = 0; i < source.length; i++) {
        struct slice rest = slice_make(source.base + i, source.length - i);
        unsigned char c = (unsigned char)source.base[i];
        if (length + 4 > capacity || is_character_reference(rest))
            return 0;
        if (c == '#')
            break;
        if (c == '\t' || c == '\r' || c == '\n')
            continue;
        if (c <= ' ' || c >= 0x7f)
            length += (size_t)snprintf(out + length, capacity - length, "%%%02X", c);
        else
            out[length++] = (char)c;
        if (slice_starts_with_nocase(rest, SLICE("&amp;")))
            i += 4;
    }
    return length;
}

/* The beginning of the base that stands in front of a reference (RFC 3986 §5.2). */
static struct slice base_for(struct slice base, const struct url *url, struct slice reference) {
    const char *begin = url->path_query.base, *end = begin + url->path_query.length;
    if (slice_starts_with(reference, SLICE("//")))
        return slice_make(base.base, url->scheme.length + 1);
    if (reference.base[0] == '/')
        return slice_make(base.base, (size_t)(begin - base.base));
    const char *query = memchr(begin, '?', (size_t)(end - begin));
    end = query != NULL ? query : end;
    while (reference.base[0] != '?' && end > begin && end[-1] != '/')
        end--;
    return slice_make(base.base, (size_t)(end - base.base));
}

/* The canonical form, so that two spellings are one image. */
static size_t write_url(struct slice text, char *out, size_t capacity) {
    struct url url;
    if (!url_parse(&url, text) || !url_is_web(&url) || url_room(&url) > capacity)
        return 0;
    return url_normalise(&url, out, capacity);
}

static bool has_scheme(struct slice reference) {
    const char *colon = memchr(reference.base, ':', reference.length);
    const char *end = colon == NULL ? NULL : reference.base;
    while (end != NULL && end < colon && *end != '/' && *end != '?')
        end++;
    return end == colon && colon != NULL;
}

size_t images_resolve(struct slice base, struct slice source, char *out, size_t capacity) {
    char text[IMAGES_TAG], joined[2 * IMAGES_TAG];
    struct url url;
    struct slice reference = slice_make(text, copy_source(source, text, sizeof text));
    if (reference.length == 0 || !url_parse(&url, base) || url.path_query.length == 0 ||
        url.path_query.base[0] != '/')
        return 0;
    if (has_scheme(reference)) /* data: and the like have no URL of the web */
        return write_url(reference, out, capacity);
    struct slice front = base_for(base, &url, reference);
    int length =
        snprintf(joined, sizeof joined, "%.*s%.*s", SLICE_PRINT(front), SLICE_PRINT(reference));
    if (length <= 0 || (size_t)length >= sizeof joined)
        return 0;
    return write_url(slice_make(joined, (size_t)length), out, capacity);
}

bool images_same_site(struct slice one, struct slice other) {
    struct url a, b;
    return url_parse(&a, one) && url_parse(&b, other) && a.port == b.port &&
           slice_equal_nocase(a.scheme, b.scheme) && slice_equal_nocase(a.host, b.host);
}
