#include "gzip/codec.h"

#include "base/assert.h"

static const struct codec *const codecs[CODING_COUNT] = {
    [CODING_GZIP] = &codec_gzip, [CODING_BROTLI] = &codec_brotli, [CODING_ZSTD] = &codec_zstd};

const struct codec *codec_of(enum coding coding) {
    ASSERT(coding < CODING_COUNT);
    return codecs[coding];
}

enum coding coding_named(struct slice name) {
    unsigned coding = 0;
    while (coding < CODING_COUNT && !slice_equal_nocase(name, codecs[coding]->name))
        coding++;
    return coding;
}
