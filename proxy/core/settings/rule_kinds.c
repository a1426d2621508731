#include "settings/rule_kinds.h"

#include "base/assert.h"
#include "part.h"
#include "settings/part_settings.h"
#include "settings/settings.h"

/* Where the sections of a kind stand in the settings. */
struct rule_kind_place {
    const char *name;
    size_t list_at, count_at; /* of the array and of its length, in struct settings */
    size_t size, class_at;    /* of an element, and of its class in it */
};

#define KIND(text, type, list, count)                                                              \
    {                                                                                              \
        .name = text, .list_at = offsetof(struct settings, list),                                  \
        .count_at = offsetof(struct settings, count), .size = sizeof(type),                        \
        .class_at = offsetof(type, url_class)                                                      \
    }

/* A kind without a row has no sections. */
static const struct rule_kind_place kinds[RULE_KINDS] = {
    [RULE_POLICY] = KIND("policy", struct policy_settings, policies, policy_count),
    [RULE_ADAPT] = KIND("adapt", struct adapt_settings, adapts, adapt_count),
    [RULE_PARENT] = KIND("parent", struct parent_settings, parents, parent_count),
};

/* Where the sections stand: in `base`, which are the settings or what they have of a part. False: there are none. */
static bool rule_kind_find_place(const struct settings *settings, enum rule_kind kind,
                                 struct rule_kind_place *found, const char **base) {
    *found = kinds[kind];
    *base = (const char *)settings;
    PARTS_FOR_EACH (part, settings)
        for (const struct section_place *place = part_table[part]->settings->places;
             place != NULL && place->section != NULL; place++)
            if (place->of_class && place->rule == kind) {
                *found = (struct rule_kind_place){place->section, place->list_at, place->count_at,
                                                  place->size, place->class_at};
                *base = settings == NULL ? NULL : settings->parts[part];
            }
    return found->name != NULL;
}

const char *rule_kind_name(enum rule_kind kind) {
    struct rule_kind_place place;
    const char *base;
    rule_kind_find_place(NULL, kind, &place, &base);
    return place.name;
}

size_t rule_kind_count(const struct settings *settings, enum rule_kind kind) {
    struct rule_kind_place place;
    const char *base;
    return rule_kind_find_place(settings, kind, &place, &base)
               ? *(const size_t *)(base + place.count_at)
               : 0;
}

const struct url_class *rule_kind_class(const struct settings *settings, enum rule_kind kind,
                                        size_t at) {
    struct rule_kind_place place;
    const char *base;
    ASSERT(rule_kind_find_place(settings, kind, &place, &base));
    ASSERT(at < *(const size_t *)(base + place.count_at));
    const char *list = *(const char *const *)(base + place.list_at);
    return *(const struct url_class *const *)(list + at * place.size + place.class_at);
}

void rule_kinds_make_rules(struct settings *settings) {
    size_t first = 0;
    settings->rules = rules_new();
    for (int i = 0; i < RULE_KINDS; i++) {
        enum rule_kind kind = (enum rule_kind)i;
        settings->rule_first[kind] = first;
        settings->rule_count[kind] = rule_kind_count(settings, kind);
        for (size_t at = 0; at < settings->rule_count[kind]; at++)
            rules_add(settings->rules, rule_kind_class(settings, kind, at));
        first += settings->rule_count[kind];
    }
    PARTS_FOR_EACH (part, settings)
        if (part_table[part]->settings->add_rules != NULL)
            part_table[part]->settings->add_rules(settings->rules, first, settings->parts[part]);
    rules_seal(settings->rules);
}
