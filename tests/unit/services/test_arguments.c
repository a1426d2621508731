#include "suites.h"

#include "service/arguments.h"

START_TEST(values) {
    static const struct {
        const char *arguments, *name, *value;
    } cases[] = {
        {"width=320", "width", "320"},
        {"width=320&quality=60", "quality", "60"},
        {"a=1&a=2", "a", "1"},
        {"strip", "strip", ""},
        {"strip&width=", "width", ""},
        {"a=b=c", "a", "b=c"},
        {"&&a=1", "a", "1"},
        {"width=320", "wid", NULL},
        {"width=320", "width=320", NULL},
        {"xwidth=320", "width", NULL},
        {"", "width", NULL},
        {"=5", "", "5"},
        {"&", "", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice value = slice_make(NULL, 0);
        bool found = service_argument(guard_put(slice_from(cases[i].arguments)),
                                      slice_from(cases[i].name), &value);
        EXPECT(found == (cases[i].value != NULL) &&
                   (!found || slice_equal(value, slice_from(cases[i].value))),
               "\"%s\" in \"%s\"", cases[i].name, cases[i].arguments);
    }
}
END_TEST

START_TEST(numbers) {
    uint64_t number = 7;
    ck_assert(service_argument_number(SLICE("a=12"), SLICE("a"), 1, 12, &number));
    ck_assert_uint_eq(number, 12);
    ck_assert(!service_argument_number(SLICE("a=13"), SLICE("a"), 1, 12, &number));
    ck_assert(!service_argument_number(SLICE("a=0"), SLICE("a"), 1, 12, &number));
    ck_assert(!service_argument_number(SLICE("a=-1"), SLICE("a"), 0, 12, &number));
    ck_assert(!service_argument_number(SLICE("a="), SLICE("a"), 0, 12, &number));
    ck_assert(!service_argument_number(SLICE("b=1"), SLICE("a"), 0, 12, &number));
    ck_assert_uint_eq(number, 12);
}
END_TEST

Suite *arguments_suite(void) {
    const TTest *const tests[] = {values, numbers};
    return suite_of("arguments", tests, COUNT_OF(tests));
}
