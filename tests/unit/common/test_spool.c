#include "suites.h"

#include "base/spool.h"

enum { STREAM = 5 * SPOOL_BLOCK + 123 };

/* Byte i of a stream that does not repeat with any block or piece size. */
static char byte_at(size_t i) {
    return (char)(i * 31 + i / 251 + i / 4057);
}

static void append_stream(struct spool *spool, size_t from, size_t length) {
    static char stream[STREAM];
    for (size_t i = 0; i < length; i++)
        stream[i] = byte_at(from + i);
    ck_assert(spool_append(spool, stream, length));
}

static void check_stream(const char *bytes, size_t from, size_t length) {
    for (size_t i = 0; i < length; i++)
        EXPECT(bytes[i] == byte_at(from + i), "byte %zu is wrong", from + i);
}

START_TEST(first_in_first_out) {
    struct spool spool;
    char buffer[SPOOL_BLOCK];
    size_t in = 0, out = 0;
    spool_init(&spool);
    for (size_t piece = 1; in < STREAM - 1000; piece = piece * 5 % 997 + 1) {
        append_stream(&spool, in, piece);
        in += piece;
        size_t got = spool_read(&spool, buffer, piece * 7 % 991);
        check_stream(buffer, out, got);
        out += got;
        EXPECT(spool.length == in - out, "length is %zu, not %zu", spool.length, in - out);
    }
    while (out < in) {
        size_t got = spool_read(&spool, buffer, sizeof buffer);
        EXPECT(got > 0, "%zu bytes are lost", in - out);
        check_stream(buffer, out, got);
        out += got;
    }
    ck_assert_uint_eq(spool_read(&spool, buffer, sizeof buffer), 0);
    ck_assert_ptr_null(spool.first);
    spool_release(&spool);
}
END_TEST

START_TEST(block_borders) {
    for (size_t length = SPOOL_BLOCK - 1; length <= SPOOL_BLOCK + 1; length++) {
        struct spool spool;
        static char buffer[2 * SPOOL_BLOCK];
        spool_init(&spool);
        append_stream(&spool, 0, length);
        append_stream(&spool, length, 1);
        ck_assert_uint_eq(spool.length, length + 1);
        ck_assert_uint_eq(spool_read(&spool, buffer, length), length);
        check_stream(buffer, 0, length);
        ck_assert_uint_eq(spool_read(&spool, buffer, 2), 1);
        check_stream(buffer, length, 1);
        append_stream(&spool, 0, 3);
        ck_assert_uint_eq(spool_read(&spool, buffer, 9), 3);
        check_stream(buffer, 0, 3);
        spool_release(&spool);
    }
}
END_TEST

START_TEST(peek_leaves_the_bytes) {
    struct spool spool;
    struct spool_cursor cursor = {NULL, 0}, second = {NULL, 0};
    static char buffer[STREAM];
    spool_init(&spool);
    append_stream(&spool, 0, STREAM);
    size_t at = 0;
    for (size_t piece = 1; at < STREAM; piece = piece * 3 + 1) {
        size_t got = spool_peek(&spool, &cursor, buffer, piece < STREAM ? piece : STREAM);
        EXPECT(got > 0, "the cursor stands still at %zu", at);
        check_stream(buffer, at, got);
        at += got;
    }
    ck_assert_uint_eq(spool_peek(&spool, &cursor, buffer, 10), 0);
    ck_assert_uint_eq(spool.length, STREAM);
    ck_assert_uint_eq(spool_peek(&spool, &second, buffer, sizeof buffer), STREAM);
    check_stream(buffer, 0, STREAM);
    ck_assert_uint_eq(spool_read(&spool, buffer, sizeof buffer), STREAM);
    check_stream(buffer, 0, STREAM);
    spool_release(&spool);
}
END_TEST

START_TEST(a_cursor_at_the_end_sees_what_is_appended) {
    struct spool spool;
    struct spool_cursor cursor = {NULL, 0};
    static char buffer[STREAM];
    spool_init(&spool);
    ck_assert_uint_eq(spool_peek(&spool, &cursor, buffer, 10), 0);
    for (size_t at = 0; at + SPOOL_BLOCK / 2 <= STREAM; at += SPOOL_BLOCK / 2) {
        append_stream(&spool, at, SPOOL_BLOCK / 2);
        ck_assert_uint_eq(spool_peek(&spool, &cursor, buffer, sizeof buffer), SPOOL_BLOCK / 2);
        check_stream(buffer, at, SPOOL_BLOCK / 2);
    }
    spool_release(&spool);
}
END_TEST

START_TEST(a_cursor_begins_behind_what_was_read) {
    struct spool spool;
    struct spool_cursor cursor = {NULL, 0};
    static char buffer[STREAM];
    spool_init(&spool);
    append_stream(&spool, 0, STREAM);
    spool_read(&spool, buffer, SPOOL_BLOCK + 5);
    size_t rest = STREAM - SPOOL_BLOCK - 5;
    ck_assert_uint_eq(spool_peek(&spool, &cursor, buffer, sizeof buffer), rest);
    check_stream(buffer, SPOOL_BLOCK + 5, rest);
    spool_release(&spool);
}
END_TEST

START_TEST(spools_share_what_they_let_go) {
    struct spool first, second;
    struct spool_blocks spare = {0};
    spool_init(&first);
    spool_init(&second);
    spool_share(&first, &spare);
    spool_share(&second, &spare);
    append_stream(&first, 0, 2 * SPOOL_BLOCK);
    ck_assert_uint_eq(spare.count, 0);
    spool_release(&first);
    ck_assert_uint_eq(spare.count, 2);
    append_stream(&second, 0, SPOOL_BLOCK);
    ck_assert_uint_eq(spare.count, 1);
    spool_release(&second);
    for (unsigned i = 0; i < SPOOL_BLOCKS_SPARE; i++)
        append_stream(&first, 0, SPOOL_BLOCK);
    append_stream(&second, 0, SPOOL_BLOCK);
    spool_release(&second);
    spool_release(&first);
    ck_assert_uint_eq(spare.count, SPOOL_BLOCKS_SPARE);
    spool_blocks_release(&spare);
    ck_assert_uint_eq(spare.count, 0);
}
END_TEST

START_TEST(release_empties) {
    struct spool spool;
    char byte;
    spool_init(&spool);
    append_stream(&spool, 0, STREAM);
    spool_release(&spool);
    ck_assert_uint_eq(spool.length, 0);
    ck_assert_uint_eq(spool_read(&spool, &byte, 1), 0);
    append_stream(&spool, 0, 1);
    ck_assert_uint_eq(spool_read(&spool, &byte, 1), 1);
    spool_release(&spool);
}
END_TEST

Suite *spool_suite(void) {
    const TTest *const tests[] = {
        first_in_first_out,
        block_borders,
        peek_leaves_the_bytes,
        a_cursor_at_the_end_sees_what_is_appended,
        a_cursor_begins_behind_what_was_read,
        spools_share_what_they_let_go,
        release_empties,
    };
    return suite_of("spool", tests, COUNT_OF(tests));
}
