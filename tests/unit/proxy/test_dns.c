#include "suites.h"

#include "net/address_order.h"
#include "net/dns_message.h"
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
    for (size_t i = 0; expected == DNS_ANSWER_FOUND && i < length; i++)
        ck_assert_int_ne(parse(bytes, i, DNS_TYPE_A).kind, DNS_ANSWER_FOUND);
    struct dns_answer answer = parse(bytes, length, DNS_TYPE_A);
    ck_assert_int_eq(answer.kind, expected);
    return answer;
}

#define ANSWER(bytes, expected) check_answer((bytes), sizeof(bytes) - 1, (expected))

START_TEST(answers_have_addresses) {
    struct dns_answer answer =
        ANSWER(HEAD("\x80", "\2", "\0") QUESTION RECORD(ASKED, "\1", "\x3c", "\4\x7f\0\0\1")
                   RECORD(ASKED, "\1", "\x1e", "\4\x7f\0\0\2"),
               DNS_ANSWER_FOUND);
    ck_assert_uint_eq(answer.count, 2);
    ck_assert_uint_eq(answer.ttl, 30);
    ck_assert_mem_eq(answer.ips[1], "\x7f\0\0\2", 4);
    answer = ANSWER(HEAD("\x80", "\2", "\0") QUESTION RECORD(ASKED, "\5", "\5", "\4\1a\xc0\x10")
                        RECORD("\1A\4TEST\0", "\1", "\x3c", "\4\x7f\0\0\1"),
                    DNS_ANSWER_FOUND);
    ck_assert_uint_eq(answer.ttl, 5);
}
END_TEST

START_TEST(other_names_do_not_count) {
    ANSWER(HEAD("\x80", "\1", "\0") QUESTION RECORD("\1b\0", "\1", "\x3c", "\4\x7f\0\0\1"),
           DNS_ANSWER_NO_RECORD);
    ANSWER(HEAD("\x80", "\1", "\0") QUESTION RECORD(ASKED, "\1", "\x3c", "\3\x7f\0\0"),
           DNS_ANSWER_NO_RECORD);
    ANSWER(HEAD("\x80", "\1", "\0") QUESTION RECORD(ASKED, "\x1c", "\x3c", "\4\x7f\0\0\1"),
           DNS_ANSWER_NO_RECORD);
}
END_TEST

START_TEST(names_without_addresses) {
    static const char soa[] = HEAD("\x83", "\0", "\1") QUESTION RECORD(
        "\4test\0", "\6", "\x3c", "\x16\0\0") "\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\x0a";
    struct dns_answer answer = ANSWER(soa, DNS_ANSWER_NO_NAME);
    ck_assert_uint_eq(answer.ttl, 10);
    answer = ANSWER(HEAD("\x80", "\0", "\0") QUESTION, DNS_ANSWER_NO_RECORD);
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

/* Servers of a service. */

enum { ROOM = 3 };

static struct dns_target found_targets[ROOM];

static struct dns_targets parse_targets(const char *bytes, size_t length) {
    struct dns_targets targets = {.list = found_targets, .room = ROOM};
    struct slice input = guard_put(slice_make(bytes, length));
    dns_targets_parse(&targets, (const unsigned char *)input.base, input.length);
    return targets;
}

#define TARGETS(answers) parse_targets((answers), sizeof(answers) - 1)

/* `data` begins with its length; the target is a name behind priority, weight and port. */
#define SRV(ttl, data) RECORD(ASKED, "\x21", ttl, data)

START_TEST(targets_of_a_service) {
    static const char two[] =
        HEAD("\x80", "\2", "\0") QUESTION SRV("\x3c", "\xf\0\x0a\1\0\x1f\x90\2W1\4test\0")
            SRV("\x1e", "\xb\0\0\xff\xff\0\x50\2_b\xc0\x10"); /* RFC 3597 §4: compressed */
    struct dns_targets targets = TARGETS(two);
    ck_assert_int_eq(targets.kind, DNS_ANSWER_FOUND);
    ck_assert_uint_eq(targets.count, 2);
    ck_assert_uint_eq(targets.unusable, 0);
    ck_assert_uint_eq(targets.ttl, 30);
    ck_assert_str_eq(found_targets[0].host, "w1.test");
    ck_assert_uint_eq(found_targets[0].priority, 10);
    ck_assert_uint_eq(found_targets[0].weight, 256);
    ck_assert_uint_eq(found_targets[0].port, 8080);
    ck_assert_str_eq(found_targets[1].host, "_b.test");
    ck_assert_uint_eq(found_targets[1].weight, 65535);
    for (size_t i = 0; i < sizeof two - 1; i++)
        ck_assert_int_ne(parse_targets(two, i).kind, DNS_ANSWER_FOUND);
}
END_TEST

/* RFC 2782: 'A Target of "." means that the service is decidedly not available at this domain.' */
START_TEST(a_dot_means_no_service) {
    struct dns_targets targets =
        TARGETS(HEAD("\x80", "\1", "\0") QUESTION SRV("\x3c", "\7\0\0\0\0\0\0\0"));
    ck_assert_int_eq(targets.kind, DNS_ANSWER_FOUND);
    ck_assert_uint_eq(targets.count, 0);
    ck_assert_uint_eq(targets.ttl, 60);
    ck_assert_int_eq(TARGETS(HEAD("\x83", "\0", "\0") QUESTION).kind, DNS_ANSWER_NO_NAME);
    ck_assert_int_eq(TARGETS(HEAD("\x80", "\0", "\0") QUESTION).kind, DNS_ANSWER_NO_RECORD);
}
END_TEST

/* Names that could not be written into a URL, a header or a log, and ports that are none. An answer
 * of such records alone says nothing. */
START_TEST(targets_that_are_no_hosts) {
#define ONE_BAD(data) TARGETS(HEAD("\x80", "\1", "\0") QUESTION SRV("\1", data)).kind
    ck_assert_int_eq(ONE_BAD("\x0a\0\0\0\0\0\x50\2a \0"), DNS_ANSWER_BAD);
    ck_assert_int_eq(ONE_BAD("\x0b\0\0\0\0\0\x50\3a\r\n\0"), DNS_ANSWER_BAD);
    ck_assert_int_eq(ONE_BAD("\x0b\0\0\0\0\0\x50\3a.b\0"), DNS_ANSWER_BAD);
    ck_assert_int_eq(ONE_BAD("\x0b\0\0\0\0\0\x50\3a\0b\0"), DNS_ANSWER_BAD);
    ck_assert_int_eq(ONE_BAD("\x0b\0\0\0\0\0\x50\3a\"b\0"), DNS_ANSWER_BAD);
    ck_assert_int_eq(ONE_BAD("\x0b\0\0\0\0\0\x50\3a@b\0"), DNS_ANSWER_BAD);
    ck_assert_int_eq(ONE_BAD("\x0b\0\0\0\0\0\x50\3\xc3\xa4x\0"), DNS_ANSWER_BAD);
    ck_assert_int_eq(ONE_BAD("\x09\0\0\0\0\0\0\1a\0"), DNS_ANSWER_BAD); /* port 0 */
    ck_assert_int_eq(ONE_BAD("\6\0\0\0\0\0\x50"), DNS_ANSWER_BAD);      /* no target */
    ck_assert_int_eq(ONE_BAD("\2\0\0"), DNS_ANSWER_BAD);
    ck_assert_int_eq(ONE_BAD("\x0a\0\0\0\0\0\x50\1a\0\0"), DNS_ANSWER_BAD); /* more behind it */
    ck_assert_int_eq(ONE_BAD("\7\0\0\0\0\0\x50\1"), DNS_ANSWER_BAD); /* its label is outside */
    ck_assert_int_eq(ONE_BAD("\x8\0\0\0\0\0\x50\xc0\x2e"), DNS_ANSWER_BAD); /* itself */
    struct dns_targets targets = TARGETS(HEAD("\x80", "\2", "\0") QUESTION SRV(
        "\1", "\x0b\0\0\0\0\0\x50\3a b\0") SRV("\x3c", "\x09\0\0\0\0\0\x50\1c\0"));
    ck_assert_int_eq(targets.kind, DNS_ANSWER_FOUND);
    ck_assert_uint_eq(targets.count, 1);
    ck_assert_uint_eq(targets.unusable, 1);
    ck_assert_uint_eq(targets.ttl, 60);
    ck_assert_str_eq(found_targets[0].host, "c");
}
END_TEST

START_TEST(more_targets_than_there_is_room) {
#define C "\x09\0\0\0\0\0\x50\1c\0"
    struct dns_targets targets = TARGETS(HEAD("\x80", "\5", "\0") QUESTION SRV("\1", C) SRV("\1", C)
                                             SRV("\1", C) SRV("\1", C) SRV("\1", C));
    ck_assert_int_eq(targets.kind, DNS_ANSWER_FOUND);
    ck_assert_uint_eq(targets.count, ROOM);
    ck_assert_uint_eq(targets.unusable, 2);
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
    tcase_add_test(group, targets_of_a_service);
    tcase_add_test(group, a_dot_means_no_service);
    tcase_add_test(group, targets_that_are_no_hosts);
    tcase_add_test(group, more_targets_than_there_is_room);
    tcase_add_test(group, hosts_files_are_read);
    suite_add_tcase(suite, group);
    return suite;
}
