#include "adapt/set.h"

#include "base/assert.h"

static void note_rules(struct adapt_set *set, enum adapt_point point) {
    const struct settings *settings = set->settings;
    set->rules[point] = xcalloc(set->rule_words, sizeof(uint64_t));
    for (size_t i = 0; i < settings->adapt_count; i++)
        for (size_t j = 0; j < settings->adapts[i].service_count; j++)
            if (settings->adapts[i].services[j]->point == point) {
                size_t rule = settings->rule_first[RULE_ADAPT] + i;
                set->rules[point][rule / 64] |= UINT64_C(1) << rule % 64;
            }
}

struct adapt_set *adapt_set_new(struct adapter_host *host, const struct settings *settings,
                                const struct shared_services *shared) {
    struct adapt_set *set;
    ASSERT(shared->count == settings->service_count);
    ALLOC_OBJ(set, ADAPT_SET_MAGIC);
    set->settings = settings;
    set->shared = shared;
    set->service_count = settings->service_count;
    set->services = xcalloc(set->service_count + 1, sizeof *set->services);
    for (size_t i = 0; i < set->service_count; i++)
        set->services[i] =
            shared->services[i]->class->open(shared->services[i], &settings->services[i], host);
    for (size_t i = 0; i < set->service_count; i++)
        set->hears |= set->services[i]->hears;
    set->rule_words = rules_words(settings->rules);
    for (unsigned point = 0; point < ADAPT_POINTS; point++)
        note_rules(set, (enum adapt_point)point);
    return set;
}

void adapt_set_retire(struct adapt_set *set) {
    CHECK_OBJ(set, ADAPT_SET_MAGIC);
    for (size_t i = 0; i < set->service_count; i++)
        set->services[i]->class->retire(set->services[i]);
}

void adapt_set_free(struct adapt_set **setp) {
    struct adapt_set *set = *setp;
    *setp = NULL;
    CHECK_OBJ(set, ADAPT_SET_MAGIC);
    for (size_t i = 0; i < set->service_count; i++)
        set->services[i]->class->close(&set->services[i]);
    free(set->services);
    for (unsigned point = 0; point < ADAPT_POINTS; point++)
        free(set->rules[point]);
    FREE_OBJ(set);
}

struct adapter *adapt_set_find(const struct adapt_set *set, enum adapt_point point,
                               struct slice name) {
    for (size_t i = 0; i < set->service_count; i++)
        if (set->services[i]->settings->point == point && !set->services[i]->settings->disabled &&
            slice_equal(slice_from(set->services[i]->settings->name), name))
            return set->services[i];
    return NULL;
}

static bool adapt_set_contains(struct adapter *const *chosen, unsigned count,
                               const struct adapter *service) {
    for (unsigned i = 0; i < count; i++)
        if (chosen[i] == service)
            return true;
    return false;
}

static unsigned adapt_set_add_services(const struct adapt_set *set,
                                       const struct adapt_settings *adapt, enum adapt_point point,
                                       unsigned count, struct adapter *chosen[ADAPT_CHAIN_MAX]) {
    for (size_t i = 0; i < adapt->service_count && count < ADAPT_CHAIN_MAX; i++) {
        const struct service_settings *wanted = adapt->services[i];
        struct adapter *service = set->services[wanted - set->settings->services];
        if (wanted->point == point && !adapt_set_contains(chosen, count, service))
            chosen[count++] = service;
    }
    return count;
}

unsigned adapt_set_choose(const struct adapt_set *set, enum adapt_point point, const uint64_t *bits,
                          struct adapter *chosen[ADAPT_CHAIN_MAX]) {
    const struct settings *settings = set->settings;
    unsigned count = 0;
    for (size_t i = settings_next_rule(settings, RULE_ADAPT, bits, 0); i < settings->adapt_count;
         i = settings_next_rule(settings, RULE_ADAPT, bits, i + 1))
        count = adapt_set_add_services(set, &settings->adapts[i], point, count, chosen);
    return count;
}

static bool has_service_at(const struct adapt_settings *adapt, enum adapt_point point) {
    for (size_t i = 0; i < adapt->service_count; i++)
        if (adapt->services[i]->point == point)
            return true;
    return false;
}

bool adapt_set_asks_who(const struct adapt_set *set, enum adapt_point point, const uint64_t *bits) {
    const struct settings *settings = set->settings;
    for (size_t i = settings_next_rule(settings, RULE_ADAPT, bits, 0); i < settings->adapt_count;
         i = settings_next_rule(settings, RULE_ADAPT, bits, i + 1))
        if (settings->adapts[i].by_who && has_service_at(&settings->adapts[i], point))
            return true;
    return false;
}

unsigned adapt_set_remembered(struct adapter *const *chosen, unsigned count) {
    unsigned first = 0;
    while (first < count && chosen[first]->settings->remember)
        first++;
    return first;
}
