#include "suites.h"

#include "service/helper_client.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int ends[2];

static void open_pair(void) {
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
}

static void close_pair(void) {
    close(ends[0]);
    close(ends[1]);
}

START_TEST(a_packet_arrives_as_it_was) {
    static struct helper_packet out, in;
    open_pair();
    ck_assert_int_eq(helper_packet_receive(ends[1], &in), HELPER_IO_AGAIN);
    helper_packet_init(&out, HELPER_JOB, 42);
    ck_assert(helper_packet_set_pool(&out, SLICE("gray")));
    ck_assert(helper_packet_set_parameters(&out, SLICE("image/gif")));
    out.body = helper_body_create("test");
    ck_assert(helper_body_write(out.body, "hello", 5) && helper_body_seal(out.body));
    out.message.body_length = 5;
    ck_assert_int_eq(helper_packet_send(ends[0], &out), HELPER_IO_DONE);
    ck_assert_int_eq(helper_packet_receive(ends[1], &in), HELPER_IO_DONE);
    ck_assert_uint_eq(in.message.id, 42);
    ck_assert_str_eq(in.message.pool, "gray");
    ck_assert(slice_equal(helper_packet_parameters(&in), SLICE("image/gif")));
    char text[6] = "";
    ck_assert_int_eq(pread(in.body, text, 5, 0), 5);
    ck_assert_str_eq(text, "hello");
    helper_packet_close_body(&in);
    helper_packet_close_body(&out);
    close(ends[0]);
    ck_assert_int_eq(helper_packet_receive(ends[1], &in), HELPER_IO_CLOSED);
    close(ends[1]);
}
END_TEST

/* Sends a message as it stands, with a descriptor if there is one. */
static void send_raw(const void *bytes, size_t length, int fd) {
    char control[CMSG_SPACE(sizeof(int))] = "";
    struct iovec part = {(void *)bytes, length};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        header.msg_control = control;
        header.msg_controllen = sizeof control;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    ck_assert_int_eq(sendmsg(ends[0], &header, 0), (ssize_t)length);
}

static void expect_bad(const struct helper_message *message, size_t length, int fd) {
    static struct helper_packet in;
    send_raw(message, length, fd);
    ck_assert_int_eq(helper_packet_receive(ends[1], &in), HELPER_IO_BAD);
    ck_assert_int_eq(in.body, -1);
}

START_TEST(nothing_the_peer_says_is_trusted) {
    struct helper_packet packet;
    helper_packet_init(&packet, HELPER_RESULT, 1);
    const struct helper_message good = packet.message;
    struct helper_message bad;
    open_pair();
    expect_bad(&good, sizeof good - 1, -1);
    expect_bad(&good, 1, -1);
#define WITH(field, value)                                                                         \
    do {                                                                                           \
        bad = good;                                                                                \
        bad.field = value;                                                                         \
        expect_bad(&bad, sizeof bad, -1);                                                          \
    } while (0)
    WITH(magic, 7);
    WITH(version, HELPER_VERSION + 1);
    WITH(kind, 3);
    WITH(status, HELPER_STATUS_COUNT);
    WITH(inline_length, 1);
    WITH(inline_length, UINT32_MAX);
    WITH(has_body, 1);
    bad = good;
    memset(bad.pool, 'x', sizeof bad.pool);
    expect_bad(&bad, sizeof bad, -1);
    char huge[sizeof good + HELPER_INLINE_MAX + 1] = "";
    memcpy(huge, &good, sizeof good);
    expect_bad((const struct helper_message *)huge, sizeof huge, -1);
    close_pair();
}
END_TEST

/* For whom a job is and what it costs goes behind its parameters, and with a job alone. */
START_TEST(an_origin_arrives_as_it_was) {
    static struct helper_packet out, in;
    static char longest[HELPER_INLINE_MAX + 1];
    struct {
        struct helper_message message;
        struct helper_origin origin;
    } bad;
    open_pair();
    helper_packet_init(&out, HELPER_JOB, 7);
    ck_assert(!helper_packet_set_parameters(&out, slice_make(longest, sizeof longest)));
    ck_assert(helper_packet_set_parameters(&out, slice_make(longest, HELPER_INLINE_MAX)));
    helper_packet_set_origin(&out, SLICE("192.0.2.7"), 4711);
    ck_assert_int_eq(helper_packet_send(ends[0], &out), HELPER_IO_DONE);
    ck_assert_int_eq(helper_packet_receive(ends[1], &in), HELPER_IO_DONE);
    ck_assert_uint_eq(in.message.inline_length, HELPER_INLINE_MAX);
    ck_assert_str_eq(in.origin.client, "192.0.2.7");
    ck_assert_uint_eq(in.origin.cost, 4711);
    helper_packet_init(&out, HELPER_JOB, 8);
    ck_assert_int_eq(helper_packet_send(ends[0], &out), HELPER_IO_DONE);
    ck_assert_int_eq(helper_packet_receive(ends[1], &in), HELPER_IO_DONE);
    ck_assert(in.origin.client[0] == 0 && in.origin.cost == 0);
    memset(longest, 'x', sizeof longest);
    helper_packet_set_origin(&out, slice_make(longest, 200), 1);
    ck_assert_uint_eq(strlen(out.origin.client), HELPER_CLIENT_MAX - 1);
    bad.message = out.message;
    bad.origin = out.origin;
    expect_bad(&bad.message, sizeof bad - 1, -1);
    expect_bad(&bad.message, sizeof bad.message, -1);
    bad.message.kind = HELPER_RESULT;
    expect_bad(&bad.message, sizeof bad, -1);
    bad.message.kind = HELPER_JOB;
    memset(bad.origin.client, 'x', sizeof bad.origin.client);
    expect_bad(&bad.message, sizeof bad, -1);
    close_pair();
}
END_TEST

START_TEST(a_body_that_can_change_is_refused) {
    struct helper_packet packet;
    helper_packet_init(&packet, HELPER_RESULT, 1);
    struct helper_message message = packet.message;
    message.has_body = 1;
    message.body_length = 5;
    open_pair();
    int unsealed = helper_body_create("unsealed");
    ck_assert(helper_body_write(unsealed, "hello", 5));
    expect_bad(&message, sizeof message, unsealed);
    ck_assert(helper_body_seal(unsealed));
    message.body_length = 6;
    expect_bad(&message, sizeof message, unsealed);
    message.body_length = 5;
    message.has_body = 0;
    expect_bad(&message, sizeof message, unsealed);
    message.has_body = 1;
    expect_bad(&message, sizeof message, STDIN_FILENO);
    int fds_before = dup(0);
    close(fds_before);
    for (int i = 0; i < 50; i++)
        expect_bad(&message, sizeof message, STDIN_FILENO);
    int fds_after = dup(0);
    ck_assert_int_eq(fds_before, fds_after); /* nothing piles up */
    close_pair();
}
END_TEST

START_TEST(nobody_there_is_refused_at_once) {
    struct helper_request request = {
        .socket = "/nonexistent/sock", .pool = SLICE("gray"), .body = -1, .milliseconds = 1000};
    struct helper_job *job = helper_job_start(&request);
    ck_assert(helper_job_finished(job));
    ck_assert_int_eq(helper_job_status(job), HELPER_REFUSED);
    ck_assert_ptr_nonnull(strstr(helper_job_error(job), "/nonexistent/sock"));
    helper_job_end(&job);
    ck_assert_ptr_null(job);
}
END_TEST

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    unlink(path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    return fd;
}

START_TEST(deadline_and_hang_up) {
    char path[64];
    static struct helper_packet packet;
    snprintf(path, sizeof path, "/tmp/helper_protocol_%d", (int)getpid());
    int listener = listen_at(path);
    struct helper_request request = {.socket = path,
                                     .pool = SLICE("gray"),
                                     .parameters = SLICE("x"),
                                     .body = -1,
                                     .milliseconds = 50};
    struct helper_job *job = helper_job_start(&request);
    ck_assert(!helper_job_finished(job));
    helper_job_run(job);
    ck_assert(!helper_job_finished(job));
    poll(NULL, 0, 60);
    helper_job_run(job);
    ck_assert_int_eq(helper_job_status(job), HELPER_TIMEOUT);
    helper_job_end(&job);

    request.milliseconds = 5000;
    job = helper_job_start(&request);
    close(accept(listener, NULL, NULL)); /* of the first */
    int server = accept(listener, NULL, NULL);
    ck_assert_int_eq(helper_packet_receive(server, &packet), HELPER_IO_DONE);
    ck_assert_uint_eq(packet.message.version, HELPER_VERSION_ORIGIN);
    helper_packet_init(&packet, HELPER_RESULT, packet.message.id);
    packet.message.status = HELPER_DONE;
    helper_packet_set_parameters(&packet, SLICE("answer"));
    ck_assert_int_eq(helper_packet_send(server, &packet), HELPER_IO_DONE);
    helper_job_run(job);
    ck_assert_int_eq(helper_job_status(job), HELPER_DONE);
    ck_assert(slice_equal(helper_job_parameters(job), SLICE("answer")));
    helper_job_end(&job);
    close(server);

    job = helper_job_start(&request);
    close(accept(listener, NULL, NULL));
    helper_job_run(job);
    ck_assert_int_eq(helper_job_status(job), HELPER_FAILED);
    helper_job_end(&job);
    close(listener);
    unlink(path);
}
END_TEST

Suite *helper_protocol_suite(void) {
    const TTest *const tests[] = {
        a_packet_arrives_as_it_was,       an_origin_arrives_as_it_was,
        nothing_the_peer_says_is_trusted, a_body_that_can_change_is_refused,
        nobody_there_is_refused_at_once,  deadline_and_hang_up};
    return suite_of("helper_protocol", tests, COUNT_OF(tests));
}
