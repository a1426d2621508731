#include "inject/snippet.h"

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
