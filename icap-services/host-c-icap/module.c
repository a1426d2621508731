/*
 * The c-icap module: defines `service`, the one symbol that c-icap looks for, from the service that
 * the module is linked with. Options of the service become directives `NAME.Option` in c-icap.conf.
 * Its counters become statistics of the group "Service NAME".
 *
 * c-icap calls init, then reads the directives, then calls post_init. It does all this in its
 * master process before it forks. So lists are loaded once, and every child advertises the same
 * ISTag. No call of c-icap tells for which service it is. So a module is one service, and its state
 * is static.
 */
#include "service/module.h"
#include "base/assert.h"
#include "base/failure.h"
#include "host-c-icap/cicap.h"
#include "host-c-icap/transaction.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

enum { OPTIONS_MAX = 32, COUNTERS_MAX = 16, OUTCOMES = 3 };

static struct module {
    struct transaction_owner owner;
    void *settings;
    struct ci_conf_entry directives[OPTIONS_MAX + 1];
    int outcome_ids[OUTCOMES], counter_ids[COUNTERS_MAX];
    _Atomic int64_t log_second; /* of CLOCK_MONOTONIC: the second that log_lines counts */
    _Atomic int log_lines;
    char misconfigured[384]; /* the first setting that is wrong, and why; "": none */
    bool started;
} the_module;

static const char *const outcome_names[OUTCOMES] = {"ADAPTED", "SKIPPED", "FAILED"};

/* When a helper is down, every page and every image logs a line. So only so many lines a second are
 * logged. The counters tell the rest. */
static bool module_may_log(struct module *module) {
    enum { LINES_A_SECOND = 20 };
    int64_t now = service_now() / 1000;
    if (atomic_exchange(&module->log_second, now) != now)
        atomic_store(&module->log_lines, 0);
    return atomic_fetch_add(&module->log_lines, 1) < LINES_A_SECOND;
}

static void module_log(void *context, enum log_level level, const char *text) {
    static const int levels[] = {1, 1, 1, 5}; /* c-icap: 1 is always shown */
    struct module *module = context;
    if (module_may_log(module))
        ci_debug_printf(levels[level], "%s: %s\n", module->owner.ops->name, text);
}

static void module_count_id(int id) {
    if (id >= 0)
        ci_stat_uint64_inc(id, 1);
}

static void module_count(void *context, unsigned counter) {
    const struct module *module = context;
    ASSERT(counter < COUNTERS_MAX);
    module_count_id(module->counter_ids[counter]);
}

static void module_count_outcome(void *context, enum transaction_outcome outcome) {
    const struct module *module = context;
    module_count_id(module->outcome_ids[outcome]);
}

static int register_counter(const struct module *module, const char *name) {
    char label[128], group[128];
    snprintf(group, sizeof group, "Service %s", module->owner.ops->name);
    snprintf(label, sizeof label, "Service %s %s", module->owner.ops->name, name);
    return ci_stat_entry_register(label, STAT_INT64_T, group);
}

static void register_counters(struct module *module) {
    for (int i = 0; i < OUTCOMES; i++)
        module->outcome_ids[i] = register_counter(module, outcome_names[i]);
    const char *const *names = module->owner.ops->counters;
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        ASSERT(i < COUNTERS_MAX);
        module->counter_ids[i] = register_counter(module, names[i]);
    }
}

/* ---- settings ----------------------------------------------------------------------------- */

static void module_mix(struct module *module, const void *data, size_t length) {
    uint64_t *fingerprint = &module->owner.host.fingerprint;
    *fingerprint = service_fingerprint(*fingerprint, data, length);
}

static int on_directive(const char *directive, const char **arguments, void *option_pointer) {
    const struct service_option *option = option_pointer;
    struct module *module = &the_module;
    char error[256];
    bool good = arguments != NULL && arguments[0] != NULL;
    if (!good)
        snprintf(error, sizeof error, "a value is missing");
    module_mix(module, option->name, strlen(option->name) + 1);
    for (; good && *arguments != NULL; arguments++) {
        struct slice text = slice_from(*arguments);
        module_mix(module, text.base, text.length + 1);
        good = service_option_set(option, module->settings, text, error, sizeof error);
        if (option->type != SERVICE_OPTION_LIST)
            break;
    }
    /* Refusing the value here would end c-icap as a whole without a message, since its log is not
     * open yet. */
    if (!good && module->misconfigured[0] == '\0')
        snprintf(module->misconfigured, sizeof module->misconfigured, "%s: %s", directive, error);
    return 1;
}

static void make_directives(struct module *module) {
    const struct service_option *option = module->owner.ops->options;
    struct ci_conf_entry *entry = module->directives;
    for (; option != NULL && option->name != NULL; option++, entry++) {
        ASSERT(entry < module->directives + OPTIONS_MAX);
        *entry = (struct ci_conf_entry){option->name, (void *)option, on_directive, option->help};
    }
    *entry = (struct ci_conf_entry){NULL, NULL, NULL, NULL};
}

/* ---- c-icap's calls ----------------------------------------------------------------------- */

/* Answers OPTIONS. A bad character in a field could end the head, so it is replaced. */
static int on_options(ci_request_t *request) {
    const struct service_host *host = &the_module.owner.host;
    char line[sizeof "X-Operator-Notice: " + SERVICE_NOTICE], within[64];
    int length =
        snprintf(line, sizeof line, "X-Operator-Notice: %.*s", SERVICE_NOTICE, host->notice);
    for (int i = 0; i < length; i++)
        if (line[i] < ' ' || line[i] > '~')
            line[i] = '?';
    if (host->notice[0] != '\0')
        ci_icap_add_xheader(request, line);
    snprintf(within, sizeof within, "X-Answers-Within: %" PRIu64, host->answers_within);
    if (host->answers_within > 0)
        ci_icap_add_xheader(request, within);
    return CI_OK;
}

static void describe_service(ci_service_xdata_t *data, const struct service_ops *ops) {
    ci_service_set_preview(data, (int)ops->preview_size);
    ci_service_set_transfer_preview(data, "*");
    ci_service_enable_204(data);
    ci_service_enable_206(data);
    ci_service_add_option_handler(data, "notice", on_options);
    if (ops->wants_client_ip)
        ci_service_set_xopts(data, CI_XCLIENTIP);
}

static int on_init(ci_service_xdata_t *data, struct ci_server_conf *server) {
    struct module *module = &the_module;
    const struct service_ops *ops = service_next(NULL);
    ASSERT(ops->version == SERVICE_VERSION);
    memset(module, 0, sizeof *module);
    module->owner.ops = ops;
    module->owner.host = (struct service_host){.context = module,
                                               .log = module_log,
                                               .count = module_count,
                                               .fingerprint = SERVICE_FINGERPRINT_SEED};
    service_module_mix_build(&module->owner.host.fingerprint, ops);
    module->owner.count_outcome = module_count_outcome;
    module->settings = xcalloc(1, ops->settings_size + 1);
    if (ops->options != NULL)
        service_options_defaults(ops->options, module->settings);
    make_directives(module);
    register_counters(module);
    describe_service(data, ops);
    return CI_OK;
}

/* False and a sentence in `error`: the settings are unusable. */
static bool start_service(struct module *module, char *error, size_t error_size) {
    struct transaction_owner *owner = &module->owner;
    if (module->misconfigured[0] != '\0')
        return failure(error, error_size, ".%s", module->misconfigured);
    if (owner->ops->start != NULL) {
        char why[512] = "";
        owner->service = owner->ops->start(module->settings, &owner->host, why, sizeof why);
        if (owner->service == NULL)
            return failure(error, error_size, ": %s", why);
    }
    module->started = true;
    return true;
}

/* Its processes know neither connections nor lines of a log. */
static void tell_uncalled(const struct service_ops *ops) {
    if (service_has_events(ops))
        ci_debug_printf(1,
                        "%s: c-icap never calls those of its functions timer, descriptor, logged, "
                        "closed and resolved that it has: only the proxy itself does, for a "
                        "service section\n",
                        ops->name);
}

static int on_post_init(ci_service_xdata_t *data, struct ci_server_conf *server) {
    struct module *module = &the_module;
    char error[520], tag[CI_SERVICE_ISTAG_SIZE + 1];
    if (!start_service(module, error, sizeof error)) {
        ci_debug_printf(1, "%s%s. The service is not started.\n", module->owner.ops->name, error);
        return CI_ERROR;
    }
    snprintf(tag, sizeof tag, "-%s-%016" PRIx64, RETORT_VERSION, module->owner.host.fingerprint);
    ci_service_set_istag(data, tag);
    tell_uncalled(module->owner.ops);
    return CI_OK;
}

static void on_close(void) {
    struct module *module = &the_module;
    const struct service_ops *ops = module->owner.ops;
    if (module->started && ops->stop != NULL)
        ops->stop(module->owner.service);
    module->started = false;
    if (module->settings != NULL && ops->options != NULL)
        service_options_release(ops->options, module->settings);
    free(module->settings);
    module->settings = NULL;
}

static void *module_on_request(ci_request_t *request) {
    if (ci_req_type(request) != ICAP_REQMOD && ci_req_type(request) != ICAP_RESPMOD)
        return NULL;
    return transaction_create(&the_module.owner);
}

static void module_on_release(void *transaction) {
    transaction_destroy(transaction);
}

static int on_preview(char *bytes, int length, ci_request_t *request) {
    return transaction_preview(ci_service_data(request), bytes, length, request);
}

static int on_io(char *out, int *out_length, char *in, int *in_length, int at_end,
                 ci_request_t *request) {
    return transaction_io(ci_service_data(request), out, out_length, in, in_length, at_end != 0,
                          request);
}

static int on_end_of_data(ci_request_t *request) {
    return transaction_finish(ci_service_data(request), request);
}

static ci_service_module_t own_service = {
    .mod_init_service = on_init,
    .mod_post_init_service = on_post_init,
    .mod_close_service = on_close,
    .mod_init_request_data = module_on_request,
    .mod_release_request_data = module_on_release,
    .mod_check_preview_handler = on_preview,
    .mod_end_of_data_handler = on_end_of_data,
    .mod_service_io = on_io,
    .mod_conf_table = the_module.directives,
};

/* c-icap looks this name up with dlsym. It loads modules with RTLD_GLOBAL, so a reference to
 * `service` from inside a module would find that of the first module that was loaded. So the name
 * is an alias that nothing here refers to. */
extern ci_service_module_t service __attribute__((alias("own_service"), visibility("default")));

/* Name, description and points come from the service's ops. c-icap looks at the struct only after
 * dlopen has run the constructors. */
__attribute__((constructor)) static void fill_service(void) {
    const struct service_ops *ops = service_next(NULL);
    ASSERT(ops != NULL); /* else SERVICE_DEFINE is missing in the service */
    own_service.mod_name = ops->name;
    own_service.mod_short_descr = ops->description;
    own_service.mod_type = ((ops->points & SERVICE_REQUEST) ? ICAP_REQMOD : 0) |
                           ((ops->points & SERVICE_RESPONSE) ? ICAP_RESPMOD : 0);
}
