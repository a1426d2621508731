/*
 * What the image transcoder costs beyond the library: JPEGs made gray by it, and by the calls of
 * libjpeg alone that the same takes, without a look at markers, limits and errors. Pictures whose
 * luminance can't be kept as it is coded are left out.
 *
 *     transcode FILE.jpg...
 *
 *     FILE            direct us     gray us   ratio   bytes
 */
#include "gray/jpeg_gray.h"

#include "base/assert.h"
#include "turns.h"

#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

enum { TURNS = 100 };

struct work {
    struct slice bytes;
    size_t length; /* of the result */
    bool good;
};

static void by_library(void *arg) {
    struct work *work = arg;
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    in.err = out.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_create_compress(&out);
    jpeg_mem_src(&in, (const unsigned char *)work->bytes.base, work->bytes.length);
    jpeg_read_header(&in, TRUE);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&in);
    jpeg_mem_dest(&out, &bytes, &length);
    jpeg_copy_critical_parameters(&in, &out);
    jpeg_set_colorspace(&out, JCS_GRAYSCALE);
    out.optimize_coding = TRUE;
    if (in.progressive_mode)
        jpeg_simple_progression(&out);
    jpeg_write_coefficients(&out, coefficients);
    jpeg_finish_compress(&out);
    jpeg_finish_decompress(&in);
    jpeg_destroy_compress(&out);
    jpeg_destroy_decompress(&in);
    free(bytes);
}

static void by_transcoder(void *arg) {
    struct work *work = arg;
    struct picture_options options = {.max_pixels = 100000000};
    struct picture_output output;
    work->good = jpeg_gray((const unsigned char *)work->bytes.base, work->bytes.length, &options,
                           &output) == PICTURE_DONE;
    if (!work->good)
        return;
    work->length = output.length;
    free(output.bytes);
}

static bool keeps_luminance(struct slice bytes) {
    struct jpeg_decompress_struct in;
    struct jpeg_error_mgr errors;
    in.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, (const unsigned char *)bytes.base, bytes.length);
    jpeg_read_header(&in, TRUE);
    bool keeps = in.jpeg_color_space == JCS_YCbCr && !in.arith_code;
    jpeg_destroy_decompress(&in);
    return keeps;
}

int main(int argc, char **argv) {
    printf("%-24s %10s %10s %7s %10s\n", "", "direct us", "gray us", "ratio", "bytes");
    for (int i = 1; i < argc; i++) {
        struct work work = {.bytes = turns_read_file(argv[i])};
        by_transcoder(&work);
        if (work.good && keeps_luminance(work.bytes)) {
            struct turns turns = turns_take(TURNS, by_library, by_transcoder, &work);
            printf("%-24s %10.0f %10.0f %7.3f %10zu\n", turns_name_of(argv[i]), turns.direct * 1e6,
                   turns.ours * 1e6, turns.ours / turns.direct, work.length);
        }
        free((void *)work.bytes.base);
    }
    return EXIT_SUCCESS;
}
