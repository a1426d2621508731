#include "service/service.h"

#include "http/names.h"

#include <string.h>
#include <time.h>

/* The linker makes a table of the entries that SERVICE_DEFINE puts into the section, and defines
 * these two symbols for its ends. They are weak because a program without services has no such
 * section. They are hidden so that each module sees its own services. */
extern const struct service_ops *const __start_retort_services[]
    __attribute__((weak, visibility("hidden")));
extern const struct service_ops *const __stop_retort_services[]
    __attribute__((weak, visibility("hidden")));

const struct service_ops *service_next(const struct service_ops *previous) {
    const struct service_ops *const *entry = __start_retort_services;
    while (previous != NULL && entry < __stop_retort_services && *entry++ != previous)
        ;
    return entry < __stop_retort_services ? *entry : NULL;
}

const struct service_ops *service_find(const char *name) {
    const struct service_ops *ops = service_next(NULL);
    while (ops != NULL && strcmp(ops->name, name) != 0)
        ops = service_next(ops);
    return ops;
}

int64_t service_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool service_has_events(const struct service_ops *ops) {
    return ops->timer != NULL || ops->descriptor != NULL || ops->logged != NULL ||
           ops->closed != NULL || ops->resolved != NULL;
}

const char *service_status_text(unsigned status) {
    return http_reason(status);
}
