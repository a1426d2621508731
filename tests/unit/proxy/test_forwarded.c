#include "suites.h"

#include "http/head_parser.h"
#include "net/forwarded.h"

#include <string.h>

static struct address ip(const char *text) {
    struct address address;
    ck_assert_msg(address_parse_ip(&address, slice_from(text), 0), "%s", text);
    return address;
}

/* The client that a request from `peer` has, when 10.0.0.0/8 and 2001:db8:1::/48 are trusted. */
static const char *client_of(enum forwarded_field field, const char *peer, const char *lines) {
    static char text[ADDRESS_TEXT];
    struct network proxies[2];
    struct forwarded_trust trust = {field, proxies, 2};
    struct http_head head;
    struct address from = ip(peer), client;
    ck_assert(network_parse(&proxies[0], SLICE("10.0.0.0/8")));
    ck_assert(network_parse(&proxies[1], SLICE("2001:db8:1::/48")));
    head_from(&head, lines);
    bool other = forwarded_client(&head, &trust, &from, &client);
    ck_assert(other == !address_equal(&client, &from));
    if (address_port(&client) != 0)
        address_format(&client, text);
    else
        address_format_ip(&client, text);
    return text;
}

static void has_client(const char *peer, const char *lines, const char *expected) {
    ck_assert_str_eq(client_of(FORWARDED_BY_X, peer, lines), expected);
}

static void has_client_by_rfc(const char *peer, const char *lines, const char *expected) {
    ck_assert_str_eq(client_of(FORWARDED_BY_RFC, peer, lines), expected);
}

START_TEST(only_trusted_peers_are_believed) {
    has_client("192.0.2.9", "X-Forwarded-For: 192.0.2.1\n", "192.0.2.9");
    has_client("10.1.1.1", "X-Forwarded-For: 192.0.2.1\n", "192.0.2.1");
    has_client("::ffff:10.1.1.1", "X-Forwarded-For: 192.0.2.1\n", "192.0.2.1");
    has_client("2001:db8:1::5", "X-Forwarded-For: 2001:db8:2::1\n", "2001:db8:2::1");
    has_client("10.1.1.1", "Accept: x\n", "10.1.1.1");
    has_client("10.1.1.1", "Forwarded: for=192.0.2.1\n", "10.1.1.1");
}
END_TEST

START_TEST(lists_are_read_from_the_right) {
    has_client("10.1.1.1", "X-Forwarded-For: 10.9.9.9, 192.0.2.1\n", "192.0.2.1");
    has_client("10.1.1.1", "X-Forwarded-For: 1.1.1.1, 192.0.2.1, 10.2.2.2,10.3.3.3\n", "192.0.2.1");
    has_client("10.1.1.1", "X-Forwarded-For: 1.1.1.1\nAccept: x\nX-Forwarded-For: 192.0.2.1\n",
               "192.0.2.1");
    has_client("10.1.1.1", "X-Forwarded-For: 192.0.2.1\nx-forwarded-for: 10.2.2.2\n", "192.0.2.1");
    has_client("10.1.1.1", "X-Forwarded-For: 192.0.2.1, , ,\n", "192.0.2.1");
    has_client("10.1.1.1", "X-Forwarded-For: 10.2.2.2, 10.3.3.3\n", "10.2.2.2");
}
END_TEST

START_TEST(elements_have_several_forms) {
    has_client("10.1.1.1", "X-Forwarded-For: 192.0.2.1:4711\n", "192.0.2.1:4711");
    has_client("10.1.1.1", "X-Forwarded-For: [2001:db8::1]:80\n", "[2001:db8::1]:80");
    has_client("10.1.1.1", "X-Forwarded-For: [2001:DB8::1]\n", "2001:db8::1");
    has_client("10.1.1.1", "X-Forwarded-For: 2001:db8::1\n", "2001:db8::1");
    has_client("10.1.1.1", "X-Forwarded-For: ::ffff:192.0.2.1\n", "192.0.2.1");
    /* A trusted proxy in another spelling is one still. */
    has_client("10.1.1.1", "X-Forwarded-For: 192.0.2.1, ::ffff:10.2.2.2\n", "192.0.2.1");
}
END_TEST

START_TEST(nonsense_ends_the_reading) {
    static const char *const bad[] = {
        "unknown",         "_hidden",       "1.2.3",       "1.2.3.4.5",  "256.1.1.1", "1.2.3.4:",
        "1.2.3.4:0",       "1.2.3.4:99999", "[::1",        "[::1]x",     "[1.2.3.4]", "::1%eth0",
        "[::1]:",          "1.2.3.4:+80",   "0x7f.1",      "2130706433", "127.1",     "localhost",
        "1.2.3.4 5.6.7.8", "\"1.2.3.4\"",   "for=1.2.3.4", "[]",         "[]:80",     "010.1.1.1",
        "1.2.3.4;5.6.7.8",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char lines[200];
        snprintf(lines, sizeof lines, "X-Forwarded-For: 192.0.2.1, %s\n", bad[i]);
        has_client("10.1.1.1", lines, "10.1.1.1");
        snprintf(lines, sizeof lines, "X-Forwarded-For: %s, 192.0.2.1\n", bad[i]);
        has_client("10.1.1.1", lines, "192.0.2.1");
        snprintf(lines, sizeof lines, "X-Forwarded-For: 192.0.2.1, %s, 10.2.2.2\n", bad[i]);
        has_client("10.1.1.1", lines, "10.2.2.2");
    }
}
END_TEST

START_TEST(rfc_7239_is_read) {
    has_client_by_rfc("10.1.1.1", "Forwarded: for=192.0.2.1\n", "192.0.2.1");
    has_client_by_rfc("10.1.1.1", "Forwarded: For=\"[2001:db8::1]:4711\"\n", "[2001:db8::1]:4711");
    has_client_by_rfc("10.1.1.1", "Forwarded: by=_x;FOR=192.0.2.1;proto=https;host=\"a,b;c\"\n",
                      "192.0.2.1");
    has_client_by_rfc("10.1.1.1", "Forwarded: for=1.1.1.1, for=192.0.2.1, for=\"10.2.2.2:_p\"\n",
                      "192.0.2.1");
    has_client_by_rfc("10.1.1.1", "Forwarded: for=1.1.1.1\nForwarded: for=192.0.2.1\n",
                      "192.0.2.1");
    has_client_by_rfc("192.0.2.9", "Forwarded: for=192.0.2.1\n", "192.0.2.9");
    has_client_by_rfc("10.1.1.1", "X-Forwarded-For: 192.0.2.1\n", "10.1.1.1");
}
END_TEST

START_TEST(rfc_7239_is_not_confused) {
    static const char *const bad[] = {
        "unknown",
        "for=unknown",
        "for=_hidden",
        "for=\"",
        "for=\"192.0.2.7",
        "for=192.0.2.7;for=192.0.2.8",
        "by=192.0.2.7",
        "for=192.0.2.7 for=192.0.2.8",
        "for",
        "=192.0.2.7",
        "for=\"192.0.2.\\7\"",
        "for=",
        "proto=https",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char lines[200];
        snprintf(lines, sizeof lines, "Forwarded: %s, for=192.0.2.1\n", bad[i]);
        has_client_by_rfc("10.1.1.1", lines, "192.0.2.1");
        snprintf(lines, sizeof lines, "Forwarded: %s, for=\"10.2.2.2\", for=\"[2001:db8:1::2]\"\n",
                 bad[i]);
        has_client_by_rfc("10.1.1.1", lines, "10.2.2.2");
    }
    /* Quotation marks of the client's, open or behind a backslash, do not reach the proxy's part. */
    has_client_by_rfc("10.1.1.1", "Forwarded: for=9.9.9.9, for=\"x\\\", for=\"192.0.2.1\"\n",
                      "192.0.2.1");
    has_client_by_rfc("10.1.1.1", "Forwarded: \", for=192.0.2.1;host=\"a\\\"b, for=8.8.8.8\"\n",
                      "192.0.2.1");
}
END_TEST

START_TEST(long_lists_end) {
    enum { ELEMENTS = 10000 };
    char *lines = malloc(ELEMENTS * 16 + 100), *at = stpcpy(lines, "X-Forwarded-For: 192.0.2.1");
    for (unsigned i = 0; i < ELEMENTS; i++)
        at = stpcpy(at, ", 10.2.2.2");
    strcpy(at, "\n");
    has_client("10.1.1.1", lines, "10.2.2.2");
    free(lines);
}
END_TEST

START_TEST(elements_are_written) {
    char out[FORWARDED_ELEMENT];
    struct address v4 = ip("192.0.2.1"), v6 = ip("2001:db8::1"), mapped = ip("::ffff:192.0.2.1");
    struct slice plain = slice_make(out, forwarded_write(out, &v4, slice_make("", 0)));
    ck_assert(slice_equal(plain, SLICE("for=192.0.2.1")));
    struct slice quoted = slice_make(out, forwarded_write(out, &v6, SLICE("https")));
    ck_assert(slice_equal(quoted, SLICE("for=\"[2001:db8::1]\";proto=https")));
    struct slice unmapped = slice_make(out, forwarded_write(out, &mapped, SLICE("http")));
    ck_assert(slice_equal(unmapped, SLICE("for=192.0.2.1;proto=http")));
}
END_TEST

Suite *forwarded_suite(void) {
    const TTest *const tests[] = {
        only_trusted_peers_are_believed,
        lists_are_read_from_the_right,
        elements_have_several_forms,
        nonsense_ends_the_reading,
        rfc_7239_is_read,
        rfc_7239_is_not_confused,
        long_lists_end,
        elements_are_written,
    };
    return suite_of("forwarded", tests, COUNT_OF(tests));
}
