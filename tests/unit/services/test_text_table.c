#include "suites.h"

#include "inject/text_table.h"

#include <unistd.h>

static struct text_table *table_of(const char *contents, char *error, size_t error_size) {
    char path[] = "/tmp/text_table_XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, contents, strlen(contents)), (ssize_t)strlen(contents));
    close(fd);
    struct text_table *table = text_table_read(path, error, error_size);
    unlink(path);
    return table;
}

static void expect(const struct text_table *table, const char *address, const char *text) {
    char out[100];
    size_t length = text_table_answer(table, slice_from(address), out, sizeof out);
    ck_assert_msg(slice_equal(slice_make(out, length), slice_from(text)),
                  "%s: \"%.*s\" instead of \"%s\"", address, (int)length, out, text);
}

START_TEST(first_line_that_fits) {
    char error[200];
    struct text_table *table =
        table_of("# comment\n\n10.1.0.0/16\tbranch %{ip}\r\n"
                 "10.0.0.0/9\tten\n192.0.2.7\tone\n"
                 "2001:db8::/33\tsix %{ip}!%{ip}\ndefault\tother %{ip} %{x}\n",
                 error, sizeof error);
    ck_assert_ptr_nonnull(table);
    expect(table, "10.1.2.3", "branch 10.1.2.3");
    expect(table, "10.2.2.3", "ten");
    expect(table, "10.128.0.1", "other 10.128.0.1 %{x}");
    expect(table, "192.0.2.7", "one");
    expect(table, "192.0.2.8", "other 192.0.2.8 %{x}");
    expect(table, "2001:DB8::1", "six 2001:db8::1!2001:db8::1");
    expect(table, "2001:db8:8000::1", "other 2001:db8:8000::1 %{x}");
    expect(table, "::ffff:10.1.0.9", "branch 10.1.0.9");
    expect(table, "<script>", "other unknown %{x}");
    expect(table, "", "other unknown %{x}");
    char small[5];
    ck_assert_uint_eq(text_table_answer(table, SLICE("10.1.2.3"), small, sizeof small), 0);
    text_table_free(&table);
}
END_TEST

START_TEST(placeholders_are_escaped) {
    char error[200];
    struct text_table *table =
        table_of("default\t<a b='%{url}'>%{user}</a>%{ip}\n", error, sizeof error);
    expect(table, "10.1.2.3\nhttp://a/?b=1&c=<'\">\njo<b>",
           "<a b='http://a/?b=1&amp;c=&lt;&#39;&quot;&gt;'>jo&lt;b&gt;</a>10.1.2.3");
    expect(table, "10.1.2.3\nhttp://a/", "<a b='http://a/'></a>10.1.2.3");
    expect(table, "10.1.2.3", "<a b=''></a>10.1.2.3");
    text_table_free(&table);
    table = table_of("default\t%{time}\n", error, sizeof error);
    char out[64];
    size_t length = text_table_answer(table, SLICE("::1"), out, sizeof out);
    ck_assert_uint_eq(length, strlen("2026-01-01T00:00:00Z"));
    ck_assert(out[4] == '-' && out[10] == 'T' && out[length - 1] == 'Z');
    text_table_free(&table);
}
END_TEST

START_TEST(no_default_no_text) {
    char error[200];
    struct text_table *table = table_of("10.0.0.0/8\tx\n", error, sizeof error);
    expect(table, "11.0.0.1", "");
    text_table_free(&table);
    table = text_table_builtin();
    expect(table, "11.0.0.1", "<!-- 11.0.0.1 -->\n");
    text_table_free(&table);
}
END_TEST

START_TEST(bad_lines_are_named) {
    static const char *const bad[] = {"10.0.0.0/8 x\n", "10.0.0.0/33\tx\n", "nonsense\tx\n",
                                      "::/129\tx\n",    "10.0.0.0/\tx\n",   "10.0.0.0/-1\tx\n"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char error[200] = "", contents[100];
        snprintf(contents, sizeof contents, "default\ty\n%s", bad[i]);
        ck_assert_ptr_null(table_of(contents, error, sizeof error));
        ck_assert_msg(strstr(error, ":2: ") != NULL, "%s: %s", bad[i], error);
    }
    char error[200];
    ck_assert_ptr_null(text_table_read("/nonexistent/x", error, sizeof error));
}
END_TEST

Suite *text_table_suite(void) {
    const TTest *const tests[] = {first_line_that_fits, placeholders_are_escaped,
                                  no_default_no_text, bad_lines_are_named};
    return suite_of("text_table", tests, COUNT_OF(tests));
}
