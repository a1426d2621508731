#include "record/mask.h"

#include "base/assert.h"
#include "http/secret_field.h"

/* Returns the next line with its line end, or the rest when there is no line end. */
static struct slice mask_next_line(struct slice *rest) {
    const char *end = memchr(rest->base, '\n', rest->length);
    struct slice line =
        slice_make(rest->base, end == NULL ? rest->length : (size_t)(end + 1 - rest->base));
    rest->base += line.length;
    rest->length -= line.length;
    return line;
}

static bool mask_is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

static struct slice mask_line_end(struct slice line) {
    bool bare = line.base[line.length - 1] == '\n' &&
                (line.length == 1 || line.base[line.length - 2] != '\r');
    return bare ? SLICE("\n") : SLICE("\r\n");
}

/* A start line has blanks before its colon, and the name of a field has none (RFC 9110 §5.1). */
static bool is_secret_line(struct slice line, struct slice *name) {
    const char *colon = memchr(line.base, ':', line.length);
    *name = slice_make(line.base, colon == NULL ? 0 : (size_t)(colon - line.base));
    const struct slice word = slice_trim(*name);
    for (size_t i = 0; i < word.length; i++)
        if (mask_is_blank(word.base[i]))
            return false;
    return colon != NULL && secret_field(word);
}

char *record_mask_head(struct slice head, size_t *length) {
    struct slice rest = head, name;
    size_t lines = 1;
    bool secret = false;
    for (size_t i = 0; i < head.length; i++)
        lines += head.base[i] == '\n';
    char *masked = malloc(head.length + lines * (RECORD_MASK.length + 4)), *at = masked;
    while (masked != NULL && rest.length > 0) {
        struct slice line = mask_next_line(&rest);
        bool folded = mask_is_blank(line.base[0]); /* the value of the line before goes on */
        secret = folded ? secret : is_secret_line(line, &name);
        if (!secret) {
            at = slice_put(at, line);
            continue;
        }
        at = folded ? slice_put(at, SLICE(" ")) : slice_put(slice_put(at, name), SLICE(": "));
        at = slice_put(slice_put(at, RECORD_MASK), mask_line_end(line));
    }
    *length = (size_t)(at - masked);
    return masked;
}
