#include "record/mask.h"

#include "base/assert.h"
#include "http/secret_field.h"

#define MASK SLICE("masked")

/* Returns the next line with its line end, or the rest when there is no line end. */
static struct slice mask_next_line(struct slice *rest) {
    const char *end = memchr(rest->base, '\n', rest->length);
    struct slice line =
        slice_make(rest->base, end == NULL ? rest->length : (size_t)(end + 1 - rest->base));
    rest->base += line.length;
    rest->length -= line.length;
    return line;
}

/* A start line has no colon before its first blank. */
static bool is_secret_line(struct slice line, struct slice *name) {
    const char *colon = memchr(line.base, ':', line.length);
    *name = slice_make(line.base, colon == NULL ? 0 : (size_t)(colon - line.base));
    return colon != NULL && secret_field(slice_trim(*name));
}

char *record_mask_head(struct slice head, size_t *length) {
    struct slice rest = head, name;
    size_t lines = 1;
    for (size_t i = 0; i < head.length; i++)
        lines += head.base[i] == '\n';
    char *masked = malloc(head.length + lines * (MASK.length + 4)), *at = masked;
    while (masked != NULL && rest.length > 0) {
        struct slice line = mask_next_line(&rest);
        if (is_secret_line(line, &name)) {
            at = slice_put(slice_put(at, name), SLICE(": "));
            at = slice_put(slice_put(at, MASK), SLICE("\r\n"));
        } else {
            at = slice_put(at, line);
        }
    }
    *length = (size_t)(at - masked);
    return masked;
}
