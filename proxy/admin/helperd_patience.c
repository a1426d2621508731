#include "admin/helperd_patience.h"

#include "base/clocks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

/* When the next call may be; 0: at once. */
static _Atomic uint64_t next_call;

static json_t *helperd_patience_call(const char *path, const json_t *command, uint64_t most,
                                     char error[HELPERD_CALL_ERROR]) {
    uint64_t begun = clocks_milliseconds(CLOCK_MONOTONIC);
    if (begun < atomic_load(&next_call)) {
        snprintf(error, HELPERD_CALL_ERROR,
                 "retort-helperd has not answered a moment ago: repeat this in %d seconds",
                 HELPERD_PATIENCE_PAUSE / 1000);
        return NULL;
    }
    json_t *answer = helperd_call_within(path, command, most, HELPERD_CALL_MOST, error);
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    bool late = answer == NULL && now - begun >= most;
    atomic_store(&next_call, late ? now + HELPERD_PATIENCE_PAUSE : 0);
    return answer;
}

json_t *helperd_patience_look(const char *path, const json_t *command,
                              char error[HELPERD_CALL_ERROR]) {
    return helperd_patience_call(path, command, HELPERD_PATIENCE_LOOK, error);
}

json_t *helperd_patience_change(const char *path, const json_t *command,
                                char error[HELPERD_CALL_ERROR]) {
    return helperd_patience_call(path, command, HELPERD_PATIENCE_CHANGE, error);
}
