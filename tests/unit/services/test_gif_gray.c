#include "suites.h"

#include "gray/gif_gray.h"
#include "gray/gif_scale.h"

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

/* ---- scaling ------------------------------------------------------------------------------ */

enum { SIDE = 8, CLEAR_INDEX = 9 };

static struct bytes {
    unsigned char all[1 << 20];
    size_t length;
} made;
static GifFileType *writer;

static int append(GifFileType *file, const GifByteType *bytes, int length) {
    ck_assert_uint_le((size_t)length, sizeof made.all - made.length);
    memcpy(made.all + made.length, bytes, (size_t)length);
    made.length += (size_t)length;
    return length;
}

static void start(unsigned width, unsigned height) {
    ColorMapObject *table = GifMakeMapObject(16, NULL);
    for (int i = 0; i < 16; i++) /* index 0 to 8: levels 0, 20, ... */
        memset(&table->Colors[i], 20 * i, sizeof *table->Colors);
    made.length = 0;
    writer = EGifOpen(NULL, append, NULL);
    EGifSetGifVersion(writer, true);
    EGifPutScreenDesc(writer, (int)width, (int)height, 4, 0, table);
    GifFreeMapObject(table);
    EGifPutExtensionLeader(writer, APPLICATION_EXT_FUNC_CODE);
    EGifPutExtensionBlock(writer, 11, "NETSCAPE2.0");
    EGifPutExtensionBlock(writer, 3, "\1\5");
    EGifPutExtensionTrailer(writer);
}

static void finish(void) {
    EGifCloseFile(writer, NULL);
}

static void add_control(GraphicsControlBlock control) {
    GifByteType block[4];
    EGifGCBToExtension(&control, block);
    EGifPutExtension(writer, GRAPHICS_EXT_FUNC_CODE, sizeof block, block);
}

static void add_pixels(int left, int top, int width, int height, int index) {
    GifPixelType pixels[SIDE * SIDE];
    memset(pixels, index, sizeof pixels);
    EGifPutImageDesc(writer, left, top, width, height, false, NULL);
    EGifPutLine(writer, pixels, width * height);
}

/* All of one index. */
static void add_frame(int left, int top, int width, int height, int index, int disposal) {
    add_control((GraphicsControlBlock){disposal, false, 10 + index, CLEAR_INDEX});
    add_pixels(left, top, width, height, index);
}

struct seen {
    struct gif_rectangle place;
    int delay, disposal;
    unsigned char levels[3][3]; /* of the canvas; 1: nothing there */
};

static int read_slice(GifFileType *file, GifByteType *to, int length) {
    struct slice *from = file->UserData;
    if ((size_t)length > from->length)
        return 0;
    memcpy(to, from->base, (size_t)length);
    *from = slice_make(from->base + length, from->length - (size_t)length);
    return length;
}

static void read_control(GifFileType *file, GraphicsControlBlock *control) {
    int label;
    GifByteType *data;
    ck_assert(DGifGetExtension(file, &label, &data) == GIF_OK);
    if (label == GRAPHICS_EXT_FUNC_CODE)
        ck_assert(DGifExtensionToGCB(data[0], data + 1, control) == GIF_OK);
    while (data != NULL)
        ck_assert(DGifGetExtensionNext(file, &data) == GIF_OK);
}

/* Draws the result frame by frame. */
static unsigned look(const struct picture_output *output, struct seen *seen, unsigned room) {
    struct slice left = slice_make((const char *)output->bytes, output->length);
    struct gif_canvas canvas;
    GraphicsControlBlock control = {.TransparentColor = NO_TRANSPARENT_COLOR};
    GifRecordType type;
    unsigned count = 0;
    GifFileType *file = DGifOpen(&left, read_slice, NULL);
    ck_assert(file != NULL && file->SWidth == 3 && file->SHeight == 3);
    ck_assert(gif_canvas_open(&canvas, 3, 3));
    while (DGifGetRecordType(file, &type) == GIF_OK && type != TERMINATE_RECORD_TYPE) {
        if (type == EXTENSION_RECORD_TYPE) {
            read_control(file, &control);
            continue;
        }
        ck_assert_uint_lt(count, room);
        ck_assert(DGifGetImageHeader(file) == GIF_OK && gif_canvas_draw(&canvas, file, &control));
        seen[count] = (struct seen){canvas.place, control.DelayTime, control.DisposalMode, {{0}}};
        for (unsigned i = 0; i < 9; i++)
            seen[count].levels[i / 3][i % 3] =
                canvas.pixels[2 * i + 1] == 0 ? 1 : canvas.pixels[2 * i];
        gif_canvas_dispose(&canvas);
        count++;
    }
    ck_assert(type == TERMINATE_RECORD_TYPE && left.length == 0);
    DGifCloseFile(file, NULL);
    gif_canvas_close(&canvas);
    return count;
}

static const struct picture_options third = {.max_pixels = 1 << 20, .width = 3, .larger = true};

static void expect_frame(const struct seen *seen, struct seen expected) {
    ck_assert_uint_eq(seen->place.left, expected.place.left);
    ck_assert_uint_eq(seen->place.top, expected.place.top);
    ck_assert_uint_eq(seen->place.width, expected.place.width);
    ck_assert_uint_eq(seen->place.height, expected.place.height);
    ck_assert_int_eq(seen->delay, expected.delay);
    ck_assert_int_eq(seen->disposal, expected.disposal);
    for (unsigned i = 0; i < 9; i++)
        EXPECT(seen->levels[i / 3][i % 3] == expected.levels[i / 3][i % 3], "%u at %u, %u",
               seen->levels[i / 3][i % 3], i % 3, i / 3);
}

/* 6 by 6 pixels, so a new one covers 2 by 2. */
START_TEST(frames_are_scaled_with_what_they_lie_on) {
    struct picture_output output;
    struct seen seen[6];
    start(6, 6);
    add_frame(0, 0, 6, 6, 1, DISPOSE_DO_NOT);     /* all at 20 */
    add_frame(1, 1, 2, 2, 5, DISPOSE_BACKGROUND); /* a quarter of each of four at 100 */
    add_frame(5, 5, 1, 1, 3, DISPOSE_PREVIOUS);   /* a quarter of the last one at 60 */
    add_frame(0, 4, 2, 2, 9, DISPOSE_DO_NOT);     /* nothing */
    finish();
    ck_assert_int_eq(gif_gray(made.all, made.length, &third, &output), PICTURE_DONE);
    ck_assert_ptr_nonnull(
        memmem(output.bytes, output.length, "!\xff\x0bNETSCAPE2.0\x03\x01\x05\0", 19));
    ck_assert_uint_eq(look(&output, seen, COUNT_OF(seen)), 4);
    expect_frame(&seen[0],
                 (struct seen){
                     {0, 0, 3, 3}, 11, DISPOSE_DO_NOT, {{20, 20, 20}, {20, 20, 20}, {20, 20, 20}}});
    expect_frame(&seen[1], (struct seen){{0, 0, 2, 2},
                                         15,
                                         DISPOSE_BACKGROUND,
                                         {{40, 40, 20}, {40, 40, 20}, {20, 20, 20}}});
    /* Three quarters of those four are still there: they are drawn again. */
    expect_frame(&seen[2], (struct seen){{0, 0, 3, 3},
                                         13,
                                         DISPOSE_PREVIOUS,
                                         {{20, 20, 20}, {20, 20, 20}, {20, 20, 30}}});
    expect_frame(&seen[3],
                 (struct seen){
                     {0, 0, 2, 3}, 19, DISPOSE_DO_NOT, {{20, 20, 20}, {20, 20, 20}, {20, 20, 20}}});
    free(output.bytes);
}
END_TEST

/* A new pixel is there when half of it was drawn, and as bright as what was drawn. */
START_TEST(half_a_pixel_is_enough) {
    struct picture_output output;
    struct seen seen[6];
    start(6, 6);
    add_frame(1, 0, 1, 2, 4, DISPOSE_DO_NOT);
    add_frame(3, 3, 1, 1, 8, DISPOSE_BACKGROUND);
    add_frame(4, 4, 2, 2, 6, DISPOSE_BACKGROUND);
    finish();
    ck_assert_int_eq(gif_gray(made.all, made.length, &third, &output), PICTURE_DONE);
    ck_assert_uint_eq(look(&output, seen, COUNT_OF(seen)), 3);
    expect_frame(
        &seen[0],
        (struct seen){{0, 0, 1, 1}, 14, DISPOSE_DO_NOT, {{80, 1, 1}, {1, 1, 1}, {1, 1, 1}}});
    expect_frame(
        &seen[1],
        (struct seen){{1, 1, 1, 1}, 18, DISPOSE_BACKGROUND, {{80, 1, 1}, {1, 1, 1}, {1, 1, 1}}});
    expect_frame(
        &seen[2],
        (struct seen){{1, 1, 2, 2}, 16, DISPOSE_BACKGROUND, {{80, 1, 1}, {1, 1, 1}, {1, 1, 120}}});
    free(output.bytes);
}
END_TEST

/* Parts beyond the canvas, frames beside it, and the level that means transparent. */
START_TEST(odd_frames) {
    struct picture_output output;
    struct seen seen[3];
    start(6, 6);
    add_frame(4, 4, 8, 8, 2, DISPOSE_DO_NOT);
    add_frame(7, 7, 1, 1, 3, DISPOSE_PREVIOUS);
    finish();
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
    add_frame(0, 0, 6, 6, 1, DISPOSE_DO_NOT);
    finish();
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

/* The second frame, with one byte of it changed, can't be drawn. */
START_TEST(a_damaged_frame_is_not_scaled) {
    static const struct {
        size_t at;
        unsigned char value;
    } damages[] = {
        {LOCAL_AT - 5, 0},              /* no width */
        {LOCAL_AT - 3, 0},              /* no height */
        {LOCAL_AT - 3, 3},              /* more rows than pixels for them */
        {LOCAL_AT + LOCAL_SIZE, 0},     /* codes of one bit */
        {LOCAL_AT + LOCAL_SIZE, 1},     /* of two */
        {LOCAL_AT + LOCAL_SIZE, 9},     /* of ten */
        {LOCAL_AT + LOCAL_SIZE + 2, 7}, /* a code that is none yet */
    };
    static const struct picture_options small = {.max_pixels = 1 << 16, .width = 1, .larger = true};
    struct picture_output output;
    ck_assert_int_eq(gif_scale(animated, sizeof animated, &small, &output), PICTURE_DONE);
    free(output.bytes);
    for (unsigned i = 0; i < COUNT_OF(damages); i++) {
        unsigned char bytes[sizeof animated];
        memcpy(bytes, animated, sizeof bytes);
        bytes[damages[i].at] = damages[i].value;
        EXPECT(gif_scale(bytes, sizeof bytes, &small, &output) == PICTURE_BAD, "damage %u", i);
        ck_assert_int_eq(gif_gray(bytes, sizeof bytes, &small, &output), PICTURE_DONE);
        ck_assert_uint_eq(output.length, sizeof bytes);
        free(output.bytes);
    }
}
END_TEST

/* A text takes the control with it that was for it. */
START_TEST(extensions_stay_but_for_texts) {
    struct picture_output output;
    struct seen seen[1];
    char comment[600];
    memset(comment, 'c', sizeof comment);
    comment[sizeof comment - 1] = '\0';
    start(6, 6);
    size_t from = made.length;
    EGifPutComment(writer, comment);
    EGifPutExtensionLeader(writer, 0x42);
    EGifPutExtensionTrailer(writer);
    size_t length = made.length - from;
    add_control((GraphicsControlBlock){DISPOSE_BACKGROUND, true, 1000, 0});
    EGifPutExtension(writer, PLAINTEXT_EXT_FUNC_CODE, 12, "somewhere...");
    add_pixels(0, 0, 6, 6, 1);
    finish();
    ck_assert_int_eq(gif_gray(made.all, made.length, &third, &output), PICTURE_DONE);
    ck_assert_ptr_nonnull(memmem(output.bytes, output.length, made.all + from, length));
    ck_assert_ptr_null(memmem(output.bytes, output.length, "somewhere", 9));
    ck_assert_uint_eq(look(&output, seen, COUNT_OF(seen)), 1);
    expect_frame(&seen[0], (struct seen){{0, 0, 3, 3},
                                         0,
                                         DISPOSAL_UNSPECIFIED,
                                         {{20, 20, 20}, {20, 20, 20}, {20, 20, 20}}});
    free(output.bytes);
}
END_TEST

/* Bytes behind the trailer count for the original, which is how long it is here. */
START_TEST(what_would_be_larger_is_not_scaled) {
    struct picture_output output, again;
    struct picture_options options = third;
    start(6, 6);
    add_frame(0, 0, 6, 6, 1, DISPOSE_DO_NOT);
    finish();
    ck_assert_int_eq(gif_scale(made.all, made.length, &options, &output), PICTURE_DONE);
    options.larger = false;
    for (size_t length = made.length; length < output.length; length++)
        EXPECT(gif_scale(made.all, length, &options, &again) == PICTURE_BAD, "%zu are enough",
               length);
    ck_assert_int_eq(gif_scale(made.all, output.length, &options, &again), PICTURE_DONE);
    ck_assert_uint_eq(again.length, output.length);
    ck_assert_mem_eq(again.bytes, output.bytes, output.length);
    free(output.bytes);
    free(again.bytes);
}
END_TEST

Suite *gif_gray_suite(void) {
    const TTest *const tests[] = {tables_become_gray_and_nothing_else,
                                  cut_anywhere_is_bad,
                                  any_byte_may_be_wrong,
                                  frames_are_scaled_with_what_they_lie_on,
                                  half_a_pixel_is_enough,
                                  odd_frames,
                                  what_cannot_be_scaled_keeps_its_size,
                                  a_damaged_frame_is_not_scaled,
                                  extensions_stay_but_for_texts,
                                  what_would_be_larger_is_not_scaled};
    return suite_of("gif_gray", tests, COUNT_OF(tests));
}
