/*
 * The policies of one page (Content-Security-Policy), those of its head and those of its <meta>
 * elements, all of which must let a text run.
 *
 *     struct policies policies = {0};
 *     policies_note_head(&policies, head);
 *     if (policies_allow(&policies, &snippet, POLICY_EXTENDABLE))
 *         policies_extend_head(head, &snippet, arena);     with the hashes of its code
 *
 * Policies are kept as slices of what they were read from.
 */
#ifndef RETORT_INJECT_POLICIES_H
#define RETORT_INJECT_POLICIES_H

#include "http/head.h"
#include "inject/policy.h"

enum { POLICIES_MAX = 16 };

struct policies {
    struct slice list[POLICIES_MAX];
    unsigned count;
    bool is_unclear; /* there are some that could not be read, or too many */
};

/* One more; without a base: one that could not be read. */
void policies_note(struct policies *policies, struct slice policy);
void policies_note_head(struct policies *policies, const struct http_head *head);
/* Of the page's own scripts; empty: there is none. */
struct slice policies_nonce(const struct policies *policies);
/* Does each of them say no worse of the text than `most`? */
bool policies_allow(const struct policies *policies, const struct snippet *snippet,
                    enum policy_verdict most);
void policies_extend_head(struct http_head *head, const struct snippet *snippet,
                          struct arena *arena);

#endif
