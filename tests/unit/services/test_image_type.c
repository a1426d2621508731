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

START_TEST(less_is_believed_where_no_type_is_told) {
    ck_assert_int_eq(image_type_sniffed(guard_put(SLICE("\xff\xd8\xff\xe0"))), IMAGE_JPEG);
    ck_assert_int_eq(image_type_sniffed(guard_put(SLICE("RIFF....WEBP"))), IMAGE_WEBP);
    ck_assert_int_eq(image_type_sniffed(guard_put(SLICE("II*\0...."))), IMAGE_UNKNOWN);
    ck_assert_int_eq(image_type_sniffed(guard_put(SLICE("P6 1 1 255 ..."))), IMAGE_UNKNOWN);
    ck_assert_int_eq(image_type_sniffed(guard_put(SLICE("BM"))), IMAGE_TOO_SHORT);
    ck_assert_int_eq(image_type_sniffed(guard_put(SLICE("BMW has cars for sale"))), IMAGE_UNKNOWN);
    ck_assert_int_eq(image_type_sniffed(guard_put(SLICE("BM....\0\0\0\0....\x28\0\0\0"))),
                     IMAGE_BMP);
    ck_assert_int_eq(image_type_sniffed(guard_put(SLICE("BM....\0\0\0\0....\x29\0\0\0"))),
                     IMAGE_UNKNOWN);
    for (int type = IMAGE_JPEG; type <= IMAGE_WEBP; type++)
        ck_assert_int_eq(image_type_of_media(image_type_media((enum image_type)type)), type);
}
END_TEST

Suite *image_type_suite(void) {
    const TTest *const tests[] = {bytes_tell, types_tell, less_is_believed_where_no_type_is_told};
    return suite_of("image_type", tests, COUNT_OF(tests));
}
