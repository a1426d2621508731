#include "suites.h"

#include "http/date.h"

static void check_parse(const char *text, int64_t expected) {
    time_t seconds = -1;
    struct slice input = guard_put(slice_from(text));
    ck_assert_msg(http_date_parse(input, &seconds), "\"%s\" is refused", text);
    ck_assert_msg(seconds == expected, "\"%s\" is %lld", text, (long long)seconds);
}

static void check_refused(const char *text) {
    time_t seconds;
    ck_assert_msg(!http_date_parse(guard_put(slice_from(text)), &seconds), "\"%s\" is %lld", text,
                  (long long)seconds);
}

static const char *const forms[] = {
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
};

START_TEST(three_forms) {
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        check_parse(forms[i], 784111777);
    check_parse("Sun Nov 06 08:49:37 1994", 784111777);
    check_parse("Wed, 09 Sep 2026 00:00:00 GMT", 1788912000);
    check_parse("Wed Sep 30 23:59:59 2026", 1790812799);
}
END_TEST

START_TEST(case_does_not_matter) {
    check_parse("sun, 06 nov 1994 08:49:37 gmt", 784111777);
    check_parse("SUNDAY, 06-NOV-94 08:49:37 GMT", 784111777);
    check_parse("SUN NOV  6 08:49:37 1994", 784111777);
}
END_TEST

START_TEST(every_prefix_and_extension_is_refused) {
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char text[64];
        time_t seconds;
        size_t whole = strlen(forms[i]);
        for (size_t length = 0; length < whole; length++) {
            struct slice input = guard_put(slice_make(forms[i], length));
            ck_assert_msg(!http_date_parse(input, &seconds), "%zu bytes of %s", length, forms[i]);
        }
        sprintf(text, "%s ", forms[i]);
        check_refused(text);
        sprintf(text, " %s", forms[i]);
        check_refused(text);
    }
}
END_TEST

/* One byte replaced: where it stands for a digit another digit will do, nothing else anywhere. */
START_TEST(every_other_byte_is_refused) {
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char text[64];
        strcpy(text, forms[i]);
        for (size_t at = 0; at < strlen(forms[i]); at++) {
            for (unsigned c = 0; c < 256; c++) {
                time_t seconds;
                bool may = (c >= '0' && c <= '9') || (i == 2 && at == 8 && c == ' ') ||
                           (ascii_lower((unsigned char)c) | 0x20u) ==
                               (ascii_lower((unsigned char)forms[i][at]) | 0x20u);
                text[at] = (char)c;
                bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z' && c < 128;
                struct slice input = guard_put(slice_make(text, strlen(forms[i])));
                if (!may && !letter)
                    EXPECT(!http_date_parse(input, &seconds), "%s with byte %u at %zu", forms[i], c,
                           at);
            }
            text[at] = forms[i][at];
        }
    }
}
END_TEST

START_TEST(what_looks_like_a_date) {
    static const char *const texts[] = {
        "0",
        "-1",
        "",
        "784111777",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 EST",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun,  06 Nov 1994 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT",
        "06 Nov 1994 08:49:37 GMT",
        "Xyz, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Xyz 1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sund, 06-Nov-94 08:49:37 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "1994-11-06T08:49:37Z",
        "Sun Nov 6 08:49:37 1994",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check_refused(texts[i]);
}
END_TEST

START_TEST(days_that_exist) {
    check_parse("Thu, 29 Feb 2024 00:00:00 GMT", 1709164800);
    check_parse("Tue, 29 Feb 2000 00:00:00 GMT", 951782400);
    check_parse("Sat, 31 Dec 2016 23:59:60 GMT", 1483228800);
    check_refused("Wed, 29 Feb 2023 00:00:00 GMT");
    check_refused("Thu, 29 Feb 1900 00:00:00 GMT");
    check_refused("Mon, 31 Apr 2023 00:00:00 GMT");
    check_refused("Mon, 32 Jan 2023 00:00:00 GMT");
    check_refused("Mon, 00 Jan 2023 00:00:00 GMT");
    check_refused("Mon, 01 Jan 2023 24:00:00 GMT");
    check_refused("Mon, 01 Jan 2023 00:60:00 GMT");
    check_refused("Mon, 01 Jan 2023 00:00:61 GMT");
}
END_TEST

START_TEST(far_dates) {
    check_parse("Thu, 01 Jan 1970 00:00:00 GMT", 0);
    check_parse("Wed, 31 Dec 1969 23:59:59 GMT", -1);
    check_parse("Sat, 01 Jan 0000 00:00:00 GMT", -62167219200);
    check_parse("Fri, 31 Dec 9999 23:59:59 GMT", 253402300799);
    check_parse("Tue, 19 Jan 2038 03:14:08 GMT", 2147483648);
}
END_TEST

/* RFC 9110 §5.6.7: not more than 50 years ahead. */
START_TEST(two_digits_of_a_year) {
    time_t now = time(NULL);
    struct tm today;
    gmtime_r(&now, &today);
    for (int ahead = -49; ahead <= 50; ahead++) {
        char text[64];
        struct tm expected = {.tm_year = today.tm_year + ahead, .tm_mon = 5, .tm_mday = 15};
        int64_t seconds = timegm(&expected);
        static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                               "Thursday", "Friday", "Saturday"};
        snprintf(text, sizeof text, "%s, 15-Jun-%02d 00:00:00 GMT", weekdays[expected.tm_wday],
                 expected.tm_year % 100);
        check_parse(text, seconds);
    }
}
END_TEST

START_TEST(format_agrees_with_the_c_library) {
    const int64_t first = -62167219200, last = 253402300799;
    for (int64_t t = first; t <= last; t += 86400 * 17 + 12347) {
        char text[HTTP_DATE_LENGTH + 1], expected[64];
        time_t seconds = t, back;
        struct tm tm;
        gmtime_r(&seconds, &tm);
        strftime(expected, sizeof expected, "%a, %d %b ", &tm);
        sprintf(expected + strlen(expected), "%04d ", tm.tm_year + 1900);
        strftime(expected + strlen(expected), 32, "%H:%M:%S GMT", &tm);
        http_date_format(text, seconds);
        EXPECT(strcmp(text, expected) == 0, "%lld is %s, not %s", (long long)t, text, expected);
        EXPECT(http_date_parse(slice_from(text), &back) && back == seconds, "%s is %lld", text,
               (long long)back);
    }
}
END_TEST

START_TEST(format_of_times_out_of_range) {
    char text[HTTP_DATE_LENGTH + 1];
    http_date_format(text, 253402300799 + 1);
    ck_assert_str_eq(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    http_date_format(text, (time_t)INT64_MAX);
    ck_assert_str_eq(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    http_date_format(text, (time_t)INT64_MIN);
    ck_assert_str_eq(text, "Sat, 01 Jan 0000 00:00:00 GMT");
}
END_TEST

Suite *date_suite(void) {
    const TTest *const tests[] = {
        three_forms,
        case_does_not_matter,
        every_prefix_and_extension_is_refused,
        every_other_byte_is_refused,
        what_looks_like_a_date,
        days_that_exist,
        far_dates,
        two_digits_of_a_year,
        format_agrees_with_the_c_library,
        format_of_times_out_of_range,
    };
    return suite_of("date", tests, COUNT_OF(tests));
}
