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
    const TTest *const tests[] = {smaller_if_wanted, damage_is_reported};
    Suite *suite = suite_of("webp_gray", tests, COUNT_OF(tests));
    TCase *cases = tcase_create("each form");
    tcase_add_loop_test(cases, pictures_become_gray, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
