/*
 * Masks secrets in heads.
 *
 *     size_t length;
 *     char *masked = record_mask_head(head, &length);      "Cookie: a=b" became "Cookie: masked"
 *
 * The values of HTTP and ICAP fields that contain credentials or sessions are secret. URLs and
 * bodies are not changed. Threads: values.
 */
#ifndef RETORT_RECORD_MASK_H
#define RETORT_RECORD_MASK_H

#include "base/slice.h"

bool record_mask_is_secret(struct slice field_name);
/* Masks a head that was parsed, so its lines end with CRLF. The caller frees the result. Returns
 * NULL when memory is exhausted. */
char *record_mask_head(struct slice head, size_t *length);

#endif
