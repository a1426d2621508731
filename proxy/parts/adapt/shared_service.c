#include "adapt/shared_service.h"

#include "adapt/service_report.h"
#include "base/assert.h"
#include "base/threads.h"
#include "part.h"

#include <string.h>

/* The tag that the same service had before, or a new one. */
static struct service_tag *shared_service_tag(const struct service_settings *settings,
                                              const struct shared_services *before) {
    for (size_t i = 0; before != NULL && i < before->count; i++)
        if (service_tag_is_of(before->services[i]->tag, settings))
            return service_tag_reference(before->services[i]->tag);
    return service_tag_new(settings);
}

static struct bypasses *shared_service_bypasses(const char *name,
                                                const struct shared_services *before) {
    const struct shared_service *same = before == NULL ? NULL : shared_services_find(before, name);
    return same == NULL ? bypasses_new(name) : bypasses_reference(same->bypasses);
}

void shared_service_init(struct shared_service *shared, const struct adapter_class *class,
                         const struct service_settings *settings,
                         const struct shared_services *before) {
    INIT_OBJ(shared, SHARED_SERVICE_MAGIC);
    shared->class = class;
    shared->name = xstrdup(settings->name);
    shared->unloaded = settings->disabled;
    shared->tag = shared_service_tag(settings, before);
    shared->bypasses = shared_service_bypasses(settings->name, before);
}

void shared_service_end(struct shared_service *shared) {
    CHECK_OBJ(shared, SHARED_SERVICE_MAGIC);
    service_tag_release(&shared->tag);
    bypasses_release(&shared->bypasses);
    free(shared->name);
    shared->magic = 0;
}

static void report_unloaded(struct service_report *report) {
    report->state = SERVICE_UNLOADED;
    for (unsigned i = 0; i < ICAP_ENDPOINTS_MAX; i++)
        report->endpoints[i].state = SERVICE_UNLOADED;
}

void shared_service_report(struct shared_service *shared, struct service_report *report) {
    CHECK_OBJ(shared, SHARED_SERVICE_MAGIC);
    memset(report, 0, sizeof *report);
    shared->class->report_shared(shared, report);
    if (shared->unloaded)
        report_unloaded(report);
    report->bypassed_since = atomic_load(&shared->bypasses->since);
    report->bypassed = bypasses_count(shared->bypasses);
}

/* One service that is being made. */
struct share_task {
    const struct adapter_class *class;
    const struct settings *settings;
    size_t index;
    const struct shared_services *before;
    struct shared_service *shared;
    struct thread thread;
};

static void share_main(void *arg) {
    struct share_task *task = arg;
    task->shared = task->class->share(task->settings, task->index, task->before);
}

static void share_begin(struct share_task *task) {
    const struct service_settings *service = &task->settings->services[task->index];
    if (task->class->share_waits != NULL && task->class->share_waits(service))
        thread_start(&task->thread, share_main, task, "rt-load-%s", service->name);
}

/* The kind of a part (part.services). */
static const struct adapter_class *adapter_class_of(const struct service_settings *settings) {
    PARTS_FOR_EACH (number, services.class)
        if (part_table[number]->services.kind == settings->kind)
            return part_table[number]->services.class;
    ASSERT(!"the settings have no service of a kind that no part knows");
    return NULL;
}

/* Services that wait do so at the same time, and all others are made meanwhile. */
static void share_all(struct shared_services *services, const struct settings *settings,
                      const struct shared_services *before) {
    struct share_task *tasks = xcalloc(services->count + 1, sizeof *tasks);
    for (size_t i = 0; i < services->count; i++) {
        tasks[i] = (struct share_task){.class = adapter_class_of(&settings->services[i]),
                                       .settings = settings,
                                       .index = i,
                                       .before = before};
        share_begin(&tasks[i]);
    }
    for (size_t i = 0; i < services->count; i++)
        if (!tasks[i].thread.started)
            share_main(&tasks[i]);
    for (size_t i = 0; i < services->count; i++) {
        thread_join(&tasks[i].thread);
        services->services[i] = tasks[i].shared;
    }
    free(tasks);
}

struct shared_services *shared_services_new(const struct settings *settings,
                                            const struct shared_services *before) {
    struct shared_services *services;
    ALLOC_OBJ(services, SHARED_SERVICES_MAGIC);
    services->count = settings->service_count;
    services->services = xcalloc(services->count + 1, sizeof *services->services);
    share_all(services, settings, before);
    return services;
}

void shared_services_free(struct shared_services **servicesp) {
    struct shared_services *services = *servicesp;
    *servicesp = NULL;
    if (services == NULL)
        return;
    CHECK_OBJ(services, SHARED_SERVICES_MAGIC);
    for (size_t i = 0; i < services->count; i++)
        services->services[i]->class->unshare(&services->services[i]);
    free(services->services);
    FREE_OBJ(services);
}

struct shared_service *shared_services_find(const struct shared_services *services,
                                            const char *name) {
    CHECK_OBJ(services, SHARED_SERVICES_MAGIC);
    for (size_t i = 0; i < services->count; i++)
        if (strcmp(services->services[i]->name, name) == 0)
            return services->services[i];
    return NULL;
}

void shared_services_note_problems(const struct shared_services *services,
                                   struct findings *findings) {
    CHECK_OBJ(services, SHARED_SERVICES_MAGIC);
    for (size_t i = 0; i < services->count; i++) {
        struct shared_service *service = services->services[i];
        const char *problem =
            service->class->problem == NULL ? NULL : service->class->problem(service);
        if (problem != NULL)
            findings_add(findings, "%s", problem);
    }
}
