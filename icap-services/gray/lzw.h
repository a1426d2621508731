/*
 * The compression of GIF: LZW with codes of up to 12 bits, in sub-blocks of up to 255 bytes.
 *
 *     struct lzw_decoder *decoder = lzw_decoder_create(block.code_size, block.data);
 *     while (lzw_decode(decoder, row, width)) ...        false: damaged, or there are no more
 *     lzw_decoder_free(&decoder);
 *
 *     lzw_encode(pixels, count, on_byte, context);
 *
 * The encoder is for pixels of 8 bits; what it writes begins with the code size, and ends with the
 * empty sub-block. Threads: a decoder belongs to one thread.
 */
#ifndef RETORT_GRAY_LZW_H
#define RETORT_GRAY_LZW_H

#include "base/slice.h"

struct lzw_decoder;

/* NULL: no memory, or no such code size (1 to 8). `data` begins with a sub-block's length. */
struct lzw_decoder *lzw_decoder_create(unsigned code_size, struct slice data);
void lzw_decoder_free(struct lzw_decoder **decoderp);
/* Exactly `count` pixels. */
bool lzw_decode(struct lzw_decoder *decoder, unsigned char *out, size_t count);

/* Takes what has been written; false ends it. */
typedef bool lzw_sink(void *context, const unsigned char *bytes, size_t length);
/* False: the sink said so, or there is no memory. */
bool lzw_encode(const unsigned char *pixels, size_t count, lzw_sink *sink, void *context);

#endif
