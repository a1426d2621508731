#include "access/rules.h"

#include "base/assert.h"
#include "match/regex.h"
#include "match/rules.h"

/* The first section at `from` or behind it that a request with these bits may be for. */
static size_t access_next_rule(const struct settings *settings, const uint64_t *bits, size_t from) {
    size_t certain = settings_next_rule(settings, RULE_ACCESS, bits, from);
    const struct accesses_settings *mine = accesses_of(settings);
    size_t first = mine->perhaps_first;
    return mine->asks_later ? rules_next(bits, first + from, first + certain) - first : certain;
}

static bool has_bit(const uint64_t *bits, size_t at) {
    return (bits[at / 64] >> at % 64 & 1) != 0;
}

/* The bits were found for the same user, if anybody is proved. If nobody is, they say what would be
 * if there never was a user: then a class that may match, and does not so, depends on the user. */
static enum class_answer access_matches(const struct access_question *question, size_t at) {
    const struct settings *settings = question->settings;
    const struct accesses_settings *mine = accesses_of(settings);
    const struct access_settings *section = &mine->list[at];
    const struct class_subject *subject = question->subject;
    bool fits = has_bit(question->bits, settings->rule_first[RULE_ACCESS] + at);
    if ((section->asks & CLASS_ASKS_LATER) == 0)
        return fits ? CLASS_YES : CLASS_NO;
    if (!has_bit(question->bits, mine->perhaps_first + at))
        return CLASS_NO;
    if ((section->asks & CLASS_ASKS_DESTINATION) == 0 && !fits)
        return subject->user == NULL && subject->user_pending ? CLASS_UNKNOWN : CLASS_NO;
    return url_class_judge(section->url_class, subject);
}

/* The first section at `from` or behind it that is worth a look. */
static size_t access_next(const struct access_question *question, size_t from) {
    return question->see != NULL ? from
                                 : access_next_rule(question->settings, question->bits, from);
}

/* What the answer depends on, when it is not known: the address is sought before the user is asked,
 * who may not be needed then. */
static enum access_finding what_is_wanted(const struct access_question *question, size_t at) {
    const struct access_settings *section = &accesses_of(question->settings)->list[at];
    return question->subject->destination_pending && (section->asks & CLASS_ASKS_DESTINATION) != 0
               ? ACCESS_WANTS_ADDRESS
               : ACCESS_WANTS_USER;
}

const struct access_settings *access_allowing_nobody(const struct settings *settings,
                                                     const uint64_t *bits) {
    const struct accesses_settings *mine = accesses_of(settings);
    ASSERT(mine->is_plain && mine->asks_later);
    size_t certain = settings_next_rule(settings, RULE_ACCESS, bits, 0);
    size_t first = mine->perhaps_first, end = first + certain;
    for (size_t rule = rules_next(bits, first, end); rule < end;
         rule = rules_next(bits, rule + 1, end))
        if (mine->list[rule - first].action != ACCESS_ACTION_ALLOW)
            return NULL;
    const struct access_settings *section = &mine->list[certain];
    return certain < mine->count && (section->asks & CLASS_ASKS_LATER) == 0 &&
                   section->action == ACCESS_ACTION_ALLOW
               ? section
               : NULL;
}

bool access_accepts(const struct settings *settings, const struct access_settings *section,
                    struct slice authenticator) {
    for (size_t i = 0; authenticator.length > 0 && i < section->authenticator_count; i++)
        if (slice_equal(slice_from(settings->authenticators[section->authenticators[i]]),
                        authenticator))
            return true;
    return false;
}

const struct access_settings *access_find_asking(const struct access_question *question,
                                                 size_t from) {
    const struct accesses_settings *mine = accesses_of(question->settings);
    for (size_t i = rules_next(mine->asking, from, mine->count); i < mine->count;
         i = rules_next(mine->asking, i + 1, mine->count))
        if (access_matches(question, i) != CLASS_NO)
            return &mine->list[i];
    return NULL;
}

static void access_see(const struct access_question *question, size_t at,
                       enum access_finding finding) {
    if (question->see != NULL)
        question->see(question->see_arg, at, finding);
}

/* The section matches. */
static void access_apply(const struct access_question *question,
                         const struct access_settings *section, struct access_decision *decision) {
    decision->section = section;
    switch (section->action) {
    case ACCESS_ACTION_ALLOW:
    case ACCESS_ACTION_TUNNEL: decision->outcome = ACCESS_ALLOW; break;
    case ACCESS_ACTION_DENY: decision->outcome = ACCESS_DENY; break;
    case ACCESS_ACTION_REDIRECT: decision->outcome = ACCESS_REDIRECT; break;
    case ACCESS_ACTION_AUTHENTICATE:
        if (access_accepts(question->settings, section, question->authenticator)) {
            decision->outcome = ACCESS_ALLOW;
            break;
        }
        decision->outcome = question->may_ask ? ACCESS_ASK : ACCESS_DENY;
        decision->for_want = true;
        break;
    }
}

/* The section depends on something unknown. True: that decides. */
static bool access_apply_unknown(const struct access_question *question, size_t at,
                                 struct access_decision *decision) {
    const struct access_settings *section = &accesses_of(question->settings)->list[at];
    bool wants_address = what_is_wanted(question, at) == ACCESS_WANTS_ADDRESS;
    decision->section = section;
    decision->for_want = true;
    if (wants_address && question->may_resolve) {
        decision->outcome = ACCESS_RESOLVE;
        return true;
    }
    if (section->log_only)
        return false;
    const struct access_settings *asking = NULL;
    if (question->may_ask && !wants_address)
        asking = section->action == ACCESS_ACTION_AUTHENTICATE ? section
                                                               : access_find_asking(question, 0);
    if (asking != NULL) {
        decision->outcome = ACCESS_ASK;
        decision->section = asking;
        return true;
    }
    decision->outcome = ACCESS_DENY;
    return section->action == ACCESS_ACTION_DENY;
}

static void access_find_deciding(const struct access_question *question,
                                 struct access_decision *decision) {
    const struct accesses_settings *mine = accesses_of(question->settings);
    for (size_t i = access_next(question, 0); i < mine->count; i = access_next(question, i + 1)) {
        const struct access_settings *section = &mine->list[i];
        *decision = (struct access_decision){.outcome = ACCESS_ALLOW};
        switch (access_matches(question, i)) {
        case CLASS_NO: access_see(question, i, ACCESS_NO_MATCH); continue;
        case CLASS_UNKNOWN:
            access_see(question, i, what_is_wanted(question, i));
            if (access_apply_unknown(question, i, decision))
                return;
            continue;
        case CLASS_YES: break;
        }
        access_see(question, i, section->log_only ? ACCESS_LOGS : ACCESS_DECIDES);
        if (section->log_only)
            continue;
        access_apply(question, section, decision);
        return;
    }
    *decision = (struct access_decision){
        .outcome = mine->count > 0 ? ACCESS_DENY : ACCESS_ALLOW,
    };
}

void access_decide(const struct access_question *question, struct access_decision *decision) {
    regex_take_gave_up();
    access_find_deciding(question, decision);
    bool unsure = regex_take_gave_up() || question->unsure;
    if (unsure && accesses_of(question->settings)->count > 0)
        *decision = (struct access_decision){.outcome = ACCESS_DENY, .unsure = true};
}

const char *access_action_name(enum access_action action) {
    static const char *const names[] = {"allow", "deny", "authenticate", "redirect", "tunnel"};
    return names[action];
}

const char *access_finding_text(enum access_finding finding) {
    static const char *const texts[ACCESS_FINDINGS] = {
        [ACCESS_NO_MATCH] = "does not match",
        [ACCESS_DECIDES] = "matches and decides",
        [ACCESS_LOGS] = "matches and is only logged (log_only)",
        [ACCESS_WANTS_USER] = "depends on the user, whom nobody has proved",
        [ACCESS_WANTS_ADDRESS] = "depends on the address of the host, which is not known",
    };
    return texts[finding];
}
