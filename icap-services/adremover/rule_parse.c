#include "adremover/host.h"
#include "adremover/rule.h"
#include "adremover/rule_options.h"
#include "base/assert.h"

#include <arpa/inet.h>

static bool is_host_byte(unsigned char c) {
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

static size_t host_prefix(struct slice text) {
    size_t length = 0;
    while (length < text.length && is_host_byte((unsigned char)text.base[length]))
        length++;
    return length;
}

/* Is the whole text the name of a host? */
static bool rule_pattern_is_host(struct slice text) {
    return text.length > 0 && text.base[0] != '.' && text.base[text.length - 1] != '.' &&
           host_prefix(text) == text.length;
}

static enum rule_parsed parse_regex(struct rule *rule, struct rule_reading *reading,
                                    struct slice text) {
    struct slice pattern = slice_make(text.base + 1, text.length - 2);
    struct regex *regex = regex_create(pattern, rule->match_case);
    if (regex == NULL)
        return RULE_BAD;
    rule_extra_of(rule)->regex = regex;
    rule->pattern = rule_keep(reading, pattern).base;
    rule->length = (uint16_t)pattern.length;
    return RULE_GOOD;
}

static struct slice take_anchors(struct rule *rule, struct slice text) {
    if (slice_starts_with(text, SLICE("||"))) {
        rule->at_host = true;
        text.base += 2, text.length -= 2;
    } else if (slice_starts_with(text, SLICE("|"))) {
        rule->at_start = true;
        text.base++, text.length--;
    }
    if (text.length > 0 && text.base[text.length - 1] == '|') {
        rule->at_end = true;
        text.length--;
    }
    while (text.length > 0 && text.base[0] == '*') { /* says nothing */
        rule->at_start = rule->at_host = false;
        text.base++, text.length--;
    }
    while (text.length > 0 && text.base[text.length - 1] == '*') {
        rule->at_end = false;
        text.length--;
    }
    return text;
}

static size_t host_part(const struct rule *rule, struct slice text) {
    size_t length = 0;
    while (rule->at_host && length < text.length && memchr("/^:?*|", text.base[length], 6) == NULL)
        length++;
    return length;
}

/* Makes a copy, in lower case unless case matters. It never matters in a host. */
/* Makes a copy of the text the pattern of the rule; in lower case unless the rule matches case. */
static void rule_pattern_keep(struct rule *rule, struct rule_reading *reading, struct slice text) {
    char *pattern = reading->keep(reading->keeper, text.base, text.length);
    size_t lower = rule->match_case ? host_part(rule, text) : text.length;
    for (size_t i = 0; i < lower; i++)
        pattern[i] = (char)ascii_lower((unsigned char)pattern[i]);
    rule->pattern = pattern;
    rule->length = (uint16_t)text.length;
    rule->plain =
        memchr(text.base, '*', text.length) == NULL && memchr(text.base, '^', text.length) == NULL;
}

/* Finds the host in the pattern, if the pattern holds it to its end. */
static void find_host(struct rule *rule) {
    struct slice text = slice_make(rule->pattern, rule->length);
    size_t length = host_prefix(text);
    bool complete = length < text.length ? strchr("/^:?", text.base[length]) != NULL : rule->at_end;
    if (!rule->at_host || rule->match_case || !complete ||
        !rule_pattern_is_host(slice_make(text.base, length)))
        return;
    rule->host_length = (uint16_t)length;
    rule->whole_host = length + 1 == text.length && text.base[length] == '^' && !rule->at_end;
}

/* Writes the text as URLs have it: the host in ASCII, and in the rest each byte beyond ASCII as
 * %XX. `room` must be large enough. */
static struct slice spell(const struct rule *rule, struct slice text, char *room) {
    const char *hex = rule->match_case ? "0123456789ABCDEF" : "0123456789abcdef";
    char ascii[ASCII_HOST_MAX];
    size_t host = host_part(rule, text), length;
    struct slice name = ascii_host(slice_make(text.base, host), ascii);
    if (name.length == 0 && host > 0)
        return SLICE("");
    memcpy(room, name.base, length = name.length);
    for (; host < text.length; host++) {
        unsigned char c = (unsigned char)text.base[host];
        if (c < 0x80) {
            room[length++] = (char)c;
            continue;
        }
        room[length++] = '%';
        room[length++] = hex[c >> 4];
        room[length++] = hex[c & 15];
    }
    return slice_make(room, length);
}

/* Writes "[2001:DB8::0:1]^" as "2001:db8::1]^". URLs have the address between brackets, in the
 * spelling of RFC 5952, and the host begins behind the first bracket. Empty: it is no address. */
static struct slice spell_address(struct slice text, char room[INET6_ADDRSTRLEN + RULE_LINE_MAX]) {
    char address[INET6_ADDRSTRLEN] = "";
    struct in6_addr bytes;
    const char *end = memchr(text.base, ']', text.length);
    size_t length = end == NULL ? SIZE_MAX : (size_t)(end - text.base) - 1;
    if (length >= sizeof address)
        return SLICE("");
    memcpy(address, text.base + 1, length);
    if (inet_pton(AF_INET6, address, &bytes) != 1)
        return SLICE("");
    inet_ntop(AF_INET6, &bytes, room, INET6_ADDRSTRLEN);
    size_t rest = text.length - length - 1, at = strlen(room);
    memcpy(room + at, end, rest);
    return slice_make(room, at + rest);
}

/* `any_options`: the rule has options, so its pattern may be empty. */
static enum rule_parsed rule_pattern_parse(struct rule *rule, struct rule_reading *reading,
                                           struct slice text, bool any_options) {
    if (text.length > 2 && text.base[0] == '/' && text.base[text.length - 1] == '/')
        return parse_regex(rule, reading, text);
    text = take_anchors(rule, text);
    /* An empty pattern matches everything. It makes sense only if options narrow it. */
    if (text.length == 0 && (!any_options || rule->at_host || rule->at_end))
        return RULE_BAD;
    if (text.length == 0 && rule->extra == NULL && rule->types == FILTER_TYPE_PARTS)
        return RULE_BAD;
    char *room = NULL, address[INET6_ADDRSTRLEN + RULE_LINE_MAX];
    bool is_address = rule->at_host && text.base[0] == '[';
    if (is_address)
        text = spell_address(text, address);
    if (is_address && text.length == 0)
        return RULE_BAD;
    if (!is_ascii(text)) {
        room = xmalloc(ASCII_HOST_MAX + 3 * text.length);
        text = spell(rule, text, room);
    }
    bool good = room == NULL || text.length > 0;
    if (good) {
        rule_pattern_keep(rule, reading, text);
        if (!is_address)
            find_host(rule);
    }
    free(room);
    return good ? RULE_GOOD : RULE_BAD;
}

/* The number of bytes before the host in a line of a hosts file ("0.0.0.0 "). */
static size_t hosts_prefix(struct slice line) {
    static const char *const addresses[] = {"0.0.0.0", "127.0.0.1", "::1", "::", "0"};
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

static bool is_own_host(struct slice host) {
    static const char *const names[] = {"localhost", "0.0.0.0", "broadcasthost", "local"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal_nocase(host, slice_from(names[i])))
            return true;
    return slice_starts_with_nocase(host, SLICE("localhost.")) ||
           slice_starts_with_nocase(host, SLICE("ip6-"));
}

/* Takes the first name that is left in the line. */
static struct slice take_name(struct slice *more) {
    size_t length = 0;
    while (length < more->length && more->base[length] != ' ' && more->base[length] != '\t' &&
           more->base[length] != '#')
        length++;
    struct slice name = slice_make(more->base, length);
    *more = slice_trim(slice_make(more->base + length, more->length - length));
    if (slice_starts_with(*more, SLICE("#")))
        more->length = 0;
    return name;
}

static enum rule_parsed parse_host_line(struct rule *rule, struct rule_reading *reading) {
    char room[ASCII_HOST_MAX];
    struct slice host = ascii_host(take_name(&reading->more), room);
    if (!rule_pattern_is_host(host) || host.length >= FILTER_HOST_MAX)
        return RULE_BAD;
    if (is_own_host(host))
        return RULE_NONE;
    rule_pattern_keep(rule, reading, host);
    rule->types = FILTER_TYPE_PARTS;
    rule->at_host = rule->whole_host = rule->exact_host = true;
    rule->host_length = rule->length;
    return RULE_GOOD;
}

static bool is_comment(struct slice line) {
    if (line.length == 0 || line.base[0] == '!' || line.base[0] == '[')
        return true;
    return line.base[0] == '#' && (line.length == 1 || strchr("#@?$%^", line.base[1]) == NULL);
}

/* Rules that hide parts of pages contain ## #@# #?# #$# #%# and others: two "#" with at most three
 * bytes between, all of this alphabet. */
static bool is_cosmetic(struct slice line) {
    for (const char *at = line.base, *end = line.base + line.length;
         (at = memchr(at, '#', (size_t)(end - at))) != NULL; at++) {
        const char *next = at + 1;
        while (next < end && next < at + 4 && strchr("@?$%^", *next) != NULL)
            next++;
        if (next < end && next < at + 5 && *next == '#')
            return true;
    }
    return false;
}

static enum rule_parsed parse_rule(struct rule *rule, struct rule_reading *reading,
                                   struct slice text) {
    rule->types = FILTER_TYPE_PARTS;
    if (slice_starts_with(text, SLICE("@@"))) {
        rule->exception = true;
        text.base += 2, text.length -= 2;
    }
    bool is_regex = text.length > 2 && text.base[0] == '/' && text.base[text.length - 1] == '/';
    size_t options = is_regex ? text.length : rule_options_find(text);
    if (options < text.length) {
        enum rule_parsed parsed = rule_options_parse(
            rule, reading, slice_make(text.base + options + 1, text.length - options - 1));
        if (parsed != RULE_GOOD)
            return parsed;
    }
    return rule_pattern_parse(rule, reading, slice_make(text.base, options), options < text.length);
}

enum rule_parsed rule_parse(struct rule *rule, struct rule_reading *reading, struct slice line) {
    memset(rule, 0, sizeof *rule);
    line = slice_trim(line);
    if (is_comment(line))
        return RULE_NONE;
    if (is_cosmetic(line))
        return RULE_COSMETIC;
    if (line.length > RULE_LINE_MAX)
        return RULE_BAD;
    size_t prefix = hosts_prefix(line);
    if (reading->more.length == 0 && prefix > 0)
        reading->more = slice_make(line.base + prefix, line.length - prefix);
    enum rule_parsed parsed =
        prefix > 0 ? parse_host_line(rule, reading) : parse_rule(rule, reading, line);
    if (parsed == RULE_GOOD) {
        rule->line = rule_keep(reading, line).base;
        rule->line_length = (uint16_t)line.length;
    } else
        rule_release(rule);
    return parsed;
}
