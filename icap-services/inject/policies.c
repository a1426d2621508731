#include "inject/policies.h"

void policies_note(struct policies *policies, struct slice policy) {
    if (policies->count == POLICIES_MAX || policy.base == NULL)
        policies->is_unclear = true;
    else
        policies->list[policies->count++] = policy;
}

static bool is_policy(const struct http_field *field) {
    return slice_equal_nocase(field->name, SLICE("Content-Security-Policy"));
}

void policies_note_head(struct policies *policies, const struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++) {
        struct slice rest = head->fields[i].value, policy;
        while (is_policy(&head->fields[i]) && slice_next_element(&rest, &policy))
            policies_note(policies, policy);
    }
}

struct slice policies_nonce(const struct policies *policies) {
    struct slice nonce = SLICE("");
    for (unsigned i = 0; i < policies->count && nonce.length == 0; i++)
        nonce = policy_nonce(policies->list[i]);
    return nonce;
}

bool policies_allow(const struct policies *policies, const struct snippet *snippet,
                    enum policy_verdict most) {
    for (unsigned i = 0; i < policies->count; i++)
        if (policy_judge(policies->list[i], snippet) > most)
            return false;
    return !policies->is_unclear;
}

void policies_extend_head(struct http_head *head, const struct snippet *snippet,
                          struct arena *arena) {
    if (snippet->count == 0)
        return; /* the head may have thousands of policies, of which policies_allow has judged none */
    for (unsigned i = 0; i < head->field_count; i++) {
        struct slice rest = head->fields[i].value, policy, value = SLICE("");
        if (!is_policy(&head->fields[i]))
            continue;
        while (slice_next_element(&rest, &policy))
            value = arena_concat(arena, value, value.length > 0 ? SLICE(", ") : SLICE(""),
                                 policy_extend(policy, snippet, arena));
        head->fields[i].value = value;
    }
}
