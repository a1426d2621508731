#include "suites.h"

#include "gray/tiff.h"
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

enum { FRAMES = 5 };

/* Frames with and without loss, of several sizes, places, times and ways to go. */
static WebPData animate(void) {
    static unsigned char pixels[WIDTH * HEIGHT * 4];
    WebPMux *mux = WebPMuxNew();
    WebPData whole;
    WebPMuxAnimParams terms = {.bgcolor = 0x2040c0ff, .loop_count = 7};
    for (int i = 0; i < FRAMES; i++) {
        int width = WIDTH - 10 * i, height = HEIGHT - 6 * i;
        for (unsigned j = 0; j < sizeof pixels; j++)
            pixels[j] =
                (unsigned char)(j % 4 == 3 ? (i == 3 ? j / 40 : 255) : j / 50 * (j % 4 + i));
        uint8_t *bytes;
        size_t size = i % 2 != 0 ? WebPEncodeLosslessRGBA(pixels, width, height, WIDTH * 4, &bytes)
                                 : WebPEncodeRGBA(pixels, width, height, WIDTH * 4, 90, &bytes);
        WebPMuxFrameInfo frame = {.bitstream = {bytes, size},
                                  .x_offset = 4 * i,
                                  .y_offset = 2 * i,
                                  .duration = 40 + i,
                                  .id = WEBP_CHUNK_ANMF,
                                  .dispose_method = i % 2 != 0 ? WEBP_MUX_DISPOSE_BACKGROUND
                                                               : WEBP_MUX_DISPOSE_NONE,
                                  .blend_method = i > 2 ? WEBP_MUX_BLEND : WEBP_MUX_NO_BLEND};
        ck_assert_int_eq(WebPMuxPushFrame(mux, &frame, 1), WEBP_MUX_OK);
        WebPFree(bytes);
    }
    ck_assert_int_eq(WebPMuxSetCanvasSize(mux, WIDTH, HEIGHT), WEBP_MUX_OK);
    ck_assert_int_eq(WebPMuxSetAnimationParams(mux, &terms), WEBP_MUX_OK);
    ck_assert_int_eq(WebPMuxAssemble(mux, &whole), WEBP_MUX_OK);
    WebPMuxDelete(mux);
    return whole;
}

static void expect_gray_frame(const WebPMuxFrameInfo *before, const WebPMuxFrameInfo *after) {
    int width, height, other_width, other_height;
    uint8_t *from =
        WebPDecodeRGBA(before->bitstream.bytes, before->bitstream.size, &width, &height);
    uint8_t *to =
        WebPDecodeRGBA(after->bitstream.bytes, after->bitstream.size, &other_width, &other_height);
    ck_assert(width == other_width && height == other_height);
    ck_assert(before->x_offset == after->x_offset && before->y_offset == after->y_offset);
    ck_assert(before->duration == after->duration);
    ck_assert(before->dispose_method == after->dispose_method);
    ck_assert(before->blend_method == after->blend_method);
    for (int i = 0; i < 4 * width * height; i += 4) {
        int luma = gray_luma(from[i], from[i + 1], from[i + 2]);
        EXPECT(abs(to[i] - to[i + 1]) <= 2 && abs(to[i] - to[i + 2]) <= 2, "colour at %d", i);
        EXPECT(to[i + 3] == from[i + 3], "transparency at %d", i);
        EXPECT(to[i + 3] == 0 || abs(to[i] - luma) <= 40, "%d of %d at %d", to[i], luma, i);
    }
    WebPFree(from);
    WebPFree(to);
}

/* Each of its frames, and all else about it stays. */
START_TEST(animations_become_gray) {
    WebPData file = animate();
    struct picture_output output, again;
    WebPMuxAnimParams terms;
    ck_assert_int_eq(webp_gray(file.bytes, file.size, &plain, &output), PICTURE_DONE);
    WebPData made = {output.bytes, output.length};
    WebPMux *before = WebPMuxCreate(&file, 0), *after = WebPMuxCreate(&made, 0);
    int width, height, count;
    ck_assert_int_eq(WebPMuxNumChunks(after, WEBP_CHUNK_ANMF, &count), WEBP_MUX_OK);
    ck_assert_int_eq(count, FRAMES);
    ck_assert_int_eq(WebPMuxGetCanvasSize(after, &width, &height), WEBP_MUX_OK);
    ck_assert(width == WIDTH && height == HEIGHT);
    ck_assert_int_eq(WebPMuxGetAnimationParams(after, &terms), WEBP_MUX_OK);
    ck_assert_int_eq(terms.loop_count, 7);
    ck_assert_uint_eq(terms.bgcolor, gray_luma(0xc0, 0x40, 0x20) * 0x01010100u + 0xff);
    for (uint32_t i = 1; i <= FRAMES; i++) {
        WebPMuxFrameInfo from, to;
        ck_assert_int_eq(WebPMuxGetFrame(before, i, &from), WEBP_MUX_OK);
        ck_assert_int_eq(WebPMuxGetFrame(after, i, &to), WEBP_MUX_OK);
        expect_gray_frame(&from, &to);
        WebPDataClear(&from.bitstream);
        WebPDataClear(&to.bitstream);
    }
    const struct picture_options few = {.max_pixels = WIDTH * HEIGHT * 2, .larger = true};
    ck_assert_int_eq(webp_gray(file.bytes, file.size, &few, &again), PICTURE_BAD);
    ck_assert_ptr_nonnull(strstr(again.error, "all frames"));
    for (size_t cut = 0; cut < file.size - 1; cut += cut < 64 ? 1 : 37) {
        struct slice input = guard_put(slice_make((const char *)file.bytes, cut));
        ck_assert_int_eq(webp_gray((const unsigned char *)input.base, cut, &plain, &again),
                         PICTURE_BAD);
    }
    WebPMuxDelete(before);
    WebPMuxDelete(after);
    WebPFree((void *)file.bytes);
    free(output.bytes);
}
END_TEST

/* libwebp goes through all frames for each of them: so many that it would not end are refused. */
START_TEST(many_chunks_are_refused) {
    enum { CHUNK = 8, COUNT = 100000, CHUNKS = 12 };
    WebPData file = animate();
    size_t size = file.size + COUNT * CHUNK;
    unsigned char *bytes = calloc(1, size);
    struct picture_output output;
    memcpy(bytes, file.bytes, file.size);
    for (size_t at = file.size; at < size; at += CHUNK)
        memcpy(bytes + at, "JUNK", 4);
    for (int i = 0; i < 4; i++)
        bytes[4 + i] = (unsigned char)((size - 8) >> 8 * i);
    ck_assert_int_eq(webp_gray(bytes, size, &plain, &output), PICTURE_BAD);
    ck_assert_str_eq(output.error, "too many chunks");
    free(bytes);
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
    const TTest *const tests[] = {smaller_if_wanted, metadata_goes, animations_become_gray,
                                  many_chunks_are_refused, damage_is_reported};
    Suite *suite = suite_of("webp_gray", tests, COUNT_OF(tests));
    TCase *cases = tcase_create("each form");
    tcase_add_loop_test(cases, pictures_become_gray, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
