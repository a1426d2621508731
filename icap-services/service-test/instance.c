#include "service-test/instance.h"

#include "base/assert.h"
#include "base/failure.h"
#include "service-test/call.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum { TIMERS = 4, AGAIN_AND_AGAIN = 10000 };

/* ---- timer and descriptor ----------------------------------------------------------------- */

static struct pollfd *events_find(struct test_instance *instance, int fd) {
    for (unsigned i = 0; i < instance->watched_count; i++)
        if (instance->watched[i].fd == fd)
            return &instance->watched[i];
    return NULL;
}

static void events_forget(struct test_instance *instance, struct pollfd *watched) {
    if (watched != NULL)
        *watched = instance->watched[--instance->watched_count];
}

bool test_events_watch(void *context, int fd, short events) {
    struct test_instance *instance = context;
    struct pollfd *watched = events_find(instance, fd);
    test_call_note_use("service_watch");
    if (!instance->may_watch) {
        test_call_complain(FINDING_CALL, "the service calls service_watch, and is neither in timer "
                                         "nor in descriptor: no host watches it then");
        return false;
    }
    if (events == 0 || fd < 0) {
        events_forget(instance, watched);
        return events == 0;
    }
    if (instance->ops->descriptor == NULL ||
        (watched == NULL && instance->watched_count == TEST_WATCHED))
        return false;
    if (watched == NULL)
        watched = &instance->watched[instance->watched_count++];
    *watched = (struct pollfd){.fd = fd, .events = events};
    return true;
}

static void events_call_timer(struct test_instance *instance) {
    test_call_begin(CALL_TIMER);
    instance->may_watch = true;
    instance->ops->timer(instance->service);
    instance->may_watch = false;
    test_call_end();
}

static void events_call_descriptor(struct test_instance *instance, struct pollfd ready) {
    test_call_begin(CALL_DESCRIPTOR);
    instance->may_watch = true;
    instance->ops->descriptor(instance->service, ready.fd, ready.revents);
    instance->may_watch = false;
    test_call_end();
}

/* False: it is not open any more. */
static bool events_is_open(struct test_instance *instance, struct pollfd *watched) {
    if ((watched->revents & POLLNVAL) == 0)
        return true;
    test_call_complain(FINDING_CALL,
                       "the service watches descriptor %d, which is not open: it has to end the "
                       "watch with service_watch(host, fd, 0) before it closes it",
                       watched->fd);
    events_forget(instance, watched);
    return false;
}

/* Serves what is ready until the time. False: it never ceases to be. */
static bool events_serve(struct test_instance *instance, int64_t until) {
    for (unsigned calls = 0; calls < AGAIN_AND_AGAIN;) {
        int64_t left = until - service_now();
        int count = poll(instance->watched, instance->watched_count, left < 0 ? 0 : (int)left);
        if (count <= 0)
            return true;
        for (unsigned i = 0; i < instance->watched_count; i++)
            if (instance->watched[i].revents != 0 &&
                events_is_open(instance, &instance->watched[i])) {
                events_call_descriptor(instance, instance->watched[i]);
                calls++;
                break; /* the call may have changed them all */
            }
    }
    test_call_complain(FINDING_STUCK,
                       "descriptor was called %d times in %d milliseconds, and what "
                       "it watches is still ready: a host would have no rest",
                       AGAIN_AND_AGAIN, EVENTS_TIME);
    return false;
}

static void events_run_timer(struct test_instance *instance) {
    int64_t end = service_now() + EVENTS_TIME;
    for (unsigned i = 0; i < TIMERS; i++) {
        events_call_timer(instance);
        unsigned period = instance->ops->timer_period;
        int64_t next = service_now() + period;
        if (!events_serve(instance, period > 0 && next < end ? next : end) || period == 0 ||
            next >= end)
            return;
    }
}

/* ---- what it is told of ------------------------------------------------------------------- */

static void events_tell_lines(struct test_instance *instance) {
    const struct service_log_line lines[] = {
        {.transaction_id = SLICE("0123456789abcdef"),
         .client_ip = SLICE("192.0.2.1"),
         .method = SLICE("GET"),
         .url = SLICE("http://test.example/"),
         .status = 200,
         .response_bytes = 1234,
         .microseconds = 1500,
         .result = SLICE("MISS"),
         .hierarchy = SLICE("DIRECT"),
         .server = SLICE("test.example:80"),
         .content_type = SLICE("text/html")},
        {.result = SLICE("ERROR"), /* of a client that left before its request was read */
         .hierarchy = SLICE("NONE"),
         .error = SLICE("the client left"),
         .aborted = true},
    };
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) {
        test_call_begin(CALL_LOGGED);
        instance->ops->logged(instance->service, &lines[i]);
        test_call_end();
    }
}

static void events_tell_connection(struct test_instance *instance) {
    const struct service_connection connection = {
        .client_ip = SLICE("192.0.2.1"),
        .requests = 2,
        .bytes_in = 400,
        .bytes_out = 9000,
        .microseconds = 100000,
        .reason = SLICE("client"),
    };
    test_call_begin(CALL_CLOSED);
    instance->ops->closed(instance->service, &connection);
    test_call_end();
}

static void events_make_addresses(struct sockaddr_storage addresses[3]) {
    memset(addresses, 0, 3 * sizeof *addresses);
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&addresses[0];
    v6->sin6_family = AF_INET6;
    inet_pton(AF_INET6, "2001:db8::1", &v6->sin6_addr);
    for (unsigned i = 1; i < 3; i++) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)&addresses[i];
        v4->sin_family = AF_INET;
        inet_pton(AF_INET, i == 1 ? "192.0.2.1" : "192.0.2.2", &v4->sin_addr);
    }
}

/* Hosts leave out what was not given, or is there twice. */
static void events_check_addresses(struct sockaddr_storage *given,
                                   const struct sockaddr_storage *addresses, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (unsigned j = 0; j < 3 && !found; j++) {
            found = memcmp(&given[j], &addresses[i], sizeof *addresses) == 0;
            if (found)
                memset(&given[j], 0xff, sizeof *given);
        }
        if (!found)
            test_call_complain(FINDING_CALL,
                               "address %zu that resolved wants is none of those that it was "
                               "given, or there twice: no host uses it",
                               i + 1);
    }
}

static void events_tell_name(struct test_instance *instance) {
    struct sockaddr_storage given[3], addresses[3];
    events_make_addresses(given);
    memcpy(addresses, given, sizeof given);
    test_call_begin(CALL_RESOLVED);
    size_t count = instance->ops->resolved(instance->service, SLICE("test.example"), addresses, 3);
    test_call_end();
    if (count > 3)
        test_call_complain(FINDING_CALL, "resolved returns %zu addresses of 3", count);
    else
        events_check_addresses(given, addresses, count);
}

void test_events_run(struct test_instance *instance) {
    const struct service_ops *ops = instance->ops;
    CHECK_OBJ(instance, TEST_INSTANCE_MAGIC);
    if (ops->timer != NULL)
        events_run_timer(instance);
    if (ops->logged != NULL)
        events_tell_lines(instance);
    if (ops->closed != NULL)
        events_tell_connection(instance);
    if (ops->resolved != NULL)
        events_tell_name(instance);
}

/* Each exchange may write the same line. One after the other, it is printed once. */
static void print_logged(const char *service, const char *level, const char *text) {
    static _Thread_local char last[200];
    if (strncmp(last, text, sizeof last - 1) == 0)
        return;
    snprintf(last, sizeof last, "%s", text);
    fprintf(stderr, "%s: %s: %s\n", service, level, text);
}

static void instance_on_log(void *context, enum log_level level, const char *text) {
    const struct test_instance *instance = context;
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    test_call_note_use("service_log");
    if (text == NULL)
        test_call_complain(FINDING_CALL, "the service logs NULL");
    else if (instance->verbose && level >= LOG_LEVEL_ERROR && level <= LOG_LEVEL_DEBUG)
        print_logged(instance->ops->name, levels[level], text);
}

static void instance_on_count(void *context, unsigned counter) {
    const struct test_instance *instance = context;
    test_call_note_use("service_count");
    if (counter >= instance->counters)
        test_call_complain(FINDING_CALL,
                           "the service adds to counter %u, and has %u: a host would crash",
                           counter, instance->counters);
}

static bool instance_apply(struct test_instance *instance, const char *setting,
                           char error[TEST_INSTANCE_ERROR]) {
    const char *sign = strchr(setting, '=');
    struct slice name = slice_make(setting, (size_t)(sign - setting)), value = slice_from(sign + 1);
    const struct service_option *option = service_option_find(instance->ops->options, name);
    char why[300];
    if (option == NULL)
        return failure(error, TEST_INSTANCE_ERROR, "the service %s has no setting \"%.*s\"",
                       instance->ops->name, SLICE_PRINT(name));
    if (!service_option_set(option, instance->settings, value, why, sizeof why))
        return failure(error, TEST_INSTANCE_ERROR, "the setting %s is refused: %s", setting, why);
    return true;
}

static void instance_release_settings(struct test_instance *instance) {
    if (instance->ops->options != NULL)
        service_options_release(instance->ops->options, instance->settings);
    free(instance->settings);
    instance->magic = 0;
}

/* Hosts mix the settings into the fingerprint before start; here they are the same each time. */
static bool instance_start_service(struct test_instance *instance,
                                   char error[TEST_INSTANCE_ERROR]) {
    char why[500] = "";
    if (instance->ops->start == NULL)
        return true;
    test_call_begin(CALL_START);
    instance->service = instance->ops->start(instance->settings, &instance->host, why, sizeof why);
    test_call_end();
    if (instance->service != NULL)
        return true;
    if (why[0] == '\0')
        test_call_complain(FINDING_CALL, "start returned NULL and wrote no sentence into `error`");
    return failure(error, TEST_INSTANCE_ERROR, "the service does not start: %s",
                   why[0] == '\0' ? "it does not say why" : why);
}

bool test_instance_start(struct test_instance *instance, const struct service_ops *ops,
                         const struct tester_options *options, char error[TEST_INSTANCE_ERROR]) {
    INIT_OBJ(instance, TEST_INSTANCE_MAGIC);
    instance->ops = ops;
    instance->verbose = options->verbose;
    instance->host = (struct service_host){.context = instance,
                                           .log = instance_on_log,
                                           .count = instance_on_count,
                                           .watch = test_events_watch,
                                           .fingerprint = SERVICE_FINGERPRINT_SEED};
    while (ops->counters != NULL && ops->counters[instance->counters] != NULL)
        instance->counters++;
    instance->settings = xcalloc(1, ops->settings_size + 1);
    if (ops->options != NULL)
        service_options_defaults(ops->options, instance->settings);
    for (unsigned i = 0; i < options->setting_count; i++)
        if (!instance_apply(instance, options->settings[i], error)) {
            instance_release_settings(instance);
            return false;
        }
    if (instance_start_service(instance, error))
        return true;
    instance_release_settings(instance);
    return false;
}

void test_instance_stop(struct test_instance *instance) {
    CHECK_OBJ(instance, TEST_INSTANCE_MAGIC);
    if (instance->ops->stop != NULL) {
        test_call_begin(CALL_STOP);
        instance->ops->stop(instance->service);
        test_call_end();
    }
    instance_release_settings(instance);
}
