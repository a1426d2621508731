#include "suites.h"

#include "gray/image_type.h"

START_TEST(bytes_tell) {
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("\xff\xd8\xff\xe0"))), IMAGE_JPEG);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("GIF87a"))), IMAGE_GIF);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("GIF89a.."))), IMAGE_GIF);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("\x89PNG\r\n\x1a\n"))), IMAGE_PNG);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("BM6"))), IMAGE_BMP);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("P6\n"))), IMAGE_PPM);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("<html>"))), IMAGE_UNKNOWN);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("GIF88a"))), IMAGE_UNKNOWN);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("GIF"))), IMAGE_TOO_SHORT);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE("\xff"))), IMAGE_TOO_SHORT);
    ck_assert_int_eq(image_type_of_bytes(guard_put(SLICE(""))), IMAGE_TOO_SHORT);
}
END_TEST

START_TEST(types_tell) {
    ck_assert_int_eq(image_type_of_media(SLICE("image/JPEG")), IMAGE_JPEG);
    ck_assert_int_eq(image_type_of_media(SLICE("image/gif")), IMAGE_GIF);
    ck_assert_int_eq(image_type_of_media(SLICE("image/x-png")), IMAGE_PNG);
    ck_assert_int_eq(image_type_of_media(SLICE("image/svg+xml")), IMAGE_UNKNOWN);
    ck_assert_int_eq(image_type_of_media(SLICE("")), IMAGE_UNKNOWN);
}
END_TEST

Suite *image_type_suite(void) {
    const TTest *const tests[] = {bytes_tell, types_tell};
    return suite_of("image_type", tests, COUNT_OF(tests));
}
