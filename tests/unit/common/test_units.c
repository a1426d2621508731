#include "base/units.h"

#include "suites.h"

static void reads_size(const char *text, uint64_t expected) {
    uint64_t bytes = 7;
    ck_assert_msg(units_read_size(slice_from(text), &bytes), "%s", text);
    ck_assert_uint_eq(bytes, expected);
}

static void reads_time(const char *text, uint64_t bare, uint64_t expected) {
    uint64_t milliseconds = 7;
    ck_assert_msg(units_read_time(slice_from(text), bare, &milliseconds), "%s", text);
    ck_assert_uint_eq(milliseconds, expected);
}

START_TEST(every_spelling_of_a_size_is_binary) {
    reads_size("0", 0);
    reads_size("1500", 1500);
    reads_size("1500b", 1500);
    reads_size("2K", 2048);
    reads_size("2kb", 2048);
    reads_size("2 KiB", 2048);
    reads_size("3M", 3 << 20);
    reads_size("3MB", 3 << 20);
    reads_size("3 mib ", 3 << 20);
    reads_size("4G", UINT64_C(4) << 30);
    reads_size("4GB", UINT64_C(4) << 30);
    reads_size("4GiB", UINT64_C(4) << 30);
    reads_size("17179869183GiB", UINT64_MAX - ((1 << 30) - 1));
}
END_TEST

START_TEST(a_time_needs_its_unit_where_none_is_usual) {
    reads_time("0", 0, 0);
    reads_time("5ms", 0, 5);
    reads_time("5 s", 0, 5000);
    reads_time("5", 1000, 5000);
    reads_time("0", 1000, 0);
    reads_time("2m", 1000, 120000);
    reads_time("1H", 0, 3600000);
    reads_time("1d", 0, 86400000);
}
END_TEST

START_TEST(other_texts_are_refused) {
    static const char *const sizes[] = {
        "",
        "K",
        "-1",
        "+1",
        " 1",
        "1.5M",
        "1T",
        "1KK",
        "0x10",
        "1 K B",
        "17179869184GiB",
        "99999999999999999999",
    };
    static const char *const times[] = {"", "s", "5", "5 sec", "1.5s", "-1s", "213503982335d"};
    uint64_t value = 42;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        ck_assert_msg(!units_read_size(slice_from(sizes[i]), &value), "%s", sizes[i]);
    for (size_t i = 0; i < COUNT_OF(times); i++)
        ck_assert_msg(!units_read_time(slice_from(times[i]), 0, &value), "%s", times[i]);
    ck_assert(!units_read_time(SLICE("18446744073709552"), 1000, &value));
    ck_assert_uint_eq(value, 42); /* a reader that fails changes nothing */
}
END_TEST

START_TEST(values_are_written_exactly) {
    static const struct {
        uint64_t value;
        const char *size, *time;
    } rows[] = {
        {0, "0", "0"},
        {1, "1B", "1ms"},
        {1500, "1500B", "1500ms"},
        {2048, "2KB", "2048ms"},
        {90000, "90000B", "90s"},
        {120000, "120000B", "2m"},
        {86400000, "84375KB", "1d"},
        {UINT64_C(3) << 30, "3GB", "3221225472ms"},
        {UINT64_MAX, "18446744073709551615B", "18446744073709551615ms"},
    };
    char text[UNITS_TEXT];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ck_assert_str_eq(units_write_size(text, rows[i].value), rows[i].size);
        reads_size(text, rows[i].value);
        ck_assert_str_eq(units_write_time(text, rows[i].value), rows[i].time);
        reads_time(text, 0, rows[i].value);
    }
}
END_TEST

START_TEST(values_are_shown_rounded) {
    char text[UNITS_TEXT];
    ck_assert_str_eq(units_show_size(text, 0), "0 B");
    ck_assert_str_eq(units_show_size(text, 1023), "1023 B");
    ck_assert_str_eq(units_show_size(text, 1536), "1.5 KB");
    ck_assert_str_eq(units_show_size(text, 1000000000), "953.7 MB");
    ck_assert_str_eq(units_show_size(text, UINT64_MAX), "16.0 EB");
    ck_assert_str_eq(units_show_time(text, 0), "0s");
    ck_assert_str_eq(units_show_time(text, 59), "59s");
    ck_assert_str_eq(units_show_time(text, 60), "1m 0s");
    ck_assert_str_eq(units_show_time(text, 3661), "1h 1m");
    ck_assert_str_eq(units_show_time(text, 97200), "1d 3h");
    ck_assert_str_eq(units_show_time(text, UINT64_MAX), "213503982334601d 7h");
}
END_TEST

Suite *units_suite(void) {
    const TTest *const tests[] = {
        every_spelling_of_a_size_is_binary,
        a_time_needs_its_unit_where_none_is_usual,
        other_texts_are_refused,
        values_are_written_exactly,
        values_are_shown_rounded,
    };
    return suite_of("units", tests, COUNT_OF(tests));
}
