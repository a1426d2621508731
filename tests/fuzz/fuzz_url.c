/* URLs and authorities: slices stay inside; the canonical form is its own canonical form, and that
 * of every other spelling; no server that decodes it sees a dot segment in it that we do not. */
#include "base/assert.h"
#include "http/dot_segments.h"
#include "http/url.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct slice slice, struct slice text) {
    ASSERT(slice.base >= text.base && slice.base + slice.length <= text.base + text.length);
}

static void check_host(struct slice host) {
    ASSERT(host.length > 0);
    for (size_t i = 0; i < host.length; i++)
        ASSERT(host.base[i] > 0x20 && memchr("/\\@?#[],%", host.base[i], 9) == NULL);
}

/* The caller frees it. */
static char *normalise(const struct url *url, size_t text_length, size_t *length) {
    size_t capacity = text_length + 16;
    char *out = xmalloc(capacity);
    *length = url_normalise(url, out, capacity);
    ASSERT(*length > 0);
    ASSERT(url_normalise(url, out, url_room(url) - 1) == 0);
    ASSERT(url_normalise(url, out, url_room(url)) == *length);
    return out;
}

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_encoding(struct slice text, size_t at) {
    return text.base[at] == '%' && at + 2 < text.length && is_hex(text.base[at + 1]) &&
           is_hex(text.base[at + 2]);
}

/* As a server would: decodes all, then splits. */
static bool has_dot_segment(struct slice path, const char *separators) {
    char *decoded = xmalloc(path.length + 2);
    size_t length = 0;
    bool found = false;
    for (size_t i = 0; i < path.length; i++) {
        char hex[3] = {0};
        decoded[length] = path.base[i];
        if (is_encoding(path, i)) {
            memcpy(hex, path.base + i + 1, 2);
            decoded[length] = (char)strtoul(hex, NULL, 16);
            i += 2;
        }
        length++;
    }
    decoded[length++] = '/';
    for (size_t begin = 0, i = 0; i < length; i++) {
        if (memchr(separators, decoded[i], strlen(separators)) == NULL)
            continue;
        size_t end = i;
        if (strlen(separators) > 1 && memchr(decoded + begin, ';', i - begin) != NULL)
            end = (size_t)((char *)memchr(decoded + begin, ';', i - begin) - decoded);
        found = found || (end - begin == 1 && decoded[begin] == '.') ||
                (end - begin == 2 && memcmp(decoded + begin, "..", 2) == 0);
        begin = i + 1;
    }
    free(decoded);
    return found;
}

/* Splits first, as RFC 3986 has it: an encoded separator is none. */
static bool has_plain_dot_segment(struct slice path) {
    static const char *const dots[] = {".", "..", "%2E", ".%2E", "%2E.", "%2E%2E"};
    for (size_t begin = 0, i = 0; i <= path.length; i++) {
        if (i < path.length && path.base[i] != '/')
            continue;
        for (size_t j = 0; j < sizeof dots / sizeof dots[0]; j++)
            if (slice_equal_nocase(slice_make(path.base + begin, i - begin), slice_from(dots[j])))
                return true;
        begin = i + 1;
    }
    return false;
}

static void check_path(struct slice path) {
    ASSERT(path.length > 0 && path.base[0] == '/' && !has_plain_dot_segment(path));
    if (has_dot_segment(path, "/\\"))
        ASSERT(dot_segments_may_be_seen(path));
}

static bool is_plain(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("-._~", c) != NULL);
}

/* Other spellings of the same URL, by RFC 3986 §6.2.2: they must come to the same. Where a '%'
 * encodes nothing, bytes behind it can't be encoded. */
static void check_spellings(const struct url *url, struct slice canonical) {
    struct slice path = url->path_query;
    size_t before = canonical.length - path.length, length, at = before;
    char *text = xmalloc(canonical.length * 8 + 16);
    bool in_path = true;
    for (size_t i = 0; i < path.length; i++)
        if (path.base[i] == '%' && !is_encoding(path, i)) {
            free(text);
            return;
        }
    memcpy(text, canonical.base, before);
    for (size_t i = 0; i < path.length; i++) {
        char c = path.base[i];
        in_path = in_path && c != '?';
        if (is_plain(c) && !(i >= 2 && (is_encoding(path, i - 1) || is_encoding(path, i - 2))) &&
            !(i == 1 && is_encoding(path, 0)) && i % 2 == 0)
            at += (size_t)sprintf(text + at, "%%%02x", (unsigned char)c);
        else
            text[at++] = c;
        if (in_path && c == '/')
            at += (size_t)sprintf(text + at, "%s", i % 3 == 0 ? "./" : i % 3 == 1 ? "x/%2e./" : "");
    }
    struct url spelt;
    ASSERT(url_parse(&spelt, slice_make(text, at)));
    char *out = normalise(&spelt, at, &length);
    ASSERT(slice_equal(slice_make(out, length), canonical));
    free(out);
    free(text);
}

static void check_normal_form(const struct url *url, size_t text_length) {
    size_t length, again_length;
    struct url again;
    char *out = normalise(url, text_length, &length);
    ASSERT(url_parse(&again, slice_make(out, length)));
    ASSERT(slice_equal_nocase(again.scheme, url->scheme));
    ASSERT(url->host_is_ipv6 || slice_equal_nocase(again.host, url->host));
    ASSERT(again.host_is_ipv6 == url->host_is_ipv6 && again.port == url->port);
    char *out_again = normalise(&again, length, &again_length);
    ASSERT(slice_equal(slice_make(out, length), slice_make(out_again, again_length)));
    check_path(url_path(&again));
    check_spellings(&again, slice_make(out, length));
    free(out);
    free(out_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct url url;
    struct slice text = slice_make((const char *)data, size);
    if (url_parse_authority(&url, text, 80)) {
        check_inside(url.host, text);
        check_host(url.host);
        ASSERT(url.port_given || url.port == 80);
    }
    if (url_parse(&url, text)) {
        check_inside(url.scheme, text);
        check_inside(url.host, text);
        check_inside(url.path_query, text);
        check_host(url.host);
        ASSERT(url_path(&url).length > 0 && url.port != 0);
        check_normal_form(&url, size);
    }
    return 0;
}
