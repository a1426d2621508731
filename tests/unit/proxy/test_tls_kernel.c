/* TLS in the kernel. A stub takes the kernel's place: it accepts keys, and encrypts nothing. So what
 * is written must arrive as clear text. */
#include "suites.h"

#include "net/connection.h"
#include "tls_lab.h"

#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    bool present; /* else the kernel has no TLS */
    unsigned attached, keys;
} kernel;

/* libcrypto calls this one. */
int setsockopt(int fd, int level, int option, const void *value, socklen_t length) {
    if (level == IPPROTO_TCP && option == TCP_ULP) {
        kernel.attached++;
        return kernel.present ? 0 : -1;
    }
    if (level == SOL_TLS && option == TLS_TX) {
        kernel.keys++;
        return kernel.present ? 0 : -1;
    }
    return (int)syscall(SYS_setsockopt, fd, level, option, value, length);
}

static struct tls_lab lab;
static char text[40000], arrived[sizeof text];

/* TLS 1.3: the keys for data follow after the handshake, which is encrypted here. */
static void open_lab(bool present) {
    kernel.present = present;
    kernel.attached = kernel.keys = 0;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 26);
    tls_lab_open(&lab, TLS_LAB_KERNEL, TLS1_3_VERSION);
    tls_lab_handshake(&lab, 4096);
    ck_assert_uint_gt(kernel.attached, 0);
}

static void expect_clear_text(size_t length) {
    size_t got = 0;
    while (got < length) {
        ssize_t count = recv(lab.other, arrived + got, sizeof arrived - got, 0);
        ck_assert_int_gt(count, 0);
        got += (size_t)count;
    }
    ck_assert_uint_eq(got, length);
    ck_assert_mem_eq(arrived, text, length);
}

START_TEST(the_kernel_gets_the_keys) {
    struct iovec piece = {text, sizeof text};
    size_t put;
    open_lab(true);
    ck_assert_uint_eq(kernel.keys, 1);
    ck_assert(tls_stream_is_in_kernel(lab.stream));
    ck_assert_int_eq(tls_stream_write(lab.stream, &piece, 1, false, &put), IO_DONE);
    ck_assert_uint_eq(put, sizeof text);
    expect_clear_text(sizeof text);
    tls_lab_close(&lab);
}
END_TEST

START_TEST(without_the_kernel_the_stream_encrypts) {
    struct iovec piece = {text, 100};
    size_t put, got;
    open_lab(false);
    ck_assert(!tls_stream_is_in_kernel(lab.stream));
    ck_assert_int_eq(tls_stream_write(lab.stream, &piece, 1, false, &put), IO_DONE);
    tls_lab_collect(&lab);
    ck_assert_int_eq(SSL_read_ex(lab.peer, arrived, sizeof arrived, &got), 1);
    ck_assert_uint_eq(got, 100);
    ck_assert_mem_eq(arrived, text, got);
    tls_lab_close(&lab);
}
END_TEST

/* A file goes from the kernel's cache to the socket, behind the head that waits for it. */
START_TEST(files_are_sent_by_the_kernel) {
    struct loop loop;
    struct net_context net = {.loop = &loop};
    struct iovec head = {text, 100};
    off_t offset = 100;
    size_t put;
    int file = memfd_create("body", 0);
    open_lab(true);
    ck_assert_int_eq(write(file, text, sizeof text), sizeof text);
    ck_assert(loop_init(&loop));
    int fd = dup(lab.fd);
    struct connection *connection = connection_adopt(&net, &fd, NULL, NULL);
    connection->tls = lab.stream;
    lab.stream = NULL;
    ck_assert_int_eq(connection_write_more(connection, &head, 1, &put), IO_DONE);
    ck_assert_int_eq(connection_send_file(connection, file, &offset, 10000, &put), IO_DONE);
    ck_assert_uint_eq(put, 10000);
    ck_assert_int_eq(offset, 10100);
    expect_clear_text(10100);
    connection_abort(&connection);
    tls_lab_close(&lab);
    loop_release(&loop);
    close(file);
}
END_TEST

/* OpenSSL would change its own keys, and not those of the kernel. */
START_TEST(other_keys_fail) {
    char byte;
    size_t got;
    open_lab(true);
    SSL_key_update(lab.peer, SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(lab.peer);
    tls_lab_carry(&lab, 4096);
    ck_assert_int_eq(tls_stream_read(lab.stream, &byte, 1, &got), IO_FAILED);
    ck_assert_ptr_nonnull(strstr(tls_stream_error(lab.stream), "ktls"));
    tls_lab_close(&lab);
}
END_TEST

/* An alert is a record of another type than data. */
START_TEST(the_end_is_a_record_of_its_own_type) {
    char bytes[16];
    open_lab(true);
    ck_assert_int_eq(tls_stream_finish(lab.stream), IO_DONE);
    ck_assert_int_eq(recv(lab.other, bytes, sizeof bytes, 0), 2);
    ck_assert_int_eq(bytes[1], SSL_AD_CLOSE_NOTIFY);
    tls_lab_close(&lab);
}
END_TEST

Suite *tls_kernel_suite(void) {
    const TTest *const tests[] = {
        the_kernel_gets_the_keys,
        without_the_kernel_the_stream_encrypts,
        files_are_sent_by_the_kernel,
        other_keys_fail,
        the_end_is_a_record_of_its_own_type,
    };
    return suite_of("tls_kernel", tests, COUNT_OF(tests));
}
