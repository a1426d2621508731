#include "suites.h"

#include "base/assert.h"
#include "http/head_parser.h"
#include "service/service.h"

#include <dlfcn.h>
#include <poll.h>

enum { COUNTERS_MAX = 16, LINE_MAX_LENGTH = 600 };

/* An instance of a service, as a host keeps it. */
struct instance {
    const struct service_ops *ops;
    void *settings, *service;
    struct service_host host;
    unsigned counts[COUNTERS_MAX], lines;
    char last_line[LINE_MAX_LENGTH];
};

static void instance_log(void *context, enum log_level level, const char *text) {
    struct instance *instance = context;
    (void)level;
    instance->lines++;
    snprintf(instance->last_line, sizeof instance->last_line, "%s", text);
}

static void instance_count(void *context, unsigned counter) {
    struct instance *instance = context;
    ck_assert_uint_lt(counter, COUNTERS_MAX);
    instance->counts[counter]++;
}

static void instance_set(struct instance *instance, const char *name, const char *value) {
    const struct service_option *option = instance->ops->options;
    char error[200] = "";
    while (strcmp(option->name, name) != 0)
        option++;
    ck_assert_msg(
        service_option_set(option, instance->settings, slice_from(value), error, sizeof error),
        "%s", error);
}

static void instance_init(struct instance *instance, const struct service_ops *ops) {
    ck_assert_ptr_nonnull(ops);
    *instance = (struct instance){
        .ops = ops,
        .host = {.context = instance, .log = instance_log, .count = instance_count},
    };
    instance->settings = xcalloc(1, ops->settings_size + 1);
    service_options_defaults(ops->options, instance->settings);
}

static void instance_start(struct instance *instance) {
    char error[500] = "";
    instance->service =
        instance->ops->start(instance->settings, &instance->host, error, sizeof error);
    ck_assert_msg(instance->service != NULL, "%s: %s", instance->ops->name, error);
}

static void instance_stop(struct instance *instance) {
    if (instance->ops->stop != NULL)
        instance->ops->stop(instance->service);
    service_options_release(instance->ops->options, instance->settings);
    free(instance->settings);
}

static unsigned counts_of(const struct instance *instance) {
    unsigned sum = 0;
    for (unsigned i = 0; i < COUNTERS_MAX; i++)
        sum += instance->counts[i];
    return sum;
}

/* One message, given to an instance as a host gives it. */
struct message {
    struct arena arena;
    struct http_head request, response;
    struct service_exchange exchange;
    void *state;
};

static enum service_verdict message_begin(struct message *message, struct instance *instance,
                                          const char *request, const char *response) {
    memset(message, 0, sizeof *message);
    arena_init(&message->arena);
    ck_assert_int_gt(http_head_parse_request(&message->request, request, strlen(request), 0), 0);
    ck_assert_int_gt(http_head_parse_response(&message->response, response, strlen(response), 0),
                     0);
    INIT_OBJ(&message->exchange, SERVICE_EXCHANGE_MAGIC);
    bool on_request = (instance->ops->points & SERVICE_REQUEST) != 0;
    message->exchange.point = on_request ? SERVICE_REQUEST : SERVICE_RESPONSE;
    message->exchange.request = &message->request;
    message->exchange.head = on_request ? &message->request : &message->response;
    message->exchange.has_body = !on_request;
    message->exchange.client_ip = SLICE("192.0.2.7");
    message->exchange.client_user = message->exchange.arguments = SLICE("");
    message->exchange.arena = &message->arena;
    message->exchange.host = &instance->host;
    message->exchange.body_length = SERVICE_LENGTH_UNKNOWN;
    service_wait_none(&message->exchange);
    message->state = instance->ops->begin(instance->service, &message->exchange);
    if (message->state == NULL)
        return SERVICE_SKIP;
    return instance->ops->preview(message->state, SLICE("<html><head>text of a page"), false);
}

static void message_end(struct message *message, struct instance *instance) {
    if (message->state != NULL)
        instance->ops->end(message->state);
    arena_release(&message->arena);
}

static enum service_verdict verdict_of(struct instance *instance, const char *request,
                                       const char *response) {
    struct message message;
    enum service_verdict verdict = message_begin(&message, instance, request, response);
    message_end(&message, instance);
    return verdict;
}

static const char page[] = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
static const char large_image[] =
    "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: 2000\r\n\r\n";
static const char get[] =
    "GET http://ads.example/a.js HTTP/1.1\r\nHost: ads.example\r\nAccept-Encoding: gzip\r\n\r\n";

START_TEST(services_are_found_by_name) {
    static const char *const names[] = {"adremover", "gray", "gzip", "inject"};
    unsigned count = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        ck_assert_str_eq(service_find(names[i])->name, names[i]);
    for (const struct service_ops *ops = service_next(NULL); ops != NULL; ops = service_next(ops))
        count++;
    ck_assert_uint_eq(count, COUNT_OF(names));
    ck_assert_ptr_null(service_find("gra"));
    ck_assert_ptr_null(service_find(""));
}
END_TEST

/* Each service counts and writes in its own name, though all stand in one process. */
START_TEST(services_of_one_process_are_told_apart) {
    struct instance adremover, gray, gzip, inject;
    instance_init(&adremover, service_find("adremover"));
    instance_init(&gray, service_find("gray"));
    instance_init(&gzip, service_find("gzip"));
    instance_init(&inject, service_find("inject"));
    instance_set(&adremover, "Rule", "||ads.example^");
    instance_set(&gray, "MaxSize", "1K");
    instance_set(&gray, "Deadline", "3s");
    instance_set(&inject, "Helperd", "/nonexistent/helperd.sock");
    instance_set(&inject, "Deadline", "5s");
    instance_start(&adremover);
    instance_start(&gray);
    instance_start(&gzip);
    instance_start(&inject);
    ck_assert_uint_eq(adremover.lines, 1); /* how many rules it has */
    ck_assert_uint_eq(gray.lines + gzip.lines + inject.lines, 0);
    ck_assert_uint_eq(gray.host.answers_within, 3000);
    ck_assert_uint_eq(inject.host.answers_within, 5000);

    ck_assert_int_eq(verdict_of(&adremover, get, page), SERVICE_ADAPT);
    ck_assert_int_eq(verdict_of(&gray, get, large_image), SERVICE_SKIP);
    ck_assert_int_eq(verdict_of(&gray, get, large_image), SERVICE_SKIP);
    ck_assert_int_ne(verdict_of(&gzip, get, page), SERVICE_SKIP);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(verdict_of(&inject, get, page), SERVICE_SKIP);
    ck_assert_uint_eq(counts_of(&adremover), 1);
    ck_assert_uint_eq(counts_of(&gray), 2);
    ck_assert_uint_eq(counts_of(&gzip), 0);
    ck_assert_uint_eq(counts_of(&inject), 3);
    ck_assert_uint_eq(adremover.lines, 1);
    ck_assert_uint_eq(gray.lines + gzip.lines, 0);
    ck_assert_uint_eq(inject.lines, 3);
    ck_assert_ptr_nonnull(strstr(inject.last_line, "/nonexistent/helperd.sock"));
    instance_stop(&adremover);
    instance_stop(&gray);
    instance_stop(&gzip);
    instance_stop(&inject);
}
END_TEST

START_TEST(instances_of_one_service_are_told_apart) {
    struct instance strict, lenient, blocking, passing;
    instance_init(&strict, service_find("gray"));
    instance_init(&lenient, service_find("gray"));
    instance_init(&blocking, service_find("adremover"));
    instance_init(&passing, service_find("adremover"));
    instance_set(&strict, "MaxSize", "1K");
    instance_set(&blocking, "Rule", "||ads.example^");
    instance_set(&passing, "Rule", "||other.example^");
    instance_start(&strict);
    instance_start(&lenient);
    instance_start(&blocking);
    instance_start(&passing);
    ck_assert_uint_ne(blocking.host.fingerprint, passing.host.fingerprint);
    ck_assert_int_eq(verdict_of(&strict, get, large_image), SERVICE_SKIP);
    verdict_of(&lenient, get, large_image);
    ck_assert_uint_eq(counts_of(&strict), 1);
    ck_assert_uint_eq(counts_of(&lenient), 0);
    ck_assert_int_eq(verdict_of(&blocking, get, page), SERVICE_ADAPT);
    ck_assert_int_eq(verdict_of(&passing, get, page), SERVICE_SKIP);
    ck_assert_uint_eq(counts_of(&blocking), 1);
    ck_assert_uint_eq(counts_of(&passing), 0);
    instance_stop(&passing);
    ck_assert_int_eq(verdict_of(&blocking, get, page), SERVICE_ADAPT);
    instance_stop(&strict);
    instance_stop(&lenient);
    instance_stop(&blocking);
}
END_TEST

static void never_called(void *service) {
    (void)service;
}

/* The modules that are installed, all loaded as c-icap loads them: into one space of names. */
START_TEST(modules_of_one_process_are_told_apart) {
    static const char *const names[] = {"adremover", "gray", "gzip", "inject"};
    struct instance instances[COUNT_OF(names)];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[600], symbol[100];
        snprintf(path, sizeof path, "%s/srv_%s.so", MODULES, names[i]);
        snprintf(symbol, sizeof symbol, SERVICE_SYMBOL_PREFIX "%s", names[i]);
        void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        ck_assert_msg(module != NULL, "%s", dlerror());
        const struct service_ops *ops = dlsym(module, symbol);
        ck_assert_msg(ops != NULL, "%s: no %s", path, symbol);
        ck_assert_uint_eq(ops->version, SERVICE_VERSION);
        ck_assert_str_eq(ops->name, names[i]);
        instance_init(&instances[i], ops);
        if (i == 0)
            instance_set(&instances[i], "Rule", "||ads.example^");
        instance_start(&instances[i]);
    }
    ck_assert_int_eq(verdict_of(&instances[0], get, page), SERVICE_ADAPT);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ck_assert_uint_eq(counts_of(&instances[i]), i == 0 ? 1 : 0);
        instance_stop(&instances[i]);
    }
}
END_TEST

START_TEST(what_services_may_ask_of_the_interface) {
    struct service_ops ops = {.begin = NULL};
    struct service_host host = {.watch = NULL};
    ck_assert(!service_has_events(&ops));
    ops.timer = never_called;
    ck_assert(service_has_events(&ops));
    ck_assert(!service_watch(&host, 0, POLLIN)); /* a host that watches none */
    ck_assert_str_eq(service_status_text(404), "Not Found");
    ck_assert_str_eq(service_status_text(299), "Unknown");
}
END_TEST

Suite *service_suite(void) {
    const TTest *const tests[] = {
        services_are_found_by_name,
        services_of_one_process_are_told_apart,
        instances_of_one_service_are_told_apart,
        modules_of_one_process_are_told_apart,
        what_services_may_ask_of_the_interface,
    };
    return suite_of("service", tests, COUNT_OF(tests));
}
