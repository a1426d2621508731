/* Runs the unit tests of the services. CK_RUN_SUITE=filter in the environment runs one suite alone,
 * CK_FORK=no runs them all in this process, for a debugger. */
#include "suites.h"

#include "base/assert.h"

#include <sys/mman.h>
#include <unistd.h>

Suite *suite_of(const char *noun, const TTest *const *tests, size_t count) {
    Suite *suite = suite_create(noun);
    TCase *cases = tcase_create(noun);
    tcase_set_timeout(cases, 120);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    return suite;
}

struct slice guard_put(struct slice bytes) {
    static char *end;
    if (end == NULL) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *memory = mmap(NULL, GUARD_MAX + page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT(memory != MAP_FAILED);
        end = memory + GUARD_MAX;
        ASSERT(mprotect(end, page, PROT_NONE) == 0);
    }
    ASSERT(bytes.length <= GUARD_MAX);
    if (bytes.length > 0)
        memcpy(end - bytes.length, bytes.base, bytes.length);
    return slice_make(end - bytes.length, bytes.length);
}

/* c-icap wants a variable of the same name in each module, and a test loads all modules into one
 * process. AddressSanitizer asks for these options; 1: only variables of different sizes count. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_odr_violation=1";
}

int main(void) {
    SRunner *runner = srunner_create(accept_encoding_suite());
    srunner_add_suite(runner, adapted_head_suite());
    srunner_add_suite(runner, arguments_suite());
    srunner_add_suite(runner, driver_suite());
    srunner_add_suite(runner, encoder_suite());
    srunner_add_suite(runner, filter_suite());
    srunner_add_suite(runner, gif_gray_suite());
    srunner_add_suite(runner, helper_line_suite());
    srunner_add_suite(runner, helperd_settings_suite());
    srunner_add_suite(runner, helper_protocol_suite());
    srunner_add_suite(runner, image_type_suite());
    srunner_add_suite(runner, jpeg_gray_suite());
    srunner_add_suite(runner, module_suite());
    srunner_add_suite(runner, option_suite());
    srunner_add_suite(runner, picture_suite());
    srunner_add_suite(runner, picture_cost_suite());
    srunner_add_suite(runner, png_gray_suite());
    srunner_add_suite(runner, png_info_suite());
    srunner_add_suite(runner, policy_suite());
    srunner_add_suite(runner, queue_suite());
    srunner_add_suite(runner, recipe_suite());
    srunner_add_suite(runner, request_kind_suite());
    srunner_add_suite(runner, scanner_suite());
    srunner_add_suite(runner, service_suite());
    srunner_add_suite(runner, text_table_suite());
    srunner_add_suite(runner, url_pattern_suite());
    srunner_add_suite(runner, webp_gray_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
