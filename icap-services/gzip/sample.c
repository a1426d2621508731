#include "gzip/sample.h"

#include <zlib.h>

/* Raw deflate with small tables. With smaller ones a sample is many blocks, each with a Huffman code of
 * its own, which takes longer than all the rest. */
enum { SAMPLE_LEVEL = 1, SAMPLE_WINDOW = -11, SAMPLE_MEMORY = 4, BYTES = 256 };

static unsigned gain_of(size_t length, size_t smaller) {
    return smaller < length ? (unsigned)(100 - smaller * 100 / length) : 0;
}

/* Two tables, because a count that was changed just before would have to be waited for. */
static void count_bytes(struct slice bytes, uint16_t even[BYTES], uint16_t odd[BYTES]) {
    const unsigned char *at = (const unsigned char *)bytes.base, *end = at + bytes.length;
    for (; end - at >= 2; at += 2) {
        even[at[0]]++;
        odd[at[1]]++;
    }
    if (at < end)
        even[*at]++;
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
    size_t bits = 0;
    count_bytes(bytes, even, odd);
    for (unsigned byte = 0; byte < BYTES; byte++) {
        unsigned count = (unsigned)even[byte] + odd[byte];
        if (count > 0)
            bits += (size_t)count * code_bits(count, (unsigned)bytes.length) + 8;
    }
    return gain_of(bytes.length, bits / 8);
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
