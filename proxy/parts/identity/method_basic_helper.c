/* Basic, with passwords that a helper of Squid's compares (basic_ncsa_auth, basic_ldap_auth and
 * others), run by retort-helperd. */
#include "base/assert.h"
#include "identity/authorization.h"
#include "identity/helper_question.h"
#include "identity/identity_method.h"

enum { BASIC_HELPER_GROUPS = 64 };

struct basic_helper {
    unsigned magic;
#define BASIC_HELPER_MAGIC 0x62686c70u
    struct credentials_check *check;
    struct helper_question question;
};

/* Directories do not care for the case of a name, so "Joe" and "JOE" are let in with one password.
 * To rules and limits they must be one user. */
static struct slice basic_helper_name(const struct credentials_check *check) {
    if (!check->authenticator->settings.lower_case)
        return check->user;
    char *name = arena_alloc(check->arena, check->user.length + 1);
    return slice_make(name, (size_t)(slice_put_lower(name, check->user) - name));
}

/* The helper may give the name in another form (user=), and groups (group=). */
static void basic_helper_prove(struct credentials_check *check, struct helper_question *question) {
    struct slice name = basic_helper_name(check), groups[BASIC_HELPER_GROUPS];
    struct helper_line_pair *pair = arena_alloc(check->arena, sizeof *pair);
    size_t count = 0;
    while (helper_question_next(question, pair)) {
        struct slice value = slice_make(pair->value, pair->length);
        if (slice_equal(pair->name, SLICE("user")) && value.length > 0) {
            name = arena_slice(check->arena, value);
        } else if (slice_equal(pair->name, SLICE("group"))) {
            if (count == BASIC_HELPER_GROUPS || !identity_name_is_good(value)) {
                credentials_check_fail(check, "the helper's answer has too many or bad groups");
                return;
            }
            groups[count++] = arena_slice(check->arena, value);
        }
    }
    credentials_check_prove(check, name, groups, count, 0);
}

/* BH should mean that the helper could not find out. But Debian's basic_ldap_auth answers a wrong
 * password, a name that does not exist and a directory that is down with the same line, "BH
 * Success". If BH were no failed attempt, everybody could guess passwords there without end. So it
 * is one: while a directory is down, its users have to wait, at most wait_max longer. */
static void basic_helper_on_answer(struct helper_question *question) {
    struct basic_helper *state;
    CAST_OBJ(state, question->owner, BASIC_HELPER_MAGIC);
    switch (question->says) {
    case HELPER_SAYS_YES: basic_helper_prove(state->check, question); break;
    case HELPER_SAYS_NO:
        credentials_check_refuse(state->check, "the helper does not know the name and password");
        break;
    case HELPER_SAYS_BROKEN:
        state->check->net->counters.identity_helper_broken++;
        credentials_check_refuse(state->check, "the helper can not say who the user is (BH)");
        break;
    case HELPER_SAYS_NOTHING: credentials_check_fail(state->check, question->reason); break;
    }
    helper_question_end(question);
}

static void basic_helper_start(struct credentials_check *check) {
    const struct authenticator_settings *settings = &check->authenticator->settings;
    const struct slice fields[] = {SLICE("basic"), check->user, check->password};
    /* Many directories take an empty password for an anonymous visit, and say that all is well. */
    if (check->user.length == 0 || check->password.length == 0 ||
        check->user.length > HELPER_LINE_FIELD || check->password.length > HELPER_LINE_FIELD) {
        credentials_check_refuse(check, "there is no name or no password");
        return;
    }
    struct basic_helper *state = arena_zalloc(check->arena, sizeof *state);
    INIT_OBJ(state, BASIC_HELPER_MAGIC);
    check->method_state = state;
    state->check = check;
    helper_question_init(&state->question, check->net, &check->client, state,
                         basic_helper_on_answer);
    struct helper_place place = {settings->helpers, settings->helper, settings->helper_timeout};
    helper_question_ask(&state->question, &place, fields, sizeof fields / sizeof *fields);
}

static void basic_helper_cancel(struct credentials_check *check) {
    struct basic_helper *state;
    if (check->method_state == NULL)
        return;
    CAST_OBJ(state, check->method_state, BASIC_HELPER_MAGIC);
    check->method_state = NULL;
    helper_question_end(&state->question);
}

static bool basic_helper_configure(struct authenticator *authenticator, char *error,
                                   size_t error_size) {
    authenticator_digest(authenticator, slice_from(authenticator->settings.helper));
    authenticator_digest(authenticator, slice_from(authenticator->settings.helpers));
    return true;
}

static struct slice basic_helper_challenge(const struct authenticator *authenticator,
                                           struct slice realm, bool refused, struct arena *arena) {
    return challenge_basic(realm, arena);
}

const struct identity_method identity_basic_helper = {
    .name = "basic",
    .scheme = "Basic",
    .order = 3,
    .remembers = true,
    .configure = basic_helper_configure,
    .start = basic_helper_start,
    .cancel = basic_helper_cancel,
    .challenge = basic_helper_challenge,
};
