/* Whether a host answers what begins a TCP connection. */
#include "suites.h"

#include "icap/host_check.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATIENCE = 150 };

static struct loop loop;
static struct net_context net = {.loop = &loop};
static struct host_check check;
static struct task task;
static struct address address;
static int listening = -1;
static unsigned told;

static void on_checked(struct task *unused) {
    (void)unused;
    told++;
}

/* False: this machine has no such address. */
static bool begin_at(struct slice ip) {
    ck_assert(loop_init(&loop));
    task_init(&task, on_checked);
    ck_assert(address_parse_ip(&address, ip, 0));
    listening = socket(address.any.sa_family, SOCK_STREAM, 0);
    return bind(listening, &address.any, address.length) == 0 &&
           getsockname(listening, &address.any, &address.length) == 0;
}

static void begin(void) {
    ck_assert(begin_at(SLICE("127.0.0.1")));
}

static void end(void) {
    host_check_stop(&check);
    close(listening);
    loop_release(&loop);
}

static enum host_check_state result(void) {
    told = 0;
    host_check_start(&check, &net, &address, PATIENCE, &task);
    while (told == 0)
        loop_run_once(&loop);
    ck_assert_uint_eq(told, 1);
    ck_assert_uint_eq(timers_next(&loop.timers), TIMER_NEVER);
    return check.state;
}

START_TEST(answered) {
    begin();
    ck_assert_int_eq(listen(listening, 8), 0);
    for (int i = 0; i < 20; i++) /* more than its backlog */
        ck_assert_int_eq(result(), HOST_CHECK_ANSWERED);
    struct pollfd watched = {.fd = listening, .events = POLLIN};
    ck_assert_int_eq(poll(&watched, 1, 100), 0); /* nobody there has learned of it */
    end();
}
END_TEST

START_TEST(refused) {
    begin();
    ck_assert_int_eq(result(), HOST_CHECK_ANSWERED);
    end();
}
END_TEST

START_TEST(over_ipv6) {
    if (begin_at(SLICE("::1"))) {
        ck_assert_int_eq(result(), HOST_CHECK_ANSWERED);
        ck_assert_int_eq(listen(listening, 8), 0);
        ck_assert_int_eq(result(), HOST_CHECK_ANSWERED);
    }
    end();
}
END_TEST

START_TEST(unanswered) {
    int fill[8];
    begin();
    ck_assert_int_eq(listen(listening, 0), 0);
    for (int i = 0; i < 8; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fill[i], &address.any, address.length);
    }
    uint64_t began = loop.now;
    ck_assert_int_eq(result(), HOST_CHECK_UNANSWERED);
    ck_assert_uint_ge(loop.now - began, PATIENCE);
    ck_assert_uint_eq(check.count, HOST_CHECK_TRIES);
    for (int i = 0; i < 8; i++)
        close(fill[i]);
    end();
}
END_TEST

START_TEST(impossible) {
    struct rlimit usual;
    begin();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const struct rlimit none = {0, usual.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(result(), HOST_CHECK_IMPOSSIBLE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
    end();
}
END_TEST

START_TEST(stopped) {
    begin();
    ck_assert_int_eq(listen(listening, 8), 0);
    host_check_start(&check, &net, &address, PATIENCE, &task);
    host_check_stop(&check);
    host_check_stop(&check);
    ck_assert_uint_eq(timers_next(&loop.timers), TIMER_NEVER);
    ck_assert_int_eq(result(), HOST_CHECK_ANSWERED);
    end();
}
END_TEST

Suite *host_check_suite(void) {
    const TTest *tests[] = {answered, refused, over_ipv6, unanswered, impossible, stopped};
    return suite_of("host_check", tests, COUNT_OF(tests));
}
