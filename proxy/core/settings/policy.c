#include "settings/policy.h"

#include "base/assert.h"
#include "base/failure.h"

#include <stdio.h>

void policy_init(struct cache_policy *policy) {
    *policy = (struct cache_policy){
        .ttl = POLICY_UNSTATED,
        .ttl_default = POLICY_UNSTATED,
        .ttl_min = POLICY_UNSTATED,
        .ttl_max = POLICY_UNSTATED,
        .stale_if_error = POLICY_UNSTATED,
        .stale_while_revalidate = POLICY_UNSTATED,
    };
}

void policy_state(struct policy_settings *policy, size_t at, size_t size) {
    ASSERT(policy->stated_count < POLICY_OPTIONS_MAX);
    ASSERT(at + size <= sizeof policy->values);
    policy->stated[policy->stated_count].at = (uint16_t)at;
    policy->stated[policy->stated_count++].size = (uint16_t)size;
}

static void lay_over(struct cache_policy *policy, const struct policy_settings *settings) {
    for (unsigned i = 0; i < settings->stated_count; i++) {
        size_t at = settings->stated[i].at;
        memcpy((char *)policy + at, (const char *)&settings->values + at, settings->stated[i].size);
    }
}

/* Policies are applied from the last to the first, so that earlier ones overwrite later ones. */
bool policy_resolve(const struct policy_settings *policies, size_t count, const uint64_t *bits,
                    struct cache_policy *policy) {
    size_t at = rules_before(bits, count);
    policy_init(policy);
    if (at == 0)
        return false;
    for (; at > 0; at = rules_before(bits, at - 1))
        lay_over(policy, &policies[at - 1]);
    return true;
}

bool policy_check_parameter(const char *text, char *error, size_t error_size) {
    const char *bad = strpbrk(text, "&=?#* ");
    if (bad == NULL || (bad[0] == '*' && bad[1] == '\0'))
        return true;
    return failure(
        error, error_size,
        "is not the name of a parameter: write \"fbclid\", or \"utm_*\" for all names that "
        "begin with utm_");
}
