#include "suites.h"

#include "service/module.h"

#include <unistd.h>

static void *begin(void *service, struct service_exchange *exchange) {
    (void)service, (void)exchange;
    return NULL;
}

static enum service_verdict preview(void *state, struct slice body, bool complete) {
    (void)state, (void)body, (void)complete;
    return SERVICE_SKIP;
}

static void end(void *state) {
    (void)state;
}

static const struct service_ops good = {
    .version = SERVICE_VERSION,
    .name = "upper",
    .description = "text in capitals",
    .points = SERVICE_RESPONSE,
    .begin = begin,
    .preview = preview,
    .end = end,
};

/* The sentence about a service that differs from the good one. */
static const char *complaint(const struct service_ops *ops) {
    static char error[SERVICE_MODULE_ERROR];
    error[0] = '\0';
    if (!service_module_check(ops, "/lib/upper.so", "upper", error))
        ck_assert_str_ne(error, "");
    return error;
}

static void assert_contains(const char *text, const char *part) {
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\" lacks \"%s\"", text, part);
}

START_TEST(names_of_modules) {
    static const struct {
        const char *path, *name; /* NULL: none */
    } cases[] = {
        {"/usr/lib/retort/gray.so", "gray"},
        {"srv_gray.so", "gray"},
        {"./srv_utf8.so", "utf8"},
        {"gray", NULL},
        {"/tmp/.so", NULL},
        {"srv_.so", NULL},
        {"Gray.so", NULL},
        {"gray.so.1", NULL},
        {"my-gray.so", NULL},
        {"/tmp/gray.so/", NULL},
        {"", NULL},
        {"abcdefghijklmnopqrstuvwxyz01234567890123456789abcdefghijklmnopqrs.so", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char name[SERVICE_MODULE_NAME];
        bool found = service_module_name(cases[i].path, name);
        ck_assert_msg(found == (cases[i].name != NULL), "%s", cases[i].path);
        if (found)
            ck_assert_str_eq(name, cases[i].name);
    }
}
END_TEST

static void never_called(void *service, int fd, short events) {
    (void)service, (void)fd, (void)events;
}

START_TEST(unusable_services_are_refused) {
    static const char *const many_counters[] = {"A", "B", "C", "D", "E", "F", "G", "H", "I",
                                                "J", "K", "L", "M", "N", "O", "P", "Q", NULL};
    struct service_option many_options[SERVICE_MODULE_OPTIONS + 2] = {{.name = NULL}};
    ck_assert_str_eq(complaint(&good), "");
    struct service_ops ops = good;
    ops.version = SERVICE_VERSION + 1;
    assert_contains(complaint(&ops), "version 5 of the service interface, and this program has "
                                     "version 4: build the module again");
    ops = good, ops.name = "other";
    assert_contains(complaint(&ops), "defines the service upper with .name = \"other\"");
    ops = good, ops.name = NULL;
    assert_contains(complaint(&ops), ".name = \"\"");
    ops = good, ops.description = NULL;
    assert_contains(complaint(&ops), "no .description");
    ops = good, ops.points = 0;
    assert_contains(complaint(&ops), ".points");
    ops.points = SERVICE_RESPONSE | 4;
    assert_contains(complaint(&ops), ".points");
    ops = good, ops.begin = NULL;
    assert_contains(complaint(&ops), "no function .begin,");
    ops = good, ops.preview = NULL;
    assert_contains(complaint(&ops), "no function .preview,");
    ops = good, ops.end = NULL;
    assert_contains(complaint(&ops), "no function .end,");
    ops = good, ops.timer_period = 5;
    assert_contains(complaint(&ops), "a .timer_period and no .timer");
    ops = good, ops.descriptor = never_called;
    assert_contains(complaint(&ops), "a .descriptor and no .timer,");
    ops = good, ops.counters = many_counters;
    assert_contains(complaint(&ops), "17 counters, and 16 are allowed");
    ops.counters = many_counters + 1;
    ck_assert_str_eq(complaint(&ops), "");
    for (int i = 0; i <= SERVICE_MODULE_OPTIONS; i++)
        many_options[i].name = "Same";
    ops = good, ops.options = many_options;
    assert_contains(complaint(&ops), "33 options, and 32 are allowed");
    ops.options = many_options + 1;
    ck_assert_str_eq(complaint(&ops), "");
}
END_TEST

START_TEST(modules_are_loaded) {
    static const char *const names[] = {"adremover", "gray", "gzip", "inject"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[600], error[SERVICE_MODULE_ERROR] = "";
        snprintf(path, sizeof path, "%s/srv_%s.so", MODULES, names[i]);
        const struct service_ops *ops = service_module_load(path, error);
        ck_assert_msg(ops != NULL, "%s", error);
        ck_assert_str_eq(ops->name, names[i]);
        ck_assert_ptr_eq(service_module_load(path, error), ops);
    }
}
END_TEST

static const char *refusal(const char *path) {
    static char error[SERVICE_MODULE_ERROR];
    error[0] = '\0';
    ck_assert_ptr_null(service_module_load(path, error));
    return error;
}

START_TEST(files_that_are_no_modules_are_refused) {
    char folder[] = "/tmp/retort-module-XXXXXX", text[100], renamed[100], module[600];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(text, sizeof text, "%s/text.so", folder);
    snprintf(renamed, sizeof renamed, "%s/srv_other.so", folder);
    snprintf(module, sizeof module, "%s/srv_gray.so", MODULES);
    FILE *file = fopen(text, "w");
    ck_assert(file != NULL && fputs("no module", file) >= 0 && fclose(file) == 0);
    ck_assert_int_eq(symlink(module, renamed), 0);

    assert_contains(refusal("/usr/lib/libc.so.6"), "is no name of a module: call the file NAME.so");
    assert_contains(refusal("/nowhere/upper.so"),
                    "/nowhere/upper.so: No such file or directory; correct the path");
    /* A name alone is not looked for in the system's folders. */
    assert_contains(refusal("upper.so"), "upper.so: No such file or directory");
    assert_contains(refusal(text), "text.so");
    assert_contains(refusal(renamed), "has no symbol retort_service_other: the service is defined "
                                      "with SERVICE_DEFINE(other)");
    unlink(text);
    unlink(renamed);
    rmdir(folder);
}
END_TEST

static uint64_t build_of(const char *build) {
    struct service_ops ops = good;
    uint64_t fingerprint = SERVICE_FINGERPRINT_SEED;
    ops.build = build;
    service_module_mix_build(&fingerprint, build == NULL ? &good : &ops);
    return fingerprint;
}

/* Without a text the build ID of this program counts. */
START_TEST(code_is_told_apart) {
    ck_assert_uint_eq(build_of("one"), build_of("one"));
    ck_assert_uint_ne(build_of("one"), build_of("two"));
    ck_assert_uint_ne(build_of("one"), SERVICE_FINGERPRINT_SEED);
    ck_assert_uint_ne(build_of(NULL), SERVICE_FINGERPRINT_SEED);
    ck_assert_uint_eq(build_of(NULL), build_of(NULL));
    ck_assert_uint_ne(build_of(NULL), build_of("one"));
}
END_TEST

START_TEST(options_are_found_by_name) {
    static const struct service_option options[] = {{.name = "Level"}, {.name = "Type"}, {0}};
    ck_assert_ptr_eq(service_option_find(options, SLICE("Type")), &options[1]);
    ck_assert_ptr_null(service_option_find(options, SLICE("type")));
    ck_assert_ptr_null(service_option_find(options, SLICE("Typ")));
    ck_assert_ptr_null(service_option_find(options, SLICE("")));
    ck_assert_ptr_null(service_option_find(NULL, SLICE("Type")));
}
END_TEST

Suite *module_suite(void) {
    const TTest *const tests[] = {
        names_of_modules,          unusable_services_are_refused,         modules_are_loaded,
        options_are_found_by_name, files_that_are_no_modules_are_refused, code_is_told_apart,
    };
    return suite_of("module", tests, COUNT_OF(tests));
}
