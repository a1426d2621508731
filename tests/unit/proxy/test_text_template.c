#include "suites.h"

#include "text/text_template.h"

#include <string.h>

/* A value that would break each place that it is written to. */
static const char hostile[] = "a\r\nSet-Cookie: b\t<i x='\"'>&\\?#%2f\x7f\xff\xe2\x80\xae\xc3\xa9";

static struct slice value_of(void *arg, enum variable variable, struct slice field) {
    (void)arg;
    switch ((int)variable) {
    case VARIABLE_REQUEST_FIELD:
        if (slice_equal(field, SLICE("X-Long"))) {
            static char many[TEXT_FIELD_MAX + 100];
            memset(many, 'x', sizeof many);
            return slice_make(many, sizeof many);
        }
        return slice_equal(field, SLICE("User-Agent")) ? slice_from(hostile) : slice_make("", 0);
    case VARIABLE_RESPONSE_FIELD: return field;
    case VARIABLE_CLIENT_IP: return SLICE("192.0.2.1");
    case VARIABLE_USER: return slice_from(hostile);
    case VARIABLE_URL: return SLICE("https://h/a/b?c=d&e");
    case VARIABLE_PATH: return SLICE("//evil/%20x");
    case VARIABLE_QUERY: return SLICE("c=d&e");
    case VARIABLE_GROUP + 1: return SLICE("one/two");
    default: return slice_make("", 0);
    }
}

static char *written(const char *text, enum text_escape escape, int groups) {
    char error[500] = "";
    struct arena arena;
    arena_init(&arena);
    struct text_template *template =
        groups < 0 ? text_template_new(text, error, sizeof error)
                   : text_template_new_for_groups(text, (unsigned)groups, error, sizeof error);
    ck_assert_msg(template != NULL, "%s", error);
    struct slice slice = text_template_write(template, value_of, NULL, escape, &arena);
    ck_assert_uint_eq(strlen(slice.base), slice.length);
    char *copy = slice_dup(slice);
    text_template_free(&template);
    ck_assert_ptr_null(template);
    arena_release(&arena);
    return copy;
}

static void is_written(const char *text, enum text_escape escape, const char *expected) {
    char *got = written(text, escape, -1);
    ck_assert_str_eq(got, expected);
    free(got);
}

START_TEST(text_and_variables_alternate) {
    is_written("", TEXT_AS_IS, "");
    is_written("plain", TEXT_AS_IS, "plain");
    is_written("%{client_ip}", TEXT_AS_IS, "192.0.2.1");
    is_written("for %{client_ip}, %{client_ip}.", TEXT_AS_IS, "for 192.0.2.1, 192.0.2.1.");
    is_written("[%{status}]", TEXT_AS_IS, "[]");
}
END_TEST

START_TEST(percent_signs_are_themselves) {
    is_written("100%", TEXT_AS_IS, "100%");
    is_written("%20%%%%{user}", TEXT_AS_IS, "%20%%{user}");
    is_written("$1 $$", TEXT_AS_IS, "$1 $$");
}
END_TEST

START_TEST(a_field_gets_one_line) {
    is_written("%{user}", TEXT_AS_IS,
               "a  Set-Cookie: b <i x='\"'>&\\?#%2f \xff\xe2\x80\xae\xc3\xa9");
}
END_TEST

START_TEST(html_gets_no_markup) {
    is_written("<b>%{user}</b>", TEXT_HTML,
               "<b>a  Set-Cookie: b &lt;i x=&#39;&quot;&#39;&gt;&amp;\\?#%2f "
               "\xff\xe2\x80\xae\xc3\xa9</b>");
}
END_TEST

START_TEST(json_gets_one_string) {
    is_written("{\"user\":\"%{user}\"}", TEXT_JSON,
               "{\"user\":\"a\\u000d\\u000aSet-Cookie: b\\u0009\\u003ci "
               "x='\\\"'\\u003e\\u0026\\\\?#%2f\\u007f\\ufffd\\ufffd\xc3\xa9\"}");
}
END_TEST

START_TEST(a_url_keeps_its_parts) {
    is_written("https://x/%{client_ip}", TEXT_URL, "https://x/192.0.2.1");
    is_written("%{url}", TEXT_URL, "https://h/a/b?c=d&e");
    is_written("https://login/?back=%{url}", TEXT_URL,
               "https://login/?back=https%3A%2F%2Fh%2Fa%2Fb%3Fc%3Dd%26e");
    is_written("https://x/y?%{query}", TEXT_URL, "https://x/y?c=d&e");
    is_written("https://x/%{user}", TEXT_URL,
               "https://x/a%0D%0ASet-Cookie%3A%20b%09%3Ci%20x%3D%27%22%27%3E%26%5C%3F%23%252f"
               "%7F%FF%E2%80%AE%C3%A9");
    /* Behind a whole URL a path is only a value. */
    is_written("%{url}&x=%{path}", TEXT_URL, "https://h/a/b?c=d&e&x=%2F%2Fevil%2F%2520x");
}
END_TEST

START_TEST(a_path_names_no_host) {
    is_written("%{path}", TEXT_URL, "/%2Fevil/%20x");
    is_written("https://x%{path}", TEXT_URL, "https://x//evil/%20x");
}
END_TEST

START_TEST(groups_of_an_expression_are_variables) {
    char *got = written("https://x/$1/%{1}?$$1%%", TEXT_URL, 1);
    ck_assert_str_eq(got, "https://x/one/two/one/two?$1%");
    free(got);
}
END_TEST

START_TEST(fields_are_variables) {
    is_written("%{response.Server}|%{response.X-Y}|%{request.None}", TEXT_AS_IS, "Server|X-Y|");
    is_written("%{request.User-Agent}", TEXT_AS_IS,
               "a  Set-Cookie: b <i x='\"'>&\\?#%2f \xff\xe2\x80\xae\xc3\xa9");
    is_written("<b title=\"%{request.User-Agent}\">", TEXT_HTML,
               "<b title=\"a  Set-Cookie: b &lt;i x=&#39;&quot;&#39;&gt;&amp;\\?#%2f "
               "\xff\xe2\x80\xae\xc3\xa9\">");
    is_written("{\"a\":\"%{request.User-Agent}\"}", TEXT_JSON,
               "{\"a\":\"a\\u000d\\u000aSet-Cookie: b\\u0009\\u003ci "
               "x='\\\"'\\u003e\\u0026\\\\?#%2f\\u007f\\ufffd\\ufffd\xc3\xa9\"}");
    /* Never a part of a URL of its own, wherever it stands. */
    is_written("%{request.User-Agent}", TEXT_URL,
               "a%0D%0ASet-Cookie%3A%20b%09%3Ci%20x%3D%27%22%27%3E%26%5C%3F%23%252f"
               "%7F%FF%E2%80%AE%C3%A9");
}
END_TEST

START_TEST(a_field_is_bounded) {
    char *got = written("[%{request.X-Long}]", TEXT_AS_IS, -1);
    ck_assert_uint_eq(strlen(got), TEXT_FIELD_MAX + 2);
    free(got);
}
END_TEST

static void is_refused(const char *text, int groups, const char *reason) {
    char error[500] = "";
    struct text_template *template =
        groups < 0 ? text_template_new(text, error, sizeof error)
                   : text_template_new_for_groups(text, (unsigned)groups, error, sizeof error);
    ck_assert_msg(template == NULL, "%s was accepted", text);
    ck_assert_msg(strstr(error, reason) != NULL, "%s", error);
}

START_TEST(errors_say_what_there_is) {
    is_refused("%{who}", -1, "no variable %{who}; there are: client_ip, client_port, user,");
    is_refused("%{who}", -1, "rule");
    is_refused("%{}", -1, "no variable %{}");
    is_refused("%{1}", -1, "no variable %{1}");
    is_refused("x %{client_ip", -1, "lacks its '}'");
    is_refused("$2", 1, "no group 2; it has 1 groups");
    is_refused("%{request.}", -1,
               "\"\" is no name of a field; write, for example, %{request.User-");
    is_refused("%{request.a b}", -1, "\"a b\" is no name of a field");
    is_refused("%{request.a\r}", -1, "is no name of a field");
    is_refused("%{Request.Via}", -1, "no variable %{Request.Via}");
    for (unsigned i = 0; i < 6; i++) {
        static const char *const secrets[] = {
            "%{request.cookie}",        "%{response.Set-Cookie}",
            "%{request.AUTHORIZATION}", "%{request.Proxy-Authorization}",
            "%{request.X-Api-Key}",     "%{response.X-Auth-Token}"};
        is_refused(secrets[i], -1, "carries credentials");
    }
    char many[70 * sizeof "%{id}"] = "";
    for (unsigned i = 0; i < 70; i++)
        strcat(many, "%{id}");
    is_refused(many, -1, "more than 64 variables");
}
END_TEST

START_TEST(as_many_variables_as_allowed) {
    char many[TEXT_TEMPLATE_VARIABLES * sizeof "%{client_ip}"] = "";
    for (unsigned i = 0; i < TEXT_TEMPLATE_VARIABLES; i++)
        strcat(many, "%{client_ip}");
    char *got = written(many, TEXT_JSON, -1);
    ck_assert_uint_eq(strlen(got), TEXT_TEMPLATE_VARIABLES * strlen("192.0.2.1"));
    free(got);
}
END_TEST

START_TEST(a_template_knows_what_it_names) {
    char error[500];
    struct text_template *template = text_template_new("a %{user} b", error, sizeof error);
    ck_assert(text_template_names(template, VARIABLE_USER));
    ck_assert(!text_template_names(template, VARIABLE_ID));
    ck_assert(!text_template_names(template, VARIABLE_REQUEST_FIELD));
    text_template_free(&template);
}
END_TEST

Suite *text_template_suite(void) {
    const TTest *const tests[] = {
        text_and_variables_alternate,
        percent_signs_are_themselves,
        a_field_gets_one_line,
        html_gets_no_markup,
        json_gets_one_string,
        a_url_keeps_its_parts,
        a_path_names_no_host,
        groups_of_an_expression_are_variables,
        errors_say_what_there_is,
        as_many_variables_as_allowed,
        a_template_knows_what_it_names,
        fields_are_variables,
        a_field_is_bounded,
    };
    return suite_of("text_template", tests, COUNT_OF(tests));
}
