#include "suites.h"

#include "gray/exif.h"
#include "gray/webp_gray.h"

#include <webp/decode.h>
#include <webp/encode.h>
#include <webp/mux.h>

enum { WIDTH = 61, HEIGHT = 47 };

static const struct picture_options plain = {.max_pixels = 1 << 20, .larger = true};

/* With transparency, and EXIF data that lay it on its side. */
static WebPData encode(bool lossless) {
    static unsigned char pixels[WIDTH * HEIGHT * 4];
    for (unsigned i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(i % 4 == 3 ? i / 40 : i / 50 * (i % 4 + 1));
    char room[EXIF_MINIMAL];
    WebPData image = {NULL, 0}, whole = {NULL, 0};
    WebPData exif = {(const uint8_t *)exif_minimal(6, room).base, EXIF_MINIMAL};
    uint8_t *bytes;
    image.size = lossless ? WebPEncodeLosslessRGBA(pixels, WIDTH, HEIGHT, WIDTH * 4, &bytes)
                          : WebPEncodeRGBA(pixels, WIDTH, HEIGHT, WIDTH * 4, 90, &bytes);
    image.bytes = bytes;
    WebPMux *mux = WebPMuxCreate(&image, 1);
    ck_assert_int_eq(WebPMuxSetChunk(mux, "EXIF", &exif, 1), WEBP_MUX_OK);
    ck_assert_int_eq(WebPMuxAssemble(mux, &whole), WEBP_MUX_OK);
    WebPMuxDelete(mux);
    WebPFree(bytes);
    return whole;
}

static bool has_exif(const struct picture_output *output) {
    return memmem(output->bytes, output->length, "EXIF", 4) != NULL;
}

START_TEST(pictures_become_gray) {
    bool lossless = _i == 1;
    WebPData file = encode(lossless);
    struct picture_output output;
    int width, height;
    ck_assert_int_eq(webp_gray(file.bytes, file.size, &plain, &output), PICTURE_DONE);
    uint8_t *before = WebPDecodeRGBA(file.bytes, file.size, &width, &height);
    uint8_t *after = WebPDecodeRGBA(output.bytes, output.length, &width, &height);
    ck_assert_int_eq(width, WIDTH);
    ck_assert_int_eq(height, HEIGHT);
    ck_assert(has_exif(&output));
    for (unsigned i = 0; i < WIDTH * HEIGHT * 4; i += 4) {
        int luma = gray_luma(before[i], before[i + 1], before[i + 2]);
        EXPECT(abs(after[i] - after[i + 1]) <= 2 && abs(after[i] - after[i + 2]) <= 2, "colour");
        EXPECT(after[i + 3] == before[i + 3], "transparency");
        EXPECT(after[i + 3] == 0 || abs(after[i] - luma) <= (lossless ? 0 : 40), "%d of %d at %u",
               after[i], luma, i);
    }
    WebPFree(before);
    WebPFree(after);
    WebPFree((void *)file.bytes);
    free(output.bytes);
}
END_TEST

START_TEST(smaller_if_wanted) {
    WebPData file = encode(false);
    struct picture_output output;
    int width, height;
    const struct picture_options small = {
        .max_pixels = 1 << 20, .width = 30, .quality = 30, .strip = true};
    ck_assert_int_eq(webp_gray(file.bytes, file.size, &small, &output), PICTURE_DONE);
    ck_assert(WebPGetInfo(output.bytes, output.length, &width, &height));
    ck_assert_int_eq(width, 30);
    ck_assert_int_eq(height, 23);
    ck_assert(has_exif(&output)); /* the orientation */
    free(output.bytes);
    WebPFree((void *)file.bytes);
}
END_TEST

/* Of what is gray already, and stays as it is but for that. */
START_TEST(metadata_goes) {
    const struct picture_options options = {.max_pixels = 1 << 20, .strip = true};
    struct picture_output gray, output, again;
    char exif[EXIF_MINIMAL + 3] = "";
    exif_minimal(6, exif);
    memcpy(exif + EXIF_MINIMAL, "els", 3);
    WebPData file = encode(true), whole, more = {(const uint8_t *)exif, sizeof exif},
             xmp = {(const uint8_t *)"who made it", 11};
    ck_assert_int_eq(webp_gray(file.bytes, file.size, &plain, &gray), PICTURE_DONE);
    WebPData image = {gray.bytes, gray.length};
    WebPMux *mux = WebPMuxCreate(&image, 1);
    ck_assert_int_eq(WebPMuxSetChunk(mux, "EXIF", &more, 1), WEBP_MUX_OK);
    ck_assert_int_eq(WebPMuxSetChunk(mux, "XMP ", &xmp, 1), WEBP_MUX_OK);
    ck_assert_int_eq(WebPMuxAssemble(mux, &whole), WEBP_MUX_OK);
    ck_assert_int_eq(webp_gray(whole.bytes, whole.size, &options, &output), PICTURE_DONE);
    ck_assert(has_exif(&output));
    ck_assert_ptr_null(memmem(output.bytes, output.length, "els", 3));
    ck_assert_ptr_null(memmem(output.bytes, output.length, xmp.bytes, xmp.size));
    ck_assert_uint_eq(output.length, gray.length);
    ck_assert_int_eq(webp_gray(output.bytes, output.length, &options, &again), PICTURE_UNCHANGED);
    WebPMuxDelete(mux);
    WebPFree((void *)file.bytes);
    WebPFree((void *)whole.bytes);
    free(gray.bytes);
    free(output.bytes);
}
END_TEST

START_TEST(damage_is_reported) {
    const struct picture_options few = {.max_pixels = WIDTH * HEIGHT - 1};
    struct picture_output output;
    for (int lossless = 0; lossless < 2; lossless++) {
        WebPData file = encode(lossless);
        size_t pixels_end = file.size - EXIF_MINIMAL - 8;
        for (size_t cut = 0; cut + 2 < pixels_end; cut++) {
            struct slice input = guard_put(slice_make((const char *)file.bytes, cut));
            EXPECT(webp_gray((const unsigned char *)input.base, cut, &plain, &output) ==
                       PICTURE_BAD,
                   "cut at %zu of %zu", cut, file.size);
        }
        ck_assert_int_eq(webp_gray(file.bytes, file.size, &few, &output), PICTURE_BAD);
        ck_assert_str_eq(output.error, "too many pixels");
        WebPFree((void *)file.bytes);
    }
}
END_TEST

Suite *webp_gray_suite(void) {
    const TTest *const tests[] = {smaller_if_wanted, metadata_goes, damage_is_reported};
    Suite *suite = suite_of("webp_gray", tests, COUNT_OF(tests));
    TCase *cases = tcase_create("each form");
    tcase_add_loop_test(cases, pictures_become_gray, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
