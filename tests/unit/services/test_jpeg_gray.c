#include "suites.h"

#include "gray/jpeg_gray.h"
#include "gray/tiff.h"

#include <jpeglib.h>

/* A picture of coloured waves, encoded as asked. */
static const struct picture_options plain = {.max_pixels = 1 << 20, .larger = true};

struct recipe {
    J_COLOR_SPACE space; /* in the file */
    int horizontal, vertical;
    bool progressive, arithmetic, with_exif, with_profile;
    unsigned width, height;
    unsigned restarts, orientation; /* 0: none */
};

static void write_markers(struct jpeg_compress_struct *out, const struct recipe *recipe) {
    unsigned char profile[14 + 128] = "ICC_PROFILE";
    profile[12] = profile[13] = 1;
    memcpy(profile + 14 + 16, "RGB ", 4);
    if (recipe->with_exif)
        jpeg_write_marker(out, JPEG_APP0 + 1, (const JOCTET *)"Exif\0\0orientation", 17);
    if (recipe->orientation > 0) {
        char room[EXIF_MINIMAL], exif[6 + EXIF_MINIMAL] = "Exif\0";
        memcpy(exif + 6, exif_minimal(recipe->orientation, room).base, EXIF_MINIMAL);
        jpeg_write_marker(out, JPEG_APP0 + 1, (const JOCTET *)exif, sizeof exif);
    }
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
    out.restart_interval = recipe->restarts;
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
    struct picture_output output;
    unsigned char *bytes = encode(recipe, &length);
    ck_assert_int_eq(jpeg_gray(bytes, length, &plain, &output), PICTURE_DONE);
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
    struct picture_output again;
    ck_assert_int_eq(jpeg_gray(output.bytes, output.length, &plain, &again), PICTURE_UNCHANGED);
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

/* Chromium's and Firefox' decoders never look whether a CMYK file has Adobe's marker. A file of YCCK
 * without the marker does not exist: decoders take four components without it for CMYK. */
START_TEST(cmyk_is_inverted_with_and_without_the_marker) {
    struct recipe recipe = {
        .space = JCS_CMYK, .horizontal = 1, .vertical = 1, .width = 40, .height = 30};
    unsigned long length;
    struct picture_output with, without;
    unsigned char *bytes = encode(&recipe, &length);
    ck_assert_int_eq(jpeg_gray(bytes, length, &plain, &with), PICTURE_DONE);
    unsigned char *marker = memmem(bytes, length,
                                   "\xff\xee\0\x0e"
                                   "Adobe",
                                   9);
    ck_assert_ptr_nonnull(marker);
    memmove(marker, marker + 16, length - (size_t)(marker + 16 - bytes));
    ck_assert_int_eq(jpeg_gray(bytes, length - 16, &plain, &without), PICTURE_DONE);
    ck_assert_uint_eq(with.length, without.length);
    ck_assert_mem_eq(with.bytes, without.bytes, with.length);
    free(with.bytes);
    free(without.bytes);
    free(bytes);
}
END_TEST

START_TEST(gray_stays) {
    struct recipe recipe = {
        .space = JCS_GRAYSCALE, .horizontal = 1, .vertical = 1, .width = 40, .height = 30};
    unsigned long length;
    struct picture_output output;
    unsigned char *bytes = encode(&recipe, &length);
    ck_assert_int_eq(jpeg_gray(bytes, length, &plain, &output), PICTURE_UNCHANGED);
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
    struct picture_output output;
    const struct picture_options few = {.max_pixels = 90 * 70 - 1};
    unsigned char *bytes = encode(&recipe, &length);
    for (unsigned long cut = 0; cut < length - 2; cut++) {
        struct slice input = guard_put(slice_make((const char *)bytes, cut));
        EXPECT(jpeg_gray((const unsigned char *)input.base, cut, &plain, &output) == PICTURE_BAD,
               "cut at %lu of %lu", cut, length);
        EXPECT(output.error[0] != 0, "no reason given");
    }
    ck_assert_int_eq(jpeg_gray(bytes, length, &few, &output), PICTURE_BAD);
    ck_assert_str_eq(output.error, "too many pixels");
    unsigned state = 3;
    for (int round = 0; round < 2000; round++) { /* must come back, whatever it says */
        struct slice input = guard_put(slice_make((const char *)bytes, length));
        for (int i = 0; i < 4; i++) {
            state = state * 1103515245u + 12345u;
            ((char *)input.base)[(state >> 8) % length] = (char)(state >> 24);
        }
        if (jpeg_gray((const unsigned char *)input.base, length, &plain, &output) == PICTURE_DONE)
            free(output.bytes);
    }
    free(bytes);
}
END_TEST

/* Long metadata has been written when the end is missed: libjpeg's buffer has moved by then. */
START_TEST(breaks_off_behind_long_metadata) {
    enum { COMMENT = 20000, SOI = 2, HEAD = 4 };
    struct recipe recipe = {
        .space = JCS_YCbCr, .horizontal = 2, .vertical = 2, .width = 300, .height = 200};
    const struct picture_options small = {.max_pixels = 1 << 20, .width = 40};
    unsigned long length;
    struct picture_output output;
    unsigned char *bytes = encode(&recipe, &length);
    unsigned char *longer = calloc(1, length + HEAD + COMMENT);
    memcpy(longer, bytes, SOI);
    memcpy(longer + SOI, "\xff\xfe\x4e\x22", HEAD); /* 20002, itself included */
    memcpy(longer + SOI + HEAD + COMMENT, bytes + SOI, length - SOI);
    size_t half = HEAD + COMMENT + length / 2;
    ck_assert_int_eq(jpeg_gray(longer, half, &small, &output), PICTURE_BAD);
    ck_assert_int_eq(jpeg_gray(longer, length + HEAD + COMMENT, &small, &output), PICTURE_DONE);
    free(output.bytes);
    free(longer);
    free(bytes);
}
END_TEST

/* The luminance's coefficients and their table, read without a decoder's roundings. */
static short *coefficients(const unsigned char *bytes, unsigned long length, size_t *count,
                           UINT16 table[DCTSIZE2]) {
    struct jpeg_decompress_struct in;
    struct jpeg_error_mgr errors;
    in.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, bytes, length);
    jpeg_read_header(&in, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&in);
    const jpeg_component_info *component = &in.comp_info[0];
    size_t row = (size_t)component->width_in_blocks * DCTSIZE2;
    short *all = malloc(row * component->height_in_blocks * sizeof *all);
    for (unsigned y = 0; y < component->height_in_blocks; y++) {
        JBLOCKARRAY blocks = in.mem->access_virt_barray((j_common_ptr)&in, arrays[0], y, 1, FALSE);
        memcpy(all + y * row, blocks[0], row * sizeof *all);
    }
    *count = row * component->height_in_blocks;
    memcpy(table, component->quant_table->quantval, DCTSIZE2 * sizeof *table);
    jpeg_finish_decompress(&in);
    jpeg_destroy_decompress(&in);
    return all;
}

START_TEST(coefficients_stay) {
    for (int kind = 0; kind < 8; kind++) {
        struct recipe recipe = {.space = JCS_YCbCr,
                                .horizontal = 1 + (kind & 1),
                                .vertical = 1 + (kind >> 1 & 1),
                                .progressive = kind & 4,
                                .restarts = kind & 1 ? 3 : 0,
                                .width = 75,
                                .height = 59};
        unsigned long length;
        size_t count, gray_count;
        UINT16 table[DCTSIZE2], gray_table[DCTSIZE2];
        struct picture_output output;
        unsigned char *bytes = encode(&recipe, &length);
        ck_assert_int_eq(memmem(bytes, length, "\xff\xd0", 2) != NULL, recipe.restarts > 0);
        ck_assert_int_eq(jpeg_gray(bytes, length, &plain, &output), PICTURE_DONE);
        short *before = coefficients(bytes, length, &count, table);
        short *after = coefficients(output.bytes, output.length, &gray_count, gray_table);
        ck_assert_uint_eq(count, gray_count);
        ck_assert_int_eq(memcmp(before, after, count * sizeof *before), 0);
        ck_assert_int_eq(memcmp(table, gray_table, sizeof table), 0);
        free(before);
        free(after);
        free(output.bytes);
        free(bytes);
    }
}
END_TEST

static unsigned char *plain_photo(bool progressive, unsigned long *length) {
    struct recipe recipe = {.space = JCS_YCbCr,
                            .horizontal = 2,
                            .vertical = 2,
                            .progressive = progressive,
                            .with_exif = true,
                            .with_profile = true,
                            .width = 200,
                            .height = 120};
    return encode(&recipe, length);
}

START_TEST(other_sizes_and_qualities) {
    unsigned long length;
    unsigned char *bytes = plain_photo(false, &length);
    static const unsigned widths[] = {1, 7, 25, 26, 99, 100, 101, 199};
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        struct picture_options options = {
            .max_pixels = 1 << 20, .width = widths[i], .larger = true};
        struct picture_output output;
        unsigned width, height;
        int components;
        bool progressive;
        ck_assert_int_eq(jpeg_gray(bytes, length, &options, &output), PICTURE_DONE);
        free(luminance(output.bytes, output.length, &width, &height, &components, &progressive));
        ck_assert_uint_eq(width, widths[i]);
        ck_assert_uint_eq(height, picture_scaled_height(&options, 200, 120));
        ck_assert(contains(output.bytes, output.length, "orientation"));
        free(output.bytes);
    }
    size_t last = length;
    for (unsigned quality = 60; quality > 0; quality -= 20) {
        struct picture_options options = {.max_pixels = 1 << 20, .quality = quality};
        struct picture_output output;
        ck_assert_int_eq(jpeg_gray(bytes, length, &options, &output), PICTURE_DONE);
        ck_assert_uint_lt(output.length, last);
        last = output.length;
        free(output.bytes);
    }
    free(bytes);
}
END_TEST

/* It is the width that one sees that counts. */
START_TEST(turned_photos_are_scaled_as_they_are_seen) {
    static const unsigned widths[] = {1, 33, 119, 120, 199, 200};
    struct recipe recipe = {.space = JCS_YCbCr, .horizontal = 2, .vertical = 2};
    recipe.width = 200;
    recipe.height = 120;
    for (recipe.orientation = 1; recipe.orientation <= 8; recipe.orientation++)
        for (size_t i = 0; i < COUNT_OF(widths); i++) {
            struct picture_options options = {
                .max_pixels = 1 << 20, .width = widths[i], .larger = true};
            struct picture_output output;
            unsigned long length;
            unsigned width, height;
            int components;
            bool progressive, turned = recipe.orientation >= 5;
            unsigned char *bytes = encode(&recipe, &length);
            ck_assert_int_eq(jpeg_gray(bytes, length, &options, &output), PICTURE_DONE);
            free(
                luminance(output.bytes, output.length, &width, &height, &components, &progressive));
            unsigned seen = turned ? 120 : 200, wanted = widths[i] < seen ? widths[i] : seen;
            ck_assert_uint_eq(turned ? height : width, wanted);
            ck_assert_uint_eq(turned ? width : height,
                              (wanted * (turned ? 200 : 120) + seen / 2) / seen);
            free(output.bytes);
            free(bytes);
        }
}
END_TEST

/* Of a stripped picture only what says which side is up is left. */
START_TEST(stripped_photos_stay_upright) {
    unsigned long length;
    struct picture_output output, again;
    const struct picture_options strip = {.max_pixels = 1 << 20, .strip = true, .larger = true};
    unsigned char *bytes = plain_photo(false, &length);
    ck_assert_int_eq(jpeg_gray(bytes, length, &strip, &output), PICTURE_DONE);
    ck_assert(!contains(output.bytes, output.length, "hello"));
    ck_assert(!contains(output.bytes, output.length, "Exif")); /* it does not say */
    free(output.bytes);
    free(bytes);
    struct recipe recipe = {.space = JCS_YCbCr,
                            .horizontal = 1,
                            .vertical = 1,
                            .orientation = 6,
                            .width = 40,
                            .height = 30};
    bytes = encode(&recipe, &length);
    ck_assert_int_eq(jpeg_gray(bytes, length, &strip, &output), PICTURE_DONE);
    unsigned char *place = memmem(output.bytes, output.length, "Exif", 4);
    ck_assert_ptr_nonnull(place);
    ck_assert_uint_eq(exif_orientation(slice_make((char *)place + 6, EXIF_MINIMAL)), 6);
    ck_assert(!contains(output.bytes, output.length, "hello"));
    ck_assert_int_eq(jpeg_gray(output.bytes, output.length, &strip, &again), PICTURE_DONE);
    ck_assert_uint_eq(again.length, output.length);
    free(again.bytes);
    free(output.bytes);
    free(bytes);
}
END_TEST

/* Byte 4 of the frame header is the number of bits. */
START_TEST(twelve_bits_are_refused) {
    unsigned long length;
    struct picture_output output;
    unsigned char *bytes = plain_photo(false, &length);
    unsigned char *frame = memmem(bytes, length, "\xff\xc0", 2);
    ck_assert_int_eq(frame[4], 8);
    frame[1] = 0xc1; /* baseline has none of 12 bits */
    frame[4] = 12;
    ck_assert_int_eq(jpeg_gray(bytes, length, &plain, &output), PICTURE_BAD);
    ck_assert_str_ne(output.error, "");
    free(bytes);
}
END_TEST

/* The first scan over and over: each would cost a pass over the whole picture. */
START_TEST(thousands_of_scans_are_refused) {
    enum { SCANS = 5000 };
    unsigned long length;
    struct picture_output output;
    unsigned char *bytes = plain_photo(true, &length);
    unsigned char *scan = memmem(bytes, length, "\xff\xda", 2);
    unsigned char *next = memmem(scan + 2, length - (size_t)(scan + 2 - bytes), "\xff\xc4", 2);
    size_t size = (size_t)(next - scan), before = (size_t)(next - bytes);
    unsigned char *bomb = malloc(before + SCANS * size + length);
    memcpy(bomb, bytes, before);
    for (int i = 0; i < SCANS; i++)
        memcpy(bomb + before + (size_t)i * size, scan, size);
    memcpy(bomb + before + SCANS * size, next, length - before);
    ck_assert_int_eq(jpeg_gray(bomb, before + SCANS * size + length - before, &plain, &output),
                     PICTURE_BAD);
    ck_assert_str_eq(output.error, "too many scans");
    free(bomb);
    free(bytes);
}
END_TEST

Suite *jpeg_gray_suite(void) {
    const TTest *const tests[] = {luminance_survives_bit_by_bit,
                                  other_colour_spaces_are_encoded_anew,
                                  cmyk_is_inverted_with_and_without_the_marker,
                                  gray_stays,
                                  damage_is_reported,
                                  breaks_off_behind_long_metadata,
                                  coefficients_stay,
                                  other_sizes_and_qualities,
                                  turned_photos_are_scaled_as_they_are_seen,
                                  stripped_photos_stay_upright,
                                  twelve_bits_are_refused,
                                  thousands_of_scans_are_refused};
    return suite_of("jpeg_gray", tests, COUNT_OF(tests));
}
