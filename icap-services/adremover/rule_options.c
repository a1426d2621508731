#include "adremover/rule_options.h"

#include "base/assert.h"

/* What has been read from the options. */
struct options {
    unsigned added, removed; /* types */
    bool any_type;           /* one that is not inverse */
    bool any_party;
    bool hiding;         /* it is about element hiding */
    struct slice beyond; /* ... of a kind that a proxy does not see: its name */
    unsigned methods_added, methods_removed;
    struct domain_set *to, *denied;
};

static const struct {
    struct slice name;
    unsigned types;
} type_names[] = {
#define TYPE(name, types)                                                                          \
    { {name, sizeof name - 1}, types }
    TYPE("script", FILTER_TYPE_SCRIPT),
    TYPE("image", FILTER_TYPE_IMAGE),
    TYPE("stylesheet", FILTER_TYPE_STYLESHEET),
    TYPE("css", FILTER_TYPE_STYLESHEET),
    TYPE("object", FILTER_TYPE_OBJECT),
    TYPE("object-subrequest", FILTER_TYPE_OBJECT),
    TYPE("xmlhttprequest", FILTER_TYPE_XMLHTTPREQUEST),
    TYPE("xhr", FILTER_TYPE_XMLHTTPREQUEST),
    TYPE("subdocument", FILTER_TYPE_SUBDOCUMENT),
    TYPE("frame", FILTER_TYPE_SUBDOCUMENT),
    TYPE("ping", FILTER_TYPE_PING),
    TYPE("beacon", FILTER_TYPE_PING),
    TYPE("websocket", FILTER_TYPE_WEBSOCKET),
    TYPE("font", FILTER_TYPE_FONT),
    TYPE("media", FILTER_TYPE_MEDIA),
    TYPE("other", FILTER_TYPE_OTHER),
    TYPE("document", FILTER_TYPE_DOCUMENT),
    TYPE("doc", FILTER_TYPE_DOCUMENT),
    TYPE("all", FILTER_TYPE_PARTS | FILTER_TYPE_DOCUMENT),
    /* A proxy does not see these types. A rule for them alone is not supported. */
    TYPE("popup", 0),
    TYPE("popunder", 0),
    TYPE("webrtc", 0),
    TYPE("inline-script", 0),
    TYPE("inline-font", 0),
};

static bool rule_options_set_type(struct options *options, struct slice name, bool inverse) {
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++) {
        if (!slice_equal_nocase(name, type_names[i].name))
            continue;
        *(inverse ? &options->removed : &options->added) |= type_names[i].types;
        if (type_names[i].types == 0)
            options->beyond = type_names[i].name;
        options->any_type |= !inverse;
        return true;
    }
    return false;
}

/* In the order of enum filter_method; 0: none of them. */
static unsigned method_of(struct slice name) {
    static const char *const names[] = {"get", "head", "post", "put", "delete", "options", "patch"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal_nocase(name, slice_from(names[i])))
            return 1u << i;
    return 0;
}

static bool set_methods(struct options *options, struct slice value) {
    const char *end = value.base + value.length;
    for (const char *at = value.base; at < end;) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        const char *stop = bar == NULL ? end : bar;
        bool inverse = *at == '~';
        unsigned method = method_of(slice_make(at + inverse, (size_t)(stop - at) - inverse));
        if (method == 0)
            return false;
        *(inverse ? &options->methods_removed : &options->methods_added) |= method;
        at = stop + 1;
    }
    return value.length > 0;
}

static enum rule_parsed set_domains(struct domain_set **set, struct slice value, bool inverse) {
    if (*set == NULL)
        *set = domain_set_parse(value, inverse);
    else /* a second option of the kind */
        domain_set_free(set);
    return *set != NULL ? RULE_GOOD : RULE_UNSUPPORTED;
}

/* A rule with both is for both. */
static void set_party(struct rule *rule, struct options *options, enum filter_party party) {
    rule->party = options->any_party && rule->party != party ? FILTER_PARTY_UNKNOWN : party;
    options->any_party = true;
}

static enum rule_parsed set_action(struct rule *rule, struct rule_reading *reading,
                                   enum rule_action action, struct slice value) {
    if (rule->action != RULE_BLOCKS)
        return RULE_UNSUPPORTED; /* a rule does one thing */
    /* An exception from redirect-rule without a name is an exception from all names. */
    if (value.length == 0 && !(rule->exception && action == RULE_REDIRECTS))
        return RULE_BAD;
    rule->action = (uint8_t)action;
    rule_extra_of(rule)->value = rule_keep(reading, value);
    return RULE_GOOD;
}

/* Reads removeparam, =name, =~name, =/regex/ or =/regex/i. Without a value every parameter goes. */
static enum rule_parsed set_strip(struct rule *rule, struct rule_reading *reading,
                                  struct slice value) {
    if (rule->action != RULE_BLOCKS)
        return RULE_UNSUPPORTED;
    struct rule_extra *extra = rule_extra_of(rule);
    rule->action = RULE_STRIPS;
    extra->value_inverse = value.length > 0 && value.base[0] == '~';
    value.base += extra->value_inverse, value.length -= extra->value_inverse;
    extra->value = value.length == 0 ? SLICE("") : rule_keep(reading, value);
    if (value.length < 2 || value.base[0] != '/') /* "|" was an anchor, and between names, once */
        return memchr(value.base, '|', value.length) == NULL ? RULE_GOOD : RULE_UNSUPPORTED;
    const char *end = memrchr(value.base + 1, '/', value.length - 1);
    if (end == NULL)
        return RULE_BAD;
    struct slice flags = slice_make(end + 1, (size_t)(value.base + value.length - end) - 1);
    if (flags.length > 0 && !slice_equal(flags, SLICE("i")))
        return RULE_UNSUPPORTED;
    struct slice pattern = slice_make(value.base + 1, (size_t)(end - value.base) - 1);
    extra->param_regex = regex_create(pattern, flags.length == 0);
    return extra->param_regex == NULL ? RULE_BAD : RULE_GOOD;
}

enum option_id {
    OPTION_DOMAIN,
    OPTION_TO,
    OPTION_DENYALLOW,
    OPTION_METHOD,
    OPTION_THIRD,
    OPTION_FIRST,
    OPTION_MATCH_CASE,
    OPTION_IMPORTANT,
    OPTION_BADFILTER,
    OPTION_REDIRECT,
    OPTION_REDIRECT_RULE,
    OPTION_EMPTY,
    OPTION_MP4,
    OPTION_REMOVEPARAM,
    OPTION_HIDING,
    OPTION_NOTHING,
    OPTION_UNKNOWN,
};

/* VALUED: something may stand behind a "="; INVERSE: a "~" may stand before the name. */
enum { VALUED = 1, INVERSE = 2 };

static const struct option_name {
    struct slice name;
    enum option_id id;
    unsigned takes;
} option_names[] = {
#define OPTION(name, id, takes)                                                                    \
    { {name, sizeof name - 1}, id, takes }
    OPTION("domain", OPTION_DOMAIN, VALUED | INVERSE),
    OPTION("from", OPTION_DOMAIN, VALUED | INVERSE),
    OPTION("to", OPTION_TO, VALUED | INVERSE),
    OPTION("denyallow", OPTION_DENYALLOW, VALUED),
    OPTION("method", OPTION_METHOD, VALUED),
    OPTION("third-party", OPTION_THIRD, INVERSE),
    OPTION("3p", OPTION_THIRD, INVERSE),
    OPTION("first-party", OPTION_FIRST, INVERSE),
    OPTION("1p", OPTION_FIRST, INVERSE),
    OPTION("match-case", OPTION_MATCH_CASE, INVERSE),
    OPTION("important", OPTION_IMPORTANT, 0),
    OPTION("badfilter", OPTION_BADFILTER, 0),
    OPTION("redirect", OPTION_REDIRECT, VALUED),
    OPTION("rewrite", OPTION_REDIRECT, VALUED),
    OPTION("redirect-rule", OPTION_REDIRECT_RULE, VALUED),
    OPTION("empty", OPTION_EMPTY, 0),
    OPTION("mp4", OPTION_MP4, 0),
    OPTION("removeparam", OPTION_REMOVEPARAM, VALUED),
    OPTION("queryprune", OPTION_REMOVEPARAM, VALUED),
    OPTION("elemhide", OPTION_HIDING, 0), /* exceptions from element hiding */
    OPTION("ehide", OPTION_HIDING, 0),
    OPTION("generichide", OPTION_HIDING, 0),
    OPTION("ghide", OPTION_HIDING, 0),
    OPTION("specifichide", OPTION_HIDING, 0),
    OPTION("shide", OPTION_HIDING, 0),
    OPTION("collapse", OPTION_NOTHING, INVERSE), /* how a browser closes the gap */
    OPTION("_", OPTION_NOTHING, 0),
};

static enum option_id find_option(struct slice name, bool valued, bool inverse) {
    for (size_t i = 0; i < sizeof option_names / sizeof *option_names; i++) {
        const struct option_name *option = &option_names[i];
        if (slice_equal_nocase(name, option->name))
            return (valued && !(option->takes & VALUED)) || (inverse && !(option->takes & INVERSE))
                       ? OPTION_UNKNOWN
                       : option->id;
    }
    return OPTION_UNKNOWN;
}

struct slice rule_options_name(size_t at) {
    size_t types = sizeof type_names / sizeof *type_names;
    if (at < types)
        return type_names[at].name;
    at -= types;
    return at < sizeof option_names / sizeof *option_names ? option_names[at].name : SLICE("");
}

static enum rule_parsed parse_option(struct rule *rule, struct rule_reading *reading,
                                     struct options *options, struct slice text) {
    bool inverse = text.length > 0 && text.base[0] == '~';
    struct slice name = slice_make(text.base + inverse, text.length - inverse), value = SLICE("");
    const char *equals = memchr(name.base, '=', name.length);
    if (equals != NULL) {
        value = slice_make(equals + 1, name.length - (size_t)(equals + 1 - name.base));
        name.length = (size_t)(equals - name.base);
    }
    reading->option = name;
    if (equals == NULL && rule_options_set_type(options, name, inverse))
        return RULE_GOOD;
    switch (find_option(name, equals != NULL, inverse)) {
    case OPTION_DOMAIN: return set_domains(&rule_extra_of(rule)->pages, value, inverse);
    case OPTION_TO: return set_domains(&options->to, value, inverse);
    case OPTION_DENYALLOW: return set_domains(&options->denied, value, true);
    case OPTION_METHOD: return set_methods(options, value) ? RULE_GOOD : RULE_UNSUPPORTED;
    case OPTION_THIRD:
        set_party(rule, options, inverse ? FILTER_PARTY_FIRST : FILTER_PARTY_THIRD);
        break;
    case OPTION_FIRST:
        set_party(rule, options, inverse ? FILTER_PARTY_THIRD : FILTER_PARTY_FIRST);
        break;
    case OPTION_MATCH_CASE: rule->match_case = !inverse; break;
    case OPTION_IMPORTANT: rule->important = true; break;
    case OPTION_BADFILTER: rule->bad_filter = true; break;
    case OPTION_REDIRECT: return set_action(rule, reading, RULE_BLOCKS_TO, value);
    case OPTION_REDIRECT_RULE: return set_action(rule, reading, RULE_REDIRECTS, value);
    case OPTION_EMPTY: return set_action(rule, reading, RULE_BLOCKS_TO, SLICE("empty"));
    case OPTION_MP4: return set_action(rule, reading, RULE_BLOCKS_TO, SLICE("noop-1s.mp4"));
    case OPTION_REMOVEPARAM: return set_strip(rule, reading, value);
    case OPTION_HIDING: options->hiding = true; break;
    case OPTION_NOTHING: break;
    case OPTION_UNKNOWN: return RULE_UNSUPPORTED;
    }
    return RULE_GOOD;
}

/* An option ends at a comma that is neither escaped nor inside a regular expression. */
static size_t option_length(struct slice text) {
    const char *equals = memchr(text.base, '=', text.length);
    const char *comma = memchr(text.base, ',', text.length);
    size_t at = 0;
    if (equals != NULL && (comma == NULL || equals < comma)) {
        at = (size_t)(equals - text.base) + 1;
        at += at < text.length && text.base[at] == '~';
        if (at < text.length && text.base[at] == '/')
            for (at++; at < text.length && text.base[at] != '/'; at++)
                at += text.base[at] == '\\';
    }
    while (at < text.length && (text.base[at] != ',' || text.base[at - (at > 0)] == '\\'))
        at++;
    return at < text.length ? at : text.length;
}

static void join_hosts(struct rule *rule, struct options *options) {
    struct domain_set **set = options->to != NULL ? &options->to : &options->denied;
    if (*set == NULL)
        return;
    rule_extra_of(rule)->hosts = *set;
    *set = NULL;
}

static void settle_methods(struct rule *rule, const struct options *options) {
    enum { ALL = 2 * FILTER_METHOD_OTHER - 1 };
    unsigned methods = options->methods_added;
    if (options->methods_removed != 0)
        methods = (methods == 0 ? ALL : methods) & ~options->methods_removed;
    rule->methods = (uint8_t)methods;
}

static enum rule_parsed rule_options_settle(struct rule *rule, struct rule_reading *reading,
                                            struct options *options) {
    unsigned types = FILTER_TYPE_PARTS;
    /* Parameters are taken off the addresses of pages and of what a page asks for in the
     * background. */
    if (rule->action == RULE_STRIPS)
        types = FILTER_TYPE_DOCUMENT | FILTER_TYPE_SUBDOCUMENT | FILTER_TYPE_XMLHTTPREQUEST;
    types = (options->any_type ? options->added : types) & ~options->removed;
    rule->types = (uint16_t)types;
    if (options->hiding && !options->any_type)
        return RULE_COSMETIC;
    settle_methods(rule, options);
    if (options->to != NULL && options->denied != NULL) {
        reading->option = SLICE("denyallow and to");
        return RULE_UNSUPPORTED;
    }
    join_hosts(rule, options);
    if (types != 0)
        return RULE_GOOD;
    reading->option = options->beyond;
    return options->beyond.length > 0 ? RULE_UNSUPPORTED : RULE_BAD;
}

enum rule_parsed rule_options_parse(struct rule *rule, struct rule_reading *reading,
                                    struct slice text) {
    struct options options = {.beyond = SLICE("")};
    enum rule_parsed parsed = RULE_GOOD;
    while (parsed == RULE_GOOD && text.length > 0) {
        size_t length = option_length(text), used = length + (length < text.length);
        if (length > 0)
            parsed = parse_option(rule, reading, &options, slice_make(text.base, length));
        text = slice_make(text.base + used, text.length - used);
    }
    if (parsed == RULE_GOOD)
        parsed = rule_options_settle(rule, reading, &options);
    domain_set_free(&options.to);
    domain_set_free(&options.denied);
    return parsed;
}

/* The length of the name at the front of an option, up to its value; SIZE_MAX when there is no
 * name. */
static size_t name_length(struct slice option) {
    size_t length = 0;
    for (; length < option.length && option.base[length] != '='; length++) {
        unsigned char c = (unsigned char)option.base[length];
        if (((c | 0x20) < 'a' || (c | 0x20) > 'z') && (c < '0' || c > '9') && c != '-' &&
            c != '_' && c != '~')
            return SIZE_MAX;
    }
    return length;
}

/* Could these be options? Options are names, perhaps with values, and commas between them. */
static bool looks_like_options(struct slice text) {
    bool any = false;
    while (text.length > 0) {
        size_t length = option_length(text), used = length + (length < text.length);
        size_t name = name_length(slice_make(text.base, length));
        if (name == SIZE_MAX)
            return false;
        any |= name > 0;
        text = slice_make(text.base + used, text.length - used);
    }
    return any;
}

/* The "$" that begins the options is the last one with possible options behind it. */
size_t rule_options_find(struct slice text) {
    for (size_t i = text.length; i-- > 0;)
        if (text.base[i] == '$' &&
            looks_like_options(slice_make(text.base + i + 1, text.length - i - 1)))
            return i;
    return text.length;
}
