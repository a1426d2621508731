/*
 * The Huffman code of HPACK (RFC 7541 §5.2, Appendix B; huffman.def).
 *
 *     if (!huffman_decode(text, out, room, &length)) ...     the text is not of this code
 *     if (length > room) ...                                 it is, but out has no room for it
 *
 *     size = huffman_size(text);
 *     at = huffman_put(at, text);                            writes `size` bytes
 *
 * Threads: constant after main() has begun.
 */
#ifndef RETORT_HTTP2_HUFFMAN_H
#define RETORT_HTTP2_HUFFMAN_H

#include "base/slice.h"

/* How many bytes a text of that length can become. */
#define HUFFMAN_MOST(length) ((length)*8 / 5)

/* False: the text has the code of EOS, or more than seven bits of padding, or padding that is not
 * all ones (§5.2). It writes at most `room` bytes and always gives the length of the whole. */
bool huffman_decode(struct slice text, char *out, size_t room, size_t *length);

/* The length of the text in this code. */
size_t huffman_size(struct slice text);
char *huffman_put(char *at, struct slice text);

#endif
