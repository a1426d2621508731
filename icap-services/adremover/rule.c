#include "adremover/rule.h"

#include "base/assert.h"

void rule_release(struct rule *rule) {
    struct rule_extra *extra = rule->extra;
    rule->extra = NULL;
    if (extra == NULL)
        return;
    domain_set_free(&extra->pages);
    domain_set_free(&extra->hosts);
    regex_free(&extra->regex);
    regex_free(&extra->param_regex);
    free(extra);
}

struct rule_extra *rule_extra_of(struct rule *rule) {
    if (rule->extra == NULL)
        rule->extra = xcalloc(1, sizeof *rule->extra);
    return rule->extra;
}

struct slice rule_keep(struct rule_reading *reading, struct slice text) {
    return slice_make(reading->keep(reading->keeper, text.base, text.length), text.length);
}

static uint64_t rule_mix(uint64_t digest, uint64_t value) {
    return ((digest ^ value) * 0x9e3779b97f4a7c15u) ^ (digest >> 29);
}

static uint64_t mix_text(uint64_t digest, struct slice text) {
    digest = rule_mix(digest, text.length);
    for (size_t i = 0; i < text.length; i++)
        digest = rule_mix(digest, (unsigned char)text.base[i]);
    return digest;
}

uint64_t rule_digest(const struct rule *rule) {
    const struct rule_extra *extra = rule->extra;
    uint64_t digest = mix_text(0x72756c65, slice_make(rule->pattern, rule->length));
    digest = rule_mix(digest, (uint64_t)rule->types << 32 | (uint64_t)rule->methods << 24 |
                                  (uint64_t)rule->party << 16 | rule->action);
    digest = rule_mix(digest, (uint64_t)rule->exception << 8 | rule->important << 7 |
                                  rule->match_case << 6 | rule->at_start << 5 | rule->at_end << 4 |
                                  rule->at_host << 3 | rule->exact_host << 2);
    if (extra == NULL)
        return digest;
    digest = rule_mix(digest, domain_set_digest(extra->pages));
    digest = rule_mix(digest, domain_set_digest(extra->hosts));
    digest = rule_mix(digest, (uint64_t)(extra->regex != NULL) << 1 | extra->value_inverse);
    return mix_text(digest, extra->value);
}

/* ---- the pattern -------------------------------------------------------------------------- */

static bool is_separator(unsigned char c) {
    return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.' || c == '%' || c >= 0x80);
}

static bool match_plain(const struct rule *rule, const char *text, size_t length, size_t at) {
    return length - at >= rule->length && (!rule->at_end || length - at == rule->length) &&
           memcmp(text + at, rule->pattern, rule->length) == 0;
}

/* The next place in `text`, from `at` on, where the pattern can go on behind a "*": there stands
 * the byte that follows the "*". The text's length when there is no such place. */
static size_t next_place(const struct rule *rule, struct filter_request *request, const char *text,
                         size_t at, size_t p) {
    enum { BYTES_A_STEP = 32 };
    size_t length = request->length;
    if (p == rule->length || rule->pattern[p] == '^' || rule->pattern[p] == '*')
        return at;
    const char *found = at < length ? memchr(text + at, rule->pattern[p], length - at) : NULL;
    size_t place = found == NULL ? length : (size_t)(found - text);
    filter_request_work(request, (place - at) / BYTES_A_STEP);
    return place;
}

/* Does `text`, from `at` on, match the pattern? With `floating` the match may begin anywhere. On a
 * mismatch the last "*" takes more. That is enough: an earlier "*" could only have matched less of
 * the same. */
static bool match_from(const struct rule *rule, struct filter_request *request, const char *text,
                       size_t at, bool floating) {
    size_t length = request->length;
    size_t p = 0, star_p = 0, star_at = at;
    bool star = floating;
    while (filter_request_work(request, 1)) {
        if (p == rule->length && (!rule->at_end || at == length))
            return true;
        char c = p < rule->length ? rule->pattern[p] : 0;
        if (p < rule->length && c == '*') {
            star = true;
            star_p = ++p;
            star_at = at = next_place(rule, request, text, at, p);
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
        star_at = at = next_place(rule, request, text, star_at + 1, star_p);
        p = star_p;
    }
    return false;
}

static const char *rule_text_of(const struct rule *rule, const struct filter_request *request) {
    return rule->match_case ? request->url.base : request->lower;
}

/* Is `at` the beginning of the host or of one of its labels? */
static bool is_label(const struct filter_request *request, size_t at) {
    size_t begin = (size_t)(request->host.base - request->lower);
    return at == begin ||
           (at > begin && at < begin + request->host.length && request->lower[at - 1] == '.');
}

bool rule_matches_at(const struct rule *rule, struct filter_request *request, size_t at) {
    if ((rule->at_start && at != 0) || (rule->at_host && !is_label(request, at)))
        return false;
    if (rule->plain)
        return match_plain(rule, rule_text_of(rule, request), request->length, at);
    return match_from(rule, request, rule_text_of(rule, request), at, false);
}

static bool matches_below_host(const struct rule *rule, struct filter_request *request) {
    size_t begin = (size_t)(request->host.base - request->lower);
    for (size_t at = begin; at < begin + request->host.length; at++)
        if (rule_matches_at(rule, request, at))
            return true;
    return false;
}

/* Of the text, for a step of work; the steps of an expression that came to no end. */
enum { REGEX_BYTES = 4, PLAIN_BYTES = 32, REGEX_GAVE_UP = 1 << 15 };

static bool fits_regex(const struct regex *regex, struct filter_request *request) {
    bool gave_up, fits = regex_matches(regex, request->url, request->lower, &gave_up);
    if (gave_up)
        filter_request_work(request, REGEX_GAVE_UP);
    return fits;
}

bool rule_matches(const struct rule *rule, struct filter_request *request) {
    const char *text = rule_text_of(rule, request);
    size_t length = request->length;
    /* An expression may look at each byte more than once. */
    bool is_regex = rule->extra != NULL && rule->extra->regex != NULL;
    if (!filter_request_work(request, length / (is_regex ? REGEX_BYTES : PLAIN_BYTES)))
        return false;
    if (is_regex)
        return fits_regex(rule->extra->regex, request);
    if (rule->at_host)
        return matches_below_host(rule, request);
    if (rule->at_start)
        return rule_matches_at(rule, request, 0);
    if (!rule->plain)
        return match_from(rule, request, text, 0, true);
    if (rule->at_end)
        return length >= rule->length && match_plain(rule, text, length, length - rule->length);
    return rule->length == 0 || memmem(text, length, rule->pattern, rule->length) != NULL;
}

/* ---- the rest ----------------------------------------------------------------------------- */

enum rule_fit rule_fits_kind(const struct rule *rule, const struct filter_request *request) {
    unsigned common = request->types & rule->types;
    if (common == 0 || (rule->methods != 0 && (rule->methods & request->method) == 0))
        return RULE_MISSES;
    return common == request->types ? RULE_FITS : RULE_UNKNOWN;
}

static enum rule_fit fits_page(const struct rule *rule, struct filter_request *request) {
    const struct domain_set *pages = rule->extra->pages;
    if (pages == NULL)
        return RULE_FITS;
    /* Without this, an exception for certain pages would apply when the page is not known. */
    if (request->page.length == 0)
        return rule->exception ? RULE_MISSES : RULE_UNKNOWN;
    const struct filter_labels *entities =
        pages->any_entity ? filter_request_page_entities(request) : NULL;
    return domain_set_fits(pages, request->page, &request->page_labels, entities) ? RULE_FITS
                                                                                  : RULE_MISSES;
}

static bool rule_fits_host(const struct rule *rule, struct filter_request *request) {
    const struct domain_set *hosts = rule->extra->hosts;
    if (hosts == NULL)
        return true;
    const struct filter_labels *entities =
        hosts->any_entity ? filter_request_host_entities(request) : NULL;
    return domain_set_fits(hosts, request->host, &request->host_labels, entities);
}

enum rule_fit rule_fits_place(const struct rule *rule, struct filter_request *request) {
    enum rule_fit fit = RULE_FITS;
    if (rule->party != FILTER_PARTY_UNKNOWN) {
        enum filter_party party = filter_request_party(request);
        if (party == FILTER_PARTY_UNKNOWN)
            fit = RULE_UNKNOWN;
        else if (party != (enum filter_party)rule->party)
            return RULE_MISSES;
    }
    if (rule->extra == NULL)
        return fit;
    enum rule_fit page = fits_page(rule, request);
    if (page == RULE_MISSES || !rule_fits_host(rule, request))
        return RULE_MISSES;
    return page == RULE_UNKNOWN ? RULE_UNKNOWN : fit;
}
