#include "suites.h"

#include "rewrite/field_rules.h"
#include "rewrite/url_rules.h"

#include <string.h>

static struct slice value_of(void *arg, enum variable variable, struct slice field) {
    (void)arg;
    return variable == VARIABLE_CLIENT_IP ? SLICE("192.0.2.1") : slice_make("", 0);
}

/* Changes the lines by one rule, and writes what comes out as lines. */
static const char *changed(enum field_action action, const char *rule, const char *lines) {
    static char text[70000];
    static struct http_head head;
    struct field_rules *rules = field_rules_new();
    struct arena arena;
    char error[600];
    arena_init(&arena);
    struct field_changes changes = {.value = value_of, .arena = &arena};
    head_from(&head, lines);
    ck_assert_msg(field_rules_add(rules, action, FIELD_OF_RESPONSE, rule, error, sizeof error),
                  "%s", error);
    field_changes_begin(&changes, &head);
    field_rules_apply(rules, &changes);
    ck_assert(field_changes_join(&changes));
    char *at = text;
    for (unsigned i = 0; i < head.field_count; i++)
        at += sprintf(at, "%.*s: %.*s\n", SLICE_PRINT(head.fields[i].name),
                      SLICE_PRINT(head.fields[i].value));
    strcpy(at, changes.failed ? "failed" : "");
    field_rules_free(&rules);
    arena_release(&arena);
    return text;
}

START_TEST(each_action) {
    ck_assert_str_eq(changed(FIELD_SET, "A: %{client_ip}", "A: 1\nB: 2\na: 3\n"),
                     "B: 2\nA: 192.0.2.1\n");
    ck_assert_str_eq(changed(FIELD_SET, "A: %{user}", "A: 1\nB: 2\n"), "B: 2\n");
    ck_assert_str_eq(changed(FIELD_ADD, "A: x", "A: 1\n"), "A: 1\nA: x\n");
    ck_assert_str_eq(changed(FIELD_REMOVE, "a", "A: 1\nB: 2\nA: 3\n"), "B: 2\n");
    ck_assert_str_eq(changed(FIELD_REMOVE, "X-*", "X-A: 1\nB: 2\nx-b: 3\nX: 4\n"), "B: 2\nX: 4\n");
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: /b+/<$0>/", "A: abbab\nB: b\n"),
                     "A: a<bb>a<b>\nB: b\n");
}
END_TEST

static bool names_client(const char *variable) {
    char rule[100], error[600];
    struct field_rules *rules = field_rules_new();
    snprintf(rule, sizeof rule, "A: x%%{%s}", variable);
    ck_assert_msg(field_rules_add(rules, FIELD_SET, FIELD_OF_RESPONSE, rule, error, sizeof error),
                  "%s", error);
    bool names = field_rules_name_client(rules);
    field_rules_free(&rules);
    return names;
}

/* The cache gives what is written before it stores to other clients. So only these may stand there:
 * what the URL, the settings, the response and the fetch say. */
START_TEST(all_variables_of_a_client_are_known) {
    static const char *const names[] = {
#define VARIABLE(enumerator, name, of, meaning) name,
#include "text/variables.def"
#undef VARIABLE
    };
    static const char *const open[] = {
        "id",         "time",           "method",   "url",      "scheme",   "host",
        "port",       "path",           "query",    "status",   "reason",   "error",
        "path_query", "server_name",    "file",     "percent",  "received", "expected",
        "ca_subject", "ca_fingerprint", "location", "ca_expiry"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        bool is_open = false;
        for (size_t k = 0; k < COUNT_OF(open); k++)
            is_open |= strcmp(names[i], open[k]) == 0;
        ck_assert_msg(names_client(names[i]) != is_open, "%s", names[i]);
    }
    ck_assert(names_client("request.User-Agent"));
    ck_assert(!names_client("response.Server"));
}
END_TEST

START_TEST(prefixes_leave_framing_alone) {
    ck_assert_str_eq(
        changed(FIELD_REMOVE, "Con*", "Connection: close\nContent-Length: 1\nContent-Type: x\n"),
        "Connection: close\nContent-Length: 1\n");
    ck_assert_str_eq(changed(FIELD_REMOVE, "T*", "Transfer-Encoding: chunked\nTest: x\n"),
                     "Transfer-Encoding: chunked\n");
}
END_TEST

START_TEST(replacements_are_those_of_sed) {
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: /.*/x/", "A: abc\n"), "A: x\n");
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: /(.*)/[$1]/", "A: \n"), "A: []\n");
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: /x*/-/", "A: abc\n"), "A: -a-b-c-\n");
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: /b/B/", "A: ab\nA: c\nA: b\n"),
                     "A: aB\nA: c\nA: B\n");
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: |a\\|b|c\\|d|", "A: xa|b\n"), "A: xc|d\n");
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: /a\\/b/c\\/d/", "A: xa/b\n"), "A: xc/d\n");
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: /^.*$//", "A: gone\nB: 1\nA: too\n"), "B: 1\n");
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: /(b)|a/<$1>/", "A: ab\n"), "A: <><b>\n");
    ck_assert_str_eq(changed(FIELD_REPLACE, "A: /(?=a)\\K/x/", "A: a\n"), "A: xa\n");
}
END_TEST

START_TEST(growth_has_an_end) {
    char line[2100] = "A: ";
    memset(line + 3, 'a', 2000);
    strcpy(line + 2003, "\n");
    ck_assert_ptr_nonnull(strstr(changed(FIELD_REPLACE, "A: /a/b/", line), "failed"));
    line[1000] = '\n';
    line[1001] = '\0';
    ck_assert_ptr_null(strstr(changed(FIELD_REPLACE, "A: /a/b/", line), "failed"));
    ck_assert_ptr_nonnull(strstr(
        changed(FIELD_REPLACE, "A: /a/0123456789012345678901234567890123456789/", line), "failed"));
}
END_TEST

static bool touches(enum field_action action, const char *rule) {
    static const char head[] = "HTTP/1.1 200 A: b\r\nServer: x\r\nX-One: a:b\r\n";
    struct field_rules *rules = field_rules_new();
    char error[600];
    ck_assert(field_rules_add(rules, action, FIELD_OF_RESPONSE, rule, error, sizeof error));
    bool touched = field_rules_touch(rules, slice_from(head));
    field_rules_free(&rules);
    return touched;
}

START_TEST(stored_heads_are_looked_at) {
    ck_assert(touches(FIELD_SET, "server: y"));
    ck_assert(touches(FIELD_REMOVE, "X-*"));
    ck_assert(touches(FIELD_REPLACE, "X-One: /a/b/"));
    ck_assert(!touches(FIELD_ADD, "Server: y"));
    ck_assert(!touches(FIELD_SET, "Serve: y"));
    ck_assert(!touches(FIELD_REMOVE, "A"));
    ck_assert(!touches(FIELD_REMOVE, "Server-*"));
}
END_TEST

START_TEST(confirmations_add_to_what_they_state) {
    struct field_rules *rules = field_rules_new();
    static struct http_head head;
    struct arena arena;
    char error[600];
    arena_init(&arena);
    struct field_changes changes = {.value = value_of, .arena = &arena, .confirms = true};
    head_from(&head, "Vary: A\n");
    ck_assert(field_rules_add(rules, FIELD_ADD, FIELD_OF_RESPONSE, "Vary: B", error, sizeof error));
    ck_assert(field_rules_add(rules, FIELD_ADD, FIELD_OF_RESPONSE, "Link: C", error, sizeof error));
    field_changes_begin(&changes, &head);
    field_rules_apply(rules, &changes);
    ck_assert(slice_equal(field_changes_lines(&changes), SLICE("Vary: B\r\n")));
    ck_assert_uint_eq(field_rules_additions(rules), 2);
    field_rules_free(&rules);
    arena_release(&arena);
}
END_TEST

static enum url_rule_result rewritten(const char *match, const char *to, const char *url,
                                      const char *expected) {
    char error[600];
    struct url_rule *rule = url_rule_new(match, to, error, sizeof error);
    struct slice made = slice_make("", 0);
    struct arena arena;
    arena_init(&arena);
    ck_assert_msg(rule != NULL, "%s", error);
    enum url_rule_result result =
        url_rule_apply(rule, slice_from(url), value_of, NULL, &arena, &made);
    ck_assert_msg(slice_equal(made, slice_from(expected)), "%.*s", SLICE_PRINT(made));
    url_rule_free(&rule);
    arena_release(&arena);
    return result;
}

START_TEST(urls_are_rewritten) {
    ck_assert_int_eq(
        rewritten("^http://a/(.*)", "http://b/$1", "http://a/x?y=%20", "http://b/x?y=%20"),
        URL_RULE_REWRITES);
    ck_assert_int_eq(
        rewritten("q=(\\w+)", "/s/%{1}?c=%{client_ip}", "http://a/?q=x&z", "/s/x?c=192.0.2.1"),
        URL_RULE_REWRITES);
    ck_assert_int_eq(rewritten("nothing", "/", "http://a/", ""), URL_RULE_DIFFERS);
    ck_assert_int_eq(
        rewritten("^(a+)+$", "/", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", ""),
        URL_RULE_GAVE_UP);
}
END_TEST

Suite *field_rules_suite(void) {
    const TTest *const tests[] = {
        each_action,
        all_variables_of_a_client_are_known,
        prefixes_leave_framing_alone,
        replacements_are_those_of_sed,
        growth_has_an_end,
        stored_heads_are_looked_at,
        confirmations_add_to_what_they_state,
        urls_are_rewritten,
    };
    return suite_of("field_rules", tests, COUNT_OF(tests));
}
