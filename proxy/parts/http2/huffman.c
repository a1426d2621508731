#include "http2/huffman.h"

#include "base/assert.h"

#include <endian.h>

enum {
    HUFFMAN_SYMBOLS = 257,
    HUFFMAN_EOS = 256,
    HUFFMAN_BITS_MOST = 30,
    HUFFMAN_SHORT = 8, /* codes of so many bits or fewer are found by one look */
    HUFFMAN_BITS_PADDING = 7,
};

static const uint8_t code_bits[HUFFMAN_SYMBOLS] = {
#include "http2/huffman.def"
};

static uint32_t codes[HUFFMAN_SYMBOLS];

/* For the first eight bits of what is left: the byte, and the bits of its code. Bits 0: the code is
 * longer. */
static struct { uint8_t symbol, bits; } short_codes[1 << HUFFMAN_SHORT];

/* The codes of each length: those of length n are below ends[n], which has its bits at the left,
 * and the last of them belongs to by_code[last[n]]. */
static uint64_t ends[HUFFMAN_BITS_MOST + 1];
static unsigned last[HUFFMAN_BITS_MOST + 1];
static uint16_t by_code[HUFFMAN_SYMBOLS];

static void note_code(unsigned symbol, uint32_t code, unsigned bits, unsigned count) {
    codes[symbol] = code;
    by_code[count] = (uint16_t)symbol;
    last[bits] = count;
    ends[bits] = (uint64_t)(code + 1) << (64 - bits);
    if (bits > HUFFMAN_SHORT)
        return;
    unsigned first = code << (HUFFMAN_SHORT - bits);
    for (unsigned i = 0; i < 1u << (HUFFMAN_SHORT - bits); i++) {
        short_codes[first + i].symbol = (uint8_t)symbol;
        short_codes[first + i].bits = (uint8_t)bits;
    }
}

__attribute__((constructor)) static void make_codes(void) {
    uint32_t code = 0;
    unsigned count = 0;
    for (unsigned bits = 1; bits <= HUFFMAN_BITS_MOST; bits++, code <<= 1)
        for (unsigned symbol = 0; symbol < HUFFMAN_SYMBOLS; symbol++)
            if (code_bits[symbol] == bits)
                note_code(symbol, code++, bits, count++);
}

/* Finds a code of more than HUFFMAN_SHORT bits; returns its length. The last of all codes is EOS,
 * whose end is 2^64, which is 0 here. */
static unsigned find_long(uint64_t bits, unsigned *symbol) {
    unsigned length = HUFFMAN_SHORT + 1;
    while (length < HUFFMAN_BITS_MOST && bits >= ends[length])
        length++;
    uint64_t back = (ends[length] - bits - 1) >> (64 - length);
    *symbol = by_code[last[length] - (unsigned)back];
    return length;
}

static inline unsigned huffman_find(uint64_t bits, unsigned *symbol) {
    unsigned first = (unsigned)(bits >> (64 - HUFFMAN_SHORT));
    *symbol = short_codes[first].symbol;
    unsigned length = short_codes[first].bits;
    return length > 0 ? length : find_long(bits, symbol);
}

/* What is left of a text: `bits` has the next ones at its left. */
struct huffman_input {
    const char *at, *end;
    uint64_t bits;
    unsigned have;
};

/* Fills up to at least 56 bits, where eight bytes are there. Those behind the 56 may be filled in
 * twice, with the same. */
static inline void refill(struct huffman_input *input) {
    uint64_t word;
    memcpy(&word, input->at, sizeof word);
    input->bits |= be64toh(word) >> input->have;
    input->at += (63 - input->have) / 8;
    input->have |= 56;
}

/* Fills up to 56 to 63 bits, or to the end of the text. */
static inline void refill_slowly(struct huffman_input *input) {
    for (; input->have < 56 && input->at < input->end; input->have += 8)
        input->bits |= (uint64_t)(unsigned char)*input->at++ << (56 - input->have);
}

/* Where what is decoded goes: it is counted when there is no room. */
struct huffman_output {
    char *out;
    size_t room, put;
};

/* Takes codes while there are so many bits that the longest code is among them. False: one is EOS.
 */
static inline bool take_codes(struct huffman_input *input, struct huffman_output *output) {
    do {
        unsigned symbol, length = huffman_find(input->bits, &symbol);
        if (symbol == HUFFMAN_EOS)
            return false;
        if (output->put < output->room)
            output->out[output->put] = (char)symbol;
        output->put++;
        input->bits <<= length;
        input->have -= length;
    } while (input->have >= HUFFMAN_BITS_MOST);
    return true;
}

/* Takes the codes at the end of the text, and the padding. "Padding strictly longer than 7 bits
 * MUST be treated as a decoding error. Padding not corresponding to the most significant bits of
 * the code for the EOS symbol MUST be treated as a decoding error." With ones behind the last bit,
 * a code that is not whole has more bits than there are. */
static inline bool take_last_codes(struct huffman_input *input, struct huffman_output *output) {
    while (input->have > 0) {
        uint64_t bits = input->bits | UINT64_MAX >> input->have;
        if (bits == UINT64_MAX)
            return input->have <= HUFFMAN_BITS_PADDING;
        unsigned symbol, length = huffman_find(bits, &symbol);
        if (symbol == HUFFMAN_EOS || length > input->have)
            return false;
        if (output->put < output->room)
            output->out[output->put] = (char)symbol;
        output->put++;
        input->bits <<= length;
        input->have -= length;
    }
    return true;
}

bool huffman_decode(struct slice text, char *out, size_t room, size_t *length) {
    struct huffman_input input = {text.base, text.base + text.length, 0, 0};
    struct huffman_output output = {out, room, 0};
    while (input.end - input.at >= 8) {
        refill(&input);
        if (!take_codes(&input, &output))
            return false;
    }
    refill_slowly(&input);
    while (input.have >= HUFFMAN_BITS_MOST && input.at < input.end) {
        if (!take_codes(&input, &output))
            return false;
        refill_slowly(&input);
    }
    bool good = take_last_codes(&input, &output);
    *length = output.put;
    return good;
}

size_t huffman_size(struct slice text) {
    size_t bits = 0;
    for (size_t i = 0; i < text.length; i++)
        bits += code_bits[(unsigned char)text.base[i]];
    return (bits + 7) / 8;
}

char *huffman_put(char *at, struct slice text) {
    uint64_t bits = 0;
    unsigned have = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.base[i];
        bits = bits << code_bits[c] | codes[c];
        for (have += code_bits[c]; have >= 8; have -= 8)
            *at++ = (char)(bits >> (have - 8));
    }
    if (have > 0)
        *at++ = (char)(bits << (8 - have) | 0xff >> have);
    return at;
}
