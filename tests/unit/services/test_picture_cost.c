#include "suites.h"

#include "gray/picture_cost.h"

static const struct picture_options plain = {0}, narrow = {.width = 100};

#define MEGA UINT64_C(1000000)

/* Headers of pictures of 5000 x 4000, as their kinds write them, with nothing behind. */
static const struct {
    struct slice bytes;
    uint64_t pixels, work, work_scaled; /* in millions */
} headers[] = {
    {SLICE("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x13\x88\0\0\x0f\xa0\x08\x02\0\0\0...."), 20, 20, 20},
    {SLICE("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x13\x88\0\0\x0f\xa0\x08\x03\0\0\0...."), 20, 0, 20},
    {SLICE("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x13\x88\0\0\x0f\xa0\x08\x06\0\0\0....\0\0\0\x08"
           "acTL\0\0\0\x03\0\0\0\0....\0\0\0\0IDAT...."),
     20, 60, 60},
    {SLICE("\xff\xd8\xff\xe0\0\4..\xff\xff\xc0\0\x11\x08\x0f\xa0\x13\x88\3........."
           "\xff\xda\0\0"),
     20, 5, 20},
    {SLICE("\xff\xd8\xff\xc2\0\x11\x08\x0f\xa0\x13\x88\3.........\xff\xda\0\2\xff\xda\0\2"
           "\xff\xda\0\2\xff\xda\0\2"),
     20, 10, 25},
    {SLICE("GIF89a\x88\x13\xa0\x0f\0\0\0!\xf9\4....\0,\0\0\0\0\x88\x13\xa0\x0f\0\2\2..\0;"), 0, 0,
     20},
    {SLICE("RIFF....WEBPVP8 ....\x30..\x9d\1\x2a\x88\x13\xa0\x0f"), 20, 120, 120},
    {SLICE("RIFF....WEBPVP8L....\x2f\x87\xd3\xe7\x03"), 20, 400, 400},
    {SLICE("RIFF....WEBPVP8X\x0a\0\0\0\2\0\0\0\x87\x13\0\x9f\x0f\0ANMF\4\0\0\0....ANMF\0\0\0\0"),
     20, 240, 240},
    {SLICE("BM....\0\0\0\0....\x28\0\0\0\x88\x13\0\0\xa0\x0f\0\0"), 20, 30, 30},
    {SLICE("BM....\0\0\0\0....\x28\0\0\0\x88\x13\0\0\x60\xf0\xff\xff"), 20, 30, 30},
    {SLICE("BM....\0\0\0\0....\x0c\0\0\0\x88\x13\xa0\x0f"), 20, 30, 30},
    {SLICE("II*\0\x08\0\0\0\2\0\0\1\3\0\1\0\0\0\x88\x13\0\0\1\1\4\0\1\0\0\0\xa0\x0f\0\0"), 20, 30,
     30},
    {SLICE("MM\0*\0\0\0\x08\0\2\1\0\0\3\0\0\0\1\x13\x88\0\0\1\1\0\4\0\0\0\1\0\0\x0f\xa0"), 20, 30,
     30},
    {SLICE("<html>"), 0, 0, 0},
};

START_TEST(headers_tell) {
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        struct slice bytes = guard_put(headers[i].bytes);
        struct picture_cost cost = picture_cost_of(bytes, &plain);
        struct picture_cost scaled = picture_cost_of(bytes, &narrow);
        EXPECT(cost.pixels == headers[i].pixels * MEGA, "header %zu: %llu pixels", i,
               (unsigned long long)cost.pixels);
        EXPECT(cost.work / MEGA == headers[i].work, "header %zu: %llu of work", i,
               (unsigned long long)cost.work);
        EXPECT(scaled.work / MEGA == headers[i].work_scaled, "header %zu: %llu of work, scaled", i,
               (unsigned long long)scaled.work);
        EXPECT(cost.work >= bytes.length, "header %zu costs less than its bytes", i);
    }
}
END_TEST

/* Wherever it is cut and whatever stands there, nothing is read beyond the end. */
START_TEST(nothing_is_read_beyond_the_end) {
    srand(5);
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        for (size_t cut = 0; cut <= headers[i].bytes.length; cut++)
            for (int turn = 0; turn < 50; turn++) {
                char bytes[128];
                memcpy(bytes, headers[i].bytes.base, cut);
                for (int change = 0; change < turn / 10 && cut > 4; change++)
                    bytes[4 + (size_t)rand() % (cut - 4)] = (char)rand();
                struct slice input = guard_put(slice_make(bytes, cut));
                EXPECT(picture_cost_of(input, &narrow).work >= cut, "%zu cut at %zu", i, cut);
            }
}
END_TEST

/* Megabytes of the same few bytes behind a beginning. */
static struct picture_cost cost_of_many(struct slice begin, struct slice unit) {
    enum { SIZE = 8 << 20 };
    char *bytes = malloc(SIZE);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, begin.base, begin.length);
    for (size_t at = begin.length; at + unit.length <= SIZE; at += unit.length)
        memcpy(bytes + at, unit.base, unit.length);
    struct picture_cost cost = picture_cost_of(slice_make(bytes, SIZE), &narrow);
    free(bytes);
    return cost;
}

/* Whoever asks must not wait long: a file of nothing but headers is not read to its end. */
START_TEST(headers_without_end_are_too_costly) {
    static const struct {
        struct slice begin, unit;
    } files[] = {
        {SLICE("\xff\xd8\xff"), SLICE("\xff")},
        {SLICE("\xff\xd8\xff\xda\0\2"), SLICE("\xff")},
        {SLICE("\x89PNG\r\n\x1a\n"), SLICE("\0\0\0\0none....")},
        {SLICE("GIF89a\x88\x13\xa0\x0f\0\0\0!\xf9"), SLICE("\1.")},
        {SLICE("GIF89a\x88\x13\xa0\x0f\0\0\0"), SLICE("!\xf9\0")},
        {SLICE("RIFF....WEBPVP8X\x0a\0\0\0\2\0\0\0\x87\x13\0\x9f\x0f\0"), SLICE("none\0\0\0\0")},
    };
    for (size_t i = 0; i < COUNT_OF(files); i++)
        EXPECT(cost_of_many(files[i].begin, files[i].unit).pixels == UINT64_MAX, "file %zu", i);
    /* What real pictures have: blocks of 255 bytes, and 0xff in one byte of a hundred. */
    char block[256] = {(char)255}, coded[100] = {(char)255};
    EXPECT(cost_of_many(SLICE("GIF89a\x88\x13\xa0\x0f\0\0\0!\xf9"), slice_make(block, sizeof block))
                   .pixels != UINT64_MAX,
           "a long GIF");
    EXPECT(cost_of_many(SLICE("\xff\xd8\xff\xda\0\2"), slice_make(coded, sizeof coded)).pixels !=
               UINT64_MAX,
           "a long JPEG");
}
END_TEST

Suite *picture_cost_suite(void) {
    const TTest *const tests[] = {headers_tell, nothing_is_read_beyond_the_end,
                                  headers_without_end_are_too_costly};
    return suite_of("picture_cost", tests, COUNT_OF(tests));
}
