/*
 * One policy (Content-Security-Policy, CSP Level 3) and a text that is to be inserted. Tells
 * whether a browser would run what is in the text, and what must be added to the policy so that it
 * does.
 *
 *     struct snippet snippet;                             the parts of a text that policies concern
 *     snippet_read(text, &snippet);
 *     struct slice policy = SLICE("script-src 'self'"), extended;
 *     switch (policy_judge(policy, &snippet)) {
 *     case POLICY_PERMITS    it runs as it is
 *     case POLICY_EXTENDABLE policy_extend(policy, &snippet, arena) is a policy by which it does:
 *                            "script-src 'self' 'sha256-...'"
 *     case POLICY_FORBIDS    no hash helps: an event handler, a script from elsewhere, a sandbox
 *     }
 *
 * A policy is one element of the header's value, or the content of a <meta>. If a page has several
 * policies, each one must permit the text. One directive decides (§6.8.4): script-src-elem; without
 * it script-src; without that default-src. The rule for styles and attributes is the same. If two
 * directives have the same name, the first one counts.
 *
 * An inline script or style runs in one of three cases (§6.7.3.3): by 'unsafe-inline', by its
 * nonce, or by its hash. A nonce, a hash or (for scripts) 'strict-dynamic' turns 'unsafe-inline'
 * off. So policy_extend adds a hash only if 'unsafe-inline' has no effect anyway: otherwise the
 * hash would turn off what the page relies on. It never adds a hash to default-src, where the hash
 * would count for other things too: it copies default-src to a directive of its own and adds the
 * hash there.
 *
 * Threads: pure.
 */
#ifndef RETORT_INJECT_POLICY_H
#define RETORT_INJECT_POLICY_H

#include "base/arena.h"
#include "base/slice.h"
#include "http/head.h"

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

enum policy_verdict { POLICY_PERMITS, POLICY_EXTENDABLE, POLICY_FORBIDS };

enum policy_verdict policy_judge(struct slice policy, const struct snippet *snippet);
/* The policy itself when nothing is missing. */
struct slice policy_extend(struct slice policy, const struct snippet *snippet, struct arena *arena);
/* The nonce of the page's own scripts by this policy; empty when there is none. */
struct slice policy_nonce(struct slice policy);

/*
 * All policies of one page (Content-Security-Policy): those of the response's head and those of the
 * page's <meta> elements. A text runs only when each of them permits it.
 *
 *     struct policies policies = {0};
 *     policies_note_head(&policies, head);
 *     if (policies_allow(&policies, &snippet, POLICY_EXTENDABLE))
 *         policies_extend_head(head, &snippet, arena);     with the hashes of its code
 *
 * Policies are kept as slices of what they were read from, which must outlive them. Threads:
 * values.
 */

enum { POLICIES_MAX = 16 };

struct policies {
    struct slice list[POLICIES_MAX];
    unsigned count;
    bool is_unclear; /* a policy could not be read, or there are too many */
};

/* Adds one policy. A slice with a base of NULL means a policy that could not be read. */
void policies_note(struct policies *policies, struct slice policy);
void policies_note_head(struct policies *policies, const struct http_head *head);
/* The nonce of the page's own scripts; empty: there is none. */
struct slice policies_nonce(const struct policies *policies);
/* Is the verdict of each policy about the text `most` or a better one? */
bool policies_allow(const struct policies *policies, const struct snippet *snippet,
                    enum policy_verdict most);
void policies_extend_head(struct http_head *head, const struct snippet *snippet,
                          struct arena *arena);

#endif
