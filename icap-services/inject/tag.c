#include "inject/tag.h"

static bool tag_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static void tag_drop(struct slice *rest, size_t length) {
    *rest = slice_make(rest->base + length, rest->length - length);
}

static size_t blanks(struct slice text) {
    size_t length = 0;
    while (length < text.length && tag_is_blank(text.base[length]))
        length++;
    return length;
}

/* Takes the value behind "=": it is quoted, or it ends at a blank. */
static struct slice tag_take_value(struct slice *rest) {
    tag_drop(rest, blanks(*rest));
    bool quoted = rest->length > 0 && (rest->base[0] == '"' || rest->base[0] == '\'');
    char quote = quoted ? rest->base[0] : '>';
    size_t length = 0;
    tag_drop(rest, quoted);
    while (length < rest->length && rest->base[length] != quote &&
           (quoted || !tag_is_blank(rest->base[length])))
        length++;
    struct slice value = slice_make(rest->base, length);
    tag_drop(rest, length + (quoted && length < rest->length));
    return value;
}

bool tag_next_attribute(struct slice *rest, struct tag_attribute *attribute) {
    while (rest->length > 0 && (tag_is_blank(rest->base[0]) || rest->base[0] == '/'))
        tag_drop(rest, 1);
    if (rest->length == 0 || rest->base[0] == '>') {
        tag_drop(rest, rest->length > 0);
        return false;
    }
    size_t length = 1;
    while (length < rest->length && !tag_is_blank(rest->base[length]) &&
           memchr("/>=", rest->base[length], 3) == NULL)
        length++;
    attribute->name = slice_make(rest->base, length);
    attribute->value = slice_make(rest->base + length, 0);
    tag_drop(rest, length);
    size_t gap = blanks(*rest);
    if (gap == rest->length || rest->base[gap] != '=')
        return true;
    tag_drop(rest, gap + 1);
    attribute->value = tag_take_value(rest);
    return true;
}

/* The byte that a character reference stands for, and the length of the reference; 0 when it is not
 * one of these. */
static char reference(struct slice text, size_t *length) {
    static const struct {
        struct slice name;
        char byte;
    } known[] = {{{"&#39;", 5}, '\''},  {{"&#039;", 6}, '\''}, {{"&#x27;", 6}, '\''},
                 {{"&apos;", 6}, '\''}, {{"&amp;", 5}, '&'},   {{"&quot;", 6}, '"'},
                 {{"&#34;", 5}, '"'},   {{"&#x3b;", 6}, ';'},  {{"&#59;", 5}, ';'}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (slice_starts_with_nocase(text, known[i].name)) {
            *length = known[i].name.length;
            return known[i].byte;
        }
    return 0;
}

static struct slice tag_resolve(struct slice value, struct arena *arena) {
    char *plain = arena_alloc(arena, value.length + 1), *at = plain;
    while (value.length > 0) {
        size_t length = 1;
        char byte = value.base[0] == '&' ? reference(value, &length) : value.base[0];
        if (byte == 0)
            return slice_make(NULL, 0);
        *at++ = byte;
        tag_drop(&value, length);
    }
    return slice_make(plain, (size_t)(at - plain));
}

/* The first attribute of a name counts, as everywhere in HTML. */
static bool find_policy(struct slice tag, struct tag_attribute *content) {
    static const struct tag_attribute none;
    struct tag_attribute attribute, kind = none;
    struct slice rest = tag;
    *content = none;
    tag_drop(&rest, strlen("<meta"));
    while (tag_next_attribute(&rest, &attribute)) {
        if (kind.name.length == 0 && slice_equal_nocase(attribute.name, SLICE("http-equiv")))
            kind = attribute;
        if (content->name.length == 0 && slice_equal_nocase(attribute.name, SLICE("content")))
            *content = attribute;
    }
    return slice_equal_nocase(kind.value, SLICE("Content-Security-Policy")) &&
           content->name.length > 0;
}

bool tag_policy(struct slice tag, struct arena *arena, struct slice *policy) {
    struct tag_attribute content;
    if (!find_policy(tag, &content))
        return false;
    *policy = tag_resolve(content.value, arena);
    return true;
}

static struct slice tag_escape(struct slice value, struct arena *arena) {
    char *escaped = arena_alloc(arena, 6 * value.length + 1), *at = escaped;
    for (size_t i = 0; i < value.length; i++) {
        char c = value.base[i];
        if (c == '"')
            at = slice_put(at, SLICE("&quot;"));
        else if (c == '&')
            at = slice_put(at, SLICE("&amp;"));
        else
            *at++ = c;
    }
    return slice_make(escaped, (size_t)(at - escaped));
}

struct slice tag_with_policy(struct slice tag, struct slice policy, struct arena *arena) {
    struct tag_attribute content;
    if (!find_policy(tag, &content))
        return tag;
    const char *from = content.value.base, *to = from + content.value.length;
    bool quoted = from[-1] == '"' || from[-1] == '\'';
    from -= quoted;
    to += quoted && to < tag.base + tag.length;
    return arena_concat(arena, slice_make(tag.base, (size_t)(from - tag.base)), SLICE("\""),
                        tag_escape(policy, arena), SLICE("\""),
                        slice_make(to, tag.length - (size_t)(to - tag.base)));
}
