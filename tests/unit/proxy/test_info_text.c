/* What c-icap's info service says, as numbers: whole or not at all. */
#include "suites.h"

#include "icap/info.h"

#include <string.h>

/* As c-icap 0.5.10 writes it. */
static const char good[] = "Running Servers Statistics\n"
                           "===========================\n"
                           "Children number: 2\n"
                           "Free Servers: 19\n"
                           "Used Servers: 1\n"
                           "Started Processes: 4\n"
                           "Closed Processes: 1\n"
                           "Crashed Processes: 3\n"
                           "Closing Processes: 5\n"
                           "\n"
                           "Child pids: 23085 23086\n"
                           "General Statistics\n"
                           "REQUESTS : 1027\n"
                           "REQMODS : 0\n"
                           "FAILED REQUESTS : 6\n"
                           "ALLOW 204 : 7\n"
                           "BYTES IN : 3 Kbs 78 bytes\n"
                           "BYTES OUT : 0 Kbs 297 bytes\n"
                           "HTTP BYTES IN : 0 Kbs 35 bytes\n"
                           "Service info Statistics\n"
                           "Service info BYTES IN : 0 Kbs 78 bytes\n";

/* With one text in place of another. */
static bool reads(const char *old, const char *new) {
    char text[2048];
    struct server_numbers numbers;
    const char *at = strstr(good, old);
    ck_assert(at != NULL);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, new, at + strlen(old));
    return icap_info_text_read(guard_keep(slice_from(text)), &numbers);
}

START_TEST(each_number_is_found) {
    struct server_numbers numbers;
    ck_assert(icap_info_text_read(guard_keep(slice_from(good)), &numbers));
    ck_assert_uint_eq(numbers.processes, 2);
    ck_assert_uint_eq(numbers.threads_free, 19);
    ck_assert_uint_eq(numbers.threads_used, 1);
    ck_assert_uint_eq(numbers.processes_started, 4);
    ck_assert_uint_eq(numbers.processes_crashed, 3);
    ck_assert_uint_eq(numbers.processes_closing, 5);
    ck_assert_uint_eq(numbers.requests, 1027);
    ck_assert_uint_eq(numbers.failed_requests, 6);
    ck_assert_uint_eq(numbers.unmodified, 7);
    ck_assert_uint_eq(numbers.bytes_in, 3 * 1024 + 78);
    ck_assert_uint_eq(numbers.bytes_out, 297);
}
END_TEST

START_TEST(other_lines_may_say_anything) {
    ck_assert(reads("REQMODS : 0\n", "REQMODS : many\n: 5\n:::\nx: y: z\nrequests: -1\n\r\n"));
}
END_TEST

START_TEST(what_can_not_be_a_count_spoils_all) {
    ck_assert(reads("REQUESTS : 1027", "REQUESTS : 9007199254740992"));
    static const char *const values[] = {
        "",
        "-1",
        "+1",
        "1.5",
        "0x1",
        "1e3",
        "1 2",
        "many",
        "9007199254740993",
        "99999999999999999999999999",
        "1\n REQUESTS : 1",
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char line[100];
        snprintf(line, sizeof line, "REQUESTS : %s", values[i]);
        ck_assert_msg(!reads("REQUESTS : 1027", line), "%s", line);
    }
    static const char *const bytes[] = {
        "78",
        "3 Kbs",
        "3 Kbs 78",
        "3 kb 78 bytes",
        "3 Kbs 78 bytes more",
        "Kbs 78 bytes",
        "9007199254740992 Kbs 0 bytes",
        "-3 Kbs 78 bytes",
        "3 Kbs -78 bytes",
    };
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        ck_assert_msg(!reads("3 Kbs 78 bytes", bytes[i]), "%s", bytes[i]);
}
END_TEST

START_TEST(a_missing_line_spoils_all) {
    static const char *const lines[] = {"Children number: 2\n", "Free Servers: 19\n",
                                        "FAILED REQUESTS : 6\n", "BYTES OUT : 0 Kbs 297 bytes\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ck_assert_msg(!reads(lines[i], ""), "%s", lines[i]);
    struct server_numbers numbers;
    ck_assert(!icap_info_text_read(slice_from(""), &numbers));
}
END_TEST

Suite *info_text_suite(void) {
    const TTest *const tests[] = {
        each_number_is_found,
        other_lines_may_say_anything,
        what_can_not_be_a_count_spoils_all,
        a_missing_line_spoils_all,
    };
    return suite_of("info_text", tests, COUNT_OF(tests));
}
