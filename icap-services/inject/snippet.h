/*
 * What of a text that is inserted a Content-Security-Policy can forbid: inline scripts and styles
 * with their hashes and nonces, attributes that are scripts or styles, scripts from elsewhere.
 *
 *     struct snippet snippet;
 *     snippet_read(SLICE("<script nonce=abc>go()</script>"), &snippet);
 *     snippet.parts[0].kind == SNIPPET_SCRIPT, .nonce "abc", .hash "'sha256-...'"
 *
 * What it cannot read to the end counts as forbidden: an element without its end tag, more parts
 * than there is room for. A hash is of the characters in UTF-8 (CSP 3 §6.7.3.3), so that of bytes
 * beyond ASCII depends on the page's encoding: `is_ascii` says whether that matters.
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
    bool is_external;        /* a script with src: no hash of it is known */
    struct slice nonce;      /* into the text; empty when it has none */
    char hash[SNIPPET_HASH]; /* as it stands in a policy, 'sha256-...'; "" when there is none */
};

struct snippet {
    struct snippet_part parts[SNIPPET_PARTS];
    unsigned count;
    bool is_unclear;
    bool is_ascii; /* what the hashes are of */
};

/* `text` must outlive the snippet. */
void snippet_read(struct slice text, struct snippet *snippet);

#endif
