#include "suites.h"

#include "gray/jpeg_gray.h"

#include <jpeglib.h>

/* A picture of coloured waves, encoded as asked. */
struct recipe {
    J_COLOR_SPACE space; /* in the file */
    int horizontal, vertical;
    bool progressive, arithmetic, with_exif, with_profile;
    unsigned width, height;
};

static void write_markers(struct jpeg_compress_struct *out, const struct recipe *recipe) {
    unsigned char profile[14 + 128] = "ICC_PROFILE";
    profile[12] = profile[13] = 1;
    memcpy(profile + 14 + 16, "RGB ", 4);
    if (recipe->with_exif)
        jpeg_write_marker(out, JPEG_APP0 + 1, (const JOCTET *)"Exif\0\0orientation", 17);
    if (recipe->with_profile)
        jpeg_write_marker(out, JPEG_APP0 + 2, profile, sizeof profile);
    jpeg_write_marker(out, JPEG_COM, (const JOCTET *)"hello", 5);
}

static unsigned char *encode(const struct recipe *recipe, unsigned long *length) {
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    out.err = jpeg_std_error(&errors);
    jpeg_create_compress(&out);
    jpeg_mem_dest(&out, &bytes, length);
    out.image_width = recipe->width;
    out.image_height = recipe->height;
    bool four = recipe->space == JCS_CMYK || recipe->space == JCS_YCCK;
    out.input_components = four ? 4 : recipe->space == JCS_GRAYSCALE ? 1 : 3;
    out.in_color_space = four ? JCS_CMYK : recipe->space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&out);
    jpeg_set_colorspace(&out, recipe->space);
    out.comp_info[0].h_samp_factor = recipe->horizontal;
    out.comp_info[0].v_samp_factor = recipe->vertical;
    out.arith_code = recipe->arithmetic;
    if (recipe->progressive)
        jpeg_simple_progression(&out);
    jpeg_start_compress(&out, TRUE);
    write_markers(&out, recipe);
    unsigned char *row = malloc((size_t)recipe->width * 4);
    for (unsigned y = 0; y < recipe->height; y++) {
        for (unsigned x = 0; x < recipe->width * (unsigned)out.input_components; x++)
            row[x] = (unsigned char)((x * 7 + y * 3) ^ (x * y >> 4));
        JSAMPROW rows[1] = {row};
        jpeg_write_scanlines(&out, rows, 1);
    }
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
    free(row);
    return bytes;
}

/* Decodes to luminance: of a colour picture, its Y component. */
static unsigned char *luminance(const unsigned char *bytes, unsigned long length, unsigned *width,
                                unsigned *height, int *components, bool *progressive) {
    struct jpeg_decompress_struct in;
    struct jpeg_error_mgr errors;
    in.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, bytes, length);
    jpeg_read_header(&in, TRUE);
    *components = in.num_components;
    *progressive = in.progressive_mode;
    in.out_color_space = JCS_GRAYSCALE;
    in.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&in);
    *width = in.output_width;
    *height = in.output_height;
    unsigned char *pixels = malloc((size_t)*width * *height);
    while (in.output_scanline < in.output_height) {
        JSAMPROW rows[1] = {pixels + (size_t)in.output_scanline * *width};
        jpeg_read_scanlines(&in, rows, 1);
    }
    jpeg_finish_decompress(&in);
    jpeg_destroy_decompress(&in);
    return pixels;
}

static bool contains(const unsigned char *bytes, size_t length, const char *text) {
    return memmem(bytes, length, text, strlen(text)) != NULL;
}

/* `exact`: the luminance must be what it was, to the last bit. */
static void expect_gray(const struct recipe *recipe, bool exact) {
    unsigned long length;
    unsigned width, height, gray_width, gray_height;
    int components;
    bool progressive;
    struct jpeg_gray_output output;
    unsigned char *bytes = encode(recipe, &length);
    ck_assert_int_eq(jpeg_gray(bytes, length, 1 << 20, &output), JPEG_GRAY_DONE);
    unsigned char *gray = luminance(output.bytes, output.length, &gray_width, &gray_height,
                                    &components, &progressive);
    ck_assert_int_eq(components, 1);
    ck_assert_uint_eq(gray_width, recipe->width);
    ck_assert_uint_eq(gray_height, recipe->height);
    ck_assert_int_eq(progressive, recipe->progressive);
    ck_assert_int_eq(contains(output.bytes, output.length, "orientation"), recipe->with_exif);
    ck_assert(!contains(output.bytes, output.length, "ICC_PROFILE"));
    ck_assert(!contains(output.bytes, output.length, "Adobe"));
    ck_assert(contains(output.bytes, output.length, "hello"));
    if (exact) {
        unsigned char *before =
            luminance(bytes, length, &width, &height, &components, &progressive);
        ck_assert_int_eq(memcmp(before, gray, (size_t)width * height), 0);
        free(before);
    }
    struct jpeg_gray_output again;
    ck_assert_int_eq(jpeg_gray(output.bytes, output.length, 1 << 20, &again), JPEG_GRAY_UNCHANGED);
    free(output.bytes);
    free(gray);
    free(bytes);
}

START_TEST(luminance_survives_bit_by_bit) {
    static const int sampling[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}};
    for (size_t i = 0; i < COUNT_OF(sampling); i++)
        for (int kind = 0; kind < 4; kind++) {
            struct recipe recipe = {.space = JCS_YCbCr,
                                    .horizontal = sampling[i][0],
                                    .vertical = sampling[i][1],
                                    .progressive = kind & 1,
                                    .arithmetic = kind & 2,
                                    .with_exif = true,
                                    .with_profile = true,
                                    .width = 83,
                                    .height = 61};
            expect_gray(&recipe, true);
        }
}
END_TEST

START_TEST(other_colour_spaces_are_encoded_anew) {
    static const J_COLOR_SPACE spaces[] = {JCS_RGB, JCS_CMYK, JCS_YCCK};
    for (size_t i = 0; i < COUNT_OF(spaces); i++) {
        struct recipe recipe = {.space = spaces[i],
                                .horizontal = 1,
                                .vertical = 1,
                                .with_exif = true,
                                .width = 40,
                                .height = 30};
        expect_gray(&recipe, false);
    }
}
END_TEST

START_TEST(gray_stays) {
    struct recipe recipe = {
        .space = JCS_GRAYSCALE, .horizontal = 1, .vertical = 1, .width = 40, .height = 30};
    unsigned long length;
    struct jpeg_gray_output output;
    unsigned char *bytes = encode(&recipe, &length);
    ck_assert_int_eq(jpeg_gray(bytes, length, 1 << 20, &output), JPEG_GRAY_UNCHANGED);
    ck_assert_ptr_null(output.bytes);
    free(bytes);
}
END_TEST

START_TEST(damage_is_reported) {
    struct recipe recipe = {.space = JCS_YCbCr,
                            .horizontal = 2,
                            .vertical = 2,
                            .progressive = true,
                            .width = 90,
                            .height = 70};
    unsigned long length;
    struct jpeg_gray_output output;
    unsigned char *bytes = encode(&recipe, &length);
    for (unsigned long cut = 0; cut < length - 2; cut += 1 + cut / 40) {
        struct slice input = guard_put(slice_make((const char *)bytes, cut));
        EXPECT(jpeg_gray((const unsigned char *)input.base, cut, 1 << 20, &output) == JPEG_GRAY_BAD,
               "cut at %lu of %lu", cut, length);
        EXPECT(output.error[0] != 0, "no reason given");
    }
    ck_assert_int_eq(jpeg_gray(bytes, length, 90 * 70 - 1, &output), JPEG_GRAY_BAD);
    ck_assert_str_eq(output.error, "too many pixels");
    unsigned state = 3;
    for (int round = 0; round < 2000; round++) { /* must come back, whatever it says */
        struct slice input = guard_put(slice_make((const char *)bytes, length));
        for (int i = 0; i < 4; i++) {
            state = state * 1103515245u + 12345u;
            ((char *)input.base)[(state >> 8) % length] = (char)(state >> 24);
        }
        if (jpeg_gray((const unsigned char *)input.base, length, 1 << 20, &output) ==
            JPEG_GRAY_DONE)
            free(output.bytes);
    }
    free(bytes);
}
END_TEST

Suite *jpeg_gray_suite(void) {
    const TTest *const tests[] = {luminance_survives_bit_by_bit,
                                  other_colour_spaces_are_encoded_anew, gray_stays,
                                  damage_is_reported};
    return suite_of("jpeg_gray", tests, COUNT_OF(tests));
}
