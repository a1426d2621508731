/* Secondary keys, each value in front of a forbidden page, and each key too. */
#include "suites.h"

#include "cache/vary.h"

#include <string.h>

/* Does a request with these fields select what was stored for one with those? */
static bool selects(const char *vary, const char *stored_for, const char *asks) {
    struct http_head request, response, other;
    head_from(&request, stored_for);
    head_from(&response, vary);
    head_from(&other, asks);
    size_t length = vary_write(&request, &response, NULL, 0);
    char *bytes = malloc(length + 1);
    bytes[length] = 'x';
    ck_assert_uint_eq(vary_write(&request, &response, bytes, length), length);
    ck_assert_int_eq(bytes[length], 'x');
    struct slice key = guard_keep(slice_make(bytes, length));
    free(bytes);
    ck_assert(vary_matches(key, &request));
    return vary_matches(key, &other);
}

START_TEST(what_means_the_same_selects_the_same) {
    ck_assert(selects("Vary: A\n", "A: b, c\n", "a: b\nX: y\nA: c\n"));
    ck_assert(selects("Vary: A\n", "A: b ,, c\n", "A: b,c\n"));
    ck_assert(selects("Vary: Accept-Encoding\n", "Accept-Encoding: gzip, br\n",
                      "Accept-Encoding: BR,GZIP\n"));
    ck_assert(selects("Vary: A\nVary: B, a\n", "A: b\n", "A: b\n"));
    ck_assert(selects("Vary: ,\n", "A: b\n", ""));
}
END_TEST

START_TEST(what_differs_does_not) {
    ck_assert(!selects("Vary: A\n", "A: b, c\n", "A: c, b\n"));
    ck_assert(!selects("Vary: A\n", "A: b\n", "A: B\n"));
    ck_assert(!selects("Vary: A\n", "A: b\n", ""));
    ck_assert(!selects("Vary: A\n", "", "A:\n"));
    ck_assert(!selects("Vary: A\n", "A:\n", ""));
    ck_assert(!selects("Vary: A\n", "A: b\n", "A: bc\n"));
    ck_assert(!selects("Vary: A\n", "A: bc\n", "A: b\n"));
    ck_assert(!selects("Vary: B, A\n", "A: b\nB: c\n", "A: c\nB: b\n"));
}
END_TEST

/* A Cookie field of several KB selects what was stored for it like any other. */
START_TEST(long_values_match) {
    char line[9000] = "Cookie: ", other[9000];
    size_t name = strlen(line);
    memset(line + name, 'x', sizeof line - name - 2);
    strcpy(line + sizeof line - 2, "\n");
    strcpy(other, line);
    other[sizeof other - 3] = 'y';
    ck_assert(selects("Vary: Cookie\n", line, line));
    ck_assert(!selects("Vary: Cookie\n", line, other));
}
END_TEST

/* More elements than are sorted: as they stand. */
START_TEST(long_lists_match) {
    char line[1000] = "Accept-Language: a", other[1000];
    for (unsigned i = 0; i < 70; i++)
        sprintf(line + strlen(line), ",b%u", i);
    strcat(line, "\n");
    strcpy(other, line);
    other[strlen(other) - 2] = 'x';
    ck_assert(selects("Vary: Accept-Language\n", line, line));
    ck_assert(!selects("Vary: Accept-Language\n", line, other));
}
END_TEST

START_TEST(some_select_nothing) {
    static const char *const unusable[] = {"Vary: *\n", "Vary: a, *\n", "Vary: a:b\n",
                                           "Vary: a b\n", "Vary: a\nVary: \"b\"\n"};
    struct http_head response;
    for (size_t i = 0; i < COUNT_OF(unusable); i++) {
        head_from(&response, unusable[i]);
        ck_assert_msg(!vary_usable(&response), "%s", unusable[i]);
    }
    head_from(&response, "Vary: Accept, X-A_b\nvary: ,\n");
    ck_assert(vary_usable(&response));
    head_from(&response, "");
    ck_assert(vary_usable(&response));
}
END_TEST

START_TEST(nothing_is_written_past_the_room) {
    struct http_head request, response;
    char whole[100], part[100];
    head_from(&request, "Accept-Encoding: gzip, br\nA: b\n");
    head_from(&response, "Vary: A, Accept-Encoding\n");
    size_t length = vary_write(&request, &response, whole, sizeof whole);
    for (size_t room = 0; room <= length; room++) {
        memset(part, '#', sizeof part);
        ck_assert_uint_eq(vary_write(&request, &response, part, room), length);
        ck_assert_int_eq(memcmp(part, whole, room), 0);
        ck_assert_int_eq(part[room], '#');
    }
}
END_TEST

/* Unless they want different values of the same field, some request matches both. */
START_TEST(selectors_overlap) {
    static const struct {
        const char *a, *b;
        bool overlap;
    } pairs[] = {
        {"", "", true},
        {"", "kind:red\n", true},
        {"kind:red\n", "kind:red\n", true},
        {"kind:red\n", "kind:blue\n", false},
        {"kind:red\n", "kind:\r\n", false},
        {"kind:red\n", "other:red\n", true},
        {"kind:red\nother:a\n", "other:b\nkind:red\n", false},
        {"kind:red\nother:a\n", "other:a\n", true},
        {"kind:a:b\n", "kind:a\n", false},
    };
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct slice a = slice_from(pairs[i].a), b = slice_from(pairs[i].b);
        ck_assert_int_eq(vary_overlaps(a, b), pairs[i].overlap);
        ck_assert_int_eq(vary_overlaps(b, a), pairs[i].overlap);
    }
}
END_TEST

Suite *vary_suite(void) {
    const TTest *const tests[] = {what_means_the_same_selects_the_same,
                                  what_differs_does_not,
                                  long_values_match,
                                  long_lists_match,
                                  some_select_nothing,
                                  selectors_overlap,
                                  nothing_is_written_past_the_room};
    return suite_of("vary", tests, COUNT_OF(tests));
}
