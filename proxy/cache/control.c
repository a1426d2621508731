#include "cache/control.h"

/* RFC 9111 §1.2.2: larger numbers mean "very long". */
enum { SECONDS_MAX = 2147483647 };

struct directive {
    struct slice name;
    size_t flag;    /* offset of a bool */
    size_t seconds; /* offset of an int64_t, 0: takes no number */
};

static const struct directive directives[] = {
    {{"no-store", 8}, offsetof(struct cache_control, no_store), 0},
    {{"no-cache", 8}, offsetof(struct cache_control, no_cache), 0},
    {{"private", 7}, offsetof(struct cache_control, private), 0},
    {{"public", 6}, offsetof(struct cache_control, public), 0},
    {{"must-revalidate", 15}, offsetof(struct cache_control, must_revalidate), 0},
    {{"proxy-revalidate", 16}, offsetof(struct cache_control, proxy_revalidate), 0},
    {{"must-understand", 15}, offsetof(struct cache_control, must_understand), 0},
    {{"only-if-cached", 14}, offsetof(struct cache_control, only_if_cached), 0},
    {{"no-transform", 12}, offsetof(struct cache_control, no_transform), 0},
    {{"immutable", 9}, offsetof(struct cache_control, immutable), 0},
    {{"max-age", 7}, 0, offsetof(struct cache_control, max_age)},
    {{"s-maxage", 8}, 0, offsetof(struct cache_control, s_maxage)},
    {{"min-fresh", 9}, 0, offsetof(struct cache_control, min_fresh)},
    {{"max-stale", 9}, 0, offsetof(struct cache_control, max_stale)},
    {{"stale-while-revalidate", 22}, 0, offsetof(struct cache_control, stale_while_revalidate)},
    {{"stale-if-error", 14}, 0, offsetof(struct cache_control, stale_if_error)},
};

static int64_t parse_seconds(struct slice text) {
    uint64_t value;
    if (text.length >= 2 && text.base[0] == '"' && text.base[text.length - 1] == '"')
        text = slice_make(text.base + 1, text.length - 2);
    if (!slice_to_uint64(text, &value)) {
        /* All digits but too many: long, not 0. */
        for (size_t i = 0; i < text.length; i++)
            if (text.base[i] < '0' || text.base[i] > '9')
                return 0;
        return text.length == 0 ? 0 : SECONDS_MAX;
    }
    return value > SECONDS_MAX ? SECONDS_MAX : (int64_t)value;
}

/* Two grammars: a list of directives (RFC 9111 §5.2), of which the first of a name counts; and a
 * dictionary (RFC 8941 §3.2), in which the last does and flags have values: ?1, ?0. */
enum grammar { DIRECTIVES, DICTIONARY };

static void apply(struct cache_control *control, struct slice name, struct slice argument,
                  enum grammar grammar) {
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++) {
        const struct directive *directive = &directives[i];
        if (!slice_equal_nocase(name, directive->name))
            continue;
        if (directive->seconds == 0) {
            *(bool *)((char *)control + directive->flag) =
                grammar == DIRECTIVES || !slice_equal(argument, SLICE("?0"));
            return;
        }
        int64_t *seconds = (int64_t *)((char *)control + directive->seconds);
        if (seconds == &control->max_stale && argument.base == NULL)
            control->max_stale_any = true;
        else if (*seconds < 0 || grammar == DICTIONARY)
            *seconds = parse_seconds(argument);
        return;
    }
}

static void parse_field(struct cache_control *control, struct slice value, enum grammar grammar) {
    struct slice element;
    while (slice_next_element(&value, &element)) {
        const char *equals = memchr(element.base, '=', element.length);
        if (equals == NULL) {
            apply(control, element, slice_make(NULL, 0), grammar);
            continue;
        }
        size_t name_length = (size_t)(equals - element.base);
        struct slice argument = slice_make(equals + 1, element.length - name_length - 1);
        apply(control, slice_trim(slice_make(element.base, name_length)), slice_trim(argument),
              grammar);
    }
}

static void control_init(struct cache_control *control) {
    memset(control, 0, sizeof *control);
    control->max_age = control->s_maxage = control->min_fresh = control->max_stale =
        control->stale_while_revalidate = control->stale_if_error = -1;
}

void cache_control_parse(struct cache_control *control, const struct http_head *head) {
    control_init(control);
    if (!http_head_has(head, HTTP_CACHE_CONTROL)) {
        if (head->status == 0 && http_head_has_token(head, HTTP_PRAGMA, SLICE("no-cache")))
            control->no_cache = true;
        return;
    }
    for (const struct http_field *field = http_head_find(head, HTTP_CACHE_CONTROL); field != NULL;
         field = http_head_find_next(head, HTTP_CACHE_CONTROL, field))
        parse_field(control, field->value, DIRECTIVES);
}

/* Takes the parameters off a member of a dictionary. False where a blank stands outside a string:
 * not of the grammar. */
static bool cut_parameters(struct slice *member) {
    bool quoted = false;
    for (size_t i = 0; i < member->length; i++) {
        char c = member->base[i];
        if (quoted && c == '\\') {
            i++;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted && c == ';') {
            member->length = i;
            return i > 0;
        } else if (!quoted && (c == ' ' || c == '\t')) {
            return false;
        }
    }
    return !quoted;
}

/* A dictionary of RFC 8941 §3.2, as far as directives need it: keys, "=" without blanks, a value
 * that ends before its parameters; all lines of the field are one. */
static bool parse_dictionary(struct cache_control *control, const struct http_head *head,
                             struct slice name) {
    bool any = false;
    for (unsigned i = 0; i < head->field_count; i++) {
        struct slice rest = head->fields[i].value, member;
        if (!slice_equal_nocase(head->fields[i].name, name))
            continue;
        while (slice_next_element(&rest, &member)) {
            if (!cut_parameters(&member))
                return false;
            parse_field(control, member, DICTIONARY);
            any = true;
        }
    }
    return any;
}

bool cache_control_parse_targeted(struct cache_control *control, const struct http_head *head,
                                  char *const *names) {
    for (; names != NULL && *names != NULL; names++) {
        control_init(control);
        if (parse_dictionary(control, head, slice_from(*names)))
            return true;
    }
    return false;
}
