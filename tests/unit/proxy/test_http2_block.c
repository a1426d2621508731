/* Heads as they come in HEADERS and CONTINUATION. */
#include "http2_lab.h"

#include "http2/hpack_encode.h"

#include <string.h>

/* The smallest max_head is less than the table of HPACK. */
START_TEST(a_small_max_head_is_enough) {
    char block[300], *at = hpack_put_method(block, SLICE("GET"));
    struct client_lab *lab = lab_open("client { max_head = 1KB }\n");
    lab_put_get(1);
    lab_send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\nsent\n");
    /* a block of less than 1 KB, of a list of more: ":method: GET" again and again */
    memset(at, (unsigned char)*block, 200);
    lab_put_frame(HTTP2_HEADERS, HTTP2_END_HEADERS | HTTP2_END_STREAM, 3,
                  slice_make(block, (size_t)(at - block) + 200));
    lab_put_get(5);
    lab_send_all(lab);
    ck_assert(lab_find_frame(lab, HTTP2_HEADERS, 3));
    ck_assert(lab_find_frame(lab, HTTP2_HEADERS, 5));
    client_lab_close(lab);
}
END_TEST

/* Of a head that does not end, no more is kept than a head may need that is answered with 431, and
 * while memory is short no more than one that is good. */
START_TEST(a_head_that_does_not_end_holds_little) {
    static const char zeros[1000], many[16000];
    for (unsigned full = 0; full < 2; full++) {
        struct client_lab *lab = lab_open("client { max_head = 8KB }\n");
        lab->net.pressure = full ? NET_FULL : NET_EASY;
        lab_put_frame(HTTP2_HEADERS, 0, 1, slice_make(zeros, sizeof zeros));
        for (unsigned i = 1; i < 4; i++)
            lab_put_frame(HTTP2_CONTINUATION, 0, 1, slice_make(zeros, sizeof zeros));
        lab_send_all(lab);
        ck_assert_uint_eq(lab->clients.connection_count, 1);
        ck_assert(!lab_find_frame(lab, HTTP2_GOAWAY, 0));
        lab_put_frame(HTTP2_CONTINUATION, 0, 1, slice_make(many, full ? 4000 : sizeof many));
        lab_send_all(lab);
        ck_assert(!lab_find_frame(lab, HTTP2_GOAWAY, 0));
        lab_put_frame(HTTP2_CONTINUATION, 0, 1, slice_make(many, full ? 1000 : sizeof many));
        lab_send_all(lab);
        ck_assert(lab_find_frame(lab, HTTP2_GOAWAY, 0));
        ck_assert_uint_eq(http2_get32(lab_payload.base + 4), HTTP2_ENHANCE_YOUR_CALM);
        client_lab_close(lab);
    }
}
END_TEST

Suite *http2_block_suite(void) {
    Suite *suite = suite_create("http2_block");
    TCase *tcase = tcase_create("block");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_small_max_head_is_enough);
    tcase_add_test(tcase, a_head_that_does_not_end_holds_little);
    suite_add_tcase(suite, tcase);
    return suite;
}
