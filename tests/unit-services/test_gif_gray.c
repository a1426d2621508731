#include "suites.h"

#include "gray/gif_canvas.h"
#include "gray/gif_gray.h"
#include "gray/gif_scale.h"
#include "gray/lzw.h"

/* Two frames, a global table of four colours, a local one of two, a comment, an animation block. */
static const unsigned char animated[] = {
    'G',  'I',  'F',  '8',  '9',  'a',  2,    0,    2,   0,    0x81, 0,   0,   255, 0, 0,    0,
    255,  0,    0,    0,    255,  10,   10,   10, /* global table at 13 */
    0x21, 0xff, 11,   'N',  'E',  'T',  'S',  'C',  'A', 'P',  'E',  '2', '.', '0', 3, 1,    0,
    0,    0,    0x21, 0xf9, 4,    1,    10,   0,    3,   0,    0x2c, 0,   0,   0,   0, 2,    0,
    2,    0,    0x40, 2,    3,    0x44, 0x02, 0x05, 0,   0x21, 0xfe, 2,   'h', 'i', 0, 0x2c, 0,
    0,    0,    0,    2,    0,    2,    0,    0x80, 1,   2,    3,    4,   5,   6, /* local table */
    2,    3,    0x44, 0x02, 0x05, 0,    0x3b, 't',  'a', 'i',  'l'};
enum { GLOBAL_AT = 13, GLOBAL_SIZE = 12, LOCAL_AT = 84, LOCAL_SIZE = 6 };

static const struct picture_options plain = {.max_pixels = 1 << 20};

START_TEST(tables_become_gray_and_nothing_else) {
    struct picture_output output, again;
    ck_assert_int_eq(gif_gray(animated, sizeof animated, &plain, &output), PICTURE_DONE);
    ck_assert_uint_eq(output.length, sizeof animated);
    const unsigned char *bytes = output.bytes;
    unsigned changed = 0;
    for (size_t i = 0; i < sizeof animated; i++) {
        bool in_table = (i >= GLOBAL_AT && i < GLOBAL_AT + GLOBAL_SIZE) ||
                        (i >= LOCAL_AT && i < LOCAL_AT + LOCAL_SIZE);
        EXPECT(in_table || bytes[i] == animated[i], "byte %zu changed", i);
        changed += bytes[i] != animated[i];
    }
    ck_assert_uint_gt(changed, 9);
    for (size_t i = GLOBAL_AT; i < GLOBAL_AT + GLOBAL_SIZE; i += 3)
        ck_assert(bytes[i] == bytes[i + 1] && bytes[i] == bytes[i + 2]);
    ck_assert_uint_eq(bytes[GLOBAL_AT], 76);
    ck_assert_uint_eq(bytes[GLOBAL_AT + 3], 150);
    ck_assert_uint_eq(bytes[GLOBAL_AT + 6], 29);
    ck_assert_uint_eq(bytes[GLOBAL_AT + 9], 10);
    ck_assert_int_eq(gif_gray(bytes, output.length, &plain, &again), PICTURE_UNCHANGED);
    free(output.bytes);
}
END_TEST

START_TEST(cut_anywhere_is_bad) {
    static const struct picture_options small = {.max_pixels = 100, .width = 1, .larger = true};
    struct picture_output output;
    for (size_t length = 0; length < sizeof animated - 5; length++) {
        struct slice input = guard_put(slice_make((const char *)animated, length));
        const unsigned char *bytes = (const unsigned char *)input.base;
        EXPECT(gif_gray(bytes, length, &plain, &output) == PICTURE_BAD, "cut at %zu", length);
        EXPECT(gif_scale(bytes, length, &small, &output) == PICTURE_BAD, "cut at %zu", length);
    }
}
END_TEST

START_TEST(any_byte_may_be_wrong) {
    static const struct picture_options small = {.max_pixels = 1 << 16, .width = 1, .larger = true};
    struct picture_output output;
    for (size_t at = 0; at < sizeof animated; at++)
        for (unsigned value = 0; value < 256; value += 5) {
            struct slice input = guard_put(slice_make((const char *)animated, sizeof animated));
            ((unsigned char *)input.base)[at] = (unsigned char)value;
            const unsigned char *bytes = (const unsigned char *)input.base;
            if (gif_gray(bytes, input.length, &small, &output) == PICTURE_DONE)
                free(output.bytes);
        }
}
END_TEST

/* ---- compression -------------------------------------------------------------------------- */

struct bytes {
    unsigned char all[1 << 16];
    size_t length;
};

static bool append(void *context, const unsigned char *bytes, size_t length) {
    struct bytes *to = context;
    if (length > sizeof to->all - to->length)
        return false;
    memcpy(to->all + to->length, bytes, length);
    to->length += length;
    return true;
}

static void expect_round_trip(const unsigned char *pixels, size_t count) {
    static struct bytes packed;
    static unsigned char again[20001];
    packed.length = 0;
    ck_assert(lzw_encode(pixels, count, append, &packed));
    ck_assert_uint_eq(packed.all[0], 8);
    struct slice data = guard_put(slice_make((char *)packed.all + 1, packed.length - 1));
    struct lzw_decoder *decoder = lzw_decoder_create(8, data);
    ck_assert(lzw_decode(decoder, again, count / 3));
    ck_assert(lzw_decode(decoder, again + count / 3, count - count / 3));
    EXPECT(memcmp(pixels, again, count) == 0, "%zu pixels are others", count);
    EXPECT(!lzw_decode(decoder, again, 1), "more than %zu pixels", count);
    lzw_decoder_free(&decoder);
}

/* Lengths at which codes grow, and at which the table is full; few colours and many. */
START_TEST(what_is_compressed_is_there_again) {
    static unsigned char pixels[20000];
    unsigned state = 5;
    for (unsigned colours = 1; colours <= 256; colours *= 4) {
        for (size_t i = 0; i < sizeof pixels; i++) {
            state = state * 1103515245u + 12345u;
            pixels[i] = (unsigned char)((state >> 16) % colours);
        }
        for (size_t count = 1; count < 1100; count++)
            expect_round_trip(pixels, count);
        for (size_t count = 3800; count < 4200; count += 7)
            expect_round_trip(pixels, count);
        expect_round_trip(pixels, sizeof pixels);
    }
}
END_TEST

/* ---- scaling ------------------------------------------------------------------------------ */

enum { SIDE = 8, CLEAR_INDEX = 9 };

static struct bytes made;

static void start(unsigned width, unsigned height) {
    unsigned char head[GIF_HEADER] = {'G', 'I', 'F', '8', '9', 'a', 0, 0, 0, 0, 0xf3, 0, 0};
    head[6] = (unsigned char)width;
    head[8] = (unsigned char)height;
    made.length = 0;
    append(&made, head, sizeof head);
    for (unsigned i = 0; i < 16; i++) { /* index 0 to 8: levels 0, 20, ... */
        unsigned char level = (unsigned char)(20 * i), colour[3] = {level, level, level};
        append(&made, colour, sizeof colour);
    }
    append(&made, (const unsigned char *)"!\xff\x0bNETSCAPE2.0\x03\x01\x05\0", 19);
}

/* All of one index. */
static void add_frame(unsigned char left, unsigned char top, unsigned char width,
                      unsigned char height, unsigned char index, unsigned disposal) {
    unsigned char pixels[SIDE * SIDE];
    const unsigned char control[] = {
        '!', 0xf9,        4, (unsigned char)(disposal << 2 | 1), (unsigned char)(10 + index),
        0,   CLEAR_INDEX, 0};
    const unsigned char head[] = {',', left, 0, top, 0, width, 0, height, 0, 0};
    memset(pixels, index, sizeof pixels);
    append(&made, control, sizeof control);
    append(&made, head, sizeof head);
    lzw_encode(pixels, (size_t)width * height, append, &made);
}

struct seen {
    struct gif_rectangle place;
    unsigned delay, disposal;
    unsigned char levels[3][3]; /* of the canvas; 1: nothing there */
};

/* Draws the result frame by frame. */
static unsigned look(const struct picture_output *output, struct seen *seen, unsigned room) {
    struct gif_reader reader;
    struct gif_block block;
    struct gif_canvas canvas;
    struct gif_control control = {.transparent = GIF_NOT_TRANSPARENT};
    unsigned count = 0;
    ck_assert(gif_reader_open(&reader, output->bytes, output->length));
    ck_assert(reader.width == 3 && reader.height == 3);
    ck_assert(gif_canvas_open(&canvas, 3, 3));
    for (; gif_reader_next(&reader, &block); count += block.kind == GIF_FRAME) {
        if (block.kind == GIF_EXTENSION) {
            if (block.label == GIF_EXTENSION_CONTROL)
                gif_control_read(&control, &block);
            continue;
        }
        ck_assert_uint_lt(count, room);
        ck_assert(gif_canvas_draw(&canvas, &reader, &block, &control));
        seen[count] = (struct seen){block.place, control.delay, control.disposal, {{0}}};
        for (unsigned i = 0; i < 9; i++)
            seen[count].levels[i / 3][i % 3] =
                canvas.pixels[2 * i + 1] == 0 ? 1 : canvas.pixels[2 * i];
        gif_canvas_dispose(&canvas);
    }
    ck_assert(reader.whole);
    gif_canvas_close(&canvas);
    return count;
}

static const struct picture_options third = {.max_pixels = 1 << 20, .width = 3, .larger = true};

static void expect_frame(const struct seen *seen, struct seen expected) {
    ck_assert_uint_eq(seen->place.left, expected.place.left);
    ck_assert_uint_eq(seen->place.top, expected.place.top);
    ck_assert_uint_eq(seen->place.width, expected.place.width);
    ck_assert_uint_eq(seen->place.height, expected.place.height);
    ck_assert_uint_eq(seen->delay, expected.delay);
    ck_assert_uint_eq(seen->disposal, expected.disposal);
    for (unsigned i = 0; i < 9; i++)
        EXPECT(seen->levels[i / 3][i % 3] == expected.levels[i / 3][i % 3], "%u at %u, %u",
               seen->levels[i / 3][i % 3], i % 3, i / 3);
}

/* 6 by 6 pixels, so a new one covers 2 by 2. */
START_TEST(frames_are_scaled_with_what_they_lie_on) {
    struct picture_output output;
    struct seen seen[6];
    start(6, 6);
    add_frame(0, 0, 6, 6, 1, GIF_KEEP);    /* all at 20 */
    add_frame(1, 1, 2, 2, 5, GIF_CLEAR);   /* a quarter of each of four at 100 */
    add_frame(5, 5, 1, 1, 3, GIF_RESTORE); /* a quarter of the last one at 60 */
    add_frame(0, 4, 2, 2, 9, GIF_KEEP);    /* nothing */
    append(&made, (const unsigned char *)";", 1);
    ck_assert_int_eq(gif_gray(made.all, made.length, &third, &output), PICTURE_DONE);
    ck_assert_ptr_nonnull(
        memmem(output.bytes, output.length, "!\xff\x0bNETSCAPE2.0\x03\x01\x05\0", 19));
    ck_assert_uint_eq(look(&output, seen, COUNT_OF(seen)), 4);
    expect_frame(
        &seen[0],
        (struct seen){{0, 0, 3, 3}, 11, GIF_KEEP, {{20, 20, 20}, {20, 20, 20}, {20, 20, 20}}});
    expect_frame(
        &seen[1],
        (struct seen){{0, 0, 2, 2}, 15, GIF_CLEAR, {{40, 40, 20}, {40, 40, 20}, {20, 20, 20}}});
    /* Three quarters of those four are still there: they are drawn again. */
    expect_frame(
        &seen[2],
        (struct seen){{0, 0, 3, 3}, 13, GIF_RESTORE, {{20, 20, 20}, {20, 20, 20}, {20, 20, 30}}});
    expect_frame(
        &seen[3],
        (struct seen){{0, 0, 2, 3}, 19, GIF_KEEP, {{20, 20, 20}, {20, 20, 20}, {20, 20, 20}}});
    free(output.bytes);
}
END_TEST

/* A new pixel is there when half of it was drawn, and as bright as what was drawn. */
START_TEST(half_a_pixel_is_enough) {
    struct picture_output output;
    struct seen seen[6];
    start(6, 6);
    add_frame(1, 0, 1, 2, 4, GIF_KEEP);
    add_frame(3, 3, 1, 1, 8, GIF_CLEAR);
    add_frame(4, 4, 2, 2, 6, GIF_CLEAR);
    append(&made, (const unsigned char *)";", 1);
    ck_assert_int_eq(gif_gray(made.all, made.length, &third, &output), PICTURE_DONE);
    ck_assert_uint_eq(look(&output, seen, COUNT_OF(seen)), 3);
    expect_frame(&seen[0],
                 (struct seen){{0, 0, 1, 1}, 14, GIF_KEEP, {{80, 1, 1}, {1, 1, 1}, {1, 1, 1}}});
    expect_frame(&seen[1],
                 (struct seen){{1, 1, 1, 1}, 18, GIF_CLEAR, {{80, 1, 1}, {1, 1, 1}, {1, 1, 1}}});
    expect_frame(&seen[2],
                 (struct seen){{1, 1, 2, 2}, 16, GIF_CLEAR, {{80, 1, 1}, {1, 1, 1}, {1, 1, 120}}});
    free(output.bytes);
}
END_TEST

/* Parts beyond the canvas, frames beside it, and the level that means transparent. */
START_TEST(odd_frames) {
    struct picture_output output;
    struct seen seen[3];
    start(6, 6);
    add_frame(4, 4, 8, 8, 2, GIF_KEEP);
    add_frame(7, 7, 1, 1, 3, GIF_RESTORE);
    append(&made, (const unsigned char *)";", 1);
    memset(made.all + GIF_HEADER + 3 * 2, 127, 3);
    ck_assert_int_eq(gif_gray(made.all, made.length, &third, &output), PICTURE_DONE);
    ck_assert_uint_eq(look(&output, seen, COUNT_OF(seen)), 2);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(seen[i].levels[2][2], 128);
    ck_assert_uint_eq(seen[1].place.width, 1);
    ck_assert_uint_eq(seen[1].levels[0][0], 1);
    free(output.bytes);
}
END_TEST

START_TEST(what_cannot_be_scaled_keeps_its_size) {
    struct picture_output output;
    struct picture_options options = third;
    start(6, 6);
    add_frame(0, 0, 6, 6, 1, GIF_KEEP);
    append(&made, (const unsigned char *)";", 1);
    made.all[GIF_HEADER] = 200; /* a colour */
    options.larger = false;     /* 768 bytes of grays */
    ck_assert_int_eq(gif_gray(made.all, made.length, &options, &output), PICTURE_DONE);
    ck_assert_uint_eq(output.length, made.length);
    ck_assert_uint_eq(output.bytes[6], 6);
    ck_assert_uint_eq(output.bytes[GIF_HEADER], 60);
    free(output.bytes);
    options = third;
    options.max_pixels = 35;
    ck_assert_int_eq(gif_scale(made.all, made.length, &options, &output), PICTURE_BAD);
    options.max_pixels = 36 + 1023; /* a frame counts for more than its pixels */
    ck_assert_int_eq(gif_scale(made.all, made.length, &options, &output), PICTURE_BAD);
    options.max_pixels++;
    ck_assert_int_eq(gif_scale(made.all, made.length, &options, &output), PICTURE_DONE);
    free(output.bytes);
    options.width = 6;
    ck_assert_int_eq(gif_scale(made.all, made.length, &options, &output), PICTURE_UNCHANGED);
}
END_TEST

Suite *gif_gray_suite(void) {
    const TTest *const tests[] = {tables_become_gray_and_nothing_else,
                                  cut_anywhere_is_bad,
                                  any_byte_may_be_wrong,
                                  what_is_compressed_is_there_again,
                                  frames_are_scaled_with_what_they_lie_on,
                                  half_a_pixel_is_enough,
                                  odd_frames,
                                  what_cannot_be_scaled_keeps_its_size};
    return suite_of("gif_gray", tests, COUNT_OF(tests));
}
