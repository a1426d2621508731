#include "inject/policy.h"

static struct slice cut(struct slice *rest, char end) {
    const char *found = memchr(rest->base, end, rest->length);
    size_t length = found == NULL ? rest->length : (size_t)(found - rest->base);
    struct slice piece = slice_trim(slice_make(rest->base, length));
    size_t used = found == NULL ? length : length + 1;
    *rest = slice_make(rest->base + used, rest->length - used);
    return piece;
}

/* The sources that a policy gives for scripts; false when it says nothing of them. */
static bool script_sources(struct slice policy, struct slice *sources) {
    bool known = false;
    while (policy.length > 0) {
        struct slice directive = cut(&policy, ';');
        struct slice name = cut(&directive, ' ');
        bool scripts = slice_equal_nocase(name, SLICE("script-src")) ||
                       slice_equal_nocase(name, SLICE("script-src-elem"));
        if (!scripts && !(slice_equal_nocase(name, SLICE("default-src")) && !known))
            continue;
        *sources = directive;
        known = true;
    }
    return known;
}

static enum policy_verdict judge(struct slice sources, struct slice *nonce) {
    static const struct slice prefix = {"'nonce-", 7};
    bool inline_allowed = false, hashes = false;
    *nonce = slice_make(NULL, 0);
    while (sources.length > 0) {
        struct slice source = cut(&sources, ' ');
        if (slice_starts_with_nocase(source, prefix) && source.length > prefix.length + 1)
            *nonce = slice_make(source.base + prefix.length, source.length - prefix.length - 1);
        inline_allowed |= slice_equal_nocase(source, SLICE("'unsafe-inline'"));
        hashes |= slice_starts_with_nocase(source, SLICE("'sha"));
    }
    if (nonce->length > 0)
        return POLICY_NONCE;
    return inline_allowed && !hashes ? POLICY_FREE : POLICY_STRICT;
}

enum policy_verdict policy_of(const struct http_head *head, struct slice *nonce) {
    enum policy_verdict verdict = POLICY_FREE;
    const struct slice name = SLICE("Content-Security-Policy");
    *nonce = slice_make(NULL, 0);
    for (unsigned i = 0; i < head->field_count; i++) {
        struct slice rest = head->fields[i].value, policy, sources, seen;
        if (!slice_equal_nocase(head->fields[i].name, name))
            continue;
        while (slice_next_element(&rest, &policy)) {
            if (!script_sources(policy, &sources))
                continue;
            enum policy_verdict one = judge(sources, &seen);
            bool same = nonce->length == 0 || slice_equal(seen, *nonce);
            if (one == POLICY_NONCE)
                *nonce = seen;
            if (one == POLICY_NONCE && !same)
                one = POLICY_STRICT; /* no script can carry two */
            verdict = one > verdict ? one : verdict;
        }
    }
    return verdict;
}

static bool is_letter(char c) {
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* An attribute that is a script or a style: "onclick=", "style =". */
static bool is_attribute(struct slice text) {
    size_t length = 0;
    if (!slice_starts_with_nocase(text, SLICE("on")) &&
        !slice_starts_with_nocase(text, SLICE("style")))
        return false;
    while (length < text.length && is_letter(text.base[length]))
        length++;
    while (length < text.length && (text.base[length] == ' ' || text.base[length] == '\n'))
        length++;
    return length < text.length && text.base[length] == '=';
}

bool policy_concerns(struct slice text) {
    static const struct slice marks[] = {{"<script", 7}, {"<style", 6}, {"javascript:", 11}};
    for (size_t i = 0; i < text.length; i++) {
        struct slice rest = slice_make(text.base + i, text.length - i);
        for (size_t mark = 0; mark < sizeof marks / sizeof *marks; mark++)
            if (slice_starts_with_nocase(rest, marks[mark]))
                return true;
        if (i > 0 && !is_letter(text.base[i - 1]) && is_attribute(rest))
            return true;
    }
    return false;
}
