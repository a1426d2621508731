/* Runs the unit tests of common/. CK_RUN_SUITE=head in the environment runs one suite alone,
 * CK_FORK=no runs them all in this process, for a debugger. */
#include "suites.h"

#include <stdlib.h>

Suite *suite_of(const char *noun, const TTest *const *tests, size_t count) {
    Suite *suite = suite_create(noun);
    TCase *cases = tcase_create(noun);
    tcase_set_timeout(cases, 60);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    return suite;
}

int main(void) {
    SRunner *runner = srunner_create(slice_suite());
    srunner_add_suite(runner, arena_suite());
    srunner_add_suite(runner, ring_suite());
    srunner_add_suite(runner, spool_suite());
    srunner_add_suite(runner, backoff_suite());
    srunner_add_suite(runner, base64_suite());
    srunner_add_suite(runner, text_suite());
    srunner_add_suite(runner, list_suite());
    srunner_add_suite(runner, table_suite());
    srunner_add_suite(runner, shared_table_suite());
    srunner_add_suite(runner, names_suite());
    srunner_add_suite(runner, preference_suite());
    srunner_add_suite(runner, head_suite());
    srunner_add_suite(runner, head_edit_suite());
    srunner_add_suite(runner, bytes_suite());
    srunner_add_suite(runner, chunked_suite());
    srunner_add_suite(runner, failure_suite());
    srunner_add_suite(runner, framing_suite());
    srunner_add_suite(runner, date_suite());
    srunner_add_suite(runner, structured_suite());
    srunner_add_suite(runner, threads_suite());
    srunner_add_suite(runner, times_suite());
    srunner_add_suite(runner, units_suite());
    srunner_add_suite(runner, url_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
