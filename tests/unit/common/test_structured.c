/* Dictionaries of Structured Fields, each value in front of a forbidden page. */
#include "suites.h"

#include "http/structured.h"

/* The members as "key:type:text:number", with blanks between; "BAD" where it does not parse. */
static const char *members(const char *field) {
    static const char types[] = "idstbol"; /* in the order of enum structured_type */
    static char out[500];
    struct slice rest = guard_put(slice_from(field));
    struct structured_member member;
    enum structured_status status;
    size_t length = 0;
    out[0] = '\0';
    while ((status = structured_next(&rest, &member)) == STRUCTURED_MEMBER) {
        bool number = member.type == STRUCTURED_INTEGER || member.type == STRUCTURED_BOOLEAN;
        length +=
            (size_t)snprintf(out + length, sizeof out - length, "%s%.*s:%c:%.*s:%ld",
                             length > 0 ? " " : "", SLICE_PRINT(member.key), types[member.type],
                             SLICE_PRINT(member.text), number ? (long)member.number : 0);
    }
    return status == STRUCTURED_BAD ? "BAD" : out;
}

START_TEST(members_are_read) {
    ck_assert_str_eq(members(""), "");
    ck_assert_str_eq(members("a"), "a:o::1");
    ck_assert_str_eq(members("a=?0, b=?1"), "a:o:?0:0 b:o:?1:1");
    ck_assert_str_eq(members("a=1 ,\tb=-2\t, *c=007"), "a:i:1:1 b:i:-2:-2 *c:i:007:7");
    ck_assert_str_eq(members("max-age=999999999999999"),
                     "max-age:i:999999999999999:999999999999999");
    ck_assert_str_eq(members("a=1.5,b=-123456789012.123"), "a:d:1.5:0 b:d:-123456789012.123:0");
    ck_assert_str_eq(members("a=\"b, \\\"c\\\\\", d=\"\""), "a:s:\"b, \\\"c\\\\\":0 d:s:\"\":0");
    ck_assert_str_eq(members("a=foo/bar:*!,b=*"), "a:t:foo/bar:*!:0 b:t:*:0");
    ck_assert_str_eq(members("a=:aGk=:, b=::"), "a:b::aGk=::0 b:b::::0");
    ck_assert_str_eq(members("a=(), b=( 1  \"x\";y=2 ?0 );z"),
                     "a:l:():0 b:l:( 1  \"x\";y=2 ?0 ):0");
    ck_assert_str_eq(members("a;b;  c=1;d=\"e\", f=2;g=?1"), "a:o::1 f:i:2:2");
    ck_assert_str_eq(members("a_-.*9=1"), "a_-.*9:i:1:1");
}
END_TEST

START_TEST(what_is_no_dictionary) {
    static const char *const fields[] = {",",
                                         ", a",
                                         "a,",
                                         "a, ",
                                         "a,,b",
                                         "a b",
                                         "a =1",
                                         "a= 1",
                                         "a=",
                                         "=1",
                                         "A",
                                         "aB",
                                         "1",
                                         "-a",
                                         "\"a\"",
                                         "a=1 b=2",
                                         "a=1;",
                                         "a=1; ",
                                         "a=1;B",
                                         "a;b=",
                                         "a=--1",
                                         "a=-",
                                         "a=1.",
                                         "a=.5",
                                         "a=1.1234",
                                         "a=1234567890123.1",
                                         "a=1234567890123456",
                                         "a=1e5",
                                         "a=\"b",
                                         "a=\"b\\\"",
                                         "a=\"\\x\"",
                                         "a=\"\x01\"",
                                         "a=\"\xc3\xa4\"",
                                         "a=?",
                                         "a=?2",
                                         "a=?true",
                                         "a=:YQ",
                                         "a=:Y-Q:",
                                         "a=(1",
                                         "a=(1,2)",
                                         "a=(1\"x\")",
                                         "a=(1 2",
                                         "a=((1))",
                                         "a=(;b)",
                                         "a=@",
                                         "a=&",
                                         "a=1, &&&&&",
                                         "a=b\"c\"",
                                         "a=1;b;;c",
                                         "\xff",
                                         "a\t=1",
                                         "a=1\x0b"};
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        ck_assert_msg(strcmp(members(fields[i]), "BAD") == 0, "\"%s\": %s", fields[i],
                      members(fields[i]));
}
END_TEST

/* Each beginning of a good field is read without a look behind it. */
START_TEST(every_beginning_is_read_within_its_bounds) {
    static const char whole[] = "a=\"b\\\"c\";d=:aGk=:, e=(1.5 ?0;f \"g\"), h=-12, *i;j=k/l:m, n";
    char begin[sizeof whole];
    for (size_t length = 0; length < sizeof whole; length++) {
        memcpy(begin, whole, length);
        begin[length] = '\0';
        members(begin);
    }
    ck_assert_str_eq(members("a=(1 2)"), "a:l:(1 2):0");
}
END_TEST

Suite *structured_suite(void) {
    const TTest *const tests[] = {members_are_read, what_is_no_dictionary,
                                  every_beginning_is_read_within_its_bounds};
    return suite_of("structured", tests, COUNT_OF(tests));
}
