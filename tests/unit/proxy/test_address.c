#include "suites.h"

static void check_address(const char *text, const char *expected) {
    struct address address;
    char formatted[ADDRESS_TEXT];
    ck_assert_msg(address_parse(&address, slice_from(text), 0), "\"%s\" is refused", text);
    size_t length = address_format(&address, formatted);
    ck_assert_str_eq(formatted, expected);
    ck_assert_uint_eq(length, strlen(expected));
}

static void check_refused(const char *text) {
    struct address address;
    ck_assert_msg(!address_parse(&address, slice_from(text), 0), "\"%s\" is taken", text);
}

START_TEST(addresses_are_read_and_written) {
    check_address("127.0.0.1:80", "127.0.0.1:80");
    check_address("[::1]:3128", "[::1]:3128");
    check_address(":80", "[::]:80");
    check_address("*:80", "[::]:80");
    check_address("[::ffff:10.0.0.1]:1", "10.0.0.1:1");
    check_address("/run/x.sock", "/run/x.sock");
}
END_TEST

START_TEST(bad_addresses_are_refused) {
    char long_path[200];
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[0] = '/';
    long_path[sizeof long_path - 1] = '\0';
    check_refused("");
    check_refused("127.0.0.1");
    check_refused("127.0.0.1:");
    check_refused("127.0.0.1:0");
    check_refused("127.0.0.1:65536");
    check_refused("127.0.0.1:+1");
    check_refused("127.0.0.1:80x");
    check_refused("256.0.0.1:80");
    check_refused("[::1:80");
    check_refused("[]:80");
    check_refused("localhost:80");
    check_refused("[::1]");
    check_refused(long_path);
}
END_TEST

/* A NUL ends a text of C, and blanks end an address for inet_aton. */
START_TEST(addresses_end_where_the_text_ends) {
    static const struct slice texts[] = {
        {"10.1.2.3\0", 9}, {"10.1.2.3\0x", 10}, {"\0", 1},         {"2001:db8::1\0", 12},
        {"10.1.2.3 ", 9},  {"10.1.2.3 x", 10},  {"10.1.2.3\n", 9}, {"0x7f.1 ", 7},
    };
    struct address address;
    struct network network;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct slice text = guard_keep(texts[i]);
        ck_assert_msg(!address_parse_ip(&address, text, 1), "%zu", i);
        ck_assert_msg(!address_parse_spelt_ip(&address, text, 1), "%zu", i);
        ck_assert_msg(!address_parse(&address, text, 1), "%zu", i);
        ck_assert_msg(!network_parse(&network, text), "%zu", i);
    }
    ck_assert(!address_parse(&address, (struct slice){"/run/x\0.sock", 12}, 1));
}
END_TEST

START_TEST(addresses_are_compared_with_their_ports) {
    struct address a, b, c, d;
    ck_assert(address_parse(&a, SLICE("127.0.0.1:80"), 0));
    ck_assert(address_parse(&b, SLICE("127.0.0.1"), 80));
    ck_assert(address_parse(&c, SLICE("127.0.0.1:81"), 0));
    ck_assert(address_parse(&d, SLICE("[::1]:80"), 0));
    ck_assert(address_equal(&a, &b));
    ck_assert(!address_equal(&a, &c));
    ck_assert(!address_equal(&a, &d));
    ck_assert_uint_eq(address_port(&c), 81);
}
END_TEST

static bool loopback(const char *ip) {
    struct address address;
    ck_assert(address_parse_ip(&address, slice_from(ip), 1));
    return address_is_loopback(&address);
}

START_TEST(loopback_addresses_are_known) {
    ck_assert(loopback("127.0.0.1"));
    ck_assert(loopback("127.255.0.1"));
    ck_assert(loopback("::1"));
    ck_assert(loopback("::ffff:127.0.0.1"));
    ck_assert(!loopback("128.0.0.1"));
    ck_assert(!loopback("0.0.0.0"));
    ck_assert(!loopback("::"));
    ck_assert(!loopback("::ffff:10.0.0.1"));
}
END_TEST

static bool contains(const char *text, const char *ip) {
    struct network network;
    struct address address;
    ck_assert_msg(network_parse(&network, slice_from(text)), "\"%s\" is refused", text);
    ck_assert(address_parse_ip(&address, slice_from(ip), 1));
    return network_contains(&network, &address);
}

static struct slice key_of(const char *ip, char *out) {
    struct address address;
    ck_assert(address_parse_ip(&address, slice_from(ip), 1));
    return address_network_key(&address, 24, 57, out);
}

START_TEST(networks_stand_for_clients) {
    static const char v6[] = "6\x39\x20\x01\x0d\xb8\0\1\0\x80\0\0\0\0\0\0\0";
    char one[ADDRESS_NETWORK_KEY], other[ADDRESS_NETWORK_KEY];
    struct address local;
    ck_assert(slice_equal(key_of("192.0.2.77", one), slice_make("4\x18\xc0\0\2\0", 6)));
    ck_assert(slice_equal(key_of("192.0.2.77", one), key_of("::ffff:192.0.2.1", other)));
    ck_assert(!slice_equal(key_of("192.0.2.77", one), key_of("192.0.3.77", other)));
    ck_assert(slice_equal(key_of("2001:db8:1:ff:3::4", one), slice_make(v6, sizeof v6)));
    ck_assert(address_parse(&local, SLICE("/run/x.sock"), 0));
    ck_assert(slice_equal(address_network_key(&local, 24, 57, one), SLICE("a")));
}
END_TEST

START_TEST(networks_contain_their_addresses) {
    ck_assert(contains("10.0.0.0/8", "10.255.255.255"));
    ck_assert(!contains("10.0.0.0/8", "11.0.0.0"));
    ck_assert(contains("10.1.2.3", "10.1.2.3"));
    ck_assert(!contains("10.1.2.3", "10.1.2.2"));
    ck_assert(contains("192.168.1.128/25", "192.168.1.200"));
    ck_assert(!contains("192.168.1.128/25", "192.168.1.127"));
    ck_assert(contains("0.0.0.0/0", "1.2.3.4"));
    ck_assert(!contains("0.0.0.0/0", "::1"));
    ck_assert(contains("::/0", "2001:db8::1"));
    ck_assert(contains("fe80::/10", "febf::1"));
    ck_assert(!contains("fe80::/10", "fec0::1"));
    ck_assert(contains("10.0.0.0/8", "::ffff:10.1.1.1"));
}
END_TEST

START_TEST(bad_networks_are_refused) {
    static const char *const texts[] = {
        "",       "10.0.0.0/33", "10.0.0.0/",   "10.0.0.0/8/8", "::/129",
        "10.0.0", "all",         "10.0.0.0/-1", "10.0.0.0:80",  "[::1]"};
    struct network network;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        ck_assert_msg(!network_parse(&network, slice_from(texts[i])), "\"%s\" is taken", texts[i]);
}
END_TEST

/* It may be meant to be the one address. */
START_TEST(networks_with_bits_behind_the_prefix_are_refused) {
    static const char *const texts[][3] = {{"10.1.2.3/8", "10.0.0.0/8", "10.1.2.3"},
                                           {"192.0.2.1/31", "192.0.2.0/31", "192.0.2.1"},
                                           {"1.2.3.4/0", "0.0.0.0/0", "1.2.3.4"},
                                           {"2001:db8::1/32", "2001:db8::/32", "2001:db8::1"}};
    struct network network;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char reason[NETWORK_REASON] = "", expected[NETWORK_REASON];
        snprintf(expected, sizeof expected,
                 "has bits behind its prefix: write \"%s\" for the network, or \"%s\" for the one "
                 "address",
                 texts[i][1], texts[i][2]);
        ck_assert(!network_read(&network, slice_from(texts[i][0]), reason));
        ck_assert_str_eq(reason, expected);
        ck_assert(network_read(&network, slice_from(texts[i][1]), reason));
    }
    ck_assert(network_read(&network, slice_from("10.1.2.3/32"), (char[NETWORK_REASON]){""}));
}
END_TEST

Suite *address_suite(void) {
    const TTest *const tests[] = {
        addresses_are_read_and_written,
        bad_addresses_are_refused,
        addresses_end_where_the_text_ends,
        addresses_are_compared_with_their_ports,
        loopback_addresses_are_known,
        networks_stand_for_clients,
        networks_contain_their_addresses,
        bad_networks_are_refused,
        networks_with_bits_behind_the_prefix_are_refused,
    };
    return suite_of("address", tests, COUNT_OF(tests));
}
