#include "suites.h"

#include "config/value.h"
#include "settings/options.h"

static char *printed(void (*print)(FILE *out)) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    print(out);
    fclose(out);
    return text;
}

START_TEST(the_manual_has_every_option) {
    char *markdown = printed(settings_print_markdown), *man = printed(settings_print_man);
    char heading[200];
    for (const struct option *option = settings_table()->options; option->name != NULL; option++) {
        const char *dot = option->section[0] != '\0' ? "." : "";
        const char *parent = options_find_section(settings_table(), option->section)->parent;
        snprintf(heading, sizeof heading, "\n### %s%s%s%s%s\n", parent != NULL ? parent : "",
                 parent != NULL ? "." : "", option->section, dot, option->name);
        ck_assert_msg(strstr(markdown, heading) != NULL, "no%s", heading);
        snprintf(heading, sizeof heading, "\n.SS %s%s%s%s%s\n", parent != NULL ? parent : "",
                 parent != NULL ? "." : "", option->section, dot, option->name);
        ck_assert_msg(strstr(man, heading) != NULL, "no%s", heading);
    }
    free(markdown);
    free(man);
}
END_TEST

START_TEST(every_row_is_whole) {
    for (const struct option *option = settings_table()->options; option->name != NULL; option++) {
        ck_assert_ptr_nonnull(options_find_section(settings_table(), option->section));
        ck_assert_ptr_eq(options_find(settings_table(), option->section, option->name), option);
        ck_assert_msg(option->documentation != NULL && option->example != NULL, "%s", option->name);
        ck_assert_msg((option->type == OPTION_WORD) == (option->words != NULL), "%s", option->name);
        bool several = option_is_list(option) && option->section[0] != '\0';
        ck_assert_msg(several || option->required + (option->fallback != NULL) +
                                         (option->fallback_note != NULL) ==
                                     1,
                      "%s", option->name);
    }
}
END_TEST

/* The values in the manual can be copied from it. */
START_TEST(examples_are_good) {
    char text[8192] = "listen \":1\" { mode = reverse }\n";
    size_t length = strlen(text);
    const char *section = "";
    for (const struct option *option = settings_table()->options; option->name != NULL; option++) {
        const struct option_section *kind = options_find_section(settings_table(), option->section);
        bool names_file = strncmp(option->example, "\"/etc/", strlen("\"/etc/")) == 0;
        bool of_admin_tls = strcmp(option->section, "admin") == 0 &&
                            (strcmp(option->name, "min_version") == 0 ||
                             strcmp(option->name, "client_certificate") == 0);
        if (kind->title != NULL || names_file || of_admin_tls ||
            strcmp(kind->name, "authority") == 0)
            continue; /* a file that is read at the load is not there, as those of TLS */
        if (strcmp(section, option->section) != 0) {
            length += (size_t)sprintf(text + length, "%s%s {\n", section[0] != '\0' ? "}\n" : "",
                                      option->section);
            section = option->section;
        }
        length += (size_t)sprintf(text + length, "%s = %s\n", option->name, option->example);
    }
    sprintf(text + length, "}\n");
    struct settings *s = settings_from(text);
    ck_assert_uint_eq(s->workers, 4);
    settings_release(&s);
}
END_TEST

START_TEST(the_kept_manual_is_current) {
    char *path = source_path("docs/CONFIGURATION.md"), *kept = read_text(path);
    char *now = printed(settings_print_markdown);
    ck_assert_msg(strcmp(kept, now) == 0,
                  "docs/CONFIGURATION.md is not what the option table says: run \"make docs\" and "
                  "commit it");
    free(path);
    free(kept);
    free(now);
}
END_TEST

Suite *manual_suite(void) {
    const TTest *const tests[] = {
        the_manual_has_every_option,
        every_row_is_whole,
    };
    const TTest *const with_all[] = {examples_are_good, the_kept_manual_is_current};
    Suite *suite = suite_of("manual", tests, COUNT_OF(tests));
    suite_add_with(suite, "all", with_all, COUNT_OF(with_all));
    return suite;
}
