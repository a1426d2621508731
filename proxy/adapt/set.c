#include "adapt/set.h"

#include "base/assert.h"

struct adapt_set *adapt_set_new(struct net_context *net, struct mailbox *mailbox,
                                struct settings *settings, struct origin_groups *origins,
                                struct icap_quotas *quotas) {
    struct adapt_set *set;
    ALLOC_OBJ(set, ADAPT_SET_MAGIC);
    set->references = 1;
    set->settings = settings_reference(settings);
    set->origins = origin_groups_reference(origins);
    set->quotas = icap_quotas_reference(quotas);
    set->service_count = settings->icap_service_count;
    set->services = xcalloc(set->service_count + 1, sizeof *set->services);
    for (size_t i = 0; i < set->service_count; i++)
        set->services[i] =
            icap_service_new(net, &settings->icap_services[i], &quotas->services[i], mailbox);
    for (size_t i = 0; i < settings->adapt_count; i++)
        for (size_t j = 0; j < settings->adapts[i].service_count; j++) {
            if (settings->adapts[i].services[j]->point == ICAP_REQMOD_PRECACHE)
                set->any_reqmod = true;
            else
                set->any_respmod = true;
        }
    return set;
}

struct adapt_set *adapt_set_reference(struct adapt_set *set) {
    CHECK_OBJ(set, ADAPT_SET_MAGIC);
    set->references++;
    return set;
}

void adapt_set_release(struct adapt_set **setp) {
    struct adapt_set *set = *setp;
    *setp = NULL;
    if (set == NULL)
        return;
    CHECK_OBJ(set, ADAPT_SET_MAGIC);
    if (--set->references > 0)
        return;
    for (size_t i = 0; i < set->service_count; i++)
        icap_service_free(&set->services[i]);
    free(set->services);
    icap_quotas_release(&set->quotas);
    origin_groups_release(&set->origins);
    settings_release(&set->settings);
    FREE_OBJ(set);
}

struct icap_service *adapt_set_find(const struct adapt_set *set, enum icap_point point,
                                    struct slice name) {
    for (size_t i = 0; i < set->service_count; i++)
        if (set->services[i]->settings->point == point &&
            slice_equal(slice_from(set->services[i]->settings->name), name))
            return set->services[i];
    return NULL;
}

static bool contains(struct icap_service *const *chosen, unsigned count,
                     const struct icap_service *service) {
    for (unsigned i = 0; i < count; i++)
        if (chosen[i] == service)
            return true;
    return false;
}

unsigned adapt_set_choose(const struct adapt_set *set, enum icap_point point,
                          const struct class_subject *subject,
                          struct icap_service *chosen[ADAPT_CHAIN_MAX]) {
    const struct settings *settings = set->settings;
    unsigned count = 0;
    for (size_t i = 0; i < settings->adapt_count; i++) {
        const struct adapt_settings *adapt = &settings->adapts[i];
        bool matched = false;
        for (size_t j = 0; j < adapt->service_count; j++) {
            const struct icap_service_settings *wanted = adapt->services[j];
            if (wanted->point != point || count == ADAPT_CHAIN_MAX)
                continue;
            if (!matched && !url_class_matches(adapt->url_class, subject))
                break;
            matched = true;
            struct icap_service *service = set->services[wanted - settings->icap_services];
            if (!contains(chosen, count, service))
                chosen[count++] = service;
        }
    }
    return count;
}
