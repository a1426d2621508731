#include "inside/instance.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "config.h"
#include "inside/code.h"
#include "inside/content.h"
#include "inside/watches.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* When a helper is down, every page and every image logs a line. The counters tell the rest. */
static bool instance_may_log(struct inside_instance *instance) {
    enum { LINES_A_SECOND = 20 };
    int64_t now = service_now() / 1000;
    if (atomic_exchange(&instance->log_second, now) != now)
        atomic_store(&instance->log_lines, 0);
    return atomic_fetch_add(&instance->log_lines, 1) < LINES_A_SECOND;
}

static void instance_log(void *context, enum log_level level, const char *text) {
    struct inside_instance *instance = context;
    if (instance_may_log(instance))
        log_write(level, "service %s: %s", instance->name, text);
}

void inside_instance_complain(struct inside_instance *instance, const char *text) {
    instance_log(instance, LOG_LEVEL_ERROR, text);
}

static void instance_count(void *context, unsigned counter) {
    struct inside_instance *instance = context;
    if (counter >= instance->counter_count) {
        instance_log(instance, LOG_LEVEL_WARN,
                     "it counts an event that has no name; please report this bug of the service");
        return;
    }
    atomic_fetch_add_explicit(&instance->counts->counts[counter], 1, memory_order_relaxed);
}

void inside_instance_tell_slow(struct inside_instance *instance, const char *what,
                               uint64_t microseconds) {
    char text[128];
    snprintf(text, sizeof text, "its function %s held a worker up for %" PRIu64 " ms", what,
             microseconds / 1000);
    instance_log(instance, LOG_LEVEL_WARN, text);
}

/* As a host of c-icap does it, so that equal settings have equal fingerprints under both. */
static void instance_mix(struct inside_instance *instance, struct slice text) {
    uint64_t *fingerprint = &instance->host.fingerprint;
    *fingerprint = service_fingerprint(*fingerprint, text.base, text.length);
    *fingerprint = service_fingerprint(*fingerprint, "", 1);
}

static const struct service_option *instance_option(const struct service_ops *ops,
                                                    struct slice name) {
    const struct service_option *option = ops->options;
    for (; option != NULL && option->name != NULL; option++)
        if (slice_equal(slice_from(option->name), name))
            return option;
    return NULL;
}

static bool instance_set(struct inside_instance *instance, const struct service_option *option,
                         struct slice value, const char *where, char error[INSIDE_ERROR]) {
    char why[INSIDE_ERROR / 2];
    instance_mix(instance, slice_from(option->name));
    instance_mix(instance, value);
    if (service_option_set(option, instance->settings, value, why, sizeof why))
        return true;
    snprintf(error, INSIDE_ERROR, "%s: service %s: settings: %s: %s", where, instance->name,
             option->name, why);
    return false;
}

static bool instance_set_named(struct inside_instance *instance,
                               const struct module_setting *setting, char error[INSIDE_ERROR]) {
    const struct service_option *option = instance_option(instance->ops, setting->name);
    if (option != NULL)
        return instance_set(instance, option, setting->value, setting->where, error);
    snprintf(error, INSIDE_ERROR,
             "%s: service %s: settings: the module %s has no setting \"%.*s\"; docs/SERVICES.md "
             "lists those of Retort's own modules",
             setting->where, instance->name, instance->ops->name, SLICE_PRINT(setting->name));
    return false;
}

static bool instance_set_helpers(struct inside_instance *instance,
                                 const struct service_settings *settings,
                                 char error[INSIDE_ERROR]) {
    const struct service_option *option = instance_option(instance->ops, SLICE("Helperd"));
    if (settings->helpers == NULL)
        return true;
    if (option != NULL)
        return instance_set(instance, option, slice_from(settings->helpers), settings->where,
                            error);
    snprintf(error, INSIDE_ERROR,
             "%s: service %s: helpers: the module %s uses no helpers; remove the option",
             settings->where, instance->name, instance->ops->name);
    return false;
}

static bool instance_configure(struct inside_instance *instance,
                               const struct service_settings *settings, char error[INSIDE_ERROR]) {
    const struct service_ops *ops = instance->ops;
    bool good = true;
    instance->settings = xcalloc(1, ops->settings_size + 1);
    if (ops->options != NULL)
        service_options_defaults(ops->options, instance->settings);
    for (size_t i = 0; good && i < settings->setting_count; i++)
        good = instance_set_named(instance, &settings->settings[i], error);
    return good && instance_set_helpers(instance, settings, error);
}

static bool instance_begin(struct inside_instance *instance,
                           const struct service_settings *settings, char error[INSIDE_ERROR]) {
    const struct service_ops *ops = instance->ops;
    bool on_request = adapt_point_is_reqmod(settings->point);
    char why[INSIDE_ERROR / 2] = "";
    if (!(ops->points & (on_request ? SERVICE_REQUEST : SERVICE_RESPONSE))) {
        snprintf(error, INSIDE_ERROR,
                 "%s: service %s: the module %s does not adapt %s; set point = %s", settings->where,
                 settings->name, ops->name, on_request ? "requests" : "responses",
                 on_request ? "respmod_precache" : "reqmod_precache");
        return false;
    }
    if (!instance_configure(instance, settings, error))
        return false;
    if (ops->start == NULL)
        return true;
    instance->service = ops->start(instance->settings, &instance->host, why, sizeof why);
    if (instance->service == NULL)
        snprintf(error, INSIDE_ERROR, "%s: service %s: the module %s does not start: %s",
                 settings->where, settings->name, ops->name, why);
    else
        instance->started = true;
    return instance->service != NULL;
}

static bool counter_names_equal(const char *const *a, const char *const *b) {
    static const char *const none[] = {NULL};
    if (a == NULL)
        a = none;
    if (b == NULL)
        b = none;
    while (*a != NULL && *b != NULL && strcmp(*a, *b) == 0)
        a++, b++;
    return *a == NULL && *b == NULL;
}

struct inside_counts *inside_counts_reference(struct inside_counts *counts) {
    if (counts != NULL) {
        CHECK_OBJ(counts, INSIDE_COUNTS_MAGIC);
        atomic_fetch_add(&counts->references, 1);
    }
    return counts;
}

void inside_counts_release(struct inside_counts **countsp) {
    struct inside_counts *counts = *countsp;
    *countsp = NULL;
    if (counts == NULL)
        return;
    CHECK_OBJ(counts, INSIDE_COUNTS_MAGIC);
    if (atomic_fetch_sub(&counts->references, 1) != 1)
        return;
    content_numbers_release(&counts->content);
    FREE_OBJ(counts);
}

static struct inside_counts *counts_of(struct inside_counts *before,
                                       const struct service_ops *ops) {
    struct inside_counts *counts;
    if (before != NULL && counter_names_equal(before->names, ops->counters))
        return inside_counts_reference(before);
    ALLOC_OBJ(counts, INSIDE_COUNTS_MAGIC);
    atomic_init(&counts->references, 1);
    counts->names = ops->counters;
    counts->content =
        before != NULL ? content_numbers_reference(before->content) : content_numbers_new();
    return counts;
}

static void instance_free(struct inside_instance *instance) {
    const struct service_ops *ops = instance->ops;
    if (instance->started && ops->stop != NULL)
        ops->stop(instance->service);
    content_account_close(&instance->content);
    if (instance->settings != NULL && ops->options != NULL)
        service_options_release(ops->options, instance->settings);
    free(instance->settings);
    inside_counts_release(&instance->counts);
    free(instance->name);
    FREE_OBJ(instance);
}

/* What others may write, others may run with the rights of the proxy. */
static bool module_is_ours(const struct service_settings *settings, char error[INSIDE_ERROR]) {
    struct stat status;
    if (stat(settings->module, &status) != 0 || !(status.st_mode & S_IWOTH))
        return true; /* without a file, the loader has the words */
    snprintf(error, INSIDE_ERROR,
             "%s: service %s: module %s: everybody may write this file, and so run code in the "
             "proxy; chmod o-w it",
             settings->where, settings->name, settings->module);
    return false;
}

static const struct service_ops *load_module(const struct service_settings *settings,
                                             char error[INSIDE_ERROR]) {
    char why[SERVICE_MODULE_ERROR];
    if (!module_is_ours(settings, error))
        return NULL;
    const struct service_ops *ops = inside_code_load(settings->module, why);
    if (ops == NULL)
        snprintf(error, INSIDE_ERROR, "%s: service %s: %s", settings->where, settings->name, why);
    return ops;
}

struct inside_instance *inside_instance_start(const struct service_settings *settings,
                                              struct inside_counts *before,
                                              char error[INSIDE_ERROR]) {
    const struct service_ops *ops = load_module(settings, error);
    struct inside_instance *instance;
    if (ops == NULL)
        return NULL;
    ALLOC_OBJ(instance, INSIDE_INSTANCE_MAGIC);
    atomic_init(&instance->references, 1);
    instance->ops = ops;
    instance->counts = counts_of(before, ops);
    while (ops->counters != NULL && ops->counters[instance->counter_count] != NULL)
        instance->counter_count++;
    instance->name = xstrdup(settings->name);
    instance->host = (struct service_host){
        .context = instance,
        .log = instance_log,
        .count = instance_count,
        .watch = inside_watches_add,
        .fingerprint = SERVICE_FINGERPRINT_SEED,
        .content = &inside_content_calls,
    };
    service_module_mix_build(&instance->host.fingerprint, ops);
    if (!instance_begin(instance, settings, error)) {
        instance_free(instance);
        return NULL;
    }
    instance->content = inside_content_open(settings, instance->counts->content);
    snprintf(instance->version, sizeof instance->version, "%s-%016" PRIx64, PACKAGE_VERSION,
             instance->host.fingerprint);
    if (instance->host.notice[0] != '\0')
        log_warn("service %s: %s", instance->name, instance->host.notice);
    return instance;
}

struct inside_instance *inside_instance_reference(struct inside_instance *instance) {
    CHECK_OBJ(instance, INSIDE_INSTANCE_MAGIC);
    atomic_fetch_add(&instance->references, 1);
    return instance;
}

void inside_instance_release(struct inside_instance **instancep) {
    struct inside_instance *instance = *instancep;
    *instancep = NULL;
    if (instance == NULL)
        return;
    CHECK_OBJ(instance, INSIDE_INSTANCE_MAGIC);
    if (atomic_fetch_sub(&instance->references, 1) == 1)
        instance_free(instance);
}
