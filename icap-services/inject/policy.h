/*
 * Content-Security-Policy and the texts that are inserted: would a browser run a script of ours?
 *
 *     struct slice nonce;
 *     enum policy_verdict verdict = policy_of(head, &nonce);
 *     POLICY_FREE        no policy, or one that lets inline scripts run
 *     POLICY_NONCE       inline scripts run that carry the nonce of this page
 *     POLICY_STRICT      none run
 *
 *     policy_concerns(text)      does the text have a script or a style at all?
 *
 * Several policies count together: the strictest one decides. Policies in <meta> elements are not
 * looked at. Threads: pure.
 */
#ifndef RETORT_INJECT_POLICY_H
#define RETORT_INJECT_POLICY_H

#include "http/head.h"

enum policy_verdict { POLICY_FREE, POLICY_NONCE, POLICY_STRICT };

enum policy_verdict policy_of(const struct http_head *head, struct slice *nonce);
bool policy_concerns(struct slice text);

#endif
