/* The bytes below a TLS stream: replayed, gathered, kept. */
#include "suites.h"

#include "tls/bio.h"

#include <openssl/bio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct tls_bio bio;
static BIO *below;
static int fd, other;

static void open_bio(const char *replay) {
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    fd = pair[0];
    other = pair[1];
    below = tls_bio_open(&bio, fd, slice_from(replay));
    ck_assert_ptr_nonnull(below);
}

static void close_bio(void) {
    BIO_free(below);
    tls_bio_release(&bio);
    close(fd);
    close(other);
}

static void expect_read(const char *text) {
    char bytes[64];
    size_t got;
    ck_assert_int_eq(BIO_read_ex(below, bytes, sizeof bytes, &got), 1);
    ck_assert_uint_eq(got, strlen(text));
    ck_assert_mem_eq(bytes, text, got);
}

static void expect_nothing(void) {
    char byte;
    size_t got;
    ck_assert_int_eq(BIO_read_ex(below, &byte, 1, &got), 0);
}

static void put(const char *text) {
    size_t length;
    ck_assert_int_eq(BIO_write_ex(below, text, strlen(text), &length), 1);
    ck_assert_uint_eq(length, strlen(text));
}

static ssize_t arrived(char *bytes, size_t capacity) {
    return recv(other, bytes, capacity, 0);
}

START_TEST(replayed_bytes_come_first) {
    open_bio("abc");
    ck_assert_int_eq(send(other, "defg", 4, 0), 4);
    expect_read("abc");
    expect_read("defg");
    ck_assert(bio.drained);
    expect_nothing();
    ck_assert(BIO_should_retry(below));
    ck_assert_int_eq(send(other, "h", 1, 0), 1);
    expect_nothing(); /* the loop has not reported it yet */
    tls_bio_note_event(&bio, false);
    expect_read("h");
    close_bio();
}
END_TEST

START_TEST(replayed_bytes_come_in_parts) {
    char byte;
    size_t got;
    open_bio("abc");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(BIO_read_ex(below, &byte, 1, &got), 1);
        ck_assert_int_eq(byte, "abc"[i]);
    }
    ck_assert_ptr_null(bio.replay);
    close_bio();
}
END_TEST

START_TEST(an_end_is_no_reason_to_wait) {
    open_bio("");
    shutdown(other, SHUT_WR);
    expect_nothing();
    ck_assert(!BIO_should_retry(below));
    ck_assert_int_eq(BIO_eof(below), 1);
    close_bio();
}
END_TEST

START_TEST(gathered_writes_leave_together) {
    char bytes[16];
    open_bio("");
    bio.gather = true;
    put("one ");
    put("two ");
    ck_assert_int_eq(arrived(bytes, sizeof bytes), -1);
    bio.gather = false;
    put("three");
    ck_assert_int_eq(arrived(bytes, sizeof bytes), 13);
    ck_assert_mem_eq(bytes, "one two three", 13);
    ck_assert_ptr_null(bio.kept);
    close_bio();
}
END_TEST

START_TEST(a_flush_sends_what_is_gathered) {
    char bytes[16];
    open_bio("");
    bio.gather = true;
    put("one");
    ck_assert_int_eq(BIO_flush(below), 1);
    ck_assert_int_eq(arrived(bytes, sizeof bytes), 3);
    ck_assert_int_eq(tls_bio_flush(&bio), IO_DONE);
    close_bio();
}
END_TEST

static char pattern(size_t at) {
    return (char)(at * 7 + at / 251);
}

/* Reads what has arrived, and compares it with the pattern from *at. */
static void drain(size_t *at) {
    char bytes[8192];
    ssize_t length;
    while ((length = arrived(bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < length; i++)
            ck_assert_int_eq(bytes[i], pattern((*at)++));
}

/* The socket is full early: writes are kept up to a bound, and then have to wait. */
START_TEST(what_the_socket_does_not_take_is_kept_in_order) {
    static char piece[10000];
    int small = 4096;
    size_t put_sum = 0, got_sum = 0, put_now;
    open_bio("");
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    for (bool full = false; !full;) {
        for (size_t i = 0; i < sizeof piece; i++)
            piece[i] = pattern(put_sum + i);
        bio.gather = put_sum % 20000 == 0;
        full = BIO_write_ex(below, piece, sizeof piece, &put_now) != 1;
        put_sum += put_now;
    }
    ck_assert(BIO_should_retry(below) && BIO_should_write(below));
    ck_assert_uint_gt(tls_bio_kept(&bio), TLS_BIO_KEPT_MOST);
    ck_assert_uint_le(tls_bio_kept(&bio), TLS_BIO_KEPT_MOST + sizeof piece);
    ck_assert_uint_eq(bio.sent + tls_bio_kept(&bio), put_sum);
    do
        drain(&got_sum);
    while (tls_bio_flush(&bio) == IO_WAIT);
    drain(&got_sum);
    ck_assert_uint_eq(got_sum, put_sum);
    ck_assert_ptr_null(bio.kept);
    close_bio();
}
END_TEST

START_TEST(a_closed_socket_fails) {
    size_t length;
    open_bio("");
    shutdown(fd, SHUT_WR);
    ck_assert_int_eq(BIO_write_ex(below, "x", 1, &length), 0);
    ck_assert(!BIO_should_retry(below));
    close_bio();
}
END_TEST

Suite *tls_bio_suite(void) {
    const TTest *const tests[] = {
        replayed_bytes_come_first,      replayed_bytes_come_in_parts,
        an_end_is_no_reason_to_wait,    gathered_writes_leave_together,
        a_flush_sends_what_is_gathered, what_the_socket_does_not_take_is_kept_in_order,
        a_closed_socket_fails,
    };
    return suite_of("tls_bio", tests, COUNT_OF(tests));
}
