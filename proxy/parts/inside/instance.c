#include "inside/instance.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/threads.h"
#include "config.h"
#include "inside/code.h"
#include "inside/content.h"
#include "inside/remote.h"
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
    struct inside_counts *counts = atomic_load_explicit(&instance->counts, memory_order_acquire);
    if (counter >= instance->counter_count) {
        instance_log(instance, LOG_LEVEL_WARN,
                     "it counts an event that has no name; please report this bug of the service");
        return;
    }
    atomic_fetch_add_explicit(&counts->counts[counter], 1, memory_order_relaxed);
}

void inside_instance_tell_slow(struct inside_instance *instance, const char *what,
                               uint64_t microseconds) {
    char text[128];
    snprintf(text, sizeof text, "its function %s held a worker up for %" PRIu64 " ms", what,
             microseconds / 1000);
    instance_log(instance, LOG_LEVEL_WARN, text);
}

static bool instance_adapts_there(const struct service_settings *settings, const char *module,
                                  unsigned points, char error[INSIDE_ERROR]) {
    bool on_request = adapt_point_is_reqmod(settings->point);
    if (points & (on_request ? SERVICE_REQUEST : SERVICE_RESPONSE))
        return true;
    return failure(error, INSIDE_ERROR,
                   "%s: service %s: the module %s does not adapt %s; set point = %s",
                   settings->where, settings->name, module, on_request ? "requests" : "responses",
                   on_request ? "respmod_precache" : "reqmod_precache");
}

static bool instance_begin(struct inside_instance *instance,
                           const struct service_settings *settings, char error[INSIDE_ERROR]) {
    struct service_setting *list = xcalloc(settings->setting_count + 1, sizeof *list);
    for (size_t i = 0; i < settings->setting_count; i++)
        list[i] = (struct service_setting){settings->settings[i].name, settings->settings[i].value,
                                           settings->settings[i].where};
    const struct service_configuration configuration = {
        .name = settings->name,
        .where = settings->where,
        .helpers = settings->helpers,
        .settings = list,
        .setting_count = settings->setting_count,
    };
    bool good =
        instance_adapts_there(settings, instance->ops->name, instance->ops->points, error) &&
        service_start(&instance->start, instance->ops, &configuration, &instance->host, error);
    instance->service = instance->start.service;
    free(list);
    return good;
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
    for (unsigned i = 0; ops->counters != NULL && ops->counters[i] != NULL; i++)
        counts->names[i] = ops->counters[i];
    counts->content =
        before != NULL ? content_numbers_reference(before->content) : content_numbers_new();
    return counts;
}

static void instance_free(struct inside_instance *instance) {
    if (instance->module != NULL)
        service_stop(&instance->start, instance->module);
    inside_content_close(&instance->content);
    struct inside_counts *counts = atomic_exchange(&instance->counts, NULL);
    inside_counts_release(&counts);
    free(instance->name);
    FREE_OBJ(instance);
}

static void instance_end_main(void *arg) {
    struct inside_instance *instance;
    CAST_OBJ(instance, arg, INSIDE_INSTANCE_MAGIC);
    struct inside_thread *thread = instance->end;
    instance_free(instance);
    inside_thread_ended(&thread);
}

/* The function `stop` of a module has a thread of its own, for which only the end of the proxy waits, and
 * not for ever: one that does not come back would keep a worker or a reload. */
static void instance_end(struct inside_instance *instance) {
    inside_runners_free(&instance->runners);
    if (!instance->start.started || instance->module->stop == NULL) {
        instance_free(instance);
        return;
    }
    instance->end = inside_thread_begun(instance->name, "its function stop does not come back");
    if (!thread_start_alone(instance_end_main, instance, "rt-stop-%s", instance->name))
        instance_end_main(instance);
}

/* May everybody put a file of his own into the folder, in place of the module? */
static bool folder_is_open(const char *module) {
    struct stat status;
    const char *slash = strrchr(module, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - module) + 1;
    char *folder = slice_dup(slash == NULL ? SLICE(".") : slice_make(module, length));
    bool open = stat(folder, &status) == 0 && (status.st_mode & S_IWOTH) != 0 &&
                (status.st_mode & S_ISVTX) == 0;
    free(folder);
    return open;
}

/* What others may write, others may run with the rights of the proxy. */
static bool module_is_ours(const struct service_settings *settings, char error[INSIDE_ERROR]) {
    struct stat status;
    const char *what = NULL;
    if (stat(settings->module, &status) != 0 || !S_ISREG(status.st_mode))
        return true; /* the loader has the words */
    if (status.st_mode & S_IWOTH)
        what = "this file";
    else if (folder_is_open(settings->module))
        what = "its folder";
    if (what == NULL)
        return true;
    return failure(
        error, INSIDE_ERROR,
        "%s: service %s: module %s: everybody may write %s, and so run code in the proxy; "
        "chmod o-w it",
        settings->where, settings->name, settings->module, what);
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

static struct inside_instance *instance_new(const struct service_settings *settings) {
    struct inside_instance *instance;
    ALLOC_OBJ(instance, INSIDE_INSTANCE_MAGIC);
    atomic_init(&instance->references, 1);
    instance->name = xstrdup(settings->name);
    instance->kept_name = inside_name_keep(settings->name);
    instance->host = (struct service_host){
        .context = instance,
        .log = instance_log,
        .count = instance_count,
        .watch = inside_watches_add,
        .fingerprint = SERVICE_FINGERPRINT_SEED,
        .content = &inside_content_calls,
    };
    return instance;
}

/* What it is, by the module in this process. */
static bool instance_load(struct inside_instance *instance, const struct service_settings *settings,
                          struct inside_counts *before, char error[INSIDE_ERROR]) {
    instance->ops = instance->module = load_module(settings, error);
    if (instance->ops == NULL)
        return false;
    instance->identity = instance->ops;
    atomic_store(&instance->counts, counts_of(before, instance->ops));
    while (instance->ops->counters != NULL &&
           instance->ops->counters[instance->counter_count] != NULL)
        instance->counter_count++;
    /* What works on content belongs to a worker. */
    if (settings->runs != SERVICE_RUNS_WORKER)
        instance->host.content = NULL;
    service_module_mix_build(&instance->host.fingerprint, instance->ops);
    return instance_begin(instance, settings, error);
}

/* A start in a thread that may be left behind: what it needs is its own. */
struct instance_start {
    struct arena arena; /* has the settings */
    struct service_settings settings;
    struct inside_instance *instance;
    struct inside_counts *before;
    bool good;
    char error[INSIDE_ERROR];
};

static char *start_copy(struct arena *arena, const char *text) {
    return text == NULL ? NULL : arena_copy(arena, slice_from(text));
}

static void start_copy_settings(struct instance_start *start,
                                const struct service_settings *settings) {
    struct arena *arena = &start->arena;
    size_t count = settings->setting_count;
    struct module_setting *copies = arena_alloc(arena, (count + 1) * sizeof *copies);
    for (size_t i = 0; i < count; i++) {
        const struct module_setting *setting = &settings->settings[i];
        copies[i] = (struct module_setting){.name = arena_slice(arena, setting->name),
                                            .value = arena_slice(arena, setting->value),
                                            .where = start_copy(arena, setting->where)};
    }
    start->settings = (struct service_settings){
        .name = start_copy(arena, settings->name),
        .where = start_copy(arena, settings->where),
        .module = start_copy(arena, settings->module),
        .helpers = start_copy(arena, settings->helpers),
        .settings = copies,
        .setting_count = count,
        .runs = settings->runs,
        .point = settings->point,
    };
}

static void start_free(struct instance_start *start) {
    inside_instance_release(&start->instance);
    inside_counts_release(&start->before);
    arena_release(&start->arena);
    free(start);
}

static void start_run(void *context) {
    struct instance_start *start = context;
    start->good = instance_load(start->instance, &start->settings, start->before, start->error);
}

static void start_leave(void *context) {
    start_free(context);
}

/* As instance_load. Where the proxy ends meanwhile, *instancep is NULL. */
static bool instance_load_apart(struct inside_instance **instancep,
                                const struct service_settings *settings,
                                struct inside_counts *before, char error[INSIDE_ERROR]) {
    const struct inside_start_order order = {start_run, start_leave, settings->name,
                                             settings->start_timeout};
    struct instance_start *start = xcalloc(1, sizeof *start);
    arena_init(&start->arena);
    start_copy_settings(start, settings);
    start->before = inside_counts_reference(before);
    start->instance = *instancep;
    *instancep = NULL;
    if (!inside_start_run(&order, start))
        return failure(error, INSIDE_ERROR, "%s: service %s: retort is stopping", settings->where,
                       settings->name);
    *instancep = start->instance;
    start->instance = NULL;
    bool good = start->good;
    if (!good)
        memcpy(error, start->error, INSIDE_ERROR);
    start_free(start);
    return good;
}

static void instance_on_end(void *owner) {
    struct inside_instance *instance;
    CAST_OBJ(instance, owner, INSIDE_INSTANCE_MAGIC);
    instance_end(instance);
}

static void instance_make_runners(struct inside_instance *instance,
                                  const struct service_settings *settings, unsigned workers) {
    instance->runners = inside_runners_new(settings, workers);
    instance->runners->owner = instance;
    instance->runners->on_end = instance_on_end;
    instance->runners->name = instance->name;
}

/* From now on the workers call the functions that put frames into a ring. */
static bool instance_run_threads(struct inside_instance *instance,
                                 const struct service_settings *settings, unsigned workers,
                                 char error[INSIDE_ERROR]) {
    const char *why;
    instance_make_runners(instance, settings, workers);
    instance->remote_ops = *instance->module;
    inside_remote_functions(&instance->remote_ops);
    instance->ops = &instance->remote_ops;
    if (inside_runners_start_threads(instance->runners, instance->module, instance->service,
                                     &instance->host, &why))
        return true;
    return failure(error, INSIDE_ERROR, "%s: service %s: %s", settings->where, settings->name, why);
}

static void instance_told(void *owner, const struct inside_event_calls *told) {
    struct inside_instance *instance;
    CAST_OBJ(instance, owner, INSIDE_INSTANCE_MAGIC);
    uint64_t before = atomic_exchange(&instance->fingerprint, told->fingerprint);
    if (before != 0 && before != told->fingerprint && instance->runners->count > 1)
        log_warn("service %s: a process of it has found other lists or other code than the ones "
                 "before it; what those make is not remembered any more; reload the configuration "
                 "to start all of them again",
                 instance->name);
}

/* What a process counted that has ended. */
static void instance_counted(void *owner, const uint64_t counts[SERVICE_MODULE_COUNTERS]) {
    struct inside_instance *instance;
    CAST_OBJ(instance, owner, INSIDE_INSTANCE_MAGIC);
    struct inside_counts *kept = atomic_load(&instance->counts);
    for (unsigned i = 0; kept != NULL && i < SERVICE_MODULE_COUNTERS; i++)
        atomic_fetch_add(&kept->counts[i], counts[i]);
}

/* What it is, as its process says. */
static void instance_believe(struct inside_instance *instance,
                             const struct inside_event_calls *told, struct inside_counts *before) {
    struct service_ops *ops = &instance->remote_ops;
    instance->told = *told;
    instance->identity = inside_name_keep(told->name);
    ops->version = SERVICE_VERSION;
    ops->name = instance->told.name;
    ops->description = instance->told.description;
    ops->points = told->points;
    ops->wants_client_ip = told->wants_client_ip;
    ops->preview_size = told->preview_size;
    for (unsigned i = 0; i < told->counter_count; i++)
        instance->counter_names[i] = inside_name_keep(told->counters[i]);
    ops->counters = instance->counter_names;
    inside_remote_functions(ops);
    instance->host.answers_within = told->answers_within;
    instance->host.fingerprint = told->fingerprint;
    snprintf(instance->host.notice, sizeof instance->host.notice, "%s", told->notice);
    atomic_store(&instance->counts, counts_of(before, ops));
}

static bool instance_run_processes(struct inside_instance *instance,
                                   const struct service_settings *settings,
                                   struct inside_counts *before, unsigned workers,
                                   char error[INSIDE_ERROR]) {
    char why[INSIDE_ERROR];
    bool complete;
    struct inside_event_calls told;
    instance_make_runners(instance, settings, workers);
    instance->ops = &instance->remote_ops;
    const struct inside_children children = {
        .settings = settings,
        .owner = instance,
        .log = instance_log,
        .told = instance_told,
        .counted = instance_counted,
    };
    if (!module_is_ours(settings, error))
        return false;
    if (!inside_children_start(instance->runners, &children, &told, why, &complete)) {
        if (complete)
            snprintf(error, INSIDE_ERROR, "%s", why);
        else
            snprintf(error, INSIDE_ERROR, "%s: service %s: %.*s", settings->where, settings->name,
                     INSIDE_ERROR / 2, why);
        return false;
    }
    if (!instance_adapts_there(settings, told.name, told.points, error))
        return false;
    if (told.has_events)
        return failure(
            error, INSIDE_ERROR,
            "%s: service %s: the module %s has a timer, or hears of requests, connections or "
            "names, which only the proxy itself has; set runs = worker or runs = thread",
            settings->where, settings->name, told.name);
    instance_believe(instance, &told, before);
    return true;
}

void inside_version_write(uint64_t fingerprint, char version[INSIDE_VERSION]) {
    snprintf(version, INSIDE_VERSION, "%s-%016" PRIx64, PACKAGE_VERSION, fingerprint);
}

static bool instance_start(struct inside_instance **instancep,
                           const struct service_settings *settings, struct inside_counts *before,
                           unsigned workers, char error[INSIDE_ERROR]) {
    if (settings->runs == SERVICE_RUNS_PROCESS)
        return instance_run_processes(*instancep, settings, before, workers, error);
    return instance_load_apart(instancep, settings, before, error) &&
           (settings->runs == SERVICE_RUNS_WORKER ||
            instance_run_threads(*instancep, settings, workers, error));
}

struct inside_instance *inside_instance_start(const struct service_settings *settings,
                                              struct inside_counts *before, unsigned workers,
                                              char error[INSIDE_ERROR]) {
    struct inside_instance *instance = instance_new(settings);
    if (!instance_start(&instance, settings, before, workers, error)) {
        inside_instance_release(&instance);
        return NULL;
    }
    if (settings->runs == SERVICE_RUNS_WORKER)
        instance->content = inside_content_open(settings, atomic_load(&instance->counts)->content);
    atomic_store(&instance->fingerprint, instance->host.fingerprint);
    inside_version_write(instance->host.fingerprint, instance->version);
    if (instance->host.notice[0] != '\0')
        log_warn("service %s: %s", instance->name, instance->host.notice);
    return instance;
}

const char *inside_instance_version(const struct inside_instance *instance,
                                    char version[INSIDE_VERSION]) {
    if (instance->module != NULL)
        return instance->version;
    inside_version_write(atomic_load(&instance->fingerprint), version);
    return version;
}

uint64_t inside_instance_count(const struct inside_instance *instance, unsigned counter) {
    uint64_t count = atomic_load(&atomic_load(&instance->counts)->counts[counter]);
    for (unsigned i = 0; instance->runners != NULL && i < instance->runners->count; i++)
        count += inside_runner_count(&instance->runners->runners[i], counter);
    return count;
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
    if (atomic_fetch_sub(&instance->references, 1) != 1)
        return;
    if (instance->runners != NULL)
        inside_runners_stop(instance->runners); /* the last of them frees it */
    else
        instance_end(instance);
}
