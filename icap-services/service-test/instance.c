#include "service-test/instance.h"

#include "base/assert.h"
#include "base/failure.h"
#include "service-test/call.h"
#include "service-test/events.h"

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
