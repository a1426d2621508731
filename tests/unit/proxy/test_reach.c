/* Which addresses clients of the proxy reach. */
#include "suites.h"

#include "net/egress.h"

#include <ifaddrs.h>

static struct loop loop;
static struct net_context net = {.loop = &loop};
static void setup(void) {
    static const char *const listened[] = {"127.0.0.1:3128", "[::1]:3129", "0.0.0.0:8080", ":8081",
                                           "127.0.0.1:9000"};
    enum { COUNT = sizeof listened / sizeof *listened };
    struct address listens[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        ck_assert(address_parse(&listens[i], slice_from(listened[i]), 0));
    net_context_configure(&net,
                          &(struct net_configuration){.listens = listens, .listen_count = COUNT});
    ck_assert(egress_prepare(&net));
}

static void teardown(void) {
    egress_release(&net);
    net_context_release(&net);
}

static bool allows(enum egress egress, const char *ip, uint16_t port) {
    struct address address;
    ck_assert_msg(address_parse_spelt_ip(&address, slice_from(ip), port), "%s", ip);
    return egress_allows(&net, egress, &address);
}

static const char *const local[] = {
    "127.0.0.1", "127.255.255.255", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "0.0.0.0",
    "0.1.2.3", "169.254.0.0", "169.254.169.254", "169.254.255.255", "224.0.0.1", "239.255.255.255",
    "255.255.255.255", "::", "::1", "::127.0.0.1", "fe80::1", "febf::1", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:169.254.169.254",
    /* RFC 6052 §2.1, RFC 8215, RFC 3056 §2 */
    "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::127.0.0.1", "2002:7f00:1::1",
    "2002:a9fe:a9fe::",
    /* where clouds give machines their secrets; RFC 2765 §2.1 */
    "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254",
    "::ffff:168.63.129.16", "64:ff9b::100.100.100.200", "::ffff:0:127.0.0.1", NULL};

static bool allows_from(enum egress egress, const char *to, uint16_t port, const char *from) {
    struct address address, source;
    ck_assert(address_parse_ip(&address, slice_from(to), port));
    ck_assert(address_parse_ip(&source, slice_from(from), 40000));
    return egress_allows_from(&net, egress, &address, &source);
}

START_TEST(whoever_is_reached_from_his_own_address_is_this_machine) {
    for (enum egress egress = EGRESS_REMOTE; egress <= EGRESS_ANY; egress++) {
        ck_assert(allows_from(egress, "192.0.2.1", 8080, "192.0.2.2"));
        ck_assert_int_eq(allows_from(egress, "192.0.2.1", 80, "192.0.2.1"),
                         egress != EGRESS_REMOTE);
        ck_assert_int_eq(allows_from(egress, "192.0.2.1", 8080, "192.0.2.1"), egress == EGRESS_ANY);
        ck_assert_int_eq(allows_from(egress, "2001:db8::1", 8081, "2001:db8::1"),
                         egress == EGRESS_ANY);
    }
    ck_assert(!allows_from(EGRESS_FOUND, "192.0.2.1", 80, "192.0.2.1"));
    ck_assert(allows_from(EGRESS_FOUND_LOCAL, "192.0.2.1", 80, "192.0.2.1"));
    ck_assert(!allows_from(EGRESS_FOUND_LOCAL, "192.0.2.1", 8080, "192.0.2.1"));
}
END_TEST

static const char *const remote[] = {"1.0.0.0",
                                     "126.255.255.255",
                                     "128.0.0.0",
                                     "169.253.255.255",
                                     "169.255.0.0",
                                     "192.0.2.1",
                                     "198.51.100.7",
                                     "223.255.255.255",
                                     "255.255.255.254",
                                     "2001:db8::1",
                                     "fe7f::1",
                                     "fec0::1",
                                     "feff::1",
                                     "::ffff:192.0.2.1",
                                     "64:ff9b::192.0.2.1",
                                     "2002:c000:201::1",
                                     "64:ff9a::7f00:1",
                                     "2003:7f00:1::",
                                     NULL};

START_TEST(what_is_local_is_out_of_reach) {
    for (unsigned i = 0; local[i] != NULL; i++)
        ck_assert_msg(!allows(EGRESS_REMOTE, local[i], 80) && !allows(EGRESS_FOUND, local[i], 80),
                      "%s is reached", local[i]);
    for (unsigned i = 0; remote[i] != NULL; i++)
        ck_assert_msg(allows(EGRESS_REMOTE, remote[i], 80) && allows(EGRESS_FOUND, remote[i], 80),
                      "%s is not reached", remote[i]);
    for (unsigned i = 0; local[i] != NULL; i++)
        ck_assert_msg(allows(EGRESS_ANY, local[i], 3128), "%s is not for the operator", local[i]);
}
END_TEST

START_TEST(every_address_of_the_machine_is_out_of_reach) {
    struct ifaddrs *interfaces;
    ck_assert_int_eq(getifaddrs(&interfaces), 0);
    for (struct ifaddrs *at = interfaces; at != NULL; at = at->ifa_next) {
        struct address address = {.length = sizeof address.v6};
        if (at->ifa_addr == NULL ||
            (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6))
            continue;
        memcpy(&address.any, at->ifa_addr,
               at->ifa_addr->sa_family == AF_INET ? sizeof address.v4 : sizeof address.v6);
        ck_assert(!egress_allows(&net, EGRESS_REMOTE, &address));
    }
    freeifaddrs(interfaces);
}
END_TEST

START_TEST(the_machines_addresses_are_read_again) {
    const struct own_networks *first = net.own_networks;
    ck_assert(allows(EGRESS_REMOTE, "192.0.2.1", 80));
    ck_assert_ptr_eq(net.own_networks, first);
    loop.now += 1000;
    ck_assert(allows(EGRESS_REMOTE, "192.0.2.1", 80));
    loop.now += 1000;
    ck_assert(!allows(EGRESS_REMOTE, "127.0.0.1", 80)); /* needs no look at them */
    egress_release(&net);
    ck_assert(allows(EGRESS_REMOTE, "192.0.2.1", 80));
    ck_assert_ptr_nonnull(net.own_networks);
}
END_TEST

static const struct {
    const char *ip;
    uint16_t port;
    bool reached;
} listened_on[] = {
    {"127.0.0.1", 3128, false},
    {"0.0.0.0", 3128, false},
    {"127.1", 3128, false},
    {"::ffff:127.0.0.1", 3128, false},
    {"::ffff:0.0.0.0", 3128, false},
    {"64:ff9b::127.0.0.1", 3128, false},
    {"127.0.0.2", 3128, true},
    {"::1", 3128, true},
    {"192.0.2.1", 3128, true},
    {"::1", 3129, false},
    {"::", 3129, false},
    {"127.0.0.1", 3129, true},
    {"127.0.0.1", 8080, false},
    {"127.9.9.9", 8080, false},
    {"192.0.2.1", 8080, true},
    {"::1", 8081, false},
    {"127.0.0.1", 8081, false},
    {"2001:db8::1", 8081, true},
    {"127.0.0.1", 9000, false},
    {"2130706433", 9000, false},
    {"0.0.0.0", 9000, false},
    {"::ffff:7f00:1", 9000, false},
    {"2002:7f00:1::", 9000, false},
    {"127.0.0.1", 9001, true},
    {"169.254.169.254", 80, true},
};

START_TEST(the_proxy_itself_is_out_of_reach) {
    for (size_t i = 0; i < sizeof listened_on / sizeof *listened_on; i++) {
        const char *ip = listened_on[i].ip;
        uint16_t port = listened_on[i].port;
        ck_assert_msg(allows(EGRESS_OTHERS, ip, port) == listened_on[i].reached, "%s:%u", ip, port);
        ck_assert_msg(allows(EGRESS_FOUND_LOCAL, ip, port) == listened_on[i].reached, "%s:%u", ip,
                      port);
    }
}
END_TEST

static const char *const no_ip[] = {"",         ".",          "1.2.3.4.5", "256.1.1.1",
                                    "a",        "0xg",        "1.2.3.4..", "localhost",
                                    "08.0.0.1", "4294967296", "::1.",      NULL};

START_TEST(names_are_no_ip) {
    struct address address;
    for (unsigned i = 0; no_ip[i] != NULL; i++)
        ck_assert_msg(!address_parse_spelt_ip(&address, slice_from(no_ip[i]), 80), "\"%s\"",
                      no_ip[i]);
}
END_TEST

Suite *egress_suite(void) {
    Suite *suite = suite_create("reach");
    TCase *tests = tcase_create("reach");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_is_local_is_out_of_reach);
    tcase_add_test(tests, every_address_of_the_machine_is_out_of_reach);
    tcase_add_test(tests, the_machines_addresses_are_read_again);
    tcase_add_test(tests, the_proxy_itself_is_out_of_reach);
    tcase_add_test(tests, whoever_is_reached_from_his_own_address_is_this_machine);
    tcase_add_test(tests, names_are_no_ip);
    suite_add_tcase(suite, tests);
    return suite;
}
