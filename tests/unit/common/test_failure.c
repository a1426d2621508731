#include "base/failure.h"

#include "suites.h"

START_TEST(a_failure_is_false_and_says_why) {
    char error[20];
    ck_assert(!failure(error, sizeof error, "%s: it has %d %s", "list", 3, "rows"));
    ck_assert_str_eq(error, "list: it has 3 rows");
    ck_assert(!failure(error, 8, "%s", "is too long for that"));
    ck_assert_str_eq(error, "is too ");
}
END_TEST

Suite *failure_suite(void) {
    const TTest *const tests[] = {a_failure_is_false_and_says_why};
    return suite_of("failure", tests, COUNT_OF(tests));
}
