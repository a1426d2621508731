/* Who users are: authenticator and authentication sections. */
#include "identity/settings.h"

#include "access/settings.h"
#include "base/assert.h"
#include "base/findings.h"
#include "match/class_conditions.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"
#include "transaction/access.h"
#include "transaction/fail.h"
#include "transaction/proof.h"
#include "transaction/transaction.h"

#include <stdlib.h>
#include <string.h>

/*
 * How authenticators look at the credentials of a request, one after the other, for the step ACCESS
 * (transaction/proof.h).
 */

static const struct proof_class identity_proofs;

struct identity_proof {
    struct proof base;
    unsigned magic;
#define IDENTITY_PROOF_MAGIC 0x1d9400f5u
    proof_set left; /* that have not been asked */
    bool checking;  /* `check` is under way, or over and not looked at */
    bool refused;   /* there were credentials, and they were not good */
    struct slice authorization;
    /* The answer so far: of several that did not prove the user, the one that says most. REFUSED as
     * long as nothing has been asked. */
    enum check_state state;
    unsigned retry_after; /* CHECK_SLOWED: seconds */
    const char *reason;   /* a static sentence; NULL: none */
    struct credentials_check check;
};

static struct identity_proof *identity_proof(struct proof *base) {
    struct identity_proof *proof = CONTAINER_OF(base, struct identity_proof, base);
    CHECK_OBJ(proof, IDENTITY_PROOF_MAGIC);
    return proof;
}

static const struct tls_facts *proof_certificate(const struct transaction *transaction) {
    return transaction->exchange->ends->tls;
}

static bool proof_begin(struct transaction *transaction, proof_set wanted, struct proof **base) {
    const struct identity_settings *mine = identity_settings(transaction->settings);
    struct slice authorization = slice_make("", 0);
    if (authorization_find(transaction->request.head, access_credentials_field(transaction),
                           &authorization) == AUTHORIZATION_BAD)
        return false;
    request_own(transaction);
    authorization = arena_slice(&transaction->arena, authorization);
    struct identity_proof *proof = arena_zalloc(&transaction->arena, sizeof *proof);
    proof->magic = IDENTITY_PROOF_MAGIC;
    proof->base.class = &identity_proofs;
    for (size_t i = 0; i < mine->authenticator_count; i++)
        if ((wanted >> i & 1) != 0 && authenticator_takes(mine->authenticators[i], authorization,
                                                          proof_certificate(transaction)))
            proof->left |= (proof_set)1 << i;
    proof->authorization = authorization;
    proof->state = CHECK_REFUSED;
    *base = &proof->base;
    return true;
}

static void proof_end_check(struct identity_proof *proof) {
    if (proof->checking)
        credentials_check_end(&proof->check);
    proof->checking = false;
}

static void proof_end(struct proof *base) {
    struct identity_proof *proof = identity_proof(base);
    proof_end_check(proof);
    proof->left = 0;
    if (proof->authorization.length > 0)
        explicit_bzero((char *)proof->authorization.base, proof->authorization.length);
    proof->authorization = slice_make("", 0);
}

static void ask_next(struct transaction *transaction, struct identity_proof *proof) {
    unsigned next = (unsigned)__builtin_ctzll(proof->left);
    proof->left &= proof->left - 1;
    proof->checking = true;
    proof->check = (struct credentials_check){
        .net = transaction->net,
        .authentication = transaction->host->parts[PART_IDENTITY],
        .arena = &transaction->arena,
        .tls = proof_certificate(transaction),
        .more = proof->left != 0,
    };
    authenticator_check(identity_settings(transaction->settings)->authenticators[next],
                        &proof->check, proof->authorization, request_client(transaction),
                        &transaction->task);
}

/* Of two answers that prove nobody, the one that a client can do something about: to wait, to try
 * again later. */
static unsigned proof_weight(enum check_state state) {
    switch (state) {
    case CHECK_SLOWED: return 2;
    case CHECK_UNABLE: return 1;
    default: return 0;
    }
}

static void proof_note(struct identity_proof *proof) {
    const struct credentials_check *check = &proof->check;
    proof->refused = true;
    if (proof_weight(check->state) < proof_weight(proof->state))
        return;
    proof->state = check->state;
    proof->retry_after = check->retry_after;
    proof->reason = check->reason;
}

/* Authorization was for us, so the origin need not see the password. */
static void hide_credentials(struct transaction *transaction) {
    const struct identity_settings *mine = identity_settings(transaction->settings);
    if (strcmp(transaction->identity->method, "certificate") == 0)
        return; /* the field is for the origin */
    for (size_t i = 0; i < mine->authenticator_count; i++) {
        const struct authenticator_settings *section = &mine->authenticators[i]->settings;
        if (slice_equal(slice_from(section->name), transaction->identity->authenticator) &&
            section->forward_credentials)
            return;
    }
    http_head_remove(transaction->request.head, HTTP_AUTHORIZATION);
}

static void proof_succeed(struct transaction *transaction, struct identity_proof *proof) {
    struct identity *identity = identity_reference(proof->check.identity);
    proof->state = CHECK_PROVEN;
    proof->base.answer = proof->check.answer;
    proof->left = 0;
    access_set_identity(transaction, &identity);
    if (access_credentials_field(transaction) == HTTP_AUTHORIZATION)
        hide_credentials(transaction);
}

static bool proof_is_over(struct transaction *transaction, struct proof *base) {
    struct identity_proof *proof = identity_proof(base);
    for (;;) {
        if (proof->checking) {
            if (proof->check.state == CHECK_WAITING)
                return false;
            if (proof->check.state == CHECK_PROVEN)
                proof_succeed(transaction, proof);
            else
                proof_note(proof);
            proof_end_check(proof);
        }
        if (proof->left == 0) {
            proof_end(base);
            return true;
        }
        ask_next(transaction, proof);
    }
}

/* ---- what the client is told ---------------------------------------------------------------- */

static size_t proof_challenges(struct transaction *transaction,
                               const struct access_settings *section, bool refused,
                               struct slice challenges[AUTHENTICATOR_CHALLENGES]) {
    const struct identity_settings *mine = identity_settings(transaction->settings);
    struct authenticator **wanted = arena_alloc(
        &transaction->arena, (section->authenticator_count + 1) * sizeof(struct authenticator *));
    for (size_t i = 0; i < section->authenticator_count; i++)
        wanted[i] = mine->authenticators[section->authenticators[i]];
    return authenticators_challenge(wanted, section->authenticator_count,
                                    slice_from(section->realm), refused, &transaction->arena,
                                    challenges);
}

static enum step proof_ask(struct transaction *transaction, const struct proof *base,
                           const struct access_settings *section) {
    const struct identity_proof *proof = (const void *)base;
    struct slice challenges[AUTHENTICATOR_CHALLENGES];
    const bool reverse = access_credentials_field(transaction) == HTTP_AUTHORIZATION;
    const bool refused = proof != NULL && proof->refused;
    if (refused && proof->state == CHECK_SLOWED)
        return fail_later(transaction, 429,
                          "too many credentials from this client or of this user were wrong",
                          proof->retry_after);
    if (refused && proof->state == CHECK_UNABLE)
        return fail_with(transaction, 503,
                         proof->reason != NULL ? proof->reason
                                               : "nobody can check the credentials now");
    size_t count = proof_challenges(transaction, section, refused, challenges);
    if (count == 0)
        return fail_denied(transaction, "a certificate that the client shows when it connects has "
                                        "to prove who it is");
    return fail_challenge(transaction, reverse ? 401 : 407,
                          refused ? "the credentials are not those of a user who may do this"
                                  : "a user name and its credentials are needed",
                          challenges, count);
}

static const struct proof_class identity_proofs = {
    .begin = proof_begin,
    .is_over = proof_is_over,
    .ask = proof_ask,
    .end = proof_end,
};

enum { AUTHENTICATORS_MAX = 64 };

static const char *const authenticator_type_words[] = {"basic", "bearer", "certificate",
                                                       "negotiate", NULL};
static const char *const certificate_user_words[] = {"cn", "email", "subject", NULL};

#define AUTHENTICATOR(member)                                                                      \
    .section = "authenticator", .at = offsetof(struct authenticator_settings, member)
#define AUTHENTICATION(member)                                                                     \
    ONE("authentication", struct identity_settings, authentication.member)

static const struct option rows[] = {
#include "identity/options.def"
#include "identity/options_helpers.def"
    {.name = NULL},
};

/* Classes are the core's; without an authenticator nobody is a user. */
#define CONDITION(member) ONE("url_class", struct url_class_conditions, member)

static const struct option core_rows[] = {
    {CONDITION(users), .name = "user", .after = "scheme", STRINGS, .check = url_class_check_text,
     DOC "Lists names of users, as the authenticator that has proven them writes them, with upper "
         "and lower case. \"*\" stands for every user who is proven. A request whose user is not "
         "proven, or not yet, does not match.",
     .example = "{ alice, \"bob@EXAMPLE.COM\" }"},
    {CONDITION(groups), .name = "group", .after = "user", STRINGS, .check = url_class_check_text,
     DOC "Lists groups. The condition matches when the proven user is in one of them.",
     .example = "staff"},
    {.name = NULL},
};

static const struct option_section sections[] = {
    {
        .name = "authenticator",
        .after = "pac",
        .title = "NAME",
        .documentation =
            "Defines how users prove who they are: a kind of credentials, and who knows whether "
            "they are good. Access sections name authenticators. NAME consists of letters, digits, "
            "'.', '_' and '-'. Clients of forward listeners are asked with 407 "
            "(Proxy-Authenticate), clients of reverse listeners with 401 (WWW-Authenticate).",
        .example = "authenticator staff {\n"
                   "    type = basic\n"
                   "    file = \"/etc/retort/users\"\n"
                   "    realm = \"Staff\"\n"
                   "}",
    },
    {
        .name = "authentication",
        .after = "authenticator",
        .documentation =
            "Limits what the checks of all authenticator sections cost together, and how often "
            "passwords may be tried.",
        .example = "authentication { attempts = 3  wait_max = \"1h\" }",
    },
    {.name = NULL},
};

/* The options that only some types use. */
static const struct {
    const char *option;
    enum authenticator_type type;
} belongs[] = {
    {"file", AUTHENTICATOR_BASIC},          {"group_file", AUTHENTICATOR_BASIC},
    {"key_file", AUTHENTICATOR_BEARER},     {"issuer", AUTHENTICATOR_BEARER},
    {"audience", AUTHENTICATOR_BEARER},     {"user_claim", AUTHENTICATOR_BEARER},
    {"group_claim", AUTHENTICATOR_BEARER},  {"leeway", AUTHENTICATOR_BEARER},
    {"user", AUTHENTICATOR_CERTIFICATE},    {"helper", AUTHENTICATOR_BASIC},
    {"lower_case", AUTHENTICATOR_BASIC},    {"keytab", AUTHENTICATOR_NEGOTIATE},
    {"principal", AUTHENTICATOR_NEGOTIATE}, {"strip_realm", AUTHENTICATOR_NEGOTIATE},
};

static const char *authenticator_type_name(enum authenticator_type type) {
    return options_find(settings_table(), "authenticator", "type")->words[type];
}

static bool authenticator_check_options(struct load *load, const struct document_section *section,
                                        const struct authenticator_settings *settings) {
    for (size_t i = 0; i < sizeof belongs / sizeof belongs[0]; i++)
        if (belongs[i].type != settings->type && document_value(section, belongs[i].option) != NULL)
            return load_fail(load, load_line_of(section, belongs[i].option),
                             "authenticator \"%s\": %s belongs to type = %s, and this one has "
                             "type = %s; remove one of the two",
                             section->title, belongs[i].option,
                             authenticator_type_name(belongs[i].type),
                             authenticator_type_name(settings->type));
    if (settings->type == AUTHENTICATOR_BASIC && settings->file == NULL && settings->helper == NULL)
        return load_fail(load, section->line,
                         "authenticator \"%s\" has no file; write: file = \"/etc/retort/users\", "
                         "or name a helper",
                         section->title);
    if (!identity_load_helpers(load, section, settings))
        return false;
    if (settings->type == AUTHENTICATOR_BEARER && settings->key_file == NULL)
        return load_fail(load, section->line,
                         "authenticator \"%s\" has no key_file; write: key_file = "
                         "\"/etc/retort/tokens.jwks\"",
                         section->title);
    return true;
}

static void authenticator_release_values(struct authenticator_settings *settings) {
    free(settings->name);
    identity_release_groups(settings);
    load_release_values("authenticator", settings);
}

static bool load_authenticator(struct load *load, const struct document_section *section,
                               struct identity_settings *mine) {
    struct authenticator_settings values = {.name = xstrdup(section->title)};
    char error[AUTHENTICATOR_ERROR];
    struct authenticator *authenticator = NULL;
    if (load_check_name(load, section) && load_values(load, section, "authenticator", &values) &&
        authenticator_check_options(load, section, &values) &&
        identity_load_groups(load, section, &values)) {
        if (values.realm == NULL)
            values.realm = xstrdup(load->settings->name);
        authenticator =
            authenticator_new(&values, authenticator_release_values, load->without_files, error);
        if (authenticator == NULL)
            load_fail(load, section->line, "authenticator \"%s\": %s", section->title, error);
    }
    if (authenticator == NULL) {
        authenticator_release_values(&values);
        return false;
    }
    mine->names[mine->authenticator_count] = authenticator->settings.name;
    mine->authenticators[mine->authenticator_count++] = authenticator;
    return true;
}

static bool load_authenticators(struct load *load, void *to) {
    struct identity_settings *mine = to;
    if (!load_values(load, document_section(load->document, "authentication", NULL),
                     "authentication", mine))
        return false;
    size_t count = document_section_count(load->document, "authenticator");
    mine->authenticators = xcalloc(count + 1, sizeof *mine->authenticators);
    mine->names = xcalloc(count + 1, sizeof *mine->names);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "authenticator") {
        if (mine->authenticator_count == AUTHENTICATORS_MAX)
            return load_fail(load, section->line,
                             "there are more than %d authenticator sections; remove some",
                             AUTHENTICATORS_MAX);
        if (!load_authenticator(load, section, mine))
            return false;
    }
    load->settings->authenticators = mine->names;
    load->settings->authenticator_count = mine->authenticator_count;
    load->settings->proofs = mine->authenticator_count > 0 ? &identity_proofs : NULL;
    return true;
}

static void release_authenticators(void *from) {
    struct identity_settings *mine = from;
    for (size_t i = 0; i < mine->authenticator_count; i++)
        authenticator_release(&mine->authenticators[i]);
    free(mine->authenticators);
    free(mine->names);
}

static void compare_authentication(const void *before, const void *after, struct findings *left) {
    const struct authentication_settings *first =
        &((const struct identity_settings *)before)->authentication;
    const struct authentication_settings *new =
        &((const struct identity_settings *)after)->authentication;
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

static const char *authenticator_title(const void *element) {
    return ((const struct authenticator_settings *)element)->name;
}

const struct part_settings identity_part_settings = {
    .options = rows,
    .core_options = core_rows,
    .sections = sections,
    .places =
        (const struct section_place[]){
            {.section = "authenticator",
             SECTION_LIST(struct identity_settings, authenticators, authenticator_count,
                          struct authenticator *),
             .of_pointers = true,
             .values_at = offsetof(struct authenticator, settings),
             .title = authenticator_title},
            {.section = NULL},
        },
    .size = sizeof(struct identity_settings),
    .load = load_authenticators,
    .release = release_authenticators,
    .compare = compare_authentication,
    .each_helpers = identity_each_helpers,
};
