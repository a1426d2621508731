/*
 * Content-Security-Policy (CSP Level 3) and the texts that are inserted: would a browser run what
 * is in a text of ours, and what has to be added to a policy so that it does?
 *
 *     struct snippet snippet;                                    what of a text policies concern
 *     snippet_read(text, &snippet);
 *     struct slice policy = SLICE("script-src 'self'"), extended;
 *     switch (policy_judge(policy, &snippet)) {
 *     case POLICY_PERMITS    it runs as it is
 *     case POLICY_EXTENDABLE policy_extend(policy, &snippet, arena) is a policy by which it does:
 *                            "script-src 'self' 'sha256-...'"
 *     case POLICY_FORBIDS    no hash helps: an event handler, a script from elsewhere, a sandbox
 *     }
 *
 * A policy is one element of the header's value, or the content of a <meta>. Of several, each one
 * has to permit. Which directive counts, §6.8.4: script-src-elem, else script-src, else
 * default-src, and likewise for styles and attributes; of directives of the same name the first.
 * What is inline runs by 'unsafe-inline', unless a nonce, a hash or (scripts) 'strict-dynamic' is
 * beside it, which turn that off; by its nonce; or by its hash (§6.7.3.3). So a hash is added only
 * where 'unsafe-inline' is without effect already: elsewhere it would turn off what the page relies
 * on. And never to default-src, where it would count for other things as well: that is copied to a
 * directive of its own.
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
