/*
 * A shared service: what all workers share of one service of the configuration, whichever kind of
 * adapter asks it: its tag, and the messages that passed without it. What a kind shares besides
 * stands in a struct of its own that begins with this one.
 *
 *     struct shared_services *services = shared_services_new(settings, NULL);
 *     struct shared_services *later = shared_services_new(reloaded, services);
 *     struct shared_service *shared = shared_services_find(services, "gray");
 *     service_tag_bump(shared->tag);
 *     shared_services_free(&services);
 *
 * Called when settings are loaded, by workers that open adapters, and by the admin plane. At a reload a
 * service of the same name and class goes on: its tag stays, and so do its counts.
 *
 * Threads: any; counts and tags are atomic. Ownership: they are those of settings (adapt/settings.h),
 * as long as somebody uses these.
 */
#ifndef RETORT_ADAPT_SHARED_SERVICE_H
#define RETORT_ADAPT_SHARED_SERVICE_H

#include "adapt/adapter.h"
#include "base/findings.h"

struct shared_service {
    unsigned magic;
#define SHARED_SERVICE_MAGIC 0x5a4ed5e4u
    const struct adapter_class *class;
    char *name;
    bool unloaded;             /* it is disabled: nobody asks it */
    struct service_tag *tag;   /* referenced */
    struct bypasses *bypasses; /* referenced */
};

struct shared_services {
    unsigned magic;
#define SHARED_SERVICES_MAGIC 0x5a4ed5e5u
    size_t count;
    struct shared_service **services; /* as in settings->services */
};

/* `before`: those of an earlier snapshot; NULL: there is none. Waits until services that start a
 * process have started it, all at the same time. */
struct shared_services *shared_services_new(const struct settings *settings,
                                            const struct shared_services *before);
void shared_services_free(struct shared_services **servicesp);
/* NULL: there is none of that name. */
struct shared_service *shared_services_find(const struct shared_services *services,
                                            const char *name);

/* Notes what is wrong with services that can't be used. */
void shared_services_note_problems(const struct shared_services *services,
                                   struct findings *findings);

void shared_service_report(struct shared_service *shared, struct service_report *report);

/* Both by a class: first in its `share`, and last in its `unshare`. */
void shared_service_init(struct shared_service *shared, const struct adapter_class *class,
                         const struct service_settings *settings,
                         const struct shared_services *before);
void shared_service_end(struct shared_service *shared);

#endif
