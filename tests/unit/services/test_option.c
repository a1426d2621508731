#include "suites.h"

#include "service/option.h"

struct example {
    char *text;
    struct service_list list;
    uint64_t number, size, duration, choice;
    bool on;
};

static const struct service_option options[] = {
    {"Text", SERVICE_OPTION_TEXT, offsetof(struct example, text), "t", 0, 0, NULL, ""},
    {"List", SERVICE_OPTION_LIST, offsetof(struct example, list), "a b", 0, 0, NULL, ""},
    {"Number", SERVICE_OPTION_NUMBER, offsetof(struct example, number), "6", 1, 9, NULL, ""},
    {"Size", SERVICE_OPTION_SIZE, offsetof(struct example, size), "16M", 1, UINT64_MAX, NULL, ""},
    {"Duration", SERVICE_OPTION_DURATION, offsetof(struct example, duration), "2s", 1, 60000, NULL,
     ""},
    {"Choice", SERVICE_OPTION_CHOICE, offsetof(struct example, choice), "one", 0, 0,
     "one|two|three", ""},
    {"On", SERVICE_OPTION_SWITCH, offsetof(struct example, on), "off", 0, 0, NULL, ""},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static bool set(struct example *example, int option, const char *text) {
    char error[200] = "";
    bool good =
        service_option_set(&options[option], example, slice_from(text), error, sizeof error);
    ck_assert_msg(good == (error[0] == 0), "error and result disagree: %s", error);
    return good;
}

START_TEST(defaults_and_settings) {
    struct example example;
    service_options_defaults(options, &example);
    ck_assert_str_eq(example.text, "t");
    ck_assert_uint_eq(example.list.count, 2);
    ck_assert_uint_eq(example.number, 6);
    ck_assert_uint_eq(example.size, 16 << 20);
    ck_assert_uint_eq(example.duration, 2000);
    ck_assert(set(&example, 0, " other "));
    ck_assert_str_eq(example.text, "other");
    ck_assert(set(&example, 1, "x") && set(&example, 1, "y y"));
    ck_assert_uint_eq(example.list.count, 2);
    ck_assert_str_eq(example.list.items[1], "y y");
    ck_assert(set(&example, 2, "9") && !set(&example, 2, "10") && !set(&example, 2, "0"));
    ck_assert(!set(&example, 2, "") && !set(&example, 2, "-1") && !set(&example, 2, "1x"));
    ck_assert_uint_eq(example.number, 9);
    ck_assert(set(&example, 3, "64K") && example.size == 65536);
    ck_assert(!set(&example, 3, "64X") && !set(&example, 3, "99999999999999999999"));
    ck_assert(!set(&example, 3, "99999999999G"));
    ck_assert(set(&example, 4, "500ms") && example.duration == 500);
    ck_assert(set(&example, 4, "1m") && example.duration == 60000);
    ck_assert(!set(&example, 4, "2m") && !set(&example, 4, "1h"));
    ck_assert(set(&example, 5, "THREE") && example.choice == 2);
    ck_assert(!set(&example, 5, "thre") && !set(&example, 5, ""));
    ck_assert(set(&example, 6, "on") && example.on && !set(&example, 6, "maybe"));
    service_options_release(options, &example);
}
END_TEST

Suite *option_suite(void) {
    const TTest *const tests[] = {defaults_and_settings};
    return suite_of("option", tests, COUNT_OF(tests));
}
