/*
 * Text from outside, read as UTF-8 (RFC 3629), and what of it must not reach a terminal, a line or
 * a log as it is.
 *
 *     uint32_t character;
 *     size_t length = text_decode(text, &character);       0: the front is no UTF-8
 *     if (length == 0 || text_is_hidden(character))
 *         show it in another way
 *
 * Threads: pure.
 */
#ifndef RETORT_BASE_TEXT_H
#define RETORT_BASE_TEXT_H

#include "base/slice.h"

#include <stdint.h>

/* The length of the sequence at the front of a text that is not empty, 1..4; 0 when it is none:
 * overlong, a surrogate, beyond U+10FFFF, or cut off. */
size_t text_decode(struct slice text, uint32_t *character);

/* Does it steer a terminal or turn around what stands beside it, or is it not seen at all? The
 * controls C0, C1 and DEL, line and paragraph separators, the controls of writing direction
 * (Unicode's Bidi_Control), and other characters of format. */
bool text_is_hidden(uint32_t character);

/* Without the byte-order mark that some editors put in front of a file in UTF-8. */
struct slice text_without_mark(struct slice text);

#endif
