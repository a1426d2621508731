/* URLs and authorities: slices stay inside, and the canonical form is its own canonical form. */
#include "base/assert.h"
#include "http/url.h"

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

static void check_normal_form(const struct url *url, size_t text_length) {
    size_t length, again_length;
    struct url again;
    char *out = normalise(url, text_length, &length);
    ASSERT(url_parse(&again, slice_make(out, length)));
    ASSERT(slice_equal_nocase(again.scheme, url->scheme));
    ASSERT(slice_equal_nocase(again.host, url->host) && again.port == url->port);
    char *out_again = normalise(&again, length, &again_length);
    ASSERT(slice_equal(slice_make(out, length), slice_make(out_again, again_length)));
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
