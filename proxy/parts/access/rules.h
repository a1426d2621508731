/*
 * Access rules: what the access sections of the settings say about a request. The first section in
 * the file whose class matches decides; with sections, what none of them matches is denied.
 *
 *     struct access_question question = {
 *         .settings = settings, .subject = &subject, .bits = bits, .may_ask = true};
 *     struct access_decision decision;
 *     access_decide(&question, &decision);
 *     if (decision.outcome == ACCESS_DENY) ...           decision.section says which one; NULL: none
 *
 * A class may depend on what is not known yet. If that is the address of the host, the outcome is
 * ACCESS_RESOLVE: ask again when it is known. If it is the user, the client is asked for
 * credentials, when a section with action = authenticate is for the request. If none is, or if the
 * client can't be asked, the unknown user or address counts against the client: sections that deny
 * match, others do not. What an expression gives up on might have been for a section that denies, so
 * it is denied.
 *
 * Threads: pure, any.
 */
#ifndef RETORT_ACCESS_RULES_H
#define RETORT_ACCESS_RULES_H

#include "access/settings.h"

enum access_outcome {
    ACCESS_ALLOW,    /* decision.section->action may be tunnel */
    ACCESS_DENY,     /* decision.section NULL: no section matches */
    ACCESS_ASK,      /* for the credentials of decision.section */
    ACCESS_REDIRECT, /* to decision.section->to_template */
    ACCESS_RESOLVE,  /* the address of the host is needed */
};

/* What was found out about a section, for people. */
enum access_finding {
    ACCESS_NO_MATCH,
    ACCESS_DECIDES,
    ACCESS_LOGS,          /* it would decide, and has log_only */
    ACCESS_WANTS_USER,    /* it depends on the user, whom nobody has proved */
    ACCESS_WANTS_ADDRESS, /* it depends on the address of the host, which is not known */
    ACCESS_FINDINGS,
};

struct access_question {
    const struct settings *settings;
    /* user_pending: nobody is proved. destination_pending: the host has not been resolved. Both
     * are the caller's business: request_subject leaves them false. */
    const struct class_subject *subject;
    const uint64_t *bits;       /* of rules_find, for the subject; whatever address was known */
    struct slice authenticator; /* the section that has proved the subject's user; empty: nobody */
    bool unsure;                /* an expression gave up while `bits` were found (match/regex.h) */
    bool may_ask;               /* the client can be asked for credentials */
    bool may_resolve;           /* the host can be resolved; false: it is judged as it is */
    /* Told about each section up to the one that decides, in the file's order; NULL: nobody. */
    void (*see)(void *arg, size_t section, enum access_finding finding);
    void *see_arg;
};

struct access_decision {
    enum access_outcome outcome;
    const struct access_settings *section; /* NULL: none matches */
    bool for_want; /* denied only because the user or the address is not known */
    bool unsure;   /* denied because an expression gave up (match/regex.h) */
};

void access_decide(const struct access_question *question, struct access_decision *decision);
/* As access_allowing, where sections ask for the user. */
const struct access_settings *access_allowing_nobody(const struct settings *settings,
                                                     const uint64_t *bits);
/* The first section that would ask this client for credentials; NULL: none. `from`: where to begin
 * in the file's order. */
const struct access_settings *access_find_asking(const struct access_question *question,
                                                 size_t from);
/* Does a section accept users that this authenticator has proved? */
bool access_accepts(const struct settings *settings, const struct access_settings *section,
                    struct slice authenticator);

/* The section that certainly allows a request of nobody known; NULL: ask. Only for settings with
 * is_plain. `bits` as in the question, and no expression may have given up. */
static inline const struct access_settings *access_allowing(const struct settings *settings,
                                                            const uint64_t *bits) {
    const struct accesses_settings *mine = accesses_of(settings);
    if (bits == mine->always)
        return mine->otherwise;
    if (mine->asks_later)
        return access_allowing_nobody(settings, bits);
    size_t at = settings_next_rule(settings, RULE_ACCESS, bits, 0);
    const struct access_settings *section = &mine->list[at];
    return at < mine->count && section->action == ACCESS_ACTION_ALLOW ? section : NULL;
}

/* Words for people: "allow", and "matches and decides". */
const char *access_action_name(enum access_action action);
const char *access_finding_text(enum access_finding finding);

#endif
