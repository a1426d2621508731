#include "admin/helperd_patience.h"

#include "base/clocks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum patience_kind { PATIENCE_LOOK, PATIENCE_CHANGE, PATIENCE_KINDS };

struct turn helperd_patience_turn = TURN_FREE;

static const uint64_t most_of[PATIENCE_KINDS] = {HELPERD_PATIENCE_LOOK, HELPERD_PATIENCE_CHANGE};

static struct {
    pthread_mutex_t lock;
    char path[128];                /* of the socket that the times are about */
    uint64_t next[PATIENCE_KINDS]; /* when the next call may be; 0: at once */
} patience = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock. A longer path is none of a socket, and fails at once. */
static uint64_t *patience_of(const char *path) {
    if (strncmp(patience.path, path, sizeof patience.path - 1) != 0) {
        snprintf(patience.path, sizeof patience.path, "%s", path);
        memset(patience.next, 0, sizeof patience.next);
    }
    return patience.next;
}

static bool patience_allows(const char *path, enum patience_kind kind, uint64_t now) {
    pthread_mutex_lock(&patience.lock);
    bool allows = now >= patience_of(path)[kind];
    pthread_mutex_unlock(&patience.lock);
    return allows;
}

/* A change has more time than a look. So a late change says that looks are late too, and a late
 * look says nothing about changes. */
static void patience_note(const char *path, enum patience_kind kind, uint64_t next) {
    pthread_mutex_lock(&patience.lock);
    uint64_t *of = patience_of(path);
    of[kind] = next;
    if (kind == PATIENCE_CHANGE && next > 0)
        of[PATIENCE_LOOK] = next;
    pthread_mutex_unlock(&patience.lock);
}

static json_t *helperd_patience_call(const char *path, const json_t *command,
                                     enum patience_kind kind, char error[HELPERD_CALL_ERROR]) {
    uint64_t begun = clocks_milliseconds(CLOCK_MONOTONIC);
    if (!patience_allows(path, kind, begun)) {
        snprintf(error, HELPERD_CALL_ERROR,
                 "retort-helperd has not answered a moment ago: repeat this in %d seconds",
                 HELPERD_PATIENCE_PAUSE / 1000);
        return NULL;
    }
    json_t *answer = helperd_call_within(path, command, most_of[kind], HELPERD_CALL_MOST, error);
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    bool late = answer == NULL && now - begun >= most_of[kind];
    patience_note(path, kind, late ? now + HELPERD_PATIENCE_PAUSE : 0);
    return answer;
}

json_t *helperd_patience_look(const char *path, const json_t *command,
                              char error[HELPERD_CALL_ERROR]) {
    return helperd_patience_call(path, command, PATIENCE_LOOK, error);
}

json_t *helperd_patience_change(const char *path, const json_t *command,
                                char error[HELPERD_CALL_ERROR]) {
    return helperd_patience_call(path, command, PATIENCE_CHANGE, error);
}
