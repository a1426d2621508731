/* Negotiate (RFC 4559) with tickets of Kerberos. GSSAPI reads the keytab and writes the replay
 * cache, so tokens are looked at in the threads for checks. */
#include "base/assert.h"
#include "base/base64.h"
#include "base/log.h"
#include "identity/authentication.h"
#include "identity/gss_acceptor.h"
#include "identity/identity_method.h"

enum { NEGOTIATE_TOKEN = 12288 }; /* bytes at most */

/* A token on its way through a thread. */
struct negotiation {
    unsigned magic;
#define NEGOTIATION_MAGIC 0x6e65676fu
    struct check_job job;
    struct authenticator *authenticator; /* a reference */
    struct credentials_check *check;     /* NULL: nobody waits any more; the worker's alone */
    struct gss_verdict verdict;
    size_t token_length;
    char token[];
};

static bool negotiate_configure(struct authenticator *authenticator, char *error,
                                size_t error_size) {
    const struct authenticator_settings *settings = &authenticator->settings;
    authenticator->state =
        gss_acceptor_new(settings->keytab, settings->principal, error, error_size);
    return authenticator->state != NULL;
}

static void negotiate_release(struct authenticator *authenticator) {
    struct gss_acceptor *acceptor = authenticator->state;
    authenticator->state = NULL;
    gss_acceptor_free(&acceptor);
}

static void negotiation_free(struct negotiation *negotiation) {
    gss_verdict_release(&negotiation->verdict);
    explicit_bzero(negotiation->token, negotiation->token_length);
    authenticator_release(&negotiation->authenticator);
    FREE_OBJ(negotiation);
}

static void negotiation_run(struct check_job *job) {
    struct negotiation *negotiation = CONTAINER_OF(job, struct negotiation, job);
    CHECK_OBJ(negotiation, NEGOTIATION_MAGIC);
    gss_acceptor_take(negotiation->authenticator->state,
                      slice_make(negotiation->token, negotiation->token_length),
                      &negotiation->verdict);
}

/* "alice@EXAMPLE.COM" is alice when the realm is our own and strip_realm is on. The same name of
 * another realm is somebody else. */
static struct slice negotiation_user(const struct negotiation *negotiation) {
    struct slice name = slice_from(negotiation->verdict.name);
    struct slice realm = slice_from(negotiation->verdict.realm);
    if (!negotiation->authenticator->settings.strip_realm || realm.length == 0 ||
        name.length < realm.length + 2)
        return name;
    size_t length = name.length - realm.length - 1;
    bool own = name.base[length] == '@' && name.base[length - 1] != '\\' &&
               slice_equal(slice_make(name.base + length + 1, realm.length), realm);
    return own ? slice_make(name.base, length) : name;
}

/* The token with which we prove ourselves: a value of Proxy-Authenticate or WWW-Authenticate. */
static struct slice negotiation_answer(const struct negotiation *negotiation, struct arena *arena) {
    const struct gss_verdict *verdict = &negotiation->verdict;
    if (verdict->answer == NULL)
        return slice_make("", 0);
    struct slice token = slice_make(verdict->answer, verdict->answer_length);
    char *text = arena_alloc(arena, BASE64_ROOM(token.length));
    return arena_concat(arena, SLICE("Negotiate "), slice_make(text, base64_write(text, token)));
}

static void negotiation_conclude(struct negotiation *negotiation) {
    struct credentials_check *check = negotiation->check;
    const struct gss_verdict *verdict = &negotiation->verdict;
    check->method_state = NULL;
    if (!negotiation->job.ran) {
        credentials_check_fail(check, "the proxy is stopping");
        return;
    }
    if (verdict->why[0] != '\0')
        log_debug("authenticator %s: %s: %s", check->authenticator->settings.name, verdict->reason,
                  verdict->why);
    switch (verdict->kind) {
    case GSS_PROVEN:
        check->answer = negotiation_answer(negotiation, check->arena);
        credentials_check_prove(check, negotiation_user(negotiation), NULL, 0, 0);
        break;
    case GSS_REFUSED:
        check->no_guess = true; /* nobody guesses tickets, and one may have expired */
        credentials_check_refuse(check, verdict->reason);
        break;
    case GSS_UNABLE: credentials_check_fail(check, verdict->reason); break;
    }
}

static void negotiation_done(struct check_job *job) {
    struct negotiation *negotiation = CONTAINER_OF(job, struct negotiation, job);
    CHECK_OBJ(negotiation, NEGOTIATION_MAGIC);
    if (negotiation->check != NULL)
        negotiation_conclude(negotiation);
    negotiation_free(negotiation);
}

static struct negotiation *negotiation_new(struct credentials_check *check) {
    struct slice text = check->authorization.token68;
    size_t most = text.length / 4 * 3 + 3;
    if (text.length == 0 || most > NEGOTIATE_TOKEN)
        return NULL;
    struct negotiation *negotiation = xmalloc(sizeof *negotiation + most);
    INIT_OBJ(negotiation, NEGOTIATION_MAGIC);
    negotiation->token_length = base64_decode(text, negotiation->token, most);
    if (negotiation->token_length == SIZE_MAX || negotiation->token_length == 0) {
        FREE_OBJ(negotiation);
        return NULL;
    }
    negotiation->job = (struct check_job){.run = negotiation_run, .done = negotiation_done};
    negotiation->authenticator = authenticator_reference(check->authenticator);
    negotiation->check = check;
    return negotiation;
}

static void negotiate_start(struct credentials_check *check) {
    struct negotiation *negotiation = negotiation_new(check);
    if (negotiation == NULL) {
        credentials_check_refuse(check, "the credentials are malformed");
        return;
    }
    check->method_state = negotiation;
    if (check_threads_post(check->authentication->threads, &negotiation->job, check->net->mailbox,
                           check->client_name))
        return;
    check->method_state = NULL;
    negotiation_free(negotiation);
    check->net->counters.identity_overloads++;
    credentials_check_fail(check, "too many checks wait");
}

static void negotiate_cancel(struct credentials_check *check) {
    struct negotiation *negotiation;
    if (check->method_state == NULL)
        return;
    CAST_OBJ(negotiation, check->method_state, NEGOTIATION_MAGIC);
    check->method_state = NULL;
    negotiation->check = NULL;
}

static struct slice negotiate_challenge(const struct authenticator *authenticator,
                                        struct slice realm, bool refused, struct arena *arena) {
    return SLICE("Negotiate");
}

const struct identity_method identity_negotiate = {
    .name = "negotiate",
    .scheme = "Negotiate",
    .order = 1,
    .configure = negotiate_configure,
    .release = negotiate_release,
    .start = negotiate_start,
    .cancel = negotiate_cancel,
    .challenge = negotiate_challenge,
};
