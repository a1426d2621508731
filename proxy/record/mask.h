/*
 * What in heads is secret, and heads without it.
 *
 *     size_t length;
 *     char *masked = record_mask_head(head, &length);      "Cookie: a=b" became "Cookie: masked"
 *
 * Secret are the values of fields that carry credentials or sessions, of HTTP and of ICAP. URLs and
 * bodies are left as they are. Threads: values.
 */
#ifndef RETORT_RECORD_MASK_H
#define RETORT_RECORD_MASK_H

#include "base/slice.h"

bool record_mask_is_secret(struct slice field_name);
/* Of a head that was parsed: its lines end with CRLF. The caller frees it. NULL: memory is
 * exhausted. */
char *record_mask_head(struct slice head, size_t *length);

#endif
