#include "service/start.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

static void start_mix(struct service_host *host, struct slice text) {
    host->fingerprint = service_fingerprint(host->fingerprint, text.base, text.length);
    host->fingerprint = service_fingerprint(host->fingerprint, "", 1);
}

static const struct service_option *start_option(const struct service_ops *ops, struct slice name) {
    return ops->options == NULL ? NULL : service_option_find(ops->options, name);
}

static bool start_set(struct service_start *start, const struct service_option *option,
                      const struct service_setting *setting, const char *name,
                      struct service_host *host, char error[SERVICE_START_ERROR]) {
    char why[SERVICE_START_ERROR / 2];
    start_mix(host, slice_from(option->name));
    start_mix(host, setting->value);
    if (service_option_set(option, start->settings, setting->value, why, sizeof why))
        return true;
    snprintf(error, SERVICE_START_ERROR, "%s: service %s: settings: %s", setting->where, name, why);
    return false;
}

/* "Level, MinSize": what the module can be told. */
static void start_names(const struct service_ops *ops, char *names, size_t size) {
    size_t length = 0;
    names[0] = '\0';
    for (const struct service_option *option = ops->options;
         option != NULL && option->name != NULL && length < size; option++)
        length += (size_t)snprintf(names + length, size - length, "%s%s", length > 0 ? ", " : "",
                                   option->name);
}

static bool start_set_named(struct service_start *start, const struct service_ops *ops,
                            const struct service_setting *setting, const char *name,
                            struct service_host *host, char error[SERVICE_START_ERROR]) {
    char names[SERVICE_START_ERROR / 2];
    const struct service_option *option = start_option(ops, setting->name);
    if (option != NULL)
        return start_set(start, option, setting, name, host, error);
    start_names(ops, names, sizeof names);
    snprintf(error, SERVICE_START_ERROR,
             "%s: service %s: settings: the module %s has no setting \"%.*s\"; it has %s",
             setting->where, name, ops->name, SLICE_PRINT(setting->name),
             names[0] != '\0' ? names : "none");
    return false;
}

static bool start_set_helpers(struct service_start *start, const struct service_ops *ops,
                              const struct service_configuration *configuration,
                              struct service_host *host, char error[SERVICE_START_ERROR]) {
    const struct service_option *option = start_option(ops, SLICE("Helperd"));
    if (configuration->helpers == NULL)
        return true;
    const struct service_setting setting = {SLICE("Helperd"), slice_from(configuration->helpers),
                                            configuration->where};
    if (option != NULL)
        return start_set(start, option, &setting, configuration->name, host, error);
    snprintf(error, SERVICE_START_ERROR,
             "%s: service %s: helpers: the module %s uses no helpers; remove the option",
             configuration->where, configuration->name, ops->name);
    return false;
}

static bool start_configure(struct service_start *start, const struct service_ops *ops,
                            const struct service_configuration *configuration,
                            struct service_host *host, char error[SERVICE_START_ERROR]) {
    bool good = true;
    start->settings = xcalloc(1, ops->settings_size + 1);
    if (ops->options != NULL)
        service_options_defaults(ops->options, start->settings);
    for (size_t i = 0; good && i < configuration->setting_count; i++)
        good = start_set_named(start, ops, &configuration->settings[i], configuration->name, host,
                               error);
    return good && start_set_helpers(start, ops, configuration, host, error);
}

bool service_start(struct service_start *start, const struct service_ops *ops,
                   const struct service_configuration *configuration, struct service_host *host,
                   char error[SERVICE_START_ERROR]) {
    char why[SERVICE_START_ERROR / 2] = "";
    *start = (struct service_start){0};
    if (!start_configure(start, ops, configuration, host, error))
        return false;
    if (ops->start == NULL)
        return true;
    start->service = ops->start(start->settings, host, why, sizeof why);
    start->started = start->service != NULL;
    if (!start->started)
        snprintf(error, SERVICE_START_ERROR, "%s: service %s: the module %s does not start: %s",
                 configuration->where, configuration->name, ops->name, why);
    return start->started;
}

void service_stop(struct service_start *start, const struct service_ops *ops) {
    if (start->started && ops->stop != NULL)
        ops->stop(start->service);
    if (start->settings != NULL && ops->options != NULL)
        service_options_release(ops->options, start->settings);
    free(start->settings);
    *start = (struct service_start){0};
}
