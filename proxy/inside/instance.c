#include "inside/instance.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

static void instance_count(void *context, unsigned counter) {
    struct inside_instance *instance = context;
    ASSERT(counter < INSIDE_COUNTERS);
    atomic_fetch_add_explicit(&instance->counters[counter], 1, memory_order_relaxed);
}

void inside_instance_note_slow(struct inside_instance *instance, const char *what,
                               uint64_t microseconds) {
    char text[128];
    atomic_fetch_add_explicit(&instance->slow, 1, memory_order_relaxed);
    snprintf(text, sizeof text, "%s held a worker up for %" PRIu64 " ms", what,
             microseconds / 1000);
    instance_log(instance, LOG_LEVEL_WARN, text);
}

static void instance_mix(struct inside_instance *instance, struct slice text) {
    instance->host.fingerprint =
        service_fingerprint(instance->host.fingerprint, text.base, text.length);
    instance->host.fingerprint = service_fingerprint(instance->host.fingerprint, "", 1);
}

static const struct service_option *instance_option(const struct service_ops *ops,
                                                    struct slice name) {
    for (const struct service_option *option = ops->options; option != NULL && option->name != NULL;
         option++)
        if (slice_equal(slice_from(option->name), name))
            return option;
    return NULL;
}

/* `pair` is "Name=value". */
static bool instance_set(struct inside_instance *instance, struct slice name, struct slice value,
                         char error[INSIDE_ERROR]) {
    char why[INSIDE_ERROR / 2];
    const struct service_option *option = instance_option(instance->ops, name);
    if (option == NULL) {
        snprintf(error, INSIDE_ERROR, "settings: the service %s has no setting \"%.*s\"",
                 instance->ops->name, SLICE_PRINT(name));
        return false;
    }
    if (!service_option_set(option, instance->settings, value, why, sizeof why)) {
        snprintf(error, INSIDE_ERROR, "settings: %s", why);
        return false;
    }
    instance_mix(instance, name);
    instance_mix(instance, value);
    return true;
}

static bool instance_set_pair(struct inside_instance *instance, struct slice pair,
                              char error[INSIDE_ERROR]) {
    const char *sign = memchr(pair.base, '=', pair.length);
    if (sign == NULL) {
        snprintf(error, INSIDE_ERROR, "settings: \"%.*s\" is no NAME = VALUE", SLICE_PRINT(pair));
        return false;
    }
    size_t name = (size_t)(sign - pair.base);
    return instance_set(instance, slice_make(pair.base, name),
                        slice_make(sign + 1, pair.length - name - 1), error);
}

static bool instance_configure(struct inside_instance *instance,
                               const struct service_settings *settings, char error[INSIDE_ERROR]) {
    const struct service_ops *ops = instance->ops;
    instance->settings = xcalloc(1, ops->settings_size + 1);
    if (ops->options != NULL)
        service_options_defaults(ops->options, instance->settings);
    if (settings->helpers != NULL &&
        !instance_set(instance, SLICE("Helperd"), slice_from(settings->helpers), error))
        return false;
    for (char **pair = settings->module_settings; pair != NULL && *pair != NULL; pair++)
        if (!instance_set_pair(instance, slice_from(*pair), error))
            return false;
    return true;
}

static bool instance_begin(struct inside_instance *instance,
                           const struct service_settings *settings, char error[INSIDE_ERROR]) {
    const struct service_ops *ops = instance->ops;
    unsigned point = adapt_point_is_reqmod(settings->point) ? SERVICE_REQUEST : SERVICE_RESPONSE;
    char why[INSIDE_ERROR / 2] = "";
    if (!(ops->points & point)) {
        snprintf(error, INSIDE_ERROR, "point: the service %s does not adapt %s", ops->name,
                 point == SERVICE_REQUEST ? "requests" : "responses");
        return false;
    }
    if (!instance_configure(instance, settings, error))
        return false;
    if (ops->start == NULL)
        return true;
    instance->service = ops->start(instance->settings, &instance->host, why, sizeof why);
    if (instance->service == NULL)
        snprintf(error, INSIDE_ERROR, "the service does not start: %s", why);
    return instance->service != NULL;
}

static void instance_free(struct inside_instance *instance) {
    const struct service_ops *ops = instance->ops;
    if (instance->service != NULL && ops->stop != NULL)
        ops->stop(instance->service);
    if (instance->settings != NULL && ops->options != NULL)
        service_options_release(ops->options, instance->settings);
    free(instance->settings);
    free(instance->name);
    FREE_OBJ(instance);
}

struct inside_instance *inside_instance_start(const struct service_settings *settings,
                                              char error[INSIDE_ERROR]) {
    const struct service_ops *ops = inside_module_load(settings->module, error);
    struct inside_instance *instance;
    if (ops == NULL)
        return NULL;
    ALLOC_OBJ(instance, INSIDE_INSTANCE_MAGIC);
    atomic_init(&instance->references, 1);
    instance->ops = ops;
    instance->name = xstrdup(settings->name);
    instance->host = (struct service_host){
        .context = instance,
        .log = instance_log,
        .count = instance_count,
        .fingerprint = SERVICE_FINGERPRINT_SEED,
    };
    if (!instance_begin(instance, settings, error)) {
        instance_free(instance);
        return NULL;
    }
    snprintf(instance->version, sizeof instance->version, "%s-%016" PRIx64, ops->name,
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

bool inside_instance_check(const struct service_settings *settings, char error[INSIDE_ERROR]) {
    struct inside_instance *instance = inside_instance_start(settings, error);
    bool good = instance != NULL;
    inside_instance_release(&instance);
    return good;
}
