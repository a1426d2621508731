#include "gzip/sample.h"

#include <zlib.h>

/* Raw deflate with a window of 4 KB and small tables. With smaller ones a sample is many blocks,
 * each with a Huffman code of its own, which takes longer than all the rest. */
enum { SAMPLE_LEVEL = 1, SAMPLE_WINDOW = -12, SAMPLE_MEMORY = 4 };

unsigned sample_gain(struct slice bytes) {
    unsigned char out[SAMPLE_MAX];
    z_stream stream = {0};
    if (bytes.length == 0 || bytes.length > sizeof out ||
        deflateInit2(&stream, SAMPLE_LEVEL, Z_DEFLATED, SAMPLE_WINDOW, SAMPLE_MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return 100;
    stream.next_in = (unsigned char *)bytes.base;
    stream.avail_in = (unsigned)bytes.length;
    stream.next_out = out;
    stream.avail_out = (unsigned)bytes.length;
    bool smaller = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    size_t length = bytes.length - stream.avail_out;
    deflateEnd(&stream);
    return smaller ? (unsigned)(100 - length * 100 / bytes.length) : 0;
}
