#include "adremover/ascii_host.h"
#include "adremover/rule_options.h"
#include "adremover/rule_pattern.h"

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
