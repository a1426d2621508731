/* No limit without a counter: the table of bounds against the table of options. */
#include "suites.h"

#include "admin/metrics_page.h"
#include "settings/options.h"

#include <string.h>

static unsigned rows_of(const char *option) {
    unsigned count = 0;
    for (const struct bound *bound = bounds; bound->option != NULL; bound++)
        count += strcmp(bound->option, option) == 0;
    return count;
}

/* May it refuse something? Numbers, sizes and timeouts can. */
static bool is_bound(const struct option *option) {
    static const char timeout[] = "timeout";
    size_t length = strlen(option->name), end = sizeof timeout - 1;
    return option->type == OPTION_COUNT || option->type == OPTION_SIZE ||
           (option->type == OPTION_TIME && length >= end &&
            strcmp(option->name + length - end, timeout) == 0);
}

static void write_path(char path[100], const struct option *option) {
    bool top = option->section[0] == '\0';
    snprintf(path, 100, "%s%s%s", option->section, top ? "" : ".", option->name);
}

START_TEST(each_bound_has_one_row) {
    char path[100];
    for (const struct option *option = settings_table()->options; option->name != NULL; option++) {
        write_path(path, option);
        if (is_bound(option))
            ck_assert_msg(rows_of(path) == 1,
                          "%s has %u rows in admin/bounds.def: say there which counter counts what "
                          "it refuses, or why there is nothing to count",
                          path, rows_of(path));
    }
}
END_TEST

START_TEST(each_row_is_of_an_option) {
    for (const struct bound *bound = bounds; bound->option != NULL; bound++) {
        char section[100];
        snprintf(section, sizeof section, "%s", bound->option);
        char *dot = strchr(section, '.');
        if (dot != NULL)
            *dot = '\0';
        bool found = dot == NULL ? options_find(settings_table(), "", section) != NULL
                                 : options_find(settings_table(), section, dot + 1) != NULL;
        bool other = strcmp(bound->option, "limit") == 0 ||
                     strcmp(bound->option, "the machine's memory") == 0;
        ck_assert_msg(found || other, "%s is no option", bound->option);
        ck_assert((bound->metric == NULL) != (bound->why == NULL));
    }
}
END_TEST

Suite *bounds_suite(void) {
    const TTest *const tests[] = {
        each_bound_has_one_row,
        each_row_is_of_an_option,
    };
    return suite_of("bounds", tests, COUNT_OF(tests));
}
