/* The admin plane on real sockets, in front of a proxy that only pretends. */
#include "suites.h"

#include "adapt/services_page.h"
#include "admin/admin.h"
#include "admin/api.h"
#include "admin/connections.h"
#include "admin/guard.h"
#include "admin/settings.h"
#include "base/assert.h"
#include "certificate_lab.h"
#include "settings/outcome.h"
#include "tools/http_call.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct pretended_proxy {
    struct settings *settings;
    _Atomic int reloads, drains;
    _Atomic bool refuse, leaves, hangs;
};

static void on_report(void *context, struct admin_report *report) {
    struct pretended_proxy *proxy = context;
    report->settings = settings_use(proxy->settings);
    report->state = "running";
    report->uptime = 61500;
    report->counters.client_requests = 42;
    report->counters.transactions_active = 3;
    report->cache_bytes = 1000;
    report->cache_limit = 2000;
    report->cache_objects = 7;
    report->services = xcalloc(1, sizeof *report->services);
    report->services[0] = (struct admin_service){
        .settings = &proxy->settings->services[0],
        .report = {.state = SERVICE_UP, .connections = 5},
    };
    report->service_count = 1;
}

static bool on_reload(void *context, struct settings_outcome *outcome) {
    struct pretended_proxy *proxy = context;
    proxy->reloads++;
    while (proxy->hangs)
        usleep(1000);
    if (proxy->leaves)
        findings_add(&outcome->waits, "workers is still 1");
    snprintf(outcome->error, SETTINGS_ERROR, "retort.conf:7: no good");
    if (!proxy->refuse) {
        outcome->before = settings_reference(proxy->settings);
        outcome->after = settings_reference(proxy->settings);
    }
    return !proxy->refuse;
}

static void on_drain(void *context) {
    struct pretended_proxy *proxy = context;
    proxy->drains++;
}

static struct settings *on_settings(void *context) {
    struct pretended_proxy *proxy = context;
    return settings_reference(proxy->settings);
}

static struct pretended_proxy the_proxy;
static struct admin *the_admin;
static char where[ADDRESS_TEXT];

static struct admin *start(char error[SETTINGS_ERROR]) {
    const struct admin_calls calls = {
        .context = &the_proxy,
        .report = on_report,
        .reload = on_reload,
        .drain = on_drain,
        .settings = on_settings,
    };
    return admin_start(the_proxy.settings, &calls, -1, error);
}

#define TOKEN "0123456789abcdef0123456789abcdef"

static void write_tokens(const char *path) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fchmod(fileno(file), 0600), 0);
    fputs("# NAME ROLE TOKEN\nanna admin " TOKEN "\n", file);
    ck_assert_int_eq(fclose(file), 0);
}

static void start_at(const char *listen) {
    char text[1024], tokens[200], error[SETTINGS_ERROR] = "";
    snprintf(where, sizeof where, "%s", listen);
    snprintf(tokens, sizeof tokens, "%s/tokens-%d", scratch(), (int)getpid());
    write_tokens(tokens);
    snprintf(text, sizeof text,
             "workers = 2 listen \":1\" { mode = forward }\n"
             "icap_service gray { uri = \"icap://h/gray\" point = respmod_precache }\n"
             "admin { listen = \"%s\" token_file = \"%s\" }\n",
             listen, tokens);
    the_proxy = (struct pretended_proxy){.settings = settings_from(text)};
    the_admin = start(error);
    ck_assert_msg(the_admin != NULL, "%s", error);
}

static void start_local(void) {
    char path[100];
    snprintf(path, sizeof path, "%s/admin-%d.sock", scratch(), (int)getpid());
    start_at(path);
}

static void stop(void) {
    admin_stop(&the_admin, false);
    settings_release(&the_proxy.settings);
}

static char *call(const char *method, const char *path, unsigned status) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR] = "";
    ck_assert_msg(http_call(&answer, where, method, path, error), "%s", error);
    ck_assert_msg(answer.status == status, "%s %s: %u instead of %u", method, path, answer.status,
                  status);
    return answer.body;
}

START_TEST(status_tells_how_it_goes) {
    start_local();
    char *text = call("GET", "/status", 200);
    json_t *json = json_loads(text, 0, NULL);
    const char *state, *name, *service_state;
    int workers, requests, bytes, connections;
    double uptime;
    ck_assert_int_eq(json_unpack(json, "{s:s, s:i, s:F, s:{s:i}, s:{s:i}, s:[{s:s, s:s, s:i}]}",
                                 "state", &state, "workers", &workers, "uptime", &uptime,
                                 "counters", "client_requests", &requests, "cache", "bytes", &bytes,
                                 "icap_services", "name", &name, "state", &service_state,
                                 "connections", &connections),
                     0);
    ck_assert_str_eq(state, "running");
    ck_assert_int_eq(workers, 2);
    ck_assert_double_eq(uptime, 61.5);
    ck_assert_int_eq(requests, 42);
    ck_assert_int_eq(bytes, 1000);
    ck_assert_str_eq(name, "gray");
    ck_assert_str_eq(service_state, "up");
    ck_assert_int_eq(connections, 5);
    json_decref(json);
    free(text);
    stop();
}
END_TEST

START_TEST(metrics_are_in_prometheus_text) {
    start_local();
    char *text = call("GET", "/metrics", 200);
    ck_assert_ptr_nonnull(strstr(text, "# HELP retort_client_requests_total Requests whose head"));
    ck_assert_ptr_nonnull(strstr(text, "\n# TYPE retort_client_requests_total counter\n"
                                       "retort_client_requests_total 42\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n# TYPE retort_transactions_active gauge\n"
                                       "retort_transactions_active 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nretort_uptime_seconds 61.5\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nretort_cache_objects 7\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nretort_icap_service_up{service=\"gray\"} 1\n"));
    free(text);
    stop();
}
END_TEST

START_TEST(settings_are_shown) {
    start_local();
    char *text = call("GET", "/settings", 200);
    ck_assert_ptr_nonnull(strstr(text, "\"icap://h/gray\""));
    free(text);
    stop();
}
END_TEST

START_TEST(reload_says_what_is_wrong) {
    start_local();
    the_proxy.leaves = true;
    char *left = call("POST", "/reload", 200);
    ck_assert_ptr_nonnull(strstr(left, "\"workers is still 1\""));
    free(left);
    the_proxy.refuse = true;
    char *text = call("POST", "/reload", 409);
    ck_assert_ptr_nonnull(strstr(text, "\"error\": \"retort.conf:7: no good\""));
    free(text);
    ck_assert_int_eq(the_proxy.reloads, 2);
    stop();
}
END_TEST

static void *ask_for_reload(void *arg) {
    (void)arg;
    free(call("POST", "/v1/reload", 200));
    return NULL;
}

static void ask_for_reloads(pthread_t *threads, int count) {
    the_proxy.hangs = true;
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_for_reload, NULL), 0);
    while (the_proxy.reloads < count)
        usleep(1000);
}

/* More than there are threads of libmicrohttpd. */
START_TEST(pages_wait_for_nobody_who_waits) {
    enum { WAITING = 12 };
    pthread_t threads[WAITING];
    start_local();
    ask_for_reloads(threads, WAITING);
    for (int i = 0; i < WAITING; i++)
        free(call("GET", "/v1/status", 200));
    free(call("GET", "/v1/metrics", 200));
    free(call("POST", "/v1/drain", 200));
    the_proxy.hangs = false;
    for (int i = 0; i < WAITING; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    stop();
}
END_TEST

static void *let_go_later(void *arg) {
    (void)arg;
    usleep(200000);
    the_proxy.hangs = false;
    return NULL;
}

START_TEST(who_waits_at_the_end_is_answered) {
    pthread_t threads[6], later;
    start_local();
    ask_for_reloads(threads, COUNT_OF(threads));
    ck_assert_int_eq(pthread_create(&later, NULL, let_go_later, NULL), 0);
    stop();
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(pthread_join(later, NULL), 0);
}
END_TEST

START_TEST(drain_is_passed_on) {
    start_local();
    free(call("POST", "/drain", 200));
    ck_assert_int_eq(the_proxy.drains, 1);
    stop();
}
END_TEST

static int connect_to(const char *path) {
    struct address address;
    ck_assert(address_parse(&address, slice_from(path), 0));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, &address.any, address.length), 0);
    return fd;
}

static void expect_methods(const char *path, const char *allow) {
    char asked[200], reply[2000] = "", expected[200];
    int fd = connect_to(where);
    int length =
        snprintf(asked, sizeof asked,
                 "PATCH %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    ck_assert_int_eq(write(fd, asked, (size_t)length), length);
    size_t got = 0;
    ssize_t more;
    while ((more = read(fd, reply + got, sizeof reply - 1 - got)) > 0)
        got += (size_t)more;
    close(fd);
    snprintf(expected, sizeof expected, "\r\nAllow: %s\r\n", allow);
    ck_assert_msg(strncmp(reply, "HTTP/1.1 405 ", 13) == 0 && strstr(reply, expected) != NULL,
                  "%s: %s", path, reply);
}

/* RFC 9110, 15.5.6: "The origin server MUST generate an Allow header field in a 405 response containing a list of the
 * target resource's currently supported methods." */
START_TEST(each_page_says_its_methods) {
    start_local();
    for (const struct call *route = api_calls; route->path != NULL; route++) {
        char allow[PAGE_ALLOW];
        ck_assert_ptr_null(api_find("PATCH", route->path, allow));
        ck_assert_ptr_nonnull(strstr(allow, route->method));
        expect_methods(route->path, allow);
    }
    stop();
}
END_TEST

START_TEST(wrong_requests_are_refused) {
    start_local();
    free(call("GET", "/page", 404));
    free(call("POST", "/", 404));
    free(call("GET", "/statusx", 404));
    free(call("GET", "/reload", 405));
    free(call("GET", "/drain", 405));
    free(call("POST", "/status", 405));
    free(call("PUT", "/settings", 405));
    ck_assert_int_eq(the_proxy.reloads + the_proxy.drains, 0);
    stop();
}
END_TEST

/* Sends bytes as they are; what comes back is cut at the buffer's size. */
static void talk(const char *request, char *answer, size_t capacity) {
    struct address address;
    size_t length = 0;
    ssize_t got;
    ck_assert(address_parse(&address, slice_from(where), 0));
    int fd = socket(address.any.sa_family, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, &address.any, address.length), 0);
    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    while (length + 1 < capacity && (got = recv(fd, answer + length, capacity - length - 1, 0)) > 0)
        length += (size_t)got;
    answer[length] = '\0';
    close(fd);
}

static void check_answer(const char *request, const char *begin) {
    char answer[4096];
    talk(request, answer, sizeof answer);
    ck_assert_msg(strncmp(answer, begin, strlen(begin)) == 0, "\"%s\" gets \"%s\"", request,
                  answer);
}

START_TEST(long_bodies_are_refused) {
    start_local();
    check_answer("POST /drain HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                 "Content-Length: 10000000\r\n\r\n",
                 "HTTP/1.1 413");
    check_answer("POST /reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                 "Content-Length: 3\r\n\r\nabc",
                 "HTTP/1.1 200");
    ck_assert_int_eq(the_proxy.drains, 0);
    stop();
}
END_TEST

/* libmicrohttpd drops the answer to a refused head while it is being stopped, and brings the body. */
START_TEST(refused_heads_with_bodies_at_the_end) {
    static const char request[] = "POST /nothing HTTP/1.1\r\nHost: localhost\r\n"
                                  "Content-Length: 5\r\n\r\nx";
    int fds[60];
    struct address address;
    for (int round = 0; round < 20; round++) {
        start_local();
        ck_assert(address_parse(&address, slice_from(where), 0));
        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
            fds[i] = socket(address.any.sa_family, SOCK_STREAM, 0);
            ck_assert_int_eq(connect(fds[i], &address.any, address.length), 0);
            ck_assert_int_eq(send(fds[i], request, sizeof request - 1, MSG_NOSIGNAL),
                             (ssize_t)sizeof request - 1);
        }
        stop();
        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
            close(fds[i]);
    }
}
END_TEST

/* Through ssh -L a browser reaches a Unix socket, so a page of somebody else does too. */
START_TEST(strangers_pages_do_not_reach_a_unix_socket) {
    start_local();
    check_answer("GET /v1/whoami HTTP/1.1\r\nHost: localhost:3129\r\nConnection: close\r\n\r\n",
                 "HTTP/1.1 200");
    check_answer("GET /v1/whoami HTTP/1.1\r\nHost: evil.example:3129\r\nConnection: close\r\n\r\n",
                 "HTTP/1.1 403");
    check_answer("POST /drain HTTP/1.1\r\nHost: localhost:3129\r\nOrigin: http://evil.example\r\n"
                 "Connection: close\r\n\r\n",
                 "HTTP/1.1 403");
    check_answer("POST /drain HTTP/1.1\r\nHost: localhost:3129\r\nOrigin: http://localhost:3129\r\n"
                 "Sec-Fetch-Site: same-origin\r\nConnection: close\r\n\r\n",
                 "HTTP/1.1 200");
    ck_assert_int_eq(the_proxy.drains, 1);
    stop();
}
END_TEST

START_TEST(answers_name_their_type) {
    char answer[4096];
    start_local();
    talk("GET /reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", answer,
         sizeof answer);
    ck_assert_ptr_nonnull(strstr(answer, "\r\nAllow: POST\r\n"));
    ck_assert_ptr_nonnull(strstr(answer, "\r\nContent-Type: application/json\r\n"));
    ck_assert_ptr_nonnull(strstr(answer, "\r\nCache-Control: no-store\r\n"));
    talk("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", answer,
         sizeof answer);
    ck_assert_ptr_nonnull(strstr(answer, "\r\nContent-Type: text/plain; version=0.0.4"));
    ck_assert_ptr_null(strstr(answer, "# HELP"));
    stop();
}
END_TEST

START_TEST(the_socket_is_for_its_owner_alone) {
    struct stat status;
    start_local();
    ck_assert_int_eq(stat(where, &status), 0);
    ck_assert(S_ISSOCK(status.st_mode));
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    stop();
    ck_assert_int_ne(stat(where, &status), 0);
}
END_TEST

START_TEST(only_a_dead_socket_is_replaced) {
    char error[SETTINGS_ERROR] = "";
    struct address address;
    start_local();
    ck_assert_ptr_null(start(error)); /* a second one on the same path */
    ck_assert_ptr_nonnull(strstr(error, "another retort seems to be running"));
    free(call("GET", "/status", 200)); /* the first one does not mind */
    admin_stop(&the_admin, false);

    ck_assert(address_parse(&address, slice_from(where), 0));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, &address.any, address.length), 0);
    close(fd); /* as kill -9 leaves it */
    the_admin = start(error);
    ck_assert_msg(the_admin != NULL, "%s", error);
    free(call("GET", "/status", 200));
    admin_stop(&the_admin, false);

    FILE *file = fopen(where, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_ptr_null(start(error));
    ck_assert_ptr_nonnull(strstr(error, "exists and is not a socket"));
    ck_assert_int_eq(access(where, F_OK), 0);
    unlink(where);
    settings_release(&the_proxy.settings);
}
END_TEST

/* As after a first try as root: whether anybody listens there can't be known. */
START_TEST(another_users_socket_is_told_from_one_in_use) {
    enum { NOBODY = 65534 };
    char error[SETTINGS_ERROR] = "";
    if (geteuid() != 0)
        return; /* nobody can be another user */
    start_local();
    ck_assert_int_eq(chmod(scratch(), 0755), 0);
    ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_assert_ptr_null(start(error));
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_msg(strstr(error, "belongs to another user: remove it if") != NULL, "%s", error);
    stop();
}
END_TEST

START_TEST(a_successors_socket_stays) {
    start_local();
    unlink(where);
    FILE *file = fopen(where, "w"); /* somebody else's by now */
    ck_assert_ptr_nonnull(file);
    fclose(file);
    stop();
    ck_assert_int_eq(access(where, F_OK), 0);
    unlink(where);
}
END_TEST

static uint16_t free_port(void) {
    struct address address;
    ck_assert(address_parse_ip(&address, SLICE("127.0.0.1"), 0));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, &address.any, address.length), 0);
    ck_assert_int_eq(getsockname(fd, &address.any, &address.length), 0);
    close(fd);
    return address_port(&address);
}

#define BEARER "Authorization: Bearer " TOKEN "\r\n"

START_TEST(web_pages_get_nothing_over_tcp) {
    char listen[40];
    snprintf(listen, sizeof listen, "127.0.0.1:%u", free_port());
    start_at(listen);
    free(call("GET", "/status", 401));
    ck_assert_int_eq(setenv("RETORT_TOKEN", TOKEN, 1), 0);
    free(call("GET", "/status", 200));
    ck_assert_int_eq(unsetenv("RETORT_TOKEN"), 0);
    check_answer("GET /status HTTP/1.1\r\nHost: localhost:1\r\n" BEARER "Connection: close\r\n\r\n",
                 "HTTP/1.1 200");
    check_answer("GET /status HTTP/1.1\r\nHost: [::1]\r\n" BEARER "Connection: close\r\n\r\n",
                 "HTTP/1.1 200");
    check_answer("GET /status HTTP/1.1\r\nHost: evil.example\r\n" BEARER
                 "Connection: close\r\n\r\n",
                 "HTTP/1.1 403");
    check_answer("GET /status HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n" BEARER
                 "Connection: close\r\n\r\n",
                 "HTTP/1.1 403");
    check_answer("GET /status HTTP/1.1\r\nHost: 10.0.0.1\r\n" BEARER "Connection: close\r\n\r\n",
                 "HTTP/1.1 403");
    check_answer("POST /drain HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n" BEARER
                 "Connection: close\r\n\r\n",
                 "HTTP/1.1 403");
    check_answer("GET /status HTTP/1.0\r\n" BEARER "\r\n", "HTTP/1.1 403");
    check_answer("GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " TOKEN "0\r\n"
                 "Connection: close\r\n\r\n",
                 "HTTP/1.1 401");
    check_answer("POST /drain HTTP/1.1\r\nHost: 127.0.0.1\r\n" BEARER
                 "Sec-Fetch-Site: cross-site\r\nConnection: close\r\n\r\n",
                 "HTTP/1.1 403");
    ck_assert_int_eq(the_proxy.drains, 0);
    stop();
}
END_TEST

/* Also where a service manager has made the socket for all. */
START_TEST(only_root_and_the_proxys_user_need_no_token) {
    ck_assert_int_eq(admin_guard_role_of(0, 998), OPERATOR_ADMIN);
    ck_assert_int_eq(admin_guard_role_of(998, 998), OPERATOR_ADMIN);
    ck_assert_int_eq(admin_guard_role_of(0, 0), OPERATOR_ADMIN);
    ck_assert_int_eq(admin_guard_role_of(1000, 998), OPERATOR_NOBODY);
    ck_assert_int_eq(admin_guard_role_of(1000, 0), OPERATOR_NOBODY);
    ck_assert_int_eq(admin_guard_role_of((uid_t)-1, 998), OPERATOR_NOBODY);
}
END_TEST

/* A request that began before a reload goes on with its settings, and must not bring back the
 * certificates of then for others. */
START_TEST(older_settings_do_not_bring_back_older_certificates) {
    char error[PEM_FILE_ERROR];
    struct certificate_order order = {.names = "DNS:localhost", .days = 90};
    char *paths[] = {certificate_lab_write("admin.pem", "admin.pem", &order), NULL};
    struct certificate_set *set = certificate_set_load(paths, error);
    const struct tls_server_settings wanted = {.certificates = set};
    static struct settings before, after;
    struct admin_settings mine[] = {{.tls = admin_tls_new(&wanted)},
                                    {.tls = admin_tls_new(&wanted)}};
    struct admin_guard guard = {0};
    before.parts[PART_ADMIN] = &mine[0];
    after.parts[PART_ADMIN] = &mine[1];
    admin_guard_init(&guard, &before);
    const struct settings *const asked[] = {&before, &after, &before, NULL};
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        struct admin_tls *tls = admin_guard_tls(&guard, asked[i]);
        ck_assert_ptr_eq(tls, mine[i == 0 ? 0 : 1].tls);
        admin_tls_release(&tls);
    }
    admin_guard_release(&guard);
    admin_tls_release(&mine[0].tls);
    admin_tls_release(&mine[1].tls);
    certificate_set_release(&set);
    free(paths[0]);
}
END_TEST

static bool was_shut_down(int peer) {
    char byte;
    return recv(peer, &byte, 1, MSG_DONTWAIT) == 0;
}

START_TEST(who_takes_no_block_for_long_is_closed) {
    struct admin_connections connections;
    struct admin_connection *open[3];
    int pairs[3][2];
    const uint64_t begun = 1000, most = ADMIN_CONNECTION_PATIENCE * 1000;
    admin_connections_init(&connections);
    for (size_t i = 0; i < COUNT_OF(open); i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        open[i] = admin_connection_add(&connections, pairs[i][0]);
        admin_connection_block(&connections, open[i], begun);
    }
    admin_connection_used(&connections, open[1]); /* its next request */
    admin_connection_block(&connections, open[2], begun + 1);
    admin_connections_sweep(&connections, begun + most - 1);
    ck_assert(!was_shut_down(pairs[0][1]));
    admin_connections_sweep(&connections, begun + most);
    ck_assert(was_shut_down(pairs[0][1]));
    ck_assert(!was_shut_down(pairs[1][1]) && !was_shut_down(pairs[2][1]));
    ck_assert_uint_eq(connections.count, 2);
    for (size_t i = 0; i < COUNT_OF(open); i++) {
        admin_connection_leave(&connections, &open[i]);
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    admin_connections_release(&connections);
}
END_TEST

/* libmicrohttpd may close a clear end without a word, and another one then has its number. */
START_TEST(a_clear_end_leads_to_its_connection) {
    struct admin_connections connections;
    struct admin_connection *open[2];
    struct shown_certificate *none = NULL;
    struct admin_tls *tls = admin_tls_new(&(struct tls_server_settings){.policy = "none"});
    int pair[2];
    admin_connections_init(&connections);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    for (size_t i = 0; i < COUNT_OF(open); i++)
        open[i] = admin_connection_add(&connections, pair[i]);
    ck_assert_ptr_null(admin_connection_take(&connections, 1000));
    admin_connection_serve(&connections, open[0], 1000, tls, &none);
    admin_connection_serve(&connections, open[1], 1000, tls, &none);
    ck_assert(!admin_connection_is_served(&connections, open[0]));
    struct admin_connection *taken = admin_connection_take(&connections, 1000);
    ck_assert_ptr_eq(taken, open[1]);
    admin_connection_leave(&connections, &open[1]); /* it lives for who has taken it */
    ck_assert_str_eq(admin_connection_from(taken), "unix");
    admin_connection_leave(&connections, &taken);
    ck_assert_ptr_null(admin_connection_take(&connections, 1000));
    admin_connection_leave(&connections, &open[0]);
    ck_assert_uint_eq(connections.count, 0);
    admin_connections_release(&connections);
    admin_tls_release(&tls);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

START_TEST(without_listen_it_is_inert) {
    char error[SETTINGS_ERROR];
    the_proxy.settings = settings_from("listen \":1\" { mode = forward }");
    the_admin = start(error);
    ck_assert_ptr_nonnull(the_admin);
    stop();
    ck_assert_ptr_null(the_admin);
}
END_TEST

Suite *admin_suite(void) {
    const TTest *const tests[] = {
        status_tells_how_it_goes,
        metrics_are_in_prometheus_text,
        settings_are_shown,
        reload_says_what_is_wrong,
        pages_wait_for_nobody_who_waits,
        who_waits_at_the_end_is_answered,
        drain_is_passed_on,
        each_page_says_its_methods,
        wrong_requests_are_refused,
        long_bodies_are_refused,
        refused_heads_with_bodies_at_the_end,
        strangers_pages_do_not_reach_a_unix_socket,
        answers_name_their_type,
        the_socket_is_for_its_owner_alone,
        only_a_dead_socket_is_replaced,
        another_users_socket_is_told_from_one_in_use,
        a_successors_socket_stays,
        web_pages_get_nothing_over_tcp,
        only_root_and_the_proxys_user_need_no_token,
        older_settings_do_not_bring_back_older_certificates,
        who_takes_no_block_for_long_is_closed,
        a_clear_end_leads_to_its_connection,
        without_listen_it_is_inert,
    };
    return suite_of("admin", tests, COUNT_OF(tests));
}
