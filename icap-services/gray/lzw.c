#include "gray/lzw.h"

#include "base/assert.h"

#include <stdlib.h>

enum { CODES = 4096, BITS_MAX = 12, SUB_BLOCK = 255, NO_CODE = CODES };

/* ---- decoder ------------------------------------------------------------------------------ */

/* A code above those of the table stands for an earlier one and a pixel behind it. */
struct lzw_decoder {
    unsigned magic;
#define LZW_DECODER_MAGIC 0x4c5a5764u
    const unsigned char *at, *end;
    unsigned left; /* of the sub-block */
    uint32_t bits;
    unsigned bit_count;
    unsigned code_size, width, next, last; /* `last`: the code before; NO_CODE: none */
    unsigned stacked;
    uint16_t earlier[CODES];
    unsigned char pixel[CODES], first[CODES];
    unsigned char stack[CODES + 1]; /* pixels decoded and not taken yet, the next one on top */
};

struct lzw_decoder *lzw_decoder_create(unsigned code_size, struct slice data) {
    if (code_size < 1 || code_size > 8)
        return NULL;
    struct lzw_decoder *decoder = malloc(sizeof *decoder);
    if (decoder == NULL)
        return NULL;
    INIT_OBJ(decoder, LZW_DECODER_MAGIC);
    decoder->at = (const unsigned char *)data.base;
    decoder->end = decoder->at + data.length;
    decoder->code_size = code_size;
    decoder->width = code_size + 1;
    decoder->next = (1u << code_size) + 2;
    decoder->last = NO_CODE;
    for (unsigned code = 0; code < 1u << code_size; code++)
        decoder->pixel[code] = decoder->first[code] = (unsigned char)code;
    return decoder;
}

void lzw_decoder_free(struct lzw_decoder **decoderp) {
    struct lzw_decoder *decoder = *decoderp;
    *decoderp = NULL;
    if (decoder == NULL)
        return;
    CHECK_OBJ(decoder, LZW_DECODER_MAGIC);
    FREE_OBJ(decoder);
}

/* NO_CODE at the end. */
static unsigned read_code(struct lzw_decoder *decoder) {
    while (decoder->bit_count < decoder->width) {
        if (decoder->left == 0) {
            if (decoder->at == decoder->end || *decoder->at == 0)
                return NO_CODE;
            decoder->left = *decoder->at++;
        }
        if (decoder->at == decoder->end)
            return NO_CODE;
        decoder->bits |= (uint32_t)*decoder->at++ << decoder->bit_count;
        decoder->bit_count += 8;
        decoder->left--;
    }
    unsigned code = decoder->bits & ((1u << decoder->width) - 1);
    decoder->bits >>= decoder->width;
    decoder->bit_count -= decoder->width;
    return code;
}

static void add_code(struct lzw_decoder *decoder, unsigned char pixel) {
    unsigned code = decoder->next;
    if (decoder->last == NO_CODE || code == CODES)
        return;
    decoder->earlier[code] = (uint16_t)decoder->last;
    decoder->first[code] = decoder->first[decoder->last];
    decoder->pixel[code] = pixel;
    decoder->next++;
    if (decoder->next == 1u << decoder->width && decoder->width < BITS_MAX)
        decoder->width++;
}

/* The pixels of the next code come onto the stack. */
static bool expand(struct lzw_decoder *decoder) {
    unsigned clear = 1u << decoder->code_size, code = read_code(decoder);
    for (; code == clear; code = read_code(decoder)) {
        decoder->width = decoder->code_size + 1;
        decoder->next = clear + 2;
        decoder->last = NO_CODE;
    }
    bool known = code < clear || (code > clear + 1 && code < decoder->next);
    bool is_next = code == decoder->next && code < CODES && decoder->last != NO_CODE;
    if (!known && !is_next)
        return false;
    add_code(decoder, decoder->first[known ? code : decoder->last]);
    decoder->last = code;
    for (; code > clear; code = decoder->earlier[code])
        decoder->stack[decoder->stacked++] = decoder->pixel[code];
    decoder->stack[decoder->stacked++] = (unsigned char)code;
    return true;
}

bool lzw_decode(struct lzw_decoder *decoder, unsigned char *out, size_t count) {
    CHECK_OBJ(decoder, LZW_DECODER_MAGIC);
    while (count > 0) {
        if (decoder->stacked == 0 && !expand(decoder))
            return false;
        for (; decoder->stacked > 0 && count > 0; count--)
            *out++ = decoder->stack[--decoder->stacked];
    }
    return true;
}

/* ---- encoder ------------------------------------------------------------------------------ */

enum { SLOTS = 8192, CLEAR = 256, STOP = 257, FIRST = 258 };

/* Codes by the code before and the pixel behind it, found by hash. */
struct lzw_encoder {
    lzw_sink *sink;
    void *context;
    bool good;
    uint32_t bits;
    unsigned bit_count, width, next, used;
    unsigned char block[1 + SUB_BLOCK];
    uint32_t keys[SLOTS]; /* 0: empty; else one more than code << 8 | pixel */
    uint16_t codes[SLOTS];
};

static void flush_block(struct lzw_encoder *encoder) {
    encoder->block[0] = (unsigned char)encoder->used;
    if (encoder->used > 0 && encoder->good)
        encoder->good = encoder->sink(encoder->context, encoder->block, encoder->used + 1);
    encoder->used = 0;
}

static void write_byte(struct lzw_encoder *encoder) {
    encoder->block[++encoder->used] = (unsigned char)encoder->bits;
    encoder->bits >>= 8;
    encoder->bit_count -= encoder->bit_count < 8 ? encoder->bit_count : 8;
    if (encoder->used == SUB_BLOCK)
        flush_block(encoder);
}

static void write_code(struct lzw_encoder *encoder, unsigned code) {
    encoder->bits |= (uint32_t)code << encoder->bit_count;
    encoder->bit_count += encoder->width;
    while (encoder->bit_count >= 8)
        write_byte(encoder);
}

static void start_over(struct lzw_encoder *encoder) {
    write_code(encoder, CLEAR);
    memset(encoder->keys, 0, sizeof encoder->keys);
    encoder->width = 9;
    encoder->next = FIRST;
}

/* The slot of that key, or the one where it belongs. */
static unsigned slot_of(const struct lzw_encoder *encoder, uint32_t key) {
    unsigned slot = (key * 2654435761u) >> (32 - 13);
    while (encoder->keys[slot] != 0 && encoder->keys[slot] != key)
        slot = (slot + 1) % SLOTS;
    return slot;
}

/* The decoder learns a code one later than the encoder, so codes get longer one later too. */
static void learn(struct lzw_encoder *encoder, unsigned slot, uint32_t key) {
    if (encoder->next == CODES) {
        start_over(encoder);
        return;
    }
    encoder->keys[slot] = key;
    encoder->codes[slot] = (uint16_t)encoder->next;
    if (encoder->next == 1u << encoder->width && encoder->width < BITS_MAX)
        encoder->width++;
    encoder->next++;
}

static void encode_all(struct lzw_encoder *encoder, const unsigned char *pixels, size_t count) {
    unsigned code = pixels[0];
    for (size_t i = 1; i < count && encoder->good; i++) {
        uint32_t key = (code << 8 | pixels[i]) + 1;
        unsigned slot = slot_of(encoder, key);
        if (encoder->keys[slot] == key) {
            code = encoder->codes[slot];
            continue;
        }
        write_code(encoder, code);
        learn(encoder, slot, key);
        code = pixels[i];
    }
    write_code(encoder, code);
    if (encoder->next == 1u << encoder->width && encoder->width < BITS_MAX)
        encoder->width++;
}

bool lzw_encode(const unsigned char *pixels, size_t count, lzw_sink *sink, void *context) {
    static const unsigned char code_size = 8, end = 0;
    struct lzw_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder == NULL)
        return false;
    ASSERT(count > 0);
    encoder->sink = sink;
    encoder->context = context;
    encoder->width = 9;
    encoder->good = sink(context, &code_size, 1);
    start_over(encoder);
    encode_all(encoder, pixels, count);
    write_code(encoder, STOP);
    if (encoder->bit_count > 0)
        write_byte(encoder);
    flush_block(encoder);
    bool good = encoder->good && sink(context, &end, 1);
    free(encoder);
    return good;
}
