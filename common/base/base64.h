/*
 * Base64 (RFC 4648): with its padding (§4), and in the alphabet for URLs without it (§5).
 *
 *     char text[BASE64_ROOM(3)], bytes[3];
 *     size_t length = base64_write(text, SLICE("abc"));                            4: "YWJj"
 *     length = base64_decode(SLICE("YWI="), bytes, sizeof bytes);                  2: "ab"
 *     length = base64url_decode(SLICE("AQAB"), bytes, sizeof bytes);               3
 *
 * There is one text for each sequence of bytes: blanks, other digits, missing or needless padding,
 * and bits behind the last byte are malformed.
 *
 * Threads: pure.
 */
#ifndef RETORT_BASE_BASE64_H
#define RETORT_BASE_BASE64_H

#include "base/slice.h"

/* Bytes of the text for so many bytes. */
#define BASE64_ROOM(bytes) (((bytes) + 2) / 3 * 4)

/* Writes the text with its padding, and returns its length: BASE64_ROOM(bytes.length). */
size_t base64_write(char *out, struct slice bytes);
/* The length; SIZE_MAX: the text is malformed, or of more than `capacity` bytes. An empty text of
 * base64 is malformed, one of base64url is no byte. What was written before an error stays in `out`. */
size_t base64_decode(struct slice text, void *out, size_t capacity);
size_t base64url_decode(struct slice text, void *out, size_t capacity);
/* The value of a digit of base64; -1: it is none. */
int base64_digit(char digit);

#endif
