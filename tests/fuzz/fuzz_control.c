/* Cache-Control and its like, against a second reading. The first line says what is asked:
 * "request", "response" or, for fields that name a cache, "targeted" and "surrogate"; the head
 * follows. */
#include "base/assert.h"
#include "cache/cache_control.h"
#include "http/structured.h"
#include "lines.h"
#include "naive.h"

#include <ctype.h>

static const char targeted_name[] = "CDN-Cache-Control", surrogate_name[] = "Surrogate-Control";

enum { SECONDS_MAX = 2147483647 };

static void note_flag(struct cache_control *control, struct slice name) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"no-store", &control->no_store},
        {"no-cache", &control->no_cache},
        {"private", &control->private},
        {"public", &control->public},
        {"must-revalidate", &control->must_revalidate},
        {"proxy-revalidate", &control->proxy_revalidate},
        {"must-understand", &control->must_understand},
        {"only-if-cached", &control->only_if_cached},
        {"no-transform", &control->no_transform},
        {"immutable", &control->immutable},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (naive_equal_nocase(slice_from(flags[i].name), name))
            *flags[i].flag = true;
}

static int64_t seconds_of(struct slice text) {
    if (text.length > 1 && text.base[0] == '"' && text.base[text.length - 1] == '"')
        text = slice_make(text.base + 1, text.length - 2);
    __int128 number = naive_number(text, SECONDS_MAX);
    return number < 0 ? 0 : (int64_t)number;
}

static void note_seconds(struct cache_control *control, struct slice name, bool given,
                         struct slice argument) {
    const struct {
        const char *name;
        int64_t *seconds;
    } numbers[] = {
        {"max-age", &control->max_age},
        {"s-maxage", &control->s_maxage},
        {"min-fresh", &control->min_fresh},
        {"max-stale", &control->max_stale},
        {"stale-while-revalidate", &control->stale_while_revalidate},
        {"stale-if-error", &control->stale_if_error},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (!naive_equal_nocase(slice_from(numbers[i].name), name))
            continue;
        if (numbers[i].seconds == &control->max_stale && !given)
            control->max_stale_any = true;
        else if (*numbers[i].seconds == -1)
            *numbers[i].seconds = seconds_of(argument);
    }
}

/* token [ OWS "=" OWS ( token / quoted-string ) ], a byte at a time. */
static bool well_formed(struct slice element) {
    enum { NAME, BEHIND_NAME, BEFORE_VALUE, VALUE, STRING, ESCAPE, BEHIND_STRING } at = NAME;
    for (size_t i = 0; i < element.length; i++) {
        char c = element.base[i];
        bool blank = c == ' ' || c == '\t';
        bool token = isalnum((unsigned char)c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
        if (at == STRING || at == ESCAPE)
            at = at == STRING && c == '\\'  ? ESCAPE
                 : at == STRING && c == '"' ? BEHIND_STRING
                                            : STRING;
        else if ((at == NAME || at == BEHIND_NAME) && c == '=' && i > 0)
            at = BEFORE_VALUE;
        else if (at == NAME && blank && i > 0)
            at = BEHIND_NAME;
        else if (at == BEFORE_VALUE && c == '"')
            at = STRING;
        else if (at == BEFORE_VALUE && token)
            at = VALUE;
        else if (!((at == NAME || at == VALUE) && token) &&
                 !((at == BEHIND_NAME || at == BEFORE_VALUE) && blank))
            return false;
    }
    return at == NAME || at == VALUE || at == BEHIND_STRING;
}

static void note(struct cache_control *control, struct slice element, bool asked) {
    if (!well_formed(element)) {
        control->no_store = true;
        control->no_cache |= asked;
    }
    size_t length = 0;
    while (length < element.length && element.base[length] != '=')
        length++;
    bool given = length < element.length;
    struct slice name = slice_trim(slice_make(element.base, length)), argument = SLICE("");
    if (given)
        argument = slice_trim(slice_make(element.base + length + 1, element.length - length - 1));
    note_flag(control, name);
    note_seconds(control, name, given, argument);
}

static void nothing_stated(struct cache_control *control) {
    *control = (struct cache_control){.max_age = -1,
                                      .s_maxage = -1,
                                      .min_fresh = -1,
                                      .max_stale = -1,
                                      .stale_while_revalidate = -1,
                                      .stale_if_error = -1};
}

static bool says_no_cache(struct slice element) {
    size_t length = 0;
    while (length < element.length && element.base[length] != '=')
        length++;
    return !well_formed(element) ||
           naive_equal_nocase(slice_trim(slice_make(element.base, length)), SLICE("no-cache"));
}

static bool has_pragma(const struct http_head *head) {
    static struct naive_list list;
    for (unsigned i = 0; i < head->field_count; i++) {
        if (!naive_equal_nocase(head->fields[i].name, SLICE("pragma")))
            continue;
        naive_list_of(&list, head->fields[i].value);
        for (unsigned j = 0; j < list.count; j++)
            if (says_no_cache(list.elements[j]))
                return true;
    }
    return false;
}

static void naive_parse(struct cache_control *control, const struct http_head *head) {
    static struct naive_list list;
    bool any = false;
    nothing_stated(control);
    for (unsigned i = 0; i < head->field_count; i++) {
        if (!naive_equal_nocase(head->fields[i].name, SLICE("cache-control")))
            continue;
        any = true;
        naive_list_of(&list, head->fields[i].value);
        for (unsigned j = 0; j < list.count; j++)
            note(control, list.elements[j], head->status == 0);
    }
    if (!any && head->status == 0 && has_pragma(head))
        control->no_cache = true;
}

static void check_same(const struct cache_control *a, const struct cache_control *b) {
    ASSERT(a->no_store == b->no_store && a->no_cache == b->no_cache);
    ASSERT(a->private == b->private && a->public == b->public);
    ASSERT(a->must_revalidate == b->must_revalidate);
    ASSERT(a->proxy_revalidate == b->proxy_revalidate);
    ASSERT(a->must_understand == b->must_understand && a->only_if_cached == b->only_if_cached);
    ASSERT(a->no_transform == b->no_transform && a->immutable == b->immutable);
    ASSERT(a->max_stale_any == b->max_stale_any && a->max_stale == b->max_stale);
    ASSERT(a->max_age == b->max_age && a->s_maxage == b->s_maxage);
    ASSERT(a->min_fresh == b->min_fresh);
    ASSERT(a->stale_while_revalidate == b->stale_while_revalidate);
    ASSERT(a->stale_if_error == b->stale_if_error);
}

static void check_range(int64_t seconds) {
    ASSERT(seconds >= -1 && seconds <= SECONDS_MAX);
}

static void check_ranges(const struct cache_control *control) {
    check_range(control->max_age);
    check_range(control->s_maxage);
    check_range(control->min_fresh);
    check_range(control->max_stale);
    check_range(control->stale_while_revalidate);
    check_range(control->stale_if_error);
}

/* All fields of the name as one, the way any recipient may join them (RFC 9110 §5.3); false where
 * a quote is left open, for then joining is no more the same. */
static bool joined(const struct http_head *head, struct slice name, char **bytes,
                   struct slice *value) {
    size_t length = 0;
    bool first = true;
    for (unsigned i = 0; i < head->field_count; i++)
        length += head->fields[i].value.length + 2;
    *bytes = xmalloc(length + 1);
    *value = slice_make(*bytes, 0);
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (!naive_equal_nocase(field->name, name))
            continue;
        if (!naive_balanced(field->value))
            return false;
        if (!first) {
            memcpy(*bytes + value->length, ", ", 2);
            value->length += 2;
        }
        first = false;
        memcpy(*bytes + value->length, field->value.base, field->value.length);
        value->length += field->value.length;
    }
    return true;
}

/* Members lie within the field, one behind the other, and each parses alone. */
static void check_members(struct slice value) {
    struct slice rest = value, before = rest;
    struct structured_member member, alone;
    while (structured_next(&rest, &member) == STRUCTURED_MEMBER) {
        ASSERT(member.key.length > 0 && member.key.base == before.base);
        ASSERT(rest.base + rest.length == value.base + value.length && rest.base > before.base);
        ASSERT(member.text.base >= member.key.base + member.key.length);
        ASSERT(member.text.base + member.text.length <= rest.base);
        struct slice one =
            slice_make(before.base, (size_t)(member.text.base + member.text.length - before.base));
        ASSERT(structured_next(&one, &alone) == STRUCTURED_MEMBER && one.length == 0);
        ASSERT(alone.type == member.type && alone.number == member.number);
        before = rest;
    }
}

static void check_all_members(const struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++)
        check_members(head->fields[i].value);
}

static void check_targeted(const struct http_head *head, const char *name) {
    char *names[] = {(char *)name, NULL}, *bytes;
    struct cache_control control, again;
    struct slice value;
    bool good = cache_control_parse_targeted(&control, head, names);
    check_ranges(&control);
    if (joined(head, slice_from(name), &bytes, &value)) {
        struct http_head one;
        http_head_init(&one);
        if (http_head_find_text(head, slice_from(name)) != NULL)
            http_head_add(&one, slice_from(name), value);
        ASSERT(cache_control_parse_targeted(&again, &one, names) == good);
        if (good)
            check_same(&control, &again);
    }
    free(bytes);
}

static void check_joined(const struct http_head *head, const struct cache_control *control) {
    struct cache_control again;
    struct slice value;
    char *bytes;
    if (joined(head, SLICE("cache-control"), &bytes, &value) &&
        http_head_has(head, HTTP_CACHE_CONTROL)) {
        struct http_head one;
        http_head_init(&one);
        one.status = head->status;
        http_head_add(&one, SLICE("Cache-Control"), value);
        cache_control_parse(&again, &one);
        check_same(control, &again);
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct cache_control control, naive;
    struct http_head head;
    struct lines lines = lines_of(data, size);
    struct slice what = lines_next(&lines);
    lines_head(&lines, &head);
    head.status = slice_equal(what, SLICE("response")) ? 200 : 0;
    if (slice_equal(what, SLICE("targeted"))) {
        check_targeted(&head, targeted_name);
        check_all_members(&head);
    } else if (slice_equal(what, SLICE("surrogate"))) {
        check_targeted(&head, surrogate_name);
    } else {
        cache_control_parse(&control, &head);
        naive_parse(&naive, &head);
        check_same(&control, &naive);
        check_ranges(&control);
        check_joined(&head, &control);
    }
    lines_head_free(&head);
    return 0;
}
