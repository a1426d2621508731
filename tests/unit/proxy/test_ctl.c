#include "suites.h"

#include "ctl/http_call.h"
#include "ctl/show.h"

#include <unistd.h>

static char *shown(void (*show)(FILE *out, json_t *json), json_t *json) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    show(out, json);
    fclose(out);
    return text;
}

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
    char *text = shown(show_settings, json);
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
    char *text = shown(show_status, json);
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

/* An answer may lack what this version knows. */
START_TEST(a_bare_status_does_no_harm) {
    json_t *json = json_object();
    char *text = shown(show_status, json);
    ck_assert_ptr_nonnull(strstr(text, "retort ?"));
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
}
END_TEST

/* A server that says `text` to the first caller and closes. */
static pid_t serve_once(const char *path, const char *text) {
    struct address address;
    char request[1024];
    ck_assert(address_parse(&address, slice_from(path), 0));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, &address.any, address.length), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int connection = accept(fd, NULL, NULL);
        ssize_t got = recv(connection, request, sizeof request, 0);
        _exit(got <= 0 || write(connection, text, strlen(text)) < 0);
    }
    close(fd);
    return pid;
}

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
        shown_settings_can_be_loaded,     status_is_readable,        a_bare_status_does_no_harm,
        failed_calls_say_what_to_look_at, a_cut_answer_is_no_answer,
    };
    return suite_of("ctl", tests, COUNT_OF(tests));
}
