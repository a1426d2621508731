#include "adremover/rule.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned types;
} type_names[] = {
    {"script", FILTER_TYPE_SCRIPT},
    {"image", FILTER_TYPE_IMAGE},
    {"stylesheet", FILTER_TYPE_STYLESHEET},
    {"css", FILTER_TYPE_STYLESHEET},
    {"object", FILTER_TYPE_OBJECT},
    {"xmlhttprequest", FILTER_TYPE_XMLHTTPREQUEST},
    {"xhr", FILTER_TYPE_XMLHTTPREQUEST},
    {"subdocument", FILTER_TYPE_SUBDOCUMENT},
    {"frame", FILTER_TYPE_SUBDOCUMENT},
    {"ping", FILTER_TYPE_PING},
    {"beacon", FILTER_TYPE_PING},
    {"websocket", FILTER_TYPE_WEBSOCKET},
    {"font", FILTER_TYPE_FONT},
    {"media", FILTER_TYPE_MEDIA},
    {"other", FILTER_TYPE_OTHER},
    {"document", FILTER_TYPE_DOCUMENT},
    {"doc", FILTER_TYPE_DOCUMENT},
    {"all", FILTER_TYPE_PARTS | FILTER_TYPE_DOCUMENT},
    /* Known, but nothing a proxy sees: a rule of these alone is not supported. */
    {"popup", 0},
    {"object-subrequest", 0}, /* Flash */
    {"elemhide", 0},
    {"generichide", 0},
    {"genericblock", 0},
    {"specifichide", 0},
    {"ehide", 0},
    {"ghide", 0},
    {"webrtc", 0},
};

static const char *const unsupported_options[] = {
    "csp",      "redirect", "redirect-rule", "removeparam", "rewrite",   "badfilter",
    "header",   "sitekey",  "denyallow",     "permissions", "replace",   "cname",
    "empty",    "mp4",      "inline-script", "inline-font", "from",      "to",
    "method",   "collapse", "donottrack",    "app",         "network",   "jsonprune",
    "hls",      "cookie",   "stealth",       "urlblock",    "extension", "content",
    "jsinject", "strict3p", "strict1p"};

/* ---- parsing ------------------------------------------------------------------------------ */

struct option_state {
    unsigned added, removed;
    bool any_type;
};

static bool type_option(struct option_state *state, struct slice name, bool inverse) {
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++) {
        if (!slice_equal_nocase(name, slice_from(type_names[i].name)))
            continue;
        *(inverse ? &state->removed : &state->added) |= type_names[i].types;
        state->any_type |= !inverse;
        return true;
    }
    return false;
}

static bool is_unsupported(struct slice name) {
    for (size_t i = 0; i < sizeof unsupported_options / sizeof *unsupported_options; i++)
        if (slice_equal_nocase(name, slice_from(unsupported_options[i])))
            return true;
    return false;
}

static void lower_case(char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        text[i] = (char)ascii_lower((unsigned char)text[i]);
}

static enum rule_parsed parse_option(struct rule *rule, struct option_state *state, char *text,
                                     size_t length) {
    bool inverse = length > 0 && text[0] == '~';
    struct slice name = slice_make(text + inverse, length - inverse);
    const char *equals = memchr(name.base, '=', name.length);
    struct slice value = slice_make("", 0);
    if (equals != NULL) {
        value = slice_make(equals + 1, name.length - (size_t)(equals + 1 - name.base));
        name.length = (size_t)(equals - name.base);
    }
    if (slice_equal_nocase(name, SLICE("domain")) && equals != NULL && !inverse) {
        if (value.length == 0 || value.length > UINT16_MAX)
            return RULE_BAD;
        lower_case((char *)value.base, value.length);
        rule->domains = value.base;
        rule->domains_length = (uint16_t)value.length;
    } else if (slice_equal_nocase(name, SLICE("third-party")) ||
               slice_equal_nocase(name, SLICE("3p")))
        rule->party = inverse ? FILTER_PARTY_FIRST : FILTER_PARTY_THIRD;
    else if (slice_equal_nocase(name, SLICE("first-party")) ||
             slice_equal_nocase(name, SLICE("1p")))
        rule->party = inverse ? FILTER_PARTY_THIRD : FILTER_PARTY_FIRST;
    else if (slice_equal_nocase(name, SLICE("match-case")))
        rule->match_case = true;
    else if (slice_equal_nocase(name, SLICE("important")))
        rule->important = true;
    else if (is_unsupported(name))
        return RULE_UNSUPPORTED;
    else if (equals != NULL || !type_option(state, name, inverse))
        return RULE_BAD;
    return RULE_GOOD;
}

static enum rule_parsed parse_options(struct rule *rule, char *text, size_t length) {
    struct option_state state = {0, 0, false};
    for (char *end = text + length; text < end;) {
        char *comma = memchr(text, ',', (size_t)(end - text));
        size_t size = (size_t)((comma == NULL ? end : comma) - text);
        enum rule_parsed parsed = parse_option(rule, &state, text, size);
        if (parsed != RULE_GOOD)
            return parsed;
        text += size + 1;
    }
    rule->types = (uint16_t)((state.any_type ? state.added : FILTER_TYPE_PARTS) & ~state.removed);
    return rule->types == 0 ? RULE_UNSUPPORTED : RULE_GOOD;
}

/* The "$" that begins the options: the last one that is followed by what options consist of. */
static char *find_options(char *text, size_t length) {
    for (size_t i = length; i-- > 0;) {
        unsigned char c = (unsigned char)text[i];
        if (c == '$')
            return i + 1 < length ? text + i : NULL;
        if (c == '/' || c == '^')
            return NULL;
    }
    return NULL;
}

/* A pattern that is a host and nothing else goes into the table of hosts. */
static bool is_host(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!rule_is_word(c) && c != '-' && c != '.' && c != '_')
            return false;
    }
    return length > 0 && text[0] != '.' && text[length - 1] != '.';
}

static enum rule_parsed parse_pattern(struct rule *rule, char *text, size_t length) {
    if (length >= 2 && text[0] == '/' && text[length - 1] == '/' && length > 2)
        return RULE_UNSUPPORTED; /* a regular expression */
    if (length >= 2 && text[0] == '|' && text[1] == '|') {
        rule->at_host = true;
        text += 2, length -= 2;
    } else if (length >= 1 && text[0] == '|') {
        rule->at_start = true;
        text++, length--;
    }
    if (length >= 1 && text[length - 1] == '|') {
        rule->at_end = true;
        length--;
    }
    while (length > 0 && text[0] == '*') { /* says nothing */
        rule->at_start = rule->at_host = false;
        text++, length--;
    }
    while (length > 0 && text[length - 1] == '*') {
        rule->at_end = false;
        length--;
    }
    if (!rule->match_case)
        lower_case(text, length);
    if (rule->at_host && !rule->at_end && !rule->match_case && length > 1 &&
        text[length - 1] == '^' && is_host(text, length - 1)) {
        rule->whole_host = true;
        length--;
    }
    rule->pattern = text;
    rule->length = (uint32_t)length;
    /* An empty pattern matches everything: sensible only where options narrow it. */
    bool narrow = rule->domains != NULL || rule->types != FILTER_TYPE_PARTS;
    return length == 0 && !narrow ? RULE_BAD : RULE_GOOD;
}

static enum rule_parsed parse_host_line(struct rule *rule, char *text, size_t length) {
    size_t size = 0;
    while (size < length && text[size] != ' ' && text[size] != '\t' && text[size] != '#')
        size++;
    lower_case(text, size);
    struct slice host = slice_make(text, size);
    if (!is_host(text, size))
        return RULE_BAD;
    if (slice_equal(host, SLICE("localhost")) || slice_equal(host, SLICE("0.0.0.0")) ||
        slice_starts_with(host, SLICE("localhost.")) || slice_equal(host, SLICE("broadcasthost")) ||
        slice_starts_with(host, SLICE("ip6-")) || slice_equal(host, SLICE("local")))
        return RULE_NONE;
    rule->pattern = text;
    rule->length = (uint32_t)size;
    rule->types = FILTER_TYPE_PARTS;
    rule->whole_host = rule->exact_host = true;
    return RULE_GOOD;
}

/* "0.0.0.0 " and its like: how many bytes until the host. */
static size_t hosts_prefix(struct slice line) {
    static const char *const addresses[] = {"0.0.0.0", "127.0.0.1", "::1", "::"};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        size_t length = strlen(addresses[i]);
        if (!slice_starts_with(line, slice_from(addresses[i])) || line.length <= length ||
            (line.base[length] != ' ' && line.base[length] != '\t'))
            continue;
        while (length < line.length && (line.base[length] == ' ' || line.base[length] == '\t'))
            length++;
        return length;
    }
    return 0;
}

static bool is_comment(struct slice line) {
    if (line.length == 0 || strchr("![#", line.base[0]) != NULL)
        return true;
    for (size_t i = 0; i + 1 < line.length; i++) /* ## #@# #?# #$# #%# */
        if (line.base[i] == '#' &&
            (line.base[i + 1] == '#' ||
             (i + 2 < line.length && strchr("@?$%", line.base[i + 1]) != NULL &&
              memchr(line.base + i + 1, '#', line.length - i - 1) != NULL)))
            return true;
    return false;
}

enum rule_parsed rule_parse(struct rule *rule, char *text, size_t length) {
    struct slice line = slice_trim(slice_make(text, length));
    memset(rule, 0, sizeof *rule);
    if (is_comment(line))
        return RULE_NONE;
    text = (char *)line.base;
    length = line.length;
    size_t prefix = hosts_prefix(line);
    if (prefix > 0)
        return parse_host_line(rule, text + prefix, length - prefix);
    if (slice_starts_with(line, SLICE("@@"))) {
        rule->exception = true;
        text += 2, length -= 2;
    }
    rule->types = FILTER_TYPE_PARTS;
    if (length > 1 && text[0] == '/' && text[length - 1] == '/')
        return RULE_UNSUPPORTED;
    char *options = find_options(text, length);
    if (options != NULL) {
        enum rule_parsed parsed =
            parse_options(rule, options + 1, length - (size_t)(options + 1 - text));
        if (parsed != RULE_GOOD)
            return parsed;
        length = (size_t)(options - text);
    }
    return parse_pattern(rule, text, length);
}

/* ---- matching ----------------------------------------------------------------------------- */

static bool is_separator(unsigned char c) {
    return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.' || c == '%' || c >= 0x80);
}

/* Is `text`, from `at` on, what the pattern says? With `floating` the match may begin anywhere. On
 * a mismatch the last "*" takes one byte more; that is enough, since an earlier one could only have
 * matched less of the same. */
static bool match_from(const struct rule *rule, const char *text, size_t length, size_t at,
                       bool floating) {
    size_t p = 0, star_p = 0, star_at = at;
    bool star = floating;
    for (;;) {
        if (p == rule->length && (!rule->at_end || at == length))
            return true;
        char c = p < rule->length ? rule->pattern[p] : 0;
        if (p < rule->length && c == '*') {
            star = true;
            star_p = ++p;
            star_at = at;
            continue;
        }
        if (p < rule->length && at < length &&
            (c == '^' ? is_separator((unsigned char)text[at]) : c == text[at])) {
            p++, at++;
            continue;
        }
        if (p < rule->length && at == length && c == '^') {
            p++;
            continue;
        }
        if (!star || star_at >= length)
            return false;
        at = ++star_at;
        p = star_p;
    }
}

bool rule_pattern_matches(const struct rule *rule, const struct filter_request *request) {
    const char *text = rule->match_case ? request->url.base : request->lower;
    size_t length = request->length;
    if (rule->at_start)
        return match_from(rule, text, length, 0, false);
    if (!rule->at_host)
        return match_from(rule, text, length, 0, true);
    size_t begin = (size_t)(request->host.base - request->lower);
    size_t end = begin + request->host.length;
    for (size_t at = begin; at < end; at++)
        if ((at == begin || request->lower[at - 1] == '.') &&
            match_from(rule, text, length, at, false))
            return true;
    return false;
}

static bool host_is_below(struct slice host, struct slice domain) {
    if (host.length < domain.length)
        return false;
    size_t rest = host.length - domain.length;
    return memcmp(host.base + rest, domain.base, domain.length) == 0 &&
           (rest == 0 || host.base[rest - 1] == '.');
}

/* domain=: the longest entry that fits the page decides; where none does, a list of only "~" ones
 * says yes. */
static bool page_fits(const struct rule *rule, struct slice page) {
    const char *at = rule->domains, *end = at + rule->domains_length;
    size_t best = 0;
    bool fits = true, any_positive = false, decided = false;
    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        const char *stop = bar == NULL ? end : bar;
        bool inverse = *at == '~';
        struct slice domain = slice_make(at + inverse, (size_t)(stop - at) - inverse);
        any_positive |= !inverse;
        if (domain.length > 0 && domain.length >= best && host_is_below(page, domain)) {
            best = domain.length;
            fits = !inverse;
            decided = true;
        }
        at = stop + 1;
    }
    return decided ? fits : !any_positive;
}

enum rule_fit rule_fits(const struct rule *rule, const struct filter_request *request) {
    unsigned common = request->types & rule->types;
    bool unknown = false;
    if (common == 0)
        return RULE_MISSES;
    unknown |= common != request->types;
    if (rule->party != FILTER_PARTY_UNKNOWN) {
        if (request->party == FILTER_PARTY_UNKNOWN)
            unknown = true;
        else if (request->party != (enum filter_party)rule->party)
            return RULE_MISSES;
    }
    if (rule->domains != NULL) {
        if (request->page[0] == 0) {
            /* Without a page, an exception for some pages would be one for all. */
            if (rule->exception)
                return RULE_MISSES;
            unknown = true;
        } else if (!page_fits(rule, slice_from(request->page)))
            return RULE_MISSES;
    }
    return unknown ? RULE_UNKNOWN : RULE_FITS;
}
