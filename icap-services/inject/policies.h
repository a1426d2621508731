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
#ifndef RETORT_INJECT_POLICIES_H
#define RETORT_INJECT_POLICIES_H

#include "http/head.h"
#include "inject/policy.h"

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
