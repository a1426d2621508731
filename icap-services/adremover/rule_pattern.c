#include "adremover/rule_pattern.h"

#include "adremover/ascii_host.h"
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

bool rule_pattern_is_host(struct slice text) {
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

/* Makes a copy, in lower case unless case matters. */
void rule_pattern_keep(struct rule *rule, struct rule_reading *reading, struct slice text) {
    char *pattern = reading->keep(reading->keeper, text.base, text.length);
    for (size_t i = 0; !rule->match_case && i < text.length; i++)
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
    size_t host = 0, length;
    while (rule->at_host && host < text.length && strchr("/^:?*|", text.base[host]) == NULL)
        host++;
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

enum rule_parsed rule_pattern_parse(struct rule *rule, struct rule_reading *reading,
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
