#include "identity/helper_groups.h"

#include "base/assert.h"
#include "identity/authenticator.h"
#include "identity/helper_question.h"

struct helper_groups {
    unsigned magic;
#define HELPER_GROUPS_MAGIC 0x68656772u
    struct credentials_check *check;
    struct helper_question question;
    struct slice name;
    struct slice *groups; /* there is room for all */
    size_t group_count;
    size_t asked; /* index of the group that is asked for */
    int64_t until;
    uint64_t deadline;                /* milliseconds of the loop */
    unsigned char key[SECRET_DIGEST]; /* under which the groups are remembered */
};

/* The groups that are asked for; NULL: none. */
static char *const *helper_groups_asked(const struct authenticator *authenticator) {
    return authenticator->settings.group_helper != NULL ? authenticator->settings.asked_groups
                                                        : NULL;
}

bool helper_groups_wanted(const struct credentials_check *check) {
    return helper_groups_asked(check->authenticator) != NULL;
}

void helper_groups_digest(struct authenticator *authenticator) {
    char *const *groups = helper_groups_asked(authenticator);
    if (groups == NULL)
        return;
    authenticator_digest(authenticator, slice_from(authenticator->settings.group_helper));
    authenticator_digest(authenticator, slice_from(authenticator->settings.helpers));
    for (; *groups != NULL; groups++)
        authenticator_digest(authenticator, slice_from(*groups));
}

static bool helper_groups_has(const struct helper_groups *state, struct slice group) {
    for (size_t i = 0; i < state->group_count; i++)
        if (slice_equal(state->groups[i], group))
            return true;
    return false;
}

static void helper_groups_ask(struct helper_groups *state) {
    const struct authenticator_settings *settings = &state->check->authenticator->settings;
    const struct slice fields[] = {SLICE("external_acl"), state->name,
                                   slice_from(settings->asked_groups[state->asked])};
    uint64_t now = state->check->net->loop->now;
    struct helper_place place = {settings->helpers, settings->group_helper,
                                 state->deadline > now ? state->deadline - now : 1};
    helper_question_ask(&state->question, &place, fields, sizeof fields / sizeof *fields);
}

/* Tickets and certificates are looked at anew each time, and so nobody remembers what they prove.
 * Their users would be asked about with each request. */
static void helper_groups_name(struct helper_groups *state) {
    const struct authenticator *authenticator = state->check->authenticator;
    const struct slice pieces[] = {
        slice_make((const char *)authenticator->digest, sizeof authenticator->digest),
        SLICE("groups"), state->name};
    secret_digest(pieces, sizeof pieces / sizeof pieces[0], state->key);
}

static bool helper_groups_recall(struct helper_groups *state) {
    struct credentials_check *check = state->check;
    struct identity *identity;
    if (check->remembers ||
        remembered_find(check->authentication->remembered, state->key, check->net->loop->now,
                        check->net->loop->wall, &identity) != REMEMBERED_PROVEN)
        return false;
    credentials_check_prove_whole(check, identity->name, identity->groups, identity->group_count,
                                  state->until);
    identity_release(&identity);
    return true;
}

static void helper_groups_finish(struct helper_groups *state) {
    struct credentials_check *check = state->check;
    uint64_t now = check->net->loop->now;
    credentials_check_prove_whole(check, state->name, state->groups, state->group_count,
                                  state->until);
    if (!check->remembers)
        check->net->counters.identity_evicted += remembered_note_proven(
            check->authentication->remembered, state->key, check->client_name, check->identity, now,
            now + check->authenticator->settings.remember, state->until);
}

/* Asks for the next group, or tells the check that all are known. */
static void helper_groups_go_on(struct helper_groups *state) {
    char *const *asked = state->check->authenticator->settings.asked_groups;
    while (asked[state->asked] != NULL && helper_groups_has(state, slice_from(asked[state->asked])))
        state->asked++;
    if (asked[state->asked] != NULL)
        helper_groups_ask(state);
    else
        helper_groups_finish(state);
}

static void helper_groups_on_answer(struct helper_question *question) {
    struct helper_groups *state;
    CAST_OBJ(state, question->owner, HELPER_GROUPS_MAGIC);
    enum helper_says says = question->says;
    helper_question_end(question);
    if (says != HELPER_SAYS_YES && says != HELPER_SAYS_NO) {
        credentials_check_fail(state->check, says == HELPER_SAYS_NOTHING
                                                 ? question->reason
                                                 : "the helper can not say the groups (BH)");
        return;
    }
    struct slice group =
        slice_from(state->check->authenticator->settings.asked_groups[state->asked++]);
    if (says == HELPER_SAYS_YES)
        state->groups[state->group_count++] = group;
    helper_groups_go_on(state);
}

void helper_groups_start(struct credentials_check *check, struct slice name,
                         const struct slice *groups, size_t group_count, int64_t until) {
    const struct authenticator *authenticator = check->authenticator;
    struct helper_groups *state = arena_zalloc(check->arena, sizeof *state);
    size_t most = group_count;
    for (char *const *asked = authenticator->settings.asked_groups; *asked != NULL; asked++)
        most++;
    INIT_OBJ(state, HELPER_GROUPS_MAGIC);
    check->groups_state = state;
    state->check = check;
    helper_question_init(&state->question, check->net, &check->client, state,
                         helper_groups_on_answer);
    state->name = arena_slice(check->arena, name);
    state->groups = arena_zalloc(check->arena, (most + 1) * sizeof *state->groups);
    for (size_t i = 0; i < group_count; i++)
        state->groups[state->group_count++] = arena_slice(check->arena, groups[i]);
    state->until = until;
    state->deadline = check->net->loop->now + authenticator->settings.helper_timeout;
    helper_groups_name(state);
    if (!helper_groups_recall(state))
        helper_groups_go_on(state);
}

void helper_groups_end(struct credentials_check *check) {
    struct helper_groups *state;
    if (check->groups_state == NULL)
        return;
    CAST_OBJ(state, check->groups_state, HELPER_GROUPS_MAGIC);
    check->groups_state = NULL;
    helper_question_end(&state->question);
}
