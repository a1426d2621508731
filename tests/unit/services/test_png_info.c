#include "suites.h"

#include "gray/png_chunks.h"

struct builder {
    char bytes[512];
    size_t length;
};

static void add(struct builder *builder, const void *bytes, size_t length) {
    memcpy(builder->bytes + builder->length, bytes, length);
    builder->length += length;
}

static void add_chunk(struct builder *builder, const char *name, const void *data, size_t length) {
    unsigned char head[4] = {0, 0, (unsigned char)(length >> 8), (unsigned char)length};
    add(builder, head, 4);
    add(builder, name, 4);
    add(builder, data, length);
    add(builder, "crc!", 4);
}

static void begin(struct builder *builder, unsigned char color, unsigned char interlace) {
    unsigned char header[13] = {0, 0, 1, 0, 0, 0, 0, 16, 8, color, 0, 0, interlace};
    builder->length = 0;
    add(builder, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(builder, "IHDR", header, sizeof header);
}

static struct png_info read_whole(struct builder *builder) {
    struct png_info info;
    add_chunk(builder, "IDAT", "data", 4);
    ck_assert(png_info_read(&info, guard_put(slice_make(builder->bytes, builder->length))));
    ck_assert_uint_eq(info.pixels, 256 * 16);
    return info;
}

START_TEST(kinds_are_told_apart) {
    struct builder builder;
    begin(&builder, 0, 0);
    ck_assert(read_whole(&builder).is_gray);
    begin(&builder, 4, 0);
    struct png_info info = read_whole(&builder);
    ck_assert(info.is_gray && info.has_alpha);
    begin(&builder, 2, 1);
    info = read_whole(&builder);
    ck_assert(!info.is_gray && !info.has_alpha && info.is_interlaced);
    begin(&builder, 6, 0);
    info = read_whole(&builder);
    ck_assert(!info.is_gray && info.has_alpha && !info.is_animated);
    begin(&builder, 2, 0);
    add_chunk(&builder, "acTL", "12345678", 8);
    add_chunk(&builder, "tRNS", "123456", 6);
    info = read_whole(&builder);
    ck_assert(info.is_animated && info.has_alpha);
    begin(&builder, 3, 0);
    add_chunk(&builder, "PLTE", "aaabbb", 6);
    ck_assert(read_whole(&builder).is_gray);
    begin(&builder, 3, 0);
    add_chunk(&builder, "PLTE", "aaabbc", 6);
    ck_assert(!read_whole(&builder).is_gray);
}
END_TEST

/* PNG, third edition, 11.3.6.1: "The acTL chunk must appear before the first IDAT chunk within a
 * valid PNG stream", and "0 is not a valid value" of num_frames. Viewers show a still picture. */
START_TEST(a_still_picture_is_no_animation) {
    struct builder builder;
    begin(&builder, 2, 0);
    add_chunk(&builder, "IDAT", "data", 4);
    add_chunk(&builder, "acTL", "\0\0\0\2\0\0\0\0", 8);
    add_chunk(&builder, "fcTL", "12345678901234567890123456", 26);
    ck_assert(!read_whole(&builder).is_animated);
    begin(&builder, 2, 0);
    add_chunk(&builder, "acTL", "\0\0\0\0\0\0\0\0", 8);
    ck_assert(!read_whole(&builder).is_animated);
    begin(&builder, 2, 0);
    add_chunk(&builder, "acTL", "\0\0\0\1", 4);
    ck_assert(!read_whole(&builder).is_animated);
    begin(&builder, 2, 0);
    add_chunk(&builder, "acTL", "\0\0\0\1\0\0\0\0", 8);
    ck_assert(read_whole(&builder).is_animated);
}
END_TEST

START_TEST(cut_or_damaged_is_refused) {
    struct builder builder;
    struct png_info info;
    begin(&builder, 3, 0);
    add_chunk(&builder, "PLTE", "aaabbc", 6);
    size_t before_data = builder.length;
    add_chunk(&builder, "IDAT", "data", 4);
    for (size_t length = 0; length < before_data + 8; length++)
        ck_assert(!png_info_read(&info, guard_put(slice_make(builder.bytes, length))));
    for (size_t at = 0; at < builder.length; at++)
        for (unsigned value = 0; value < 256; value += 51) {
            struct slice input = guard_put(slice_make(builder.bytes, builder.length));
            ((char *)input.base)[at] = (char)value;
            png_info_read(&info, input);
        }
}
END_TEST

Suite *png_info_suite(void) {
    const TTest *const tests[] = {kinds_are_told_apart, a_still_picture_is_no_animation,
                                  cut_or_damaged_is_refused};
    return suite_of("png_info", tests, COUNT_OF(tests));
}
