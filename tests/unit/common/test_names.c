#include "suites.h"

#include "http/names.h"

#include <ctype.h>

static enum http_name lookup_guarded(struct slice name) {
    return http_name_lookup(guard_put(name));
}

START_TEST(every_name_is_found_in_any_case) {
    for (unsigned id = HTTP_OTHER + 1; id < HTTP_NAME_COUNT; id++) {
        struct slice name = http_name_text((enum http_name)id);
        char lower[64], upper[64], mixed[64];
        ck_assert_uint_lt(name.length, sizeof lower);
        for (size_t i = 0; i < name.length; i++) {
            lower[i] = (char)tolower(name.base[i]);
            upper[i] = (char)toupper(name.base[i]);
            mixed[i] = i % 2 == 0 ? lower[i] : upper[i];
        }
        ck_assert_int_eq(lookup_guarded(name), (int)id);
        ck_assert_int_eq(lookup_guarded(slice_make(lower, name.length)), (int)id);
        ck_assert_int_eq(lookup_guarded(slice_make(upper, name.length)), (int)id);
        ck_assert_int_eq(lookup_guarded(slice_make(mixed, name.length)), (int)id);
    }
}
END_TEST

/* One byte changed to any other: nothing but another case of the same letter is the same name. */
START_TEST(nothing_else_is_a_name) {
    for (unsigned id = HTTP_OTHER + 1; id < HTTP_NAME_COUNT; id++) {
        struct slice name = http_name_text((enum http_name)id);
        char near[64];
        memcpy(near, name.base, name.length);
        for (size_t i = 0; i < name.length; i++) {
            for (unsigned c = 0; c < 256; c++) {
                near[i] = (char)c;
                bool same =
                    ascii_lower((unsigned char)c) == ascii_lower((unsigned char)name.base[i]);
                enum http_name found = http_name_lookup(slice_make(near, name.length));
                EXPECT((found == id) == same, "%.*s with byte %u at %zu gives %d",
                       SLICE_PRINT(name), c, i, found);
            }
            near[i] = name.base[i];
        }
        ck_assert_int_ne(lookup_guarded(slice_make(name.base, name.length - 1)), (int)id);
    }
}
END_TEST

/* Some of these share the slot of the name that they begin with. */
START_TEST(longer_names_are_other_names) {
    for (unsigned id = HTTP_OTHER + 1; id < HTTP_NAME_COUNT; id++) {
        struct slice name = http_name_text((enum http_name)id);
        char longer[64];
        memcpy(longer, name.base, name.length);
        for (unsigned end = 0; end < 65536; end++) {
            longer[name.length] = (char)(end >> 8);
            longer[name.length + 1] = (char)end;
            enum http_name found = http_name_lookup(slice_make(longer, name.length + 2));
            EXPECT(found != id, "%.*s", (int)name.length + 2, longer);
        }
    }
}
END_TEST

START_TEST(unknown_names) {
    ck_assert_int_eq(lookup_guarded(SLICE("")), HTTP_OTHER);
    ck_assert_int_eq(http_name_lookup(slice_make(NULL, 0)), HTTP_OTHER);
    ck_assert_int_eq(lookup_guarded(SLICE("X")), HTTP_OTHER);
    ck_assert_int_eq(lookup_guarded(SLICE("Content-Lengths")), HTTP_OTHER);
    ck_assert_int_eq(lookup_guarded(SLICE("Content_Length")), HTTP_OTHER);
    ck_assert_uint_eq(http_name_text(HTTP_OTHER).length, 0);
}
END_TEST

START_TEST(methods) {
    ck_assert_int_eq(http_method_lookup(guard_put(SLICE("GET"))), HTTP_METHOD_GET);
    ck_assert_int_eq(http_method_lookup(SLICE("get")), HTTP_METHOD_OTHER);
    ck_assert_int_eq(http_method_lookup(SLICE("GETS")), HTTP_METHOD_OTHER);
    ck_assert_int_eq(http_method_lookup(guard_put(SLICE("GE"))), HTTP_METHOD_OTHER);
    ck_assert_int_eq(http_method_lookup(SLICE("")), HTTP_METHOD_OTHER);
    for (unsigned id = HTTP_METHOD_OTHER + 1; id < HTTP_METHOD_COUNT; id++) {
        struct slice text = http_method_text((enum http_method)id);
        ck_assert_int_eq(http_method_lookup(guard_put(text)), (int)id);
    }
}
END_TEST

START_TEST(method_properties) {
    ck_assert(http_method_is_safe(HTTP_METHOD_GET) && http_method_is_idempotent(HTTP_METHOD_GET));
    ck_assert(http_method_is_safe(HTTP_METHOD_HEAD) && http_method_is_safe(HTTP_METHOD_OPTIONS));
    static const char *const safe[] = {"PRI", "PROPFIND", "QUERY", "REPORT", "SEARCH", "TRACE"};
    for (unsigned i = 0; i < COUNT_OF(safe); i++) {
        enum http_method id = http_method_lookup(slice_from(safe[i]));
        ck_assert_msg(http_method_is_safe(id) && http_method_is_idempotent(id), "%s", safe[i]);
    }
    ck_assert(!http_method_is_safe(HTTP_METHOD_PUT) && http_method_is_idempotent(HTTP_METHOD_PUT));
    ck_assert(!http_method_is_safe(HTTP_METHOD_DELETE));
    ck_assert(http_method_is_idempotent(HTTP_METHOD_DELETE));
    ck_assert(!http_method_is_safe(HTTP_METHOD_POST));
    ck_assert(!http_method_is_idempotent(HTTP_METHOD_POST));
    ck_assert(!http_method_is_idempotent(HTTP_METHOD_PATCH));
    ck_assert(!http_method_is_safe(HTTP_METHOD_OTHER));
    ck_assert(!http_method_is_idempotent(HTTP_METHOD_OTHER));
}
END_TEST

START_TEST(reasons) {
    ck_assert_str_eq(http_reason(200), "OK");
    ck_assert_str_eq(http_reason(404), "Not Found");
    ck_assert_str_eq(http_reason(504), "Gateway Timeout");
    ck_assert_str_eq(http_reason(299), "Unknown");
    ck_assert_str_eq(http_reason(0), "Unknown");
}
END_TEST

Suite *names_suite(void) {
    const TTest *const tests[] = {
        every_name_is_found_in_any_case,
        nothing_else_is_a_name,
        longer_names_are_other_names,
        unknown_names,
        methods,
        method_properties,
        reasons,
    };
    return suite_of("names", tests, COUNT_OF(tests));
}
