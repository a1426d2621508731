/*
 * What came of a reload, or of a change at run time.
 *
 *     struct settings_outcome outcome = {.error = ""};
 *     if (!calls->reload(calls->context, &outcome)) ... outcome.error: nothing has changed ...
 *     settings_differences(outcome.before, outcome.after)
 *     settings_outcome_release(&outcome);
 *
 * Threads: a value.
 */
#ifndef RETORT_SETTINGS_OUTCOME_H
#define RETORT_SETTINGS_OUTCOME_H

#include "base/findings.h"
#include "settings/settings.h"

struct settings_outcome {
    char error[SETTINGS_ERROR];      /* why it was refused as a whole */
    bool busy;                       /* because another change is under way */
    bool disk_failed;                /* for that reason */
    bool disk_unsure;                /* the change is in use; error says what is not sure */
    struct findings waits;           /* what a restart will apply */
    struct findings refused;         /* what is in the configuration and can't be used */
    struct settings *before, *after; /* referenced; NULL after a refusal */
};

static inline void settings_outcome_release(struct settings_outcome *outcome) {
    settings_release(&outcome->before);
    settings_release(&outcome->after);
}

#endif
