/*
 * Reads whole tags of HTML: their attributes, and the policy of a <meta>.
 *
 *     struct slice rest = SLICE(" a=b c='d e'>text");       behind the name
 *     struct tag_attribute attribute;
 *     while (tag_next_attribute(&rest, &attribute)) ...     a "b", c "d e"; rest is "text" then
 *
 *     struct slice policy;                                  <meta http-equiv=... content="...">
 *     if (tag_policy(tag, arena, &policy))
 *         tag = tag_with_policy(tag, extended, arena);
 *
 * Values are as they stand in the tag. Only tag_policy resolves character references, and only
 * those that are usual in policies. If the value has another one, the policy can't be read: *policy
 * has length 0 and a base of NULL then.
 *
 * Threads: pure.
 */
#ifndef RETORT_INJECT_TAG_H
#define RETORT_INJECT_TAG_H

#include "base/arena.h"

struct tag_attribute {
    struct slice name, value;
};

/* False at the tag's ">", which is taken too, and at the end of the text. */
bool tag_next_attribute(struct slice *rest, struct tag_attribute *attribute);

/* False when the tag is no <meta http-equiv="Content-Security-Policy" content=...>. */
bool tag_policy(struct slice tag, struct arena *arena, struct slice *policy);
struct slice tag_with_policy(struct slice tag, struct slice policy, struct arena *arena);

#endif
