#include "suites.h"

#include "admin/answer_text.h"
#include "admin/api.h"
#include "admin/settings_list.h"
#include "tools/http_call.h"

#include <unistd.h>

static char *formed(const char *form, json_t *json, bool colours) {
    const struct answer_style style = {.colours = colours, .zone = 3600};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    answer_text_write(out, form, &style, json);
    fclose(out);
    return text;
}

/* The text of a page. */
static char *shown(const char *path, json_t *json) {
    char allow[PAGE_ALLOW];
    return formed(api_find("GET", path, allow)->form, json, false);
}

static void check_form(const char *form, const char *expected) {
    json_t *json = json_loads(
        "{\"name\": \"a\\u001b[1m\", \"one\": 1, \"many\": 12, \"part\": 0.0125, "
        "\"no\": false, \"none\": null, \"zero\": 0, \"state\": \"up\", "
        "\"at\": 86400, \"list\": [{\"x\": 1}, {\"x\": 2}], \"words\": [\"p\", \"q\"], "
        "\"counts\": {\"good\": 3, \"bad\": 0}, \"inner\": {\"deep\": \"d\"}, \"empty\": []}",
        0, NULL);
    char *text = formed(form, json, false);
    ck_assert_str_eq(text, expected);
    free(text);
    json_decref(json);
}

START_TEST(forms_show_what_they_say) {
    check_form("{name%-9s}|{many%4d}|{part*%.1f}|{inner.deep}|{absent}|{none}",
               "a\\u001b[1m|  12|12.5|d||");
    check_form("{one/entry/entries} {many/entry/entries}", "entry entries");
    check_form("[one yes][no not][zero not][none not][empty not][absent not]", "yes");
    check_form("[!one not][!no 1][!zero 2][!none 3][!empty 4][!absent 5]", "12345");
    check_form("[?no there][?none not][!?none none][state=up up][state=down down][!state=down  up]",
               "therenoneup up");
    check_form(
        "<list [.next , ]{x}{one}>;<words {.} >;<counts [. {.key}={.%2d}]>;<empty x><none x>",
        "11, 21;p q ;good= 3;");
    check_form("[no <list [x {x}] {name}>]<list [x=2 two]>", "two");
    check_form("\\[\\{\\<\\>\\}\\]\\^", "[{<>}]^");
    check_form("^A B^{at:local} {many:size} {many:duration}", "A B\n1970-01-02 01:00:00 12 B 12s");
}
END_TEST

START_TEST(colours_are_for_who_wants_them) {
    json_t *json = json_pack("{s:s, s:s}", "state", "up", "other", "odd");
    char *text = formed("^A^{state!%-4s}|{other!}|{state}", json, true);
    ck_assert_str_eq(text, "\033[1mA\033[m\n\033[32mup  \033[m|odd\033[m|up");
    free(text);
    json_decref(json);
}
END_TEST

START_TEST(refusals_are_complaints) {
    const char *const answers[] = {"{\"error\": \"a\\nb\"}",
                                   "{\"error\": \"ab\", \"errors\": [\"a\", \"b\"]}"};
    const char *const expected[] = {"! a\\u000ab\n", "! a\n! b\n"};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        json_t *json = json_loads(answers[i], 0, NULL);
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        answer_text_refuse(out, json);
        fclose(out);
        ck_assert_str_eq(text, expected[i]);
        free(text);
        json_decref(json);
    }
}
END_TEST

/* Each form of the table, with an answer that has none of its members. */
START_TEST(bare_answers_do_no_harm) {
    for (const struct call *call = api_calls; call->path != NULL; call++) {
        json_t *json = json_object();
        free(call->form == NULL ? NULL : formed(call->form, json, true));
        json_decref(json);
    }
}
END_TEST

/* "retortctl settings" prints a file that loads to the same settings. */
START_TEST(shown_settings_can_be_loaded) {
    struct settings *s = settings_from(
        "listen \"[::1]:1\" { mode = forward allow = { \"::1\", \"10.0.0.0/8\" } }\n"
        "listen \":2\" { mode = reverse }\n"
        "map \"http://a.org:8080/x/\" { origin = \"http://b/$1\" preserve_host = yes }\n"
        "connect_ports = none\n"
        "cache { memory = 64MB disk \"/a b\" { size = 2GB admission = second } disk \"/c\" { } }\n"
        "icap_service a { uri = \"icap://h/a\" point = reqmod_precache }\n"
        "icap_service b { uri = \"icap://h/b\" point = respmod_precache }\n"
        "url_class c { path_regex = { '\\.jpg$', 'a\"b', '\\\\\\'' } }\n"
        "url_class d { client = \"10.0.0.0/8\" method = { GET, POST } }\n"
        "adapt c { services = b } adapt all { services = { a, b } }\n"
        "access_log \"/a b\" { format = json }\n");
    char *first = settings_to_json(s);
    settings_release(&s);
    json_t *json = json_loads(first, 0, NULL);
    char *text = shown("/settings", json);
    s = settings_from(text);
    char *second = settings_to_json(s);
    ck_assert_str_eq(first, second);
    settings_release(&s);
    json_decref(json);
    free(first);
    free(second);
    free(text);
}
END_TEST

START_TEST(status_is_readable) {
    json_t *json =
        json_pack("{s:s, s:i, s:s, s:f, s:i, s:i, s:s, s:{s:i, s:i, s:i}, "
                  "s:[{s:s, s:s, s:s, s:i, s:i}], s:{s:i, s:i, s:i}}",
                  "version", "1.0", "pid", 7, "state", "running", "uptime", 93784.5, "workers", 2,
                  "workers_silent", 1, "file", "/etc/retort/retort.conf", "cache", "bytes", 1536,
                  "limit", 1 << 20, "objects", 3, "icap_services", "name", "gray", "kind", "icap",
                  "state", "down", "connections", 0, "pending", 4, "counters", "cache_hits", 3,
                  "cache_misses", 1, "dns_failures", 0);
    char *text = shown("/status", json);
    ck_assert_ptr_nonnull(strstr(text, "retort 1.0, pid 7, running, up 1d 2h, 2 workers\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "1.5 KB of 1.0 MB, 3 objects, 75.0 % of 4 lookups were hits"));
    ck_assert_ptr_nonnull(strstr(text, "WARNING: 1 worker did not answer"));
    ck_assert_ptr_nonnull(
        strstr(text, "\ngray                     icap   down                0        4\n"));
    ck_assert_ptr_null(strstr(text, "dns_failures"));
    ck_assert_ptr_nonnull(strstr(text, "(1 more are 0)"));
    json_decref(json);
    free(text);
}
END_TEST

static void check_call_fails(const char *where, const char *part) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR] = "";
    ck_assert(!http_call(&answer, where, "GET", "/", error));
    ck_assert_msg(strstr(error, part) != NULL, "\"%s\" lacks \"%s\"", error, part);
    http_answer_release(&answer);
}

START_TEST(failed_calls_say_what_to_look_at) {
    check_call_fails(
        "/nonexistent/retort.sock",
        "can't connect to /nonexistent/retort.sock: No such file or directory: is retort "
        "running, and is admin.listen set to this path?");
    check_call_fails("127.0.0.1:1", "Connection refused: is retort running");
    check_call_fails("localhost", "\"localhost\" is neither a path with a slash nor ADDRESS:PORT");
    check_call_fails("http://user:secret@127.0.0.1", "the host has no address");
    check_call_fails("http://127.0.0.1:1\nfoo", "the host has no address");
}
END_TEST

/* A server that says `text` to the first caller and closes; before it, others may hang up. */
static pid_t serve_behind(const char *path, const char *text, int others,
                          const struct timespec *pause) {
    struct address address;
    char request[1024];
    ck_assert(address_parse(&address, slice_from(path), 0));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, &address.any, address.length), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    for (int i = 0; i < others; i++)
        ck_assert_int_eq(connect(socket(AF_UNIX, SOCK_STREAM, 0), &address.any, address.length), 0);
    pid_t pid = fork();
    if (pid == 0) {
        nanosleep(pause, NULL);
        while (others-- > 0)
            close(accept(fd, NULL, NULL));
        int connection = accept(fd, NULL, NULL);
        ssize_t got = recv(connection, request, sizeof request, 0);
        _exit(got <= 0 || write(connection, text, strlen(text)) < 0);
    }
    close(fd);
    return pid;
}

static pid_t serve_once(const char *path, const char *text) {
    return serve_behind(path, text, 0, &(struct timespec){0});
}

/* As many as the socket keeps are waiting already. */
START_TEST(who_waits_to_connect_is_answered) {
    struct http_answer answer;
    char path[100], error[HTTP_CALL_ERROR] = "";
    snprintf(path, sizeof path, "%s/full.sock", scratch());
    pid_t pid = serve_behind(path, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", 2,
                             &(struct timespec){.tv_nsec = 200000000});
    ck_assert_int_gt(pid, 0);
    ck_assert_msg(http_call(&answer, path, "GET", "/", error), "%s", error);
    ck_assert_str_eq(answer.body, "ab");
    http_answer_release(&answer);
    unlink(path);
}
END_TEST

START_TEST(a_cut_answer_is_no_answer) {
    static const char *const answers[] = {"", "HTTP/1.1 200 OK\r\n",
                                          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
                                          "HTTP/1.1 200 OK\r\n\r\nabc", "SSH-2.0-OpenSSH\r\n\r\n"};
    char path[100];
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        snprintf(path, sizeof path, "%s/cut-%zu.sock", scratch(), i);
        pid_t pid = serve_once(path, answers[i]);
        ck_assert_int_gt(pid, 0);
        check_call_fails(path, "the answer is not HTTP, or cut off");
        unlink(path);
    }
}
END_TEST

Suite *ctl_suite(void) {
    const TTest *const tests[] = {
        shown_settings_can_be_loaded,     status_is_readable,
        forms_show_what_they_say,         colours_are_for_who_wants_them,
        refusals_are_complaints,          bare_answers_do_no_harm,
        failed_calls_say_what_to_look_at, a_cut_answer_is_no_answer,
        who_waits_to_connect_is_answered,
    };
    return suite_of("ctl", tests, COUNT_OF(tests));
}
