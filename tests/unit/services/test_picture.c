#include "suites.h"

#include "gray/picture.h"
#include "gray/scaler.h"
#include "gray/tiff.h"

START_TEST(options_come_from_arguments) {
    struct picture_options options = {.max_pixels = 5};
    picture_options_read(&options, SLICE("width=320&quality=60&strip&type=image/png"));
    ck_assert_uint_eq(options.width, 320);
    ck_assert_uint_eq(options.quality, 60);
    ck_assert(options.strip);
    ck_assert(!options.larger);
    ck_assert_uint_eq(options.max_pixels, 5);
    picture_options_read(&options, SLICE("width=0&quality=101&larger"));
    ck_assert_uint_eq(options.width, 320);
    ck_assert_uint_eq(options.quality, 60);
    ck_assert(options.larger);
}
END_TEST

/* Every new pixel is the mean of what it covers: a plane stays one, a slope too. */
START_TEST(scaling_takes_means) {
    static const unsigned sizes[][4] = {
        {10, 10, 5, 5}, {7, 9, 7, 9}, {10, 7, 3, 2}, {100, 3, 1, 1}, {3, 200, 2, 199}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct scaler_shape shape = {2, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], false};
        struct scaler *scaler = scaler_create(&shape);
        unsigned char row[200];
        unsigned made = 0;
        for (unsigned y = 0; y < shape.in_height; y++) {
            for (unsigned x = 0; x < shape.in_width; x++) {
                row[2 * x] = 77;
                row[2 * x + 1] = (unsigned char)(x * 2);
            }
            if (!scaler_push(scaler, row))
                continue;
            made++;
            for (unsigned x = 0; x < shape.out_width; x++) {
                const unsigned char *pixel = scaler_row(scaler) + 2 * x;
                double middle = (x + 0.5) * shape.in_width / shape.out_width - 0.5;
                EXPECT(pixel[0] == 77, "%zu: a plane became %u", i, pixel[0]);
                EXPECT(pixel[1] >= 2 * middle - 1.1 && pixel[1] <= 2 * middle + 1.1,
                       "%zu: %u at %u instead of %f", i, pixel[1], x, 2 * middle);
            }
        }
        ck_assert_uint_eq(made, shape.out_height);
        scaler_free(&scaler);
    }
}
END_TEST

/* What can hardly be seen hardly counts: no dark fringe round what is white on nothing. */
START_TEST(scaling_takes_means_of_what_can_be_seen) {
    static const unsigned char row[] = {255, 255, 0, 0, 100, 200, 0, 50, 7, 0, 9, 0};
    static const unsigned char expected[] = {255, 128, 80, 125, 0, 0};
    struct scaler_shape shape = {.channels = 2,
                                 .in_width = 6,
                                 .in_height = 2,
                                 .out_width = 3,
                                 .out_height = 1,
                                 .opacity = true};
    struct scaler *scaler = scaler_create(&shape);
    ck_assert(!scaler_push(scaler, row) && scaler_push(scaler, row));
    for (size_t i = 0; i < sizeof expected; i++)
        EXPECT(scaler_row(scaler)[i] == expected[i], "%u at %zu", scaler_row(scaler)[i], i);
    scaler_free(&scaler);
}
END_TEST

/* Any part of the result is what it is in the whole. */
START_TEST(windows_are_parts_of_the_whole) {
    enum { WIDTH = 23, HEIGHT = 17 };
    static unsigned char rows[HEIGHT][WIDTH], whole[5][7];
    struct scaler_shape shape = {1, WIDTH, HEIGHT, 7, 5, false};
    struct scaler *scaler = scaler_create(&shape);
    for (unsigned i = 0; i < sizeof rows; i++)
        rows[i / WIDTH][i % WIDTH] = (unsigned char)(i * i * 31 >> 3);
    for (unsigned y = 0, made = 0; y < HEIGHT; y++)
        if (scaler_push(scaler, rows[y]))
            memcpy(whole[made++], scaler_row(scaler), 7);
    for (unsigned left = 0; left < 7; left++)
        for (unsigned top = 0; top < 5; top++) {
            unsigned width = 7 - left, y = scaler_window(scaler, left, top, width);
            for (unsigned made = top; made < 5; y++) {
                ck_assert_uint_lt(y, HEIGHT);
                if (!scaler_push(scaler, rows[y]))
                    continue;
                EXPECT(memcmp(scaler_row(scaler), whole[made] + left, width) == 0,
                       "row %u of a window at %u, %u", made, left, top);
                made++;
            }
        }
    scaler_free(&scaler);
}
END_TEST

START_TEST(orientations) {
    char room[EXIF_MINIMAL];
    for (unsigned orientation = 1; orientation <= 8; orientation++)
        ck_assert_uint_eq(exif_orientation(guard_put(exif_minimal(orientation, room))),
                          orientation);
    static const char little[] = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0";
    for (size_t cut = 0; cut < sizeof little; cut++) {
        unsigned seen = exif_orientation(guard_put(slice_make(little, cut)));
        ck_assert_uint_eq(seen, cut >= 20 ? 6 : EXIF_UPRIGHT);
    }
    ck_assert_uint_eq(exif_orientation(exif_minimal(9, room)), EXIF_UPRIGHT);
    ck_assert_uint_eq(exif_orientation(SLICE("MM\0*\xff\xff\xff\xff")), EXIF_UPRIGHT);
}
END_TEST

START_TEST(a_larger_result_is_none) {
    struct picture_options options = {0};
    struct picture_output output = {.bytes = malloc(10), .length = 10};
    ck_assert_int_eq(picture_done(&options, 10, &output), PICTURE_DONE);
    ck_assert_int_eq(picture_done(&options, 9, &output), PICTURE_UNCHANGED);
    ck_assert_ptr_null(output.bytes);
    output = (struct picture_output){.bytes = malloc(10), .length = 10};
    options.larger = true;
    ck_assert_int_eq(picture_done(&options, 9, &output), PICTURE_DONE);
    ck_assert_int_eq(picture_bad(&output, "why"), PICTURE_BAD);
    ck_assert_str_eq(output.error, "why");
}
END_TEST

Suite *picture_suite(void) {
    const TTest *const tests[] = {options_come_from_arguments,
                                  scaling_takes_means,
                                  scaling_takes_means_of_what_can_be_seen,
                                  windows_are_parts_of_the_whole,
                                  orientations,
                                  a_larger_result_is_none};
    return suite_of("picture", tests, COUNT_OF(tests));
}
