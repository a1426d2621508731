#include "suites.h"

#include "helpers/recipe.h"

START_TEST(words_and_programs) {
    struct recipe_book book = {0};
    char error[300];
    ck_assert(recipe_add(&book, "image/bmp = a  -b\tc|d | e;f $g", error, sizeof error));
    const struct recipe *recipe = recipe_find(&book, SLICE("IMAGE/BMP"));
    ck_assert_ptr_nonnull(recipe);
    static const char *const words[][4] = {{"a", "-b", "c"}, {"d"}, {"e;f", "$g"}};
    for (int program = 0; program < 3; program++) {
        int at = 0;
        for (; words[program][at] != NULL; at++)
            ck_assert_str_eq(recipe->programs[program][at], words[program][at]);
        ck_assert_ptr_null(recipe->programs[program][at]);
    }
    ck_assert_ptr_null(recipe->programs[3]);
    ck_assert_ptr_null(recipe_find(&book, SLICE("image/gif")));
    recipe_book_release(&book);
}
END_TEST

START_TEST(the_last_counts) {
    struct recipe_book book = {0};
    char error[300];
    ck_assert(recipe_add(&book, "image/bmp=a", error, sizeof error));
    ck_assert(recipe_add(&book, "image/bmp=b", error, sizeof error));
    ck_assert_str_eq(recipe_find(&book, SLICE("image/bmp"))->programs[0][0], "b");
    ck_assert(recipe_add(&book, "image/bmp=", error, sizeof error));
    ck_assert(recipe_is_empty(recipe_find(&book, SLICE("image/bmp"))));
    recipe_book_release(&book);
}
END_TEST

START_TEST(nonsense_is_refused) {
    static const char *const bad[] = {"",       "image/bmp",          "=a", "x=|", "x=a||b",
                                      "x= | a", "x=a|b|c|d|e|f|g|h|i"};
    struct recipe_book book = {0};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char error[300] = "";
        EXPECT(!recipe_add(&book, bad[i], error, sizeof error), "taken: \"%s\"", bad[i]);
        EXPECT(error[0] != 0, "no reason given for \"%s\"", bad[i]);
    }
    ck_assert_uint_eq(book.count, 0);
}
END_TEST

Suite *recipe_suite(void) {
    const TTest *const tests[] = {words_and_programs, the_last_counts, nonsense_is_refused};
    return suite_of("recipe", tests, COUNT_OF(tests));
}
