#include "inject/policy.h"

#include "inject/tag.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

static bool snippet_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool snippet_is_letter(char c) {
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static void snippet_drop(struct slice *rest, size_t length) {
    *rest = slice_make(rest->base + length, rest->length - length);
}

static struct snippet_part *snippet_add(struct snippet *snippet, enum snippet_kind kind) {
    if (snippet->count == SNIPPET_PARTS) {
        snippet->is_unclear = true;
        return &snippet->parts[0];
    }
    struct snippet_part *part = &snippet->parts[snippet->count++];
    *part = (struct snippet_part){.kind = kind};
    return part;
}

/* Hashes the characters as a parser of HTML sees them: with one LF for each end of a line. */
static void hash(struct snippet *snippet, struct snippet_part *part, struct slice content) {
    enum { BYTES = 32, CHARACTERS = 4 * ((BYTES + 2) / 3) };
    unsigned char digest[EVP_MAX_MD_SIZE], encoded[CHARACTERS + 1];
    char *plain = malloc(content.length + 1);
    size_t length = 0;
    for (size_t i = 0; plain != NULL && i < content.length; i++) {
        char c = content.base[i];
        if (c == '\n' && i > 0 && content.base[i - 1] == '\r')
            continue;
        plain[length++] = c == '\r' ? '\n' : c;
        snippet->is_ascii &= (unsigned char)c < 0x80;
        snippet->is_unclear |= c == 0;
    }
    if (plain != NULL && EVP_Digest(plain, length, digest, NULL, EVP_sha256(), NULL)) {
        EVP_EncodeBlock(encoded, digest, BYTES);
        snprintf(part->hash, sizeof part->hash, "'sha256-%s'", (const char *)encoded);
    }
    free(plain);
}

/* Is the attribute a script? In an attribute that holds an address, "javascript:" is one. */
static bool is_script_attribute(struct tag_attribute attribute) {
    static const struct slice addresses[] = {
        {"href", 4}, {"src", 3}, {"action", 6}, {"formaction", 10}};
    if (slice_starts_with_nocase(attribute.name, SLICE("on")))
        return true;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        if (slice_equal_nocase(attribute.name, addresses[i]))
            return slice_starts_with_nocase(slice_trim(attribute.value), SLICE("javascript:"));
    return false;
}

static void read_attribute(struct snippet *snippet, struct tag_attribute attribute,
                           struct snippet_part *element) {
    if (is_script_attribute(attribute))
        snippet_add(snippet, SNIPPET_SCRIPT_ATTRIBUTE);
    else if (slice_equal_nocase(attribute.name, SLICE("style")))
        snippet_add(snippet, SNIPPET_STYLE_ATTRIBUTE);
    if (element == NULL)
        return;
    if (slice_equal_nocase(attribute.name, SLICE("nonce")))
        element->nonce = attribute.value;
    if (slice_equal_nocase(attribute.name, SLICE("src")) && element->kind == SNIPPET_SCRIPT)
        element->is_external = true;
}

/* The content before "</name"; false when the end tag is missing. */
static bool content_of(struct slice *rest, struct slice name, struct slice *content) {
    for (size_t at = 0; at + 2 + name.length <= rest->length; at++) {
        struct slice here = slice_make(rest->base + at, rest->length - at);
        if (!slice_starts_with(here, SLICE("</")))
            continue;
        snippet_drop(&here, 2);
        if (!slice_starts_with_nocase(here, name))
            continue;
        *content = slice_make(rest->base, at);
        snippet_drop(rest, at + 2 + name.length);
        return true;
    }
    return false;
}

/* Reads a start tag. `rest` begins behind its "<". */
static void read_element(struct snippet *snippet, struct slice *rest) {
    struct tag_attribute attribute;
    size_t length = 0;
    while (length < rest->length && !snippet_is_blank(rest->base[length]) &&
           rest->base[length] != '/' && rest->base[length] != '>')
        length++;
    struct slice name = slice_make(rest->base, length), content;
    snippet_drop(rest, length);
    struct snippet_part *part = NULL;
    if (slice_equal_nocase(name, SLICE("script")))
        part = snippet_add(snippet, SNIPPET_SCRIPT);
    else if (slice_equal_nocase(name, SLICE("style")))
        part = snippet_add(snippet, SNIPPET_STYLE);
    while (tag_next_attribute(rest, &attribute))
        read_attribute(snippet, attribute, part);
    if (part == NULL)
        return;
    if (!content_of(rest, name, &content))
        snippet->is_unclear = true;
    else if (!part->is_external)
        hash(snippet, part, content);
}

void snippet_read(struct slice text, struct snippet *snippet) {
    snippet->count = 0;
    snippet->is_unclear = false;
    snippet->is_ascii = true;
    while (text.length > 0) {
        const char *open = memchr(text.base, '<', text.length);
        if (open == NULL)
            return;
        snippet_drop(&text, (size_t)(open - text.base) + 1);
        if (slice_starts_with(text, SLICE("!--"))) {
            const char *end = memmem(text.base + 3, text.length - 3, "-->", 3);
            snippet_drop(&text, end != NULL ? (size_t)(end - text.base) + 3 : 3);
        } else if (text.length > 0 && snippet_is_letter(text.base[0]))
            read_element(snippet, &text);
    }
}

enum { DIRECTIVES = 3 };

/* For each kind the directives that can decide. The first one that the policy has does decide. */
static const struct slice chains[SNIPPET_KINDS][DIRECTIVES] = {
    [SNIPPET_SCRIPT] = {{"script-src-elem", 15}, {"script-src", 10}, {"default-src", 11}},
    [SNIPPET_STYLE] = {{"style-src-elem", 14}, {"style-src", 9}, {"default-src", 11}},
    [SNIPPET_SCRIPT_ATTRIBUTE] = {{"script-src-attr", 15}, {"script-src", 10}, {"default-src", 11}},
    [SNIPPET_STYLE_ATTRIBUTE] = {{"style-src-attr", 14}, {"style-src", 9}, {"default-src", 11}},
};

static bool inject_policy_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static struct slice trim(struct slice text) {
    while (text.length > 0 && inject_policy_is_blank(text.base[0]))
        text = slice_make(text.base + 1, text.length - 1);
    while (text.length > 0 && inject_policy_is_blank(text.base[text.length - 1]))
        text.length--;
    return text;
}

static struct slice inject_policy_next_word(struct slice *rest) {
    size_t length = 0;
    *rest = trim(*rest);
    while (length < rest->length && !inject_policy_is_blank(rest->base[length]))
        length++;
    struct slice word = slice_make(rest->base, length);
    *rest = slice_make(rest->base + length, rest->length - length);
    return word;
}

static struct slice next_directive(struct slice *rest) {
    const char *end = memchr(rest->base, ';', rest->length);
    size_t length = end == NULL ? rest->length : (size_t)(end - rest->base);
    struct slice directive = slice_make(rest->base, length);
    length += end != NULL;
    *rest = slice_make(rest->base + length, rest->length - length);
    return trim(directive);
}

/* Finds the sources of the first directive of that name. */
static bool inject_policy_find(struct slice policy, struct slice name, struct slice *sources) {
    while (policy.length > 0) {
        struct slice rest = next_directive(&policy);
        if (!slice_equal_nocase(inject_policy_next_word(&rest), name))
            continue;
        *sources = trim(rest);
        return true;
    }
    return false;
}

/* Finds the sources that decide, and their place in the chain. DIRECTIVES: nothing restricts the
 * kind. */
static unsigned effective(struct slice policy, enum snippet_kind kind, struct slice *sources) {
    unsigned at = 0;
    while (at < DIRECTIVES && !inject_policy_find(policy, chains[kind][at], sources))
        at++;
    return at;
}

static bool is_nonce(struct slice source) {
    return source.length > strlen("'nonce-'") && slice_starts_with_nocase(source, SLICE("'nonce-"));
}

static bool is_hash(struct slice source) {
    return slice_starts_with_nocase(source, SLICE("'sha256-")) ||
           slice_starts_with_nocase(source, SLICE("'sha384-")) ||
           slice_starts_with_nocase(source, SLICE("'sha512-"));
}

static struct slice nonce_of(struct slice source) {
    size_t before = strlen("'nonce-");
    return slice_make(source.base + before, source.length - before - 1);
}

/* §6.7.3.2: does the list allow everything inline? */
static bool allows_inline(struct slice sources, enum snippet_kind kind) {
    bool is_script = kind == SNIPPET_SCRIPT || kind == SNIPPET_SCRIPT_ATTRIBUTE, allowed = false;
    while (trim(sources).length > 0) {
        struct slice source = inject_policy_next_word(&sources);
        if (is_nonce(source) || is_hash(source) ||
            (is_script && slice_equal_nocase(source, SLICE("'strict-dynamic'"))))
            return false;
        allowed |= slice_equal_nocase(source, SLICE("'unsafe-inline'"));
    }
    return allowed;
}

static bool names_part(struct slice sources, const struct snippet_part *part) {
    while (trim(sources).length > 0) {
        struct slice source = inject_policy_next_word(&sources);
        if (is_nonce(source) && slice_equal(nonce_of(source), part->nonce))
            return true;
        if (part->hash[0] != 0 && slice_equal(source, slice_from(part->hash)))
            return true;
    }
    return false;
}

static enum policy_verdict inject_policy_judge(struct slice policy,
                                               const struct snippet_part *part) {
    struct slice sources;
    bool is_element = part->kind == SNIPPET_SCRIPT || part->kind == SNIPPET_STYLE;
    if (effective(policy, part->kind, &sources) == DIRECTIVES)
        return POLICY_PERMITS;
    if (!part->is_external && allows_inline(sources, part->kind))
        return POLICY_PERMITS;
    if (is_element && names_part(sources, part))
        return POLICY_PERMITS;
    return part->hash[0] != 0 ? POLICY_EXTENDABLE : POLICY_FORBIDS;
}

/* Does the policy have a sandbox without scripts? */
static bool is_sandbox(struct slice policy) {
    struct slice flags;
    if (!inject_policy_find(policy, SLICE("sandbox"), &flags))
        return false;
    while (trim(flags).length > 0)
        if (slice_equal_nocase(inject_policy_next_word(&flags), SLICE("allow-scripts")))
            return false;
    return true;
}

enum policy_verdict policy_judge(struct slice policy, const struct snippet *snippet) {
    enum policy_verdict verdict = POLICY_PERMITS;
    bool scripts = false;
    if (snippet->is_unclear)
        return POLICY_FORBIDS;
    for (unsigned i = 0; i < snippet->count; i++) {
        enum policy_verdict one = inject_policy_judge(policy, &snippet->parts[i]);
        verdict = one > verdict ? one : verdict;
        scripts |= snippet->parts[i].kind == SNIPPET_SCRIPT;
    }
    return scripts && is_sandbox(policy) ? POLICY_FORBIDS : verdict;
}

/* The sources of a directive and one more. The word 'none' is left out. */
static struct slice with(struct slice sources, struct slice more, struct arena *arena) {
    struct slice rest = sources;
    if (slice_equal_nocase(inject_policy_next_word(&rest), SLICE("'none'")) &&
        trim(rest).length == 0)
        sources = slice_make("", 0);
    return arena_concat(arena, sources, sources.length > 0 ? SLICE(" ") : SLICE(""), more);
}

static struct slice add_source(struct slice policy, const struct snippet_part *part,
                               struct arena *arena) {
    struct slice sources, hash = slice_from(part->hash);
    unsigned place = effective(policy, part->kind, &sources);
    struct slice extended = with(sources, hash, arena);
    if (place == DIRECTIVES - 1) /* default-src: a copy for this kind alone */
        return arena_concat(arena, trim(policy), SLICE("; "), chains[part->kind][DIRECTIVES - 2],
                            SLICE(" "), extended);
    struct slice before = slice_make(policy.base, (size_t)(sources.base - policy.base));
    const char *end = sources.base + sources.length;
    struct slice after = slice_make(end, policy.length - (size_t)(end - policy.base));
    bool glued = before.length > 0 && !inject_policy_is_blank(before.base[before.length - 1]);
    return arena_concat(arena, before, glued ? SLICE(" ") : SLICE(""), extended, after);
}

struct slice policy_extend(struct slice policy, const struct snippet *snippet,
                           struct arena *arena) {
    for (unsigned i = 0; i < snippet->count; i++)
        if (inject_policy_judge(policy, &snippet->parts[i]) == POLICY_EXTENDABLE)
            policy = add_source(policy, &snippet->parts[i], arena);
    return policy;
}

/* The nonce goes into our text, so it must have the form base64-value of CSP 3 §2.3.1. */
static bool is_clean(struct slice nonce) {
    static const char others[] = "+/-_=";
    for (size_t i = 0; i < nonce.length; i++) {
        char c = nonce.base[i], lower = (char)(c | 0x20);
        if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') &&
            memchr(others, c, sizeof others - 1) == NULL)
            return false;
    }
    return true;
}

struct slice policy_nonce(struct slice policy) {
    struct slice sources;
    if (effective(policy, SNIPPET_SCRIPT, &sources) == DIRECTIVES)
        return slice_make(NULL, 0);
    while (trim(sources).length > 0) {
        struct slice source = inject_policy_next_word(&sources);
        if (is_nonce(source) && is_clean(nonce_of(source)))
            return nonce_of(source);
    }
    return slice_make(NULL, 0);
}

void policies_note(struct policies *policies, struct slice policy) {
    if (policies->count == POLICIES_MAX || policy.base == NULL)
        policies->is_unclear = true;
    else
        policies->list[policies->count++] = policy;
}

static bool is_policy(const struct http_field *field) {
    return slice_equal_nocase(field->name, SLICE("Content-Security-Policy"));
}

void policies_note_head(struct policies *policies, const struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++) {
        struct slice rest = head->fields[i].value, policy;
        while (is_policy(&head->fields[i]) && slice_next_element(&rest, &policy))
            policies_note(policies, policy);
    }
}

struct slice policies_nonce(const struct policies *policies) {
    struct slice nonce = SLICE("");
    for (unsigned i = 0; i < policies->count && nonce.length == 0; i++)
        nonce = policy_nonce(policies->list[i]);
    return nonce;
}

bool policies_allow(const struct policies *policies, const struct snippet *snippet,
                    enum policy_verdict most) {
    for (unsigned i = 0; i < policies->count; i++)
        if (policy_judge(policies->list[i], snippet) > most)
            return false;
    return !policies->is_unclear;
}

void policies_extend_head(struct http_head *head, const struct snippet *snippet,
                          struct arena *arena) {
    if (snippet->count == 0)
        return; /* the head may have thousands of policies, of which policies_allow has judged none */
    for (unsigned i = 0; i < head->field_count; i++) {
        struct slice rest = head->fields[i].value, policy, value = SLICE("");
        if (!is_policy(&head->fields[i]))
            continue;
        while (slice_next_element(&rest, &policy))
            value = arena_concat(arena, value, value.length > 0 ? SLICE(", ") : SLICE(""),
                                 policy_extend(policy, snippet, arena));
        head->fields[i].value = value;
    }
}
