/* Accept and Accept-Language: which type and which language a client prefers. */
#include "suites.h"

#include "http/preference.h"

static unsigned of_type(const char *accept, const char *type) {
    return preference_of_type(slice_from(accept), slice_from(type)).quality;
}

static unsigned of_language(const char *field, const char *language) {
    return preference_of_language(slice_from(field), slice_from(language)).quality;
}

START_TEST(types_have_qualities) {
    /* The example of RFC 9110 §12.5.1, without parameters of types. */
    static const char example[] = "text/*;q=0.3, text/plain;q=0.7, */*;q=0.5";
    ck_assert_uint_eq(of_type(example, "text/plain"), 700);
    ck_assert_uint_eq(of_type(example, "text/html"), 300);
    ck_assert_uint_eq(of_type(example, "image/jpeg"), 500);
    ck_assert_uint_eq(of_type("", "text/html"), 1000);
    ck_assert_uint_eq(of_type("application/json", "text/html"), 0);
    ck_assert_uint_eq(of_type("*/*, text/html;q=0", "text/html"), 0);
    ck_assert_uint_eq(of_type("TEXT/HTML ; level=1 ; Q=0.25", "text/html"), 250);
    ck_assert_uint_eq(of_type("textual/*", "text/html"), 0);
    ck_assert_uint_eq(of_type("*", "text/html"), 0);
}
END_TEST

START_TEST(languages_have_qualities) {
    ck_assert_uint_eq(of_language("da, en-gb;q=0.8, en;q=0.7", "en-GB"), 800);
    ck_assert_uint_eq(of_language("da, en-gb;q=0.8, en;q=0.7", "en"), 700);
    ck_assert_uint_eq(of_language("da, en-gb;q=0.8, en;q=0.7", "de"), 0);
    ck_assert_uint_eq(of_language("de", "de-AT"), 1000);
    ck_assert_uint_eq(of_language("de-AT", "de"), 1000);
    ck_assert_uint_eq(of_language("de-AT", "de-CH"), 0);
    ck_assert_uint_eq(of_language("de-AT;q=0.9, de;q=0.1", "de"), 100);
    ck_assert_uint_eq(of_language("*;q=0.2, en", "fr"), 200);
    ck_assert_uint_eq(of_language("*, fr;q=0", "fr"), 0);
    ck_assert_uint_eq(of_language("den", "de"), 0);
    ck_assert_uint_eq(preference_of_language(SLICE("fr, de"), SLICE("de")).at, 1);
}
END_TEST

START_TEST(what_can_not_be_read_is_skipped) {
    static const char *const bad[] = {"de;q=2",  "de;q=1.5", "de;q=.5", "de;q=",   "de;q=0.1234",
                                      "de;q=-1", ";q=1",     "de;q=1a", "de;q=0x1"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_msg(of_language(bad[i], "de") == 0, "%s", bad[i]);
    ck_assert_uint_eq(of_language(",, ,de;q=1.000,", "de"), 1000);
    ck_assert_uint_eq(of_language("de;q=0.", "de"), 0);
    char many[4000] = "";
    for (int i = 0; i < PREFERENCE_RANGES; i++)
        strcat(many, "x-y,");
    ck_assert_uint_eq(of_language(strcat(many, "de"), "de"), 0);
}
END_TEST

Suite *preference_suite(void) {
    const TTest *const tests[] = {
        types_have_qualities,
        languages_have_qualities,
        what_can_not_be_read_is_skipped,
    };
    return suite_of("preference", tests, COUNT_OF(tests));
}
