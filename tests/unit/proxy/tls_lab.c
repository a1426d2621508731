#include "tls_lab.h"

#include "tls/trust_files.h"

#include "base/assert.h"

#include <check.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

static void make_certificate(struct tls_lab *lab) {
    lab->key = EVP_EC_gen("P-256");
    lab->certificate = X509_new();
    X509_set_version(lab->certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(lab->certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(lab->certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(lab->certificate), 3600);
    X509_set_pubkey(lab->certificate, lab->key);
    ck_assert_int_gt(X509_sign(lab->certificate, lab->key, EVP_sha256()), 0);
}

static void open_server(struct tls_lab *lab, bool ktls) {
    lab->tickets = ticket_keys_new(0);
    lab->server =
        tls_server_new(&(struct tls_server_settings){.tickets = lab->tickets, .ktls = ktls});
    lab->stream = tls_stream_accept(lab->server, lab->fd, SLICE(""));
    ck_assert(tls_stream_show(lab->stream, lab->certificate, NULL, lab->key));
    SSL_set_connect_state(lab->peer);
}

static void open_client(struct tls_lab *lab) {
    struct tls_trust_settings settings = {.verify = false};
    char error[TLS_TRUST_ERROR];
    ck_assert_msg(tls_trust_load(&settings, error), "%s", error);
    lab->client = tls_client_new(&settings, SLICE("example.com"));
    tls_trust_unload(&settings);
    struct tls_stream *none = NULL;
    lab->stream = tls_stream_connect(lab->client, lab->fd, &none);
    ck_assert_int_eq(SSL_use_cert_and_key(lab->peer, lab->certificate, lab->key, NULL, 1), 1);
    SSL_set_accept_state(lab->peer);
}

void tls_lab_open(struct tls_lab *lab, enum tls_lab_side side, int version) {
    int pair[2];
    *lab = (struct tls_lab){0};
    make_certificate(lab);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    lab->fd = pair[0];
    lab->other = pair[1];
    lab->peer_context = SSL_CTX_new(TLS_method());
    SSL_CTX_set_min_proto_version(lab->peer_context, version);
    SSL_CTX_set_max_proto_version(lab->peer_context, version);
    SSL_CTX_set_mode(lab->peer_context, SSL_MODE_ENABLE_PARTIAL_WRITE);
    lab->peer = SSL_new(lab->peer_context);
    lab->to_peer = BIO_new(BIO_s_mem());
    lab->from_peer = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(lab->to_peer, -1);
    SSL_set_bio(lab->peer, lab->to_peer, lab->from_peer);
    if (side == TLS_LAB_CLIENT)
        open_client(lab);
    else
        open_server(lab, side == TLS_LAB_KERNEL);
    ck_assert_ptr_nonnull(lab->stream);
}

void tls_lab_close(struct tls_lab *lab) {
    tls_stream_free(&lab->stream);
    tls_server_release(&lab->server);
    ticket_keys_release(&lab->tickets);
    tls_client_release(&lab->client);
    SSL_free(lab->peer);
    SSL_CTX_free(lab->peer_context);
    X509_free(lab->certificate);
    EVP_PKEY_free(lab->key);
    close(lab->fd);
    if (lab->other >= 0)
        close(lab->other);
}

size_t tls_lab_waiting(const struct tls_lab *lab) {
    return BIO_pending(lab->from_peer);
}

/* What the loop would report. */
void tls_lab_note_event(struct tls_lab *lab, bool hangup) {
    tls_stream_note_event(lab->stream, hangup);
}

size_t tls_lab_carry(struct tls_lab *lab, size_t most) {
    char bytes[4096];
    size_t carried = 0;
    while (carried < most && tls_lab_waiting(lab) > 0) {
        size_t part = most - carried < sizeof bytes ? most - carried : sizeof bytes;
        int length = BIO_read(lab->from_peer, bytes, (int)part);
        ck_assert_int_gt(length, 0);
        ck_assert_int_eq(send(lab->other, bytes, (size_t)length, MSG_NOSIGNAL), length);
        carried += (size_t)length;
    }
    tls_lab_note_event(lab, false);
    return carried;
}

size_t tls_lab_collect(struct tls_lab *lab) {
    char bytes[65536];
    size_t collected = 0;
    ssize_t length;
    while ((length = recv(lab->other, bytes, sizeof bytes, 0)) > 0) {
        ck_assert_int_eq(BIO_write(lab->to_peer, bytes, (int)length), (int)length);
        collected += (size_t)length;
    }
    return collected;
}

void tls_lab_handshake(struct tls_lab *lab, size_t step) {
    enum io_status status = IO_WAIT;
    for (int turn = 0; turn < 100000; turn++) {
        if (status == IO_WAIT)
            status = tls_stream_handshake(lab->stream);
        ck_assert_msg(status == IO_DONE || status == IO_WAIT, "%s", tls_stream_error(lab->stream));
        tls_lab_collect(lab);
        int result = SSL_do_handshake(lab->peer);
        if (status == IO_DONE && result == 1)
            break;
        tls_lab_carry(lab, step);
    }
    ck_assert(SSL_is_init_finished(lab->peer));
    while (tls_lab_waiting(lab) > 0)
        tls_lab_carry(lab, 4096);
    tls_stream_flush(lab->stream);
    tls_lab_collect(lab);
}
