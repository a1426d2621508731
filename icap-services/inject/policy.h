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
#include "inject/snippet.h"

enum policy_verdict { POLICY_PERMITS, POLICY_EXTENDABLE, POLICY_FORBIDS };

enum policy_verdict policy_judge(struct slice policy, const struct snippet *snippet);
/* The policy itself when nothing is missing. */
struct slice policy_extend(struct slice policy, const struct snippet *snippet, struct arena *arena);
/* The nonce of the page's own scripts by this policy; empty when there is none. */
struct slice policy_nonce(struct slice policy);

#endif
