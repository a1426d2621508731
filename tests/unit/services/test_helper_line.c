#include "suites.h"

#include "service/helper_line.h"

START_TEST(questions) {
    static const struct {
        struct slice fields;
        const char *line;
    } cases[] = {
        {{"joe\0secret", 10}, "joe secret\n"},
        {{"joe", 3}, "joe\n"},
        {{"joe x\0a b", 9}, "joe%20x a%20b\n"},
        {{"j\"%\\'\0&=", 8}, "j%22%25%5C%27 %26%3D\n"},
        {{"\xc3\xa4\0-._~", 7}, "%C3%A4 -._~\n"},
        {{"", 0}, NULL},
        {{"joe\0", 4}, NULL},    /* an empty password */
        {{"\0secret", 7}, NULL}, /* nobody */
        {{"a\nb\0c", 5}, NULL},  /* another line */
        {{"a\0b\rc", 5}, NULL},
        {{"a\0b\x7f", 4}, NULL},
        {{"a\0b\0c\0d\0e\0f\0g\0h\0i", 17}, NULL}, /* too many */
    };
    char line[HELPER_LINE_QUESTION];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t length = helper_line_write(line, sizeof line, guard_put(cases[i].fields), NULL);
        const char *expected = cases[i].line == NULL ? "" : cases[i].line;
        EXPECT(slice_equal(slice_make(line, length), slice_from(expected)), "case %zu: %.*s", i,
               (int)length, line);
    }
}
END_TEST

START_TEST(a_channel_stands_in_front) {
    char line[HELPER_LINE_QUESTION];
    uint64_t channel = 17, read;
    size_t length = helper_line_write(line, sizeof line, SLICE("joe\0x"), &channel);
    ck_assert(slice_equal(slice_make(line, length), SLICE("17 joe x\n")));
    struct slice answer = SLICE("17 OK");
    ck_assert(helper_line_take_channel(&answer, &read) && read == 17);
    ck_assert(slice_equal(answer, SLICE("OK")));
    const char *const none[] = {"", "OK", "-1 OK", "17x OK", " 17 OK", "99999999999999999999 OK"};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        answer = slice_from(none[i]);
        EXPECT(!helper_line_take_channel(&answer, &read), "%s", none[i]);
    }
}
END_TEST

START_TEST(fields_are_counted_and_bounded) {
    char line[HELPER_LINE_QUESTION], field[HELPER_LINE_FIELD + 1];
    memset(field, '%', sizeof field);
    ck_assert(helper_line_fields_valid(SLICE("a\0b"), 2, 2));
    ck_assert(!helper_line_fields_valid(SLICE("a"), 2, 2));
    ck_assert(!helper_line_fields_valid(SLICE("a\0b\0c"), 2, 2));
    ck_assert(!helper_line_fields_valid(slice_make(NULL, 0), 1, 2));
    ck_assert(!helper_line_fields_valid(slice_make(field, sizeof field), 1, 1));
    struct slice most = slice_make(field, HELPER_LINE_FIELD);
    ck_assert_uint_eq(helper_line_write(line, sizeof line, most, NULL), 3 * HELPER_LINE_FIELD + 1);
    ck_assert_uint_eq(helper_line_write(line, 3 * HELPER_LINE_FIELD, most, NULL), 0);
}
END_TEST

/* The answer and its pairs as one text: "OK name=[value]". "bad" when it breaks the rules. */
static const char *helper_line_told(const char *text) {
    static const char *const results[] = {"OK", "ERR", "BH"};
    static char told[2 * HELPER_LINE_ANSWER];
    struct helper_line_answer answer;
    struct helper_line_pair pair;
    enum helper_line_next next;
    struct slice line = guard_put(slice_from(text));
    if (!helper_line_read(line, &answer))
        return helper_line_valid(line) ? "different" : "no answer";
    size_t used = (size_t)sprintf(told, "%s", results[answer.result]);
    while ((next = helper_line_next(&answer, &pair)) == HELPER_LINE_PAIR)
        used += (size_t)snprintf(told + used, sizeof told - used, " %.*s=[%.*s]",
                                 SLICE_PRINT(pair.name), (int)pair.length, pair.value);
    if (helper_line_valid(line) != (next == HELPER_LINE_END))
        return "different";
    return next == HELPER_LINE_END ? told : "bad";
}

START_TEST(answers) {
    static const char *const cases[][2] = {
        {"OK", "OK"},
        {"ERR", "ERR"},
        {"BH", "BH"},
        {"ERR Wrong password", "ERR"},
        {"OK user=joe", "OK user=[joe]"},
        {"OK user=\"joe x\" group=a group=b", "OK user=[joe x] group=[a] group=[b]"},
        {"OK  group=%41%20b ", "OK group=[A b]"},
        {"OK group=\"%41\"", "OK group=[%41]"},
        {"OK group=\"a\\\"b\\\\\"", "OK group=[a\"b\\]"},
        {"OK group=100%", "OK group=[100%]"},
        {"OK group=%4", "OK group=[%4]"},
        {"OK group=", "OK group=[]"},
        {"OK a b=1 c", "OK b=[1]"},
        {"OK =x", "OK"},
        {"OK\tuser=joe", "OK user=[joe]"},
        {"", "no answer"},
        {"OKAY", "no answer"},
        {"ok", "no answer"},
        {" OK", "no answer"},
        {"TT abc", "no answer"},
        {"0 OK", "no answer"},
        {"OK user=a\rb", "no answer"},
        {"OK user=a\x1b[1m", "no answer"},
        {"OK user=joe%0Agroup=admin", "bad"},
        {"OK user=joe%00", "bad"},
        {"OK user=\"joe", "bad"},
        {"OK user=\"joe\\", "bad"},
        {"OK user=\"joe\"admin=1", "bad"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *told = helper_line_told(cases[i][0]);
        EXPECT(strcmp(told, cases[i][1]) == 0, "\"%s\" is \"%s\"", cases[i][0], told);
    }
}
END_TEST

START_TEST(a_value_is_bounded) {
    char line[HELPER_LINE_ANSWER] = "OK user=";
    memset(line + 8, 'a', HELPER_LINE_VALUE);
    ck_assert(helper_line_valid(slice_make(line, 8 + HELPER_LINE_VALUE)));
    line[8 + HELPER_LINE_VALUE] = 'a';
    ck_assert(!helper_line_valid(slice_make(line, 8 + HELPER_LINE_VALUE + 1)));
}
END_TEST

Suite *helper_line_suite(void) {
    const TTest *const tests[] = {questions, a_channel_stands_in_front,
                                  fields_are_counted_and_bounded, answers, a_value_is_bounded};
    return suite_of("helper_line", tests, COUNT_OF(tests));
}
