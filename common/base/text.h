/*
 * Text from outside: decodes UTF-8 (RFC 3629) and finds the characters that must not be written to
 * a terminal or a log as they are.
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

/* Decodes the first character of a text, which must not be empty. Returns its length in bytes, 1 to
 * 4, or 0 when the bytes are not UTF-8: overlong, a surrogate, beyond U+10FFFF, or cut off. */
size_t text_decode(struct slice text, uint32_t *character);

/* Does the character control a terminal, change the direction of the text beside it, or is it
 * invisible? These are the controls C0, C1 and DEL, line and paragraph separators, the controls of
 * writing direction (Unicode's Bidi_Control), and other format characters. */
bool text_is_hidden(uint32_t character);

/* Returns the text without the byte-order mark that some editors write at the front of a file. */
struct slice text_without_mark(struct slice text);

#endif
