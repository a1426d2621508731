/*
 * The parts of a text to be inserted that a Content-Security-Policy can forbid: inline scripts and
 * styles with their hashes and nonces, attributes that are scripts or styles, and scripts from
 * other addresses.
 *
 *     struct snippet snippet;
 *     snippet_read(SLICE("<script nonce=abc>go()</script>"), &snippet);
 *     snippet.parts[0].kind == SNIPPET_SCRIPT, .nonce "abc", .hash "'sha256-...'"
 *
 * A text that can't be read to the end counts as forbidden (is_unclear): an element has no end tag,
 * or there are more parts than SNIPPET_PARTS. A hash is made of the characters in UTF-8
 * (CSP 3 §6.7.3.3). So the hash of bytes that are not ASCII depends on the encoding of the page;
 * `is_ascii` tells whether there are such bytes.
 *
 * Threads: pure.
 */
#ifndef RETORT_INJECT_SNIPPET_H
#define RETORT_INJECT_SNIPPET_H

#include "base/slice.h"

enum { SNIPPET_PARTS = 8, SNIPPET_HASH = 64 };

enum snippet_kind {
    SNIPPET_SCRIPT,
    SNIPPET_STYLE,
    SNIPPET_SCRIPT_ATTRIBUTE, /* onclick=, and addresses with "javascript:" */
    SNIPPET_STYLE_ATTRIBUTE,
    SNIPPET_KINDS
};

struct snippet_part {
    enum snippet_kind kind;
    bool is_external;        /* a script with src: its hash is not known */
    struct slice nonce;      /* into the text; empty when it has none */
    char hash[SNIPPET_HASH]; /* as it stands in a policy, 'sha256-...'; "" when there is none */
};

struct snippet {
    struct snippet_part parts[SNIPPET_PARTS];
    unsigned count;
    bool is_unclear;
    bool is_ascii; /* all bytes that hashes are made of are ASCII */
};

/* `text` must outlive the snippet. */
void snippet_read(struct slice text, struct snippet *snippet);

#endif
