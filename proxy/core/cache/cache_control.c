#include "cache/cache_control.h"

#include "http/bytes.h"
#include "http/structured.h"

/* RFC 9111 §1.2.2: larger numbers mean "very long". */
enum { SECONDS_MAX = 2147483647 };

/* The argument that a directive takes. */
enum argument {
    NOTHING,
    NOTHING_OR_NAMES, /* of fields */
    SECONDS,
    ASKED_NOTHING, /* only in requests */
    ASKED_SECONDS,
};

struct directive {
    struct slice name;
    size_t at; /* offset of a bool, or of an int64_t with seconds */
    enum argument argument;
};

#define DIRECTIVE(text, member, argument)                                                          \
    { {text, sizeof(text) - 1}, offsetof(struct cache_control, member), argument }

static const struct directive directives[] = {
    DIRECTIVE("no-store", no_store, NOTHING),
    DIRECTIVE("no-cache", no_cache, NOTHING_OR_NAMES),
    DIRECTIVE("private", private, NOTHING_OR_NAMES),
    DIRECTIVE("public", public, NOTHING),
    DIRECTIVE("must-revalidate", must_revalidate, NOTHING),
    DIRECTIVE("proxy-revalidate", proxy_revalidate, NOTHING),
    DIRECTIVE("must-understand", must_understand, NOTHING),
    DIRECTIVE("only-if-cached", only_if_cached, ASKED_NOTHING),
    DIRECTIVE("no-transform", no_transform, NOTHING),
    DIRECTIVE("immutable", immutable, NOTHING),
    DIRECTIVE("max-age", max_age, SECONDS),
    DIRECTIVE("s-maxage", s_maxage, SECONDS),
    DIRECTIVE("min-fresh", min_fresh, ASKED_SECONDS),
    DIRECTIVE("max-stale", max_stale, ASKED_SECONDS),
    DIRECTIVE("stale-while-revalidate", stale_while_revalidate, SECONDS),
    DIRECTIVE("stale-if-error", stale_if_error, SECONDS),
};

static bool takes_seconds(const struct directive *directive) {
    return directive->argument == SECONDS || directive->argument == ASKED_SECONDS;
}

static bool *flag_of(struct cache_control *control, const struct directive *directive) {
    return (bool *)((char *)control + directive->at);
}

static int64_t *seconds_of(struct cache_control *control, const struct directive *directive) {
    return (int64_t *)((char *)control + directive->at);
}

/* NULL: the directive is not known. */
static const struct directive *find_directive(struct slice name) {
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++)
        if (slice_equal_nocase(name, directives[i].name))
            return &directives[i];
    return NULL;
}

static int64_t parse_seconds(struct slice text) {
    uint64_t value;
    if (text.length >= 2 && text.base[0] == '"' && text.base[text.length - 1] == '"')
        text = slice_make(text.base + 1, text.length - 2);
    if (!slice_to_uint64(text, &value)) {
        /* A number that is too large means a long time, not 0. */
        for (size_t i = 0; i < text.length; i++)
            if (text.base[i] < '0' || text.base[i] > '9')
                return 0;
        return text.length == 0 ? 0 : SECONDS_MAX;
    }
    return value > SECONDS_MAX ? SECONDS_MAX : (int64_t)value;
}

/* The first of several directives of one name counts. False: the directive is not known. */
static bool cache_control_apply(struct cache_control *control, struct slice name,
                                struct slice argument) {
    const struct directive *directive = find_directive(name);
    if (directive == NULL)
        return false;
    if (!takes_seconds(directive)) {
        *flag_of(control, directive) = true;
        return true;
    }
    int64_t *seconds = seconds_of(control, directive);
    if (seconds == &control->max_stale && argument.base == NULL)
        control->max_stale_any = true;
    else if (*seconds < 0)
        *seconds = parse_seconds(argument);
    return true;
}

static bool cache_control_is_token(struct slice text) {
    return text.length > 0 &&
           bytes_skip_token(text.base, text.base + text.length) == text.base + text.length;
}

/* Is the whole text one quoted string (RFC 9110 §5.6.4)? */
static bool is_quoted(struct slice text) {
    if (text.length < 2 || text.base[0] != '"')
        return false;
    for (size_t i = 1; i < text.length; i++) {
        if (text.base[i] == '"')
            return i == text.length - 1;
        if (text.base[i] == '\\')
            i++;
    }
    return false;
}

/* Splits a directive into name and argument (RFC 9111 §5.2). The base of the argument is NULL if
 * there is none. False: the directive is malformed. */
static bool cache_control_split(struct slice element, struct slice *name, struct slice *argument) {
    const char *equals = memchr(element.base, '=', element.length);
    *name = element;
    *argument = slice_make(NULL, 0);
    if (equals == NULL)
        return cache_control_is_token(element);
    size_t length = (size_t)(equals - element.base);
    *name = slice_trim(slice_make(element.base, length));
    *argument = slice_trim(slice_make(equals + 1, element.length - length - 1));
    return cache_control_is_token(*name) &&
           (cache_control_is_token(*argument) || is_quoted(*argument));
}

/* A malformed directive may hide another one, behind a quote that is never closed or where a comma
 * is missing. So the response is not stored, or the request is not answered from the cache. */
static void distrust(struct cache_control *control, bool asked) {
    control->no_store = true;
    control->no_cache = control->no_cache || asked;
}

static void parse_field(struct cache_control *control, struct slice value, bool asked) {
    struct slice element, name, argument;
    while (slice_next_element(&value, &element)) {
        if (!cache_control_split(element, &name, &argument))
            distrust(control, asked);
        cache_control_apply(control, name, argument);
    }
}

static void control_init(struct cache_control *control) {
    memset(control, 0, sizeof *control);
    control->max_age = control->s_maxage = control->min_fresh = control->max_stale =
        control->stale_while_revalidate = control->stale_if_error = -1;
}

/* RFC 9111 §5.4. */
static bool pragma_says_no_cache(const struct http_head *head) {
    struct slice element, name, argument;
    const struct http_field *field = http_head_find(head, HTTP_PRAGMA);
    for (; field != NULL; field = http_head_find_next(head, HTTP_PRAGMA, field)) {
        struct slice rest = field->value;
        while (slice_next_element(&rest, &element))
            if (!cache_control_split(element, &name, &argument) ||
                slice_equal_nocase(name, SLICE("no-cache")))
                return true;
    }
    return false;
}

void cache_control_parse(struct cache_control *control, const struct http_head *head) {
    bool asked = head->status == 0;
    const struct http_field *field = http_head_find(head, HTTP_CACHE_CONTROL);
    control_init(control);
    if (field == NULL && asked)
        control->no_cache = pragma_says_no_cache(head);
    for (; field != NULL; field = http_head_find_next(head, HTTP_CACHE_CONTROL, field))
        parse_field(control, field->value, asked);
}

/* RFC 9213 §2.1: a value that is not of the directive's type is not to be used. */
static bool has_its_type(const struct directive *directive, const struct structured_member *value) {
    if (takes_seconds(directive))
        return value->type == STRUCTURED_INTEGER && value->number >= 0;
    return (value->type == STRUCTURED_BOOLEAN && value->number == 1) ||
           (directive->argument == NOTHING_OR_NAMES && value->type == STRUCTURED_STRING);
}

/* False: the value is of the wrong type for the directive. */
static bool apply_member(struct cache_control *control, const struct structured_member *member) {
    const struct directive *directive = find_directive(member->key);
    if (directive == NULL || directive->argument >= ASKED_NOTHING)
        return true;
    if (!has_its_type(directive, member))
        return false;
    if (takes_seconds(directive))
        *seconds_of(control, directive) =
            member->number > SECONDS_MAX ? SECONDS_MAX : member->number;
    else
        *flag_of(control, directive) = true;
    return true;
}

/* All lines of the field are one dictionary. False: "that field MUST be ignored by the cache" (RFC
 * 9213 §2.1), because it is empty, does not parse, or has a value of the wrong type. */
static bool parse_dictionary(struct cache_control *control, const struct http_head *head,
                             struct slice name) {
    struct structured_member member;
    bool any = false;
    for (unsigned i = 0; i < head->field_count; i++) {
        enum structured_status status;
        struct slice rest = head->fields[i].value;
        if (!slice_equal_nocase(head->fields[i].name, name))
            continue;
        if (rest.length == 0)
            return false;
        while ((status = structured_next(&rest, &member)) == STRUCTURED_MEMBER)
            if (!apply_member(control, &member))
                return false;
        if (status == STRUCTURED_BAD)
            return false;
        any = true;
    }
    return any;
}

/* A directive of Surrogate-Control may name the surrogates that it is for. Returns the directive
 * without them. */
static struct slice without_targets(struct slice element) {
    bool quoted = false;
    for (size_t i = 0; i < element.length; i++) {
        if (element.base[i] == '"')
            quoted = !quoted;
        else if (quoted && element.base[i] == '\\')
            i++;
        else if (!quoted && element.base[i] == ';')
            return slice_trim(slice_make(element.base, i));
    }
    return element;
}

static bool cache_control_is_number(struct slice text) {
    for (size_t i = 0; i < text.length; i++)
        if (text.base[i] < '0' || text.base[i] > '9')
            return false;
    return text.length > 0;
}

/* max-age=N+M: the response may be used for M more seconds while it is refreshed. */
static bool apply_surrogate_seconds(struct cache_control *control, struct slice name,
                                    struct slice argument) {
    const char *plus = argument.base == NULL ? NULL : memchr(argument.base, '+', argument.length);
    if (plus != NULL && slice_equal_nocase(name, SLICE("max-age"))) {
        size_t length = (size_t)(plus - argument.base);
        struct slice longer = slice_make(plus + 1, argument.length - length - 1);
        if (!cache_control_is_number(longer))
            return false;
        cache_control_apply(control, SLICE("stale-while-revalidate"), longer);
        argument.length = length;
    }
    return cache_control_is_number(argument) && cache_control_apply(control, name, argument);
}

static bool may_begin_name(char letter) {
    return letter == '*' ||
           (ascii_lower((unsigned char)letter) >= 'a' && ascii_lower((unsigned char)letter) <= 'z');
}

/* False: the directive is malformed, or its argument is of the wrong type. */
static bool apply_surrogate(struct cache_control *control, struct slice element, bool *known) {
    struct slice name, argument;
    element = without_targets(element);
    if (element.length == 0 || !cache_control_split(element, &name, &argument) ||
        !may_begin_name(*name.base))
        return false;
    if (name.length + (argument.base == NULL ? 0 : 1 + argument.length) != element.length)
        return false; /* blanks around "=" */
    const struct directive *directive = find_directive(name);
    if (directive == NULL || directive->argument >= ASKED_NOTHING)
        return true;
    *known = true;
    if (takes_seconds(directive))
        return apply_surrogate_seconds(control, name, argument);
    *flag_of(control, directive) = true;
    return argument.base == NULL ||
           (directive->argument == NOTHING_OR_NAMES && argument.base[0] == '"');
}

/* Surrogate-Control (Edge Architecture Specification, https://www.w3.org/TR/edge-arch, 2.2) is
 * older than Structured Fields, and its names may be in any case. But the rule of Structured Fields
 * applies: the whole field is ignored if a part is malformed. False also if the field has no
 * directive that a cache knows, for example if it only says how the content is to be processed. */
static bool parse_surrogate(struct cache_control *control, const struct http_head *head,
                            struct slice name) {
    bool known = false;
    for (unsigned i = 0; i < head->field_count; i++) {
        struct slice rest = head->fields[i].value, element;
        if (!slice_equal_nocase(head->fields[i].name, name))
            continue;
        while (slice_next_element(&rest, &element))
            if (!apply_surrogate(control, element, &known))
                return false;
    }
    return known;
}

bool cache_control_parse_targeted(struct cache_control *control, const struct http_head *head,
                                  char *const *names) {
    for (; names != NULL && *names != NULL; names++) {
        struct slice name = slice_from(*names);
        control_init(control);
        if (slice_equal_nocase(name, SLICE("Surrogate-Control"))
                ? parse_surrogate(control, head, name)
                : parse_dictionary(control, head, name))
            return true;
    }
    return false;
}
