/*
 * base64url without padding (RFC 4648 §5, RFC 7515 §2).
 *
 *     unsigned char bytes[64];
 *     size_t length = base64url_decode(SLICE("AQAB"), bytes, sizeof bytes);       3
 *
 * Threads: pure.
 */
#ifndef RETORT_IDENTITY_BASE64URL_H
#define RETORT_IDENTITY_BASE64URL_H

#include "base/slice.h"

/* The length; SIZE_MAX: the text is malformed, has bits behind its last byte, or is longer. */
size_t base64url_decode(struct slice text, unsigned char *out, size_t capacity);

#endif
