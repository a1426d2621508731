#include "suites.h"

#include "net/address_order.h"
#include "net/dns_answer.h"
#include "net/hosts_file.h"

/* The order of addresses. */

enum { NOW = 1000 };

static unsigned parse_list(struct address *list, const char *text) {
    struct slice rest = slice_from(text), element;
    unsigned count = 0;
    while (slice_next_element(&rest, &element))
        ck_assert(address_parse_ip(&list[count++], element, 80));
    return count;
}

static void check_order(const char *given, sa_family_t first, const struct slow_addresses *slow,
                        const char *expected) {
    struct address list[ADDRESS_ORDER_MAX];
    char text[ADDRESS_ORDER_MAX * ADDRESS_IP_TEXT] = "", ip[ADDRESS_IP_TEXT];
    unsigned count = parse_list(list, given);
    address_order(list, count, first, slow, NOW);
    for (unsigned i = 0; i < count; i++) {
        address_format_ip(&list[i], ip);
        strcat(strcat(text, i > 0 ? ", " : ""), ip);
    }
    ck_assert_str_eq(text, expected);
}

START_TEST(families_take_turns) {
    check_order("192.0.2.1", AF_INET6, NULL, "192.0.2.1");
    check_order("192.0.2.1, 192.0.2.2, 2a00::1, 2a00::2, 2a00::3", AF_INET6, NULL,
                "2a00::1, 192.0.2.1, 2a00::2, 192.0.2.2, 2a00::3");
    check_order("192.0.2.1, 192.0.2.2, 2a00::1", AF_INET, NULL, "192.0.2.1, 2a00::1, 192.0.2.2");
    check_order("fd00::1, 2002::1, 2001::1, 2001:db8::1, 192.0.2.1", AF_INET6, NULL,
                "2001:db8::1, 192.0.2.1, fd00::1, 2002::1, 2001::1");
}
END_TEST

START_TEST(slow_addresses_come_last) {
    struct slow_addresses *slow = NULL;
    struct address one, other;
    ck_assert(address_parse_ip(&one, SLICE("2a00::1"), 0));
    ck_assert(address_parse_ip(&other, SLICE("192.0.2.1"), 443));
    slow_addresses_forget(slow, &one);
    slow_addresses_note(&slow, &one, NOW + 1);
    check_order("2a00::1, 192.0.2.1, 2a00::2", AF_INET6, slow, "2a00::2, 192.0.2.1, 2a00::1");
    ck_assert(!slow_addresses_have(slow, &one, NOW + 1));
    ck_assert(!slow_addresses_have(slow, &other, NOW));
    slow_addresses_note(&slow, &other, NOW + 1);
    slow_addresses_forget(slow, &one);
    check_order("2a00::1, 192.0.2.1, 2a00::2", AF_INET6, slow, "2a00::1, 2a00::2, 192.0.2.1");
    slow_addresses_free(&slow);
    ck_assert_ptr_null(slow);
}
END_TEST

/* Answers of name servers. */

#define HEAD(code, answers, authority) "\0\1\x81" code "\0\1\0" answers "\0" authority "\0\0"
#define QUESTION                       "\3www\4test\0\0\1\0\1"
#define RECORD(name, type, ttl, data)  name "\0" type "\0\1\0\0\0" ttl "\0" data
#define ASKED                          "\xc0\x0c"

static struct dns_answer parse(const char *bytes, size_t length, unsigned type) {
    struct dns_answer answer;
    struct slice input = guard_put(slice_make(bytes, length));
    dns_answer_parse(&answer, (const unsigned char *)input.base, input.length, type);
    return answer;
}

/* Shorter, it is bad. */
static struct dns_answer check_answer(const char *bytes, size_t length,
                                      enum dns_answer_kind expected) {
    for (size_t i = 0; expected == DNS_ANSWER_ADDRESSES && i < length; i++)
        ck_assert_int_ne(parse(bytes, i, DNS_TYPE_A).kind, DNS_ANSWER_ADDRESSES);
    struct dns_answer answer = parse(bytes, length, DNS_TYPE_A);
    ck_assert_int_eq(answer.kind, expected);
    return answer;
}

#define ANSWER(bytes, expected) check_answer((bytes), sizeof(bytes) - 1, (expected))

START_TEST(answers_have_addresses) {
    struct dns_answer answer =
        ANSWER(HEAD("\x80", "\2", "\0") QUESTION RECORD(ASKED, "\1", "\x3c", "\4\x7f\0\0\1")
                   RECORD(ASKED, "\1", "\x1e", "\4\x7f\0\0\2"),
               DNS_ANSWER_ADDRESSES);
    ck_assert_uint_eq(answer.count, 2);
    ck_assert_uint_eq(answer.ttl, 30);
    ck_assert_mem_eq(answer.ips[1], "\x7f\0\0\2", 4);
    answer = ANSWER(HEAD("\x80", "\2", "\0") QUESTION RECORD(ASKED, "\5", "\5", "\4\1a\xc0\x10")
                        RECORD("\1A\4TEST\0", "\1", "\x3c", "\4\x7f\0\0\1"),
                    DNS_ANSWER_ADDRESSES);
    ck_assert_uint_eq(answer.ttl, 5);
}
END_TEST

START_TEST(other_names_do_not_count) {
    ANSWER(HEAD("\x80", "\1", "\0") QUESTION RECORD("\1b\0", "\1", "\x3c", "\4\x7f\0\0\1"),
           DNS_ANSWER_NO_ADDRESS);
    ANSWER(HEAD("\x80", "\1", "\0") QUESTION RECORD(ASKED, "\1", "\x3c", "\3\x7f\0\0"),
           DNS_ANSWER_NO_ADDRESS);
    ANSWER(HEAD("\x80", "\1", "\0") QUESTION RECORD(ASKED, "\x1c", "\x3c", "\4\x7f\0\0\1"),
           DNS_ANSWER_NO_ADDRESS);
}
END_TEST

START_TEST(names_without_addresses) {
    static const char soa[] = HEAD("\x83", "\0", "\1") QUESTION RECORD(
        "\4test\0", "\6", "\x3c", "\x16\0\0") "\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\x0a";
    struct dns_answer answer = ANSWER(soa, DNS_ANSWER_NO_NAME);
    ck_assert_uint_eq(answer.ttl, 10);
    answer = ANSWER(HEAD("\x80", "\0", "\0") QUESTION, DNS_ANSWER_NO_ADDRESS);
    ck_assert_uint_eq(answer.ttl, 0);
}
END_TEST

START_TEST(bad_answers) {
    ANSWER("", DNS_ANSWER_BAD);
    ANSWER(HEAD("\x82", "\0", "\0") QUESTION, DNS_ANSWER_BAD);            /* SERVFAIL */
    ANSWER("\0\1\1\x80\0\1\0\0\0\0\0\0" QUESTION, DNS_ANSWER_BAD);        /* no answer */
    ANSWER(HEAD("\x80", "\1", "\0") QUESTION, DNS_ANSWER_BAD);            /* cut off */
    ANSWER(HEAD("\x80", "\0", "\0") "\xc0\x0c\0\1\0\1", DNS_ANSWER_BAD);  /* a loop */
    ANSWER(HEAD("\x80", "\0", "\0") "\x40www\0\0\1\0\1", DNS_ANSWER_BAD); /* no label */
    ANSWER(HEAD("\x80", "\1", "\0") QUESTION ASKED "\0\1\0\1\0\0\0\1\xff\xff\1", DNS_ANSWER_BAD);
}
END_TEST

/* The hosts file. */

START_TEST(hosts_files_are_read) {
    char *path =
        scratch_file("hosts", "127.0.0.1 One. two # three\n::1\tone\r\nx four\n10.0.0.1 5");
    struct hosts_file *hosts = hosts_file_new(path);
    struct address found[HOSTS_FILE_ADDRESSES];
    hosts_file_refresh(hosts, NOW);
    ck_assert_uint_eq(hosts_file_find(hosts, SLICE("one"), found), 2);
    ck_assert_int_eq(found[0].any.sa_family, AF_INET);
    ck_assert_int_eq(found[1].any.sa_family, AF_INET6);
    ck_assert_uint_eq(hosts_file_find(hosts, SLICE("two"), found), 1);
    ck_assert_uint_eq(hosts_file_find(hosts, SLICE("5"), found), 1);
    ck_assert_uint_eq(hosts_file_find(hosts, SLICE("three"), found), 0);
    ck_assert_uint_eq(hosts_file_find(hosts, SLICE("four"), found), 0);
    free(scratch_file("hosts", "10.0.0.9 nine\n"));
    hosts_file_refresh(hosts, NOW + 1);
    ck_assert_uint_eq(hosts_file_find(hosts, SLICE("nine"), found), 0);
    hosts_file_refresh(hosts, NOW + 2000);
    ck_assert_uint_eq(hosts_file_find(hosts, SLICE("nine"), found), 1);
    ck_assert_uint_eq(hosts_file_find(hosts, SLICE("two"), found), 0);
    hosts_file_free(&hosts);
    free(path);
}
END_TEST

Suite *dns_suite(void) {
    Suite *suite = suite_create("dns");
    TCase *group = tcase_create("dns");
    tcase_add_test(group, families_take_turns);
    tcase_add_test(group, slow_addresses_come_last);
    tcase_add_test(group, answers_have_addresses);
    tcase_add_test(group, other_names_do_not_count);
    tcase_add_test(group, names_without_addresses);
    tcase_add_test(group, bad_answers);
    tcase_add_test(group, hosts_files_are_read);
    suite_add_tcase(suite, group);
    return suite;
}
