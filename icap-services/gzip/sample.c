#include "gzip/sample.h"

#include <zlib.h>

/* Raw deflate with small tables. With smaller ones a sample is many blocks, each with a Huffman code of
 * its own, which takes longer than all the rest. */
enum { SAMPLE_LEVEL = 1, SAMPLE_WINDOW = -11, SAMPLE_MEMORY = 4, BYTES = 256, EVERY = 3 };

static unsigned gain_of(size_t length, size_t smaller) {
    return smaller < length ? (unsigned)(100 - smaller * 100 / length) : 0;
}

/* Every third byte is counted: by an odd number, so that texts of two bytes a letter are seen whole. Two
 * tables, because a count that was changed just before would have to be waited for. Returns how many. */
static unsigned count_bytes(struct slice bytes, uint16_t even[BYTES], uint16_t odd[BYTES]) {
    const unsigned char *base = (const unsigned char *)bytes.base;
    unsigned counted = 0;
    size_t at = 0;
    for (; at + EVERY < bytes.length; at += 2 * EVERY, counted += 2) {
        even[base[at]]++;
        odd[base[at + EVERY]]++;
    }
    if (at < bytes.length) {
        even[base[at]]++;
        counted++;
    }
    return counted;
}

/* The bits of a byte that occurs `count` times in `length`, in Shannon's code: log2(length / count),
 * rounded up. Huffman's codes together are no longer. */
static unsigned code_bits(unsigned count, unsigned length) {
    unsigned bits = (unsigned)(__builtin_clz(count) - __builtin_clz(length));
    if (count << bits < length)
        bits++;
    return bits > 0 ? bits : 1;
}

/* What codes of different length gain, without any repeated string. The table of their lengths takes
 * about a byte for each. */
static unsigned gain_of_codes(struct slice bytes) {
    uint16_t even[BYTES] = {0}, odd[BYTES] = {0};
    unsigned counted = count_bytes(bytes, even, odd);
    size_t bits = 0, table = 0;
    for (unsigned byte = 0; byte < BYTES; byte++) {
        unsigned count = (unsigned)even[byte] + odd[byte];
        if (count == 0)
            continue;
        bits += (size_t)count * code_bits(count, counted);
        table++;
    }
    return gain_of(bytes.length, bits * bytes.length / counted / 8 + table);
}

static unsigned gain_of_trial(struct slice bytes) {
    unsigned char out[SAMPLE_MAX];
    z_stream stream = {0};
    if (deflateInit2(&stream, SAMPLE_LEVEL, Z_DEFLATED, SAMPLE_WINDOW, SAMPLE_MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return 100;
    stream.next_in = (unsigned char *)bytes.base;
    stream.avail_in = (unsigned)bytes.length;
    stream.next_out = out;
    stream.avail_out = (unsigned)bytes.length;
    bool smaller = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    size_t length = bytes.length - stream.avail_out;
    deflateEnd(&stream);
    return smaller ? gain_of(bytes.length, length) : 0;
}

bool sample_gains(struct slice bytes, unsigned percent) {
    return bytes.length == 0 || bytes.length > SAMPLE_MAX || gain_of_codes(bytes) >= percent ||
           gain_of_trial(bytes) >= percent;
}
