#include "suites.h"

#include "proxy_protocol/header.h"

#define V2            "\r\n\r\n\0\r\nQUIT\n"
#define LITERAL(text) slice_make((text), sizeof(text) - 1)

static void check_address(const struct address *address, const char *expected) {
    char text[ADDRESS_TEXT];
    address_format(address, text);
    ck_assert_str_eq(text, expected);
}

/* Good at its last byte and with bytes behind it, and not before. */
static struct proxy_header check_good(struct slice bytes) {
    struct proxy_header header;
    char more[PROXY_HEADER_MAX + 8];
    for (size_t i = 0; i < bytes.length; i++)
        ck_assert_int_eq(proxy_header_parse(&header, guard_put(slice_make(bytes.base, i)).base, i),
                         0);
    memcpy(more, bytes.base, bytes.length);
    memcpy(more + bytes.length, "GET / ", 6);
    struct slice longer = guard_put(slice_make(more, bytes.length + 6));
    ck_assert_int_eq(proxy_header_parse(&header, longer.base, longer.length), bytes.length);
    struct slice exact = guard_put(bytes);
    ck_assert_int_eq(proxy_header_parse(&header, exact.base, exact.length), bytes.length);
    return header;
}

static void check_bad(struct slice bytes) {
    struct proxy_header header;
    struct slice input = guard_put(bytes);
    ck_assert_msg(proxy_header_parse(&header, input.base, input.length) == -1, "\"%.*s\"",
                  SLICE_PRINT(bytes));
}

static void check_addresses(struct slice bytes, const char *source, const char *destination) {
    struct proxy_header header = check_good(bytes);
    ck_assert(header.has_addresses);
    check_address(&header.source, source);
    check_address(&header.destination, destination);
}

static void check_without_addresses(struct slice bytes) {
    ck_assert(!check_good(bytes).has_addresses);
}

START_TEST(lines_of_version_1) {
    check_addresses(SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"), "192.0.2.1:56324",
                    "198.51.100.2:443");
    check_addresses(SLICE("PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"), "[2001:db8::1]:1",
                    "[2001:db8::2]:65535");
    check_addresses(SLICE("PROXY TCP6 ::ffff:192.0.2.1 ::1 0 80\r\n"), "192.0.2.1:0", "[::1]:80");
    check_without_addresses(SLICE("PROXY UNKNOWN\r\n"));
    check_without_addresses(SLICE("PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n"));
}
END_TEST

START_TEST(bad_lines_of_version_1) {
    check_bad(SLICE("GET / HTTP/1.1\r\n"));
    check_bad(SLICE("PROXX"));
    check_bad(SLICE("proxy TCP4 192.0.2.1 198.51.100.2 1 2\r\n"));
    check_bad(SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 1 2\n"));
    check_bad(SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 1\r\n"));
    check_bad(SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 1 65536\r\n"));
    check_bad(SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 01 2\r\n"));
    check_bad(SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 1 2 \r\n"));
    check_bad(SLICE("PROXY TCP4 192.0.2.1  198.51.100.2 1 2\r\n"));
    check_bad(SLICE("PROXY TCP4 192.0.2.01 198.51.100.2 1 2\r\n"));
    check_bad(SLICE("PROXY TCP4 10.1.2.3\0 198.51.100.2 1 2\r\n"));
    check_bad(SLICE("PROXY TCP4 192.0.2.1 198.51.100.2\0x 1 2\r\n"));
    check_bad(SLICE("PROXY TCP6 2001:db8::1\0 2001:db8::2 1 2\r\n"));
    check_bad(SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 1\0 2\r\n"));
    check_bad(SLICE("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n"));
    check_bad(SLICE("PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n"));
    check_bad(SLICE("PROXY TCP6 fe80::1%lo ::1 1 2\r\n"));
    check_bad(SLICE("PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n"));
    check_bad(SLICE("PROXY \r\n"));
    char longer[PROXY_HEADER_V1_MAX];
    memset(longer, 'x', sizeof longer);
    memcpy(longer, "PROXY UNKNOWN ", 14);
    check_bad(slice_make(longer, sizeof longer));
}
END_TEST

START_TEST(headers_of_version_2) {
    check_addresses(LITERAL(V2 "\x21\x11\0\x0c\xc0\0\2\1\xc6\x33\x64\2\xdc\4\1\xbb"),
                    "192.0.2.1:56324", "198.51.100.2:443");
    check_addresses(LITERAL(V2 "\x21\x21\0\x24\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
                               "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2\0\1\xff\xff"),
                    "[2001:db8::1]:1", "[2001:db8::2]:65535");
    /* further facts: ALPN, and one that nobody knows */
    check_addresses(LITERAL(V2 "\x21\x11\0\x15\xc0\0\2\1\xc6\x33\x64\2\0\1\0\2\1\0\2h2\xee\0\1x"),
                    "192.0.2.1:1", "198.51.100.2:2");
    check_without_addresses(LITERAL(V2 "\x20\0\0\0"));
    check_without_addresses(LITERAL(V2 "\x20\x11\0\3abc"));
    check_without_addresses(LITERAL(V2 "\x21\0\0\0"));
    check_without_addresses(LITERAL(V2 "\x21\0\0\2xy"));
}
END_TEST

START_TEST(unix_sockets_have_no_addresses) {
    char bytes[16 + 216] = V2 "\x21\x31\0\xd8";
    check_without_addresses(slice_make(bytes, sizeof bytes));
    bytes[15] = (char)0xd7;
    check_bad(slice_make(bytes, sizeof bytes - 1));
}
END_TEST

START_TEST(bad_headers_of_version_2) {
    check_bad(LITERAL(V2 "\x11\x11\0\0"));                           /* version 1 */
    check_bad(LITERAL(V2 "\x22\x11\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0")); /* a command nobody knows */
    check_bad(LITERAL(V2 "\x21\x12\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0")); /* datagrams */
    check_bad(LITERAL(V2 "\x21\x41\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0")); /* a family nobody knows */
    check_bad(LITERAL(V2 "\x21\x0f\0\0"));
    check_bad(LITERAL(V2 "\x21\x11\0\x0b\0\0\0\0\0\0\0\0\0\0\0")); /* too short for its addresses */
    check_bad(LITERAL(V2 "\x21\x11\xff\xff"));                     /* too long */
    check_bad(LITERAL(V2 "\x21\x11\0\x0e\0\0\0\0\0\0\0\0\0\0\0\0\1\0"));       /* half a fact */
    check_bad(LITERAL(V2 "\x21\x11\0\x0f\0\0\0\0\0\0\0\0\0\0\0\0\1\0\1"));     /* one cut off */
    check_bad(LITERAL(V2 "\x21\x11\0\x11\0\0\0\0\0\0\0\0\0\0\0\0\3\0\2\0\0")); /* half a sum */
}
END_TEST

START_TEST(checksums_of_version_2) {
    enum { KIND_OF_FACT = 28 };
    /* The sum was computed by another program. */
    char bytes[] = V2 "\x21\x11\0\x13\xc0\0\2\1\xc6\x33\x64\2\xdc\4\1\xbb\3\0\4\x20\xec\x95\x49";
    struct slice header = slice_make(bytes, sizeof bytes - 1);
    check_addresses(header, "192.0.2.1:56324", "198.51.100.2:443");
    for (size_t i = 16; i < header.length; i++) {
        bytes[i] ^= 0x40;
        if (i != KIND_OF_FACT)
            check_bad(header);
        bytes[i] ^= 0x40;
    }
}
END_TEST

static void check_written(enum proxy_header_version version, const char *source,
                          const char *destination) {
    struct address from, to;
    char out[PROXY_HEADER_WRITTEN];
    ck_assert(address_parse(&from, slice_from(source), 0));
    ck_assert(address_parse(&to, slice_from(destination), 0));
    size_t length = proxy_header_write(version, &from, &to, out);
    check_addresses(slice_make(out, length), source, destination);
}

START_TEST(what_is_written_can_be_read) {
    for (enum proxy_header_version version = PROXY_HEADER_V1; version <= PROXY_HEADER_V2;
         version++) {
        char out[PROXY_HEADER_WRITTEN];
        struct address local = {.length = sizeof local.local, .local = {.sun_family = AF_UNIX}};
        check_written(version, "192.0.2.1:1234", "198.51.100.2:443");
        check_written(version, "[2001:db8::1]:1234", "[2001:db8::2]:443");
        check_written(version, "192.0.2.1:1234", "[2001:db8::2]:443");
        check_without_addresses(slice_make(out, proxy_header_write(version, NULL, NULL, out)));
        check_without_addresses(slice_make(out, proxy_header_write(version, &local, &local, out)));
    }
}
END_TEST

Suite *proxy_header_suite(void) {
    Suite *suite = suite_create("proxy_header");
    TCase *group = tcase_create("proxy_header");
    tcase_add_test(group, lines_of_version_1);
    tcase_add_test(group, bad_lines_of_version_1);
    tcase_add_test(group, headers_of_version_2);
    tcase_add_test(group, unix_sockets_have_no_addresses);
    tcase_add_test(group, bad_headers_of_version_2);
    tcase_add_test(group, checksums_of_version_2);
    tcase_add_test(group, what_is_written_can_be_read);
    suite_add_tcase(suite, group);
    return suite;
}
