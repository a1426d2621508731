/* A TLS stream against a bare SSL: split bytes, full sockets, ends, and peers that misbehave. */
#include "suites.h"

#include "tls_lab.h"

#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LONG = 200000 };
static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
static struct tls_lab lab;
static char sent[LONG], received[LONG];

static void open_lab(enum tls_lab_side side, int version) {
    tls_lab_open(&lab, side, version);
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)(i * 7 + i / 251);
}

static void open_established(enum tls_lab_side side, int version) {
    open_lab(side, version);
    tls_lab_handshake(&lab, 4096);
}

static void peer_writes(const char *bytes, size_t length) {
    size_t put;
    for (size_t at = 0; at < length; at += put)
        ck_assert_int_eq(SSL_write_ex(lab.peer, bytes + at, length - at, &put), 1);
}

/* What the peer finds; *length counts. */
static int peer_reads(size_t *length) {
    size_t got;
    while (SSL_read_ex(lab.peer, received + *length, sizeof received - *length, &got) == 1)
        *length += got;
    return SSL_get_error(lab.peer, 0);
}

START_TEST(handshakes_work_byte_by_byte) {
    for (int side = TLS_LAB_SERVER; side <= TLS_LAB_CLIENT; side++)
        for (size_t i = 0; i < COUNT_OF(versions); i++) {
            open_lab(side, versions[i]);
            ck_assert_ptr_null(tls_stream_facts(lab.stream));
            tls_lab_handshake(&lab, 1);
            ck_assert_str_eq(tls_stream_facts(lab.stream)->version, SSL_get_version(lab.peer));
            tls_lab_close(&lab);
        }
}
END_TEST

START_TEST(data_comes_byte_by_byte) {
    char bytes[100];
    size_t got, sum = 0;
    open_established(TLS_LAB_SERVER, TLS1_3_VERSION);
    peer_writes(sent, 50);
    peer_writes(sent + 50, 50);
    while (sum < 100) {
        enum io_status status = tls_stream_read(lab.stream, bytes + sum, sizeof bytes - sum, &got);
        sum += got;
        ck_assert_int_eq(status, got > 0 ? IO_DONE : IO_WAIT);
        tls_lab_carry(&lab, 1);
    }
    ck_assert_mem_eq(bytes, sent, sum);
    tls_lab_close(&lab);
}
END_TEST

/* Records that stand in the memory of OpenSSL are not reported by the socket any more. */
START_TEST(several_records_come_with_one_read_of_the_socket) {
    char byte;
    size_t got;
    open_established(TLS_LAB_SERVER, TLS1_3_VERSION);
    for (int i = 0; i < 5; i++)
        peer_writes(sent, 1);
    tls_lab_carry(&lab, 4096);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(tls_stream_read(lab.stream, &byte, 1, &got), IO_DONE);
        ck_assert(tls_stream_has_more(lab.stream) == (i < 4));
    }
    tls_lab_close(&lab);
}
END_TEST

/* Writes all of `sent`, in pieces of odd lengths, while the socket takes little at a time. */
static void write_all(void) {
    size_t at = 0, put, read = 0;
    while (at < sizeof sent) {
        struct iovec pieces[5];
        int count = 0;
        for (size_t from = at, step = 1; count < 5 && from < sizeof sent; step *= 37) {
            size_t length = step < sizeof sent - from ? step : sizeof sent - from;
            pieces[count++] = (struct iovec){sent + from, length};
            from += length;
        }
        enum io_status status = tls_stream_write(lab.stream, pieces, count, false, &put);
        ck_assert_int_eq(status, put > 0 ? IO_DONE : IO_WAIT);
        at += put;
        if (status == IO_WAIT) {
            tls_lab_collect(&lab);
            peer_reads(&read);
            ck_assert_uint_lt(read,
                              sizeof sent); /* the last byte is not sent before it is reported */
        }
    }
    tls_lab_collect(&lab);
    peer_reads(&read);
    ck_assert_uint_eq(read, sizeof sent);
    ck_assert_mem_eq(received, sent, sizeof sent);
}

START_TEST(writes_survive_a_full_socket) {
    int small = 4096;
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        open_established(TLS_LAB_SERVER, versions[i]);
        setsockopt(lab.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        write_all();
        tls_lab_close(&lab);
    }
}
END_TEST

START_TEST(one_write_takes_several_records) {
    struct iovec piece = {sent, sizeof sent};
    size_t put;
    open_established(TLS_LAB_SERVER, TLS1_3_VERSION);
    ck_assert_int_eq(tls_stream_write(lab.stream, &piece, 1, false, &put), IO_DONE);
    ck_assert_uint_eq(put, TLS_WRITE_MOST);
    tls_lab_close(&lab);
}
END_TEST

START_TEST(a_head_leaves_with_what_follows) {
    struct iovec head = {sent, 100}, body = {sent + 100, 1000};
    size_t put, read = 0;
    open_established(TLS_LAB_SERVER, TLS1_3_VERSION);
    ck_assert_int_eq(tls_stream_write(lab.stream, &head, 1, true, &put), IO_DONE);
    ck_assert_uint_eq(put, 100);
    ck_assert_uint_eq(tls_lab_collect(&lab), 0);
    ck_assert_int_eq(tls_stream_write(lab.stream, &body, 1, false, &put), IO_DONE);
    ck_assert_uint_eq(put, 1000);
    tls_lab_collect(&lab);
    peer_reads(&read);
    ck_assert_uint_eq(read, 1100);
    ck_assert_mem_eq(received, sent, 1100);
    tls_lab_close(&lab);
}
END_TEST

/* Reads the stream until it waits or ends, or fails. */
static enum io_status read_on(size_t *sum) {
    enum io_status status;
    size_t got;
    do {
        status = tls_stream_read(lab.stream, received + *sum, sizeof received - *sum, &got);
        *sum += got;
    } while (status == IO_DONE);
    return status;
}

static enum io_status read_cut_at(size_t cut, int version, enum tls_lab_side side, size_t *whole) {
    size_t sum = 0;
    open_established(side, version);
    peer_writes(sent, 40);
    peer_writes(sent + 40, 20);
    SSL_shutdown(lab.peer);
    *whole = tls_lab_waiting(&lab);
    size_t carried = tls_lab_carry(&lab, cut);
    close(lab.other);
    lab.other = -1;
    tls_lab_note_event(&lab, true);
    enum io_status status = read_on(&sum);
    ck_assert_uint_le(sum, carried);
    ck_assert_mem_eq(received, sent, sum);
    if (status == IO_END)
        ck_assert_uint_eq(sum, 60);
    else
        ck_assert_str_ne(tls_stream_error(lab.stream), "");
    tls_lab_close(&lab);
    return status;
}

START_TEST(a_cut_is_no_end) {
    for (int side = TLS_LAB_SERVER; side <= TLS_LAB_CLIENT; side++)
        for (size_t i = 0; i < COUNT_OF(versions); i++) {
            size_t whole = 1;
            for (size_t cut = 0; cut < whole; cut++)
                ck_assert_int_eq(read_cut_at(cut, versions[i], side, &whole), IO_FAILED);
            ck_assert_int_eq(read_cut_at(whole, versions[i], side, &whole), IO_END);
        }
}
END_TEST

START_TEST(a_cut_handshake_fails) {
    enum io_status status;
    open_lab(TLS_LAB_SERVER, TLS1_3_VERSION);
    SSL_do_handshake(lab.peer);
    tls_lab_carry(&lab, 100);
    while ((status = tls_stream_handshake(lab.stream)) == IO_WAIT) {
        shutdown(lab.other, SHUT_WR);
        tls_lab_note_event(&lab, true);
    }
    ck_assert_int_eq(status, IO_FAILED);
    ck_assert_str_eq(tls_stream_error(lab.stream), "it closed the connection in the TLS handshake");
    tls_lab_close(&lab);
}
END_TEST

START_TEST(our_end_is_told) {
    size_t read = 0;
    struct iovec piece = {sent, 100};
    size_t put;
    for (int abandoned = 0; abandoned < 2; abandoned++) {
        open_established(TLS_LAB_SERVER, TLS1_3_VERSION);
        tls_stream_write(lab.stream, &piece, 1, false, &put);
        if (abandoned)
            tls_stream_abandon(lab.stream);
        else
            ck_assert_int_eq(tls_stream_finish(lab.stream), IO_DONE);
        tls_stream_free(&lab.stream);
        tls_lab_collect(&lab);
        ck_assert_int_eq(peer_reads(&read),
                         abandoned ? SSL_ERROR_WANT_READ : SSL_ERROR_ZERO_RETURN);
        tls_lab_close(&lab);
    }
}
END_TEST

/* After our close_notify the other side may go on sending. */
START_TEST(reads_go_on_after_our_end) {
    size_t sum = 0;
    open_established(TLS_LAB_SERVER, TLS1_3_VERSION);
    ck_assert_int_eq(tls_stream_finish(lab.stream), IO_DONE);
    peer_writes(sent, 100);
    tls_lab_carry(&lab, 4096);
    ck_assert_int_eq(read_on(&sum), IO_WAIT);
    ck_assert_uint_eq(sum, 100);
    tls_lab_close(&lab);
}
END_TEST

START_TEST(few_key_updates_are_answered) {
    size_t sum = 0, read = 0, put;
    struct iovec piece = {sent, 100};
    open_established(TLS_LAB_SERVER, TLS1_3_VERSION);
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(SSL_key_update(lab.peer, SSL_KEY_UPDATE_REQUESTED), 1);
        peer_writes(sent, 1);
        tls_lab_carry(&lab, 4096);
        ck_assert_int_eq(read_on(&sum), IO_WAIT);
        tls_lab_collect(&lab);
        peer_reads(&read);
    }
    ck_assert_uint_eq(sum, 200);
    ck_assert_int_eq(tls_stream_write(lab.stream, &piece, 1, false, &put), IO_DONE);
    tls_lab_collect(&lab);
    peer_reads(&read);
    ck_assert_uint_eq(read, 100);
    tls_lab_close(&lab);
}
END_TEST

START_TEST(endless_key_updates_fail) {
    for (int type = SSL_KEY_UPDATE_NOT_REQUESTED; type <= SSL_KEY_UPDATE_REQUESTED; type++) {
        size_t sum = 0;
        enum io_status status = IO_WAIT;
        open_established(TLS_LAB_SERVER, TLS1_3_VERSION);
        for (int i = 0; i < TLS_IDLE_MESSAGES; i++) {
            SSL_key_update(lab.peer, type == SSL_KEY_UPDATE_REQUESTED ? type : 0);
            SSL_do_handshake(lab.peer);
        }
        tls_lab_carry(&lab, 1 << 20);
        ck_assert_int_eq(read_on(&sum), IO_WAIT);
        for (int i = 0; i < 2; i++) {
            SSL_key_update(lab.peer, SSL_KEY_UPDATE_NOT_REQUESTED);
            SSL_do_handshake(lab.peer);
        }
        tls_lab_carry(&lab, 1 << 20);
        status = read_on(&sum);
        ck_assert_int_eq(status, IO_FAILED);
        ck_assert_str_eq(tls_stream_error(lab.stream),
                         "it sends messages of TLS without end, and no data");
        tls_lab_close(&lab);
    }
}
END_TEST

START_TEST(renegotiation_is_refused) {
    size_t sum = 0, read = 0;
    open_established(TLS_LAB_SERVER, TLS1_2_VERSION);
    ck_assert_int_eq(SSL_renegotiate(lab.peer), 1);
    SSL_do_handshake(lab.peer);
    tls_lab_carry(&lab, 4096);
    ck_assert_int_ne(read_on(&sum), IO_DONE);
    tls_lab_collect(&lab);
    peer_reads(&read);
    ck_assert_int_eq(SSL_num_renegotiations(lab.peer), 1);
    ck_assert_int_eq(SSL_is_init_finished(lab.peer), 0);
    tls_lab_close(&lab);
}
END_TEST

START_TEST(garbage_fails_with_words) {
    size_t got;
    char byte;
    open_established(TLS_LAB_SERVER, TLS1_3_VERSION);
    ck_assert_int_eq(send(lab.other, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
    tls_lab_note_event(&lab, false);
    ck_assert_int_eq(tls_stream_read(lab.stream, &byte, 1, &got), IO_FAILED);
    ck_assert_str_ne(tls_stream_error(lab.stream), "");
    tls_lab_close(&lab);
}
END_TEST

/* Two streams to one server fail one after the other: each keeps its own sentence. */
START_TEST(each_stream_keeps_its_error) {
    struct tls_stream *other, *none = NULL;
    char first[TLS_ERROR_MAX];
    int pair[2];
    open_lab(TLS_LAB_CLIENT, TLS1_3_VERSION);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    other = tls_stream_connect(lab.client, pair[0], &none);
    ck_assert_int_eq(tls_stream_handshake(lab.stream), IO_WAIT);
    ck_assert_int_eq(tls_stream_handshake(other), IO_WAIT);
    ck_assert_int_eq(send(lab.other, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 0), 28);
    tls_lab_note_event(&lab, false);
    ck_assert_int_eq(tls_stream_handshake(lab.stream), IO_FAILED);
    snprintf(first, sizeof first, "%s", tls_stream_error(lab.stream));
    close(pair[1]);
    tls_stream_note_event(other, true);
    ck_assert_int_eq(tls_stream_handshake(other), IO_FAILED);
    ck_assert_str_eq(tls_stream_error(lab.stream), first);
    ck_assert_str_ne(tls_stream_error(other), first);
    tls_stream_free(&other);
    close(pair[0]);
    tls_lab_close(&lab);
}
END_TEST

START_TEST(an_alert_is_known_by_its_number) {
    size_t sum = 0;
    enum io_status status;
    open_lab(TLS_LAB_SERVER, TLS1_3_VERSION);
    SSL_set_verify(lab.peer, SSL_VERIFY_PEER, NULL); /* it trusts nobody */
    do {
        status = tls_stream_handshake(lab.stream);
        tls_lab_collect(&lab);
        SSL_do_handshake(lab.peer);
        tls_lab_carry(&lab, 4096);
    } while (status == IO_WAIT);
    if (status == IO_DONE)
        status = read_on(&sum);
    ck_assert_int_eq(status, IO_FAILED);
    ck_assert_int_eq(tls_stream_alert(lab.stream), SSL_AD_UNKNOWN_CA);
    tls_lab_close(&lab);
}
END_TEST

Suite *tls_stream_suite(void) {
    const TTest *const tests[] = {
        handshakes_work_byte_by_byte,
        data_comes_byte_by_byte,
        several_records_come_with_one_read_of_the_socket,
        writes_survive_a_full_socket,
        one_write_takes_several_records,
        a_head_leaves_with_what_follows,
        a_cut_is_no_end,
        a_cut_handshake_fails,
        our_end_is_told,
        reads_go_on_after_our_end,
        few_key_updates_are_answered,
        endless_key_updates_fail,
        renegotiation_is_refused,
        garbage_fails_with_words,
        each_stream_keeps_its_error,
        an_alert_is_known_by_its_number,
    };
    return suite_of("tls_stream", tests, COUNT_OF(tests));
}
