/*
 * Masks secrets in heads.
 *
 *     size_t length;
 *     char *masked = record_mask_head(head, &length);      "Cookie: a=b" became "Cookie: masked"
 *
 * The values of HTTP and ICAP fields that contain credentials or sessions are secret
 * (http/secret_field.h). Start lines, URLs and bodies are not changed. Threads: values.
 */
#ifndef RETORT_RECORD_MASK_H
#define RETORT_RECORD_MASK_H

#include "base/slice.h"

/* What stands where a value was. */
#define RECORD_MASK SLICE("masked")

/* Masks a head that was parsed, so its lines end with CRLF, or a secondary key (cache/vary.h), whose
 * lines end with LF. The caller frees the result. Returns NULL when memory is exhausted. */
char *record_mask_head(struct slice head, size_t *length);

#endif
