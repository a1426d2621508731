#include "settings/start_only.h"

#include <string.h>

static bool same_disk(const struct disk_settings *a, const struct disk_settings *b) {
    return strcmp(a->path, b->path) == 0 && a->size == b->size && a->admission == b->admission &&
           a->max_object == b->max_object && a->threads == b->threads &&
           a->write_queue == b->write_queue && a->write_wait == b->write_wait && a->sync == b->sync;
}

static bool same_disks(const struct settings *old, const struct settings *new) {
    bool same =
        old->cache.disk_count == new->cache.disk_count && old->cache.disk_io == new->cache.disk_io;
    for (size_t i = 0; same && i < new->cache.disk_count; i++)
        same = same_disk(&old->cache.disks[i], &new->cache.disks[i]);
    return same;
}

/* One finding for each option of the section authentication that differs. */
static void compare_authentication(const struct authentication_settings *first,
                                   const struct authentication_settings *new,
                                   struct findings *left) {
    const struct {
        const char *name;
        unsigned before, after;
    } options[] = {
        {"threads", first->threads, new->threads},
        {"remember_entries", first->remember_entries, new->remember_entries},
        {"attempt_entries", first->attempt_entries, new->attempt_entries},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].before != options[i].after)
            findings_add(left,
                         "authentication.%s is still %u, not %u: restart retort to apply the "
                         "change",
                         options[i].name, options[i].before, options[i].after);
}

static bool same_path(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

void start_only_compare(const struct settings *first, const struct settings *new,
                        struct findings *left) {
    if (first->workers != new->workers)
        findings_add(left, "workers is still %u, not %u: restart retort to apply the change",
                     first->workers, new->workers);
    const char *before = first->admin.listen == NULL ? "off" : first->admin.listen;
    const char *after = new->admin.listen == NULL ? "off" : new->admin.listen;
    if (strcmp(before, after) != 0)
        findings_add(left, "admin.listen is still %s, not %s: restart retort to apply the change",
                     before, after);
    if ((first->admin.certificates == NULL) != (new->admin.certificates == NULL))
        findings_add(left,
                     "admin.certificates: the admin plane still speaks %s: restart retort "
                     "to apply the change",
                     first->admin.certificates == NULL ? "clear text" : "TLS");
    if (first->admin.history_step != new->admin.history_step)
        findings_add(left,
                     "admin.history_step is still %llu ms: restart retort to apply the change",
                     (unsigned long long)first->admin.history_step);
    if (!same_path(first->take_over_socket, new->take_over_socket))
        findings_add(left,
                     "take_over_socket is still as it was at the start: restart retort to apply "
                     "the change");
    if (first->admin.event_consumers != new->admin.event_consumers ||
        first->admin.event_queue != new->admin.event_queue ||
        first->admin.event_heartbeat != new->admin.event_heartbeat)
        findings_add(left, "admin.event_consumers, admin.event_queue and admin.event_heartbeat are "
                           "still as they were at the start: restart retort to apply the change");
    if (!same_disks(first, new))
        findings_add(left, "cache.disk and cache.disk_io are still as they were at the start: "
                           "restart retort to apply the change");
    compare_authentication(&first->authentication, &new->authentication, left);
}
