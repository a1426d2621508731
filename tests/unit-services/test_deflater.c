#include "suites.h"

#include "gzip/deflater.h"

#include <zlib.h>

enum { SIZE = 3 << 20 };

static void fill(unsigned char *bytes, size_t length) {
    unsigned state = 7;
    for (size_t i = 0; i < length; i++) {
        state = state * 1103515245u + 12345u;
        bytes[i] = i % 3 == 0 ? (unsigned char)(state >> 16) : (unsigned char)('a' + i % 17);
    }
}

/* Feeds pieces of `in_step`, takes pieces of `out_step`; returns the compressed length. */
static size_t compress_by(const unsigned char *bytes, size_t length, char *out, size_t capacity,
                          size_t in_step, size_t out_step) {
    struct deflater *deflater = deflater_create(6);
    size_t in = 0, got = 0;
    bool finished = false;
    while (!deflater_done(deflater)) {
        size_t step = length - in < in_step ? length - in : in_step;
        size_t took = 0;
        if (step > 0)
            took = deflater_push(deflater, slice_make((const char *)bytes + in, step));
        in += took;
        if (in == length && !finished) {
            deflater_finish(deflater);
            finished = true;
        }
        size_t room = capacity - got < out_step ? capacity - got : out_step;
        size_t pulled = deflater_pull(deflater, out + got, room);
        EXPECT(took + pulled > 0 || deflater_done(deflater) || step == 0, "stuck at %zu", in);
        got += pulled;
    }
    ck_assert(!deflater_failed(deflater));
    deflater_free(&deflater);
    ck_assert_ptr_null(deflater);
    return got;
}

static void expect_original(const char *packed, size_t packed_length, const unsigned char *bytes,
                            size_t length) {
    unsigned char *back = malloc(length + 1);
    z_stream stream = {.next_in = (unsigned char *)packed,
                       .avail_in = (unsigned)packed_length,
                       .next_out = back,
                       .avail_out = (unsigned)length + 1};
    ck_assert_int_eq(inflateInit2(&stream, 15 + 16), Z_OK);
    ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_eq(stream.total_out, length);
    ck_assert_int_eq(stream.avail_in, 0);
    ck_assert_int_eq(memcmp(back, bytes, length), 0);
    inflateEnd(&stream);
    free(back);
}

START_TEST(any_steps_give_the_original) {
    static const size_t steps[][2] = {{1 << 22, 4064}, {4064, 4064}, {4096, 7}, {100000, 65536}};
    unsigned char *bytes = malloc(SIZE);
    char *packed = malloc(2 * SIZE);
    fill(bytes, SIZE);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        size_t length = compress_by(bytes, SIZE, packed, 2 * SIZE, steps[i][0], steps[i][1]);
        expect_original(packed, length, bytes, SIZE);
    }
    size_t small = compress_by(bytes, 5000, packed, 2 * SIZE, 1, 1);
    expect_original(packed, small, bytes, 5000);
    free(bytes);
    free(packed);
}
END_TEST

START_TEST(an_empty_body_is_a_stream) {
    char packed[100];
    size_t length = compress_by((const unsigned char *)"", 0, packed, sizeof packed, 1, 1);
    expect_original(packed, length, (const unsigned char *)"", 0);
}
END_TEST

/* Nobody pulls: push has to stop taking. */
START_TEST(memory_is_bounded) {
    unsigned char *bytes = malloc(SIZE);
    fill(bytes, SIZE);
    struct deflater *deflater = deflater_create(1);
    size_t took = 0, last;
    do {
        last = deflater_push(deflater, slice_make((char *)bytes + took, SIZE - took));
        took += last;
    } while (last > 0 && took < SIZE);
    ck_assert_uint_lt(took, SIZE / 2);
    deflater_free(&deflater);
    free(bytes);
}
END_TEST

Suite *deflater_suite(void) {
    const TTest *const tests[] = {any_steps_give_the_original, an_empty_body_is_a_stream,
                                  memory_is_bounded};
    return suite_of("deflater", tests, COUNT_OF(tests));
}
