/*
 * Calls to retort-helperd by the pages of the admin plane. A call has little time, and after one that
 * took too long nobody asks that socket for a while: so who looks at something else as well, such as at all
 * options, is not late each time. A late look delays other looks; a late change delays both. Changes of pools
 * are made one at a time, in turn.
 *
 *     json_t *answer = helperd_patience_look(mine->helpers, command, error);
 *     if (answer == NULL) ... error says why, and what to do ...
 *     json_decref(answer);
 *
 * Units: milliseconds. Threads: any. Ownership and errors: as admin/helperd_call.h has them.
 */
#ifndef RETORT_ADMIN_HELPERD_PATIENCE_H
#define RETORT_ADMIN_HELPERD_PATIENCE_H

#include "admin/helperd_call.h"
#include "turn.h"

enum {
    HELPERD_PATIENCE_LOOK = 1000,
    HELPERD_PATIENCE_CHANGE = 2000, /* what becomes of a change that took longer is not known */
    HELPERD_PATIENCE_PAUSE = 10000,
};

/* Of changes of pools. */
extern struct turn helperd_patience_turn;
#define HELPERD_PATIENCE_WHAT "a change of pools of helpers"

/* A command that changes nothing. */
json_t *helperd_patience_look(const char *path, const json_t *command,
                              char error[HELPERD_CALL_ERROR]);
/* One that does, or a look that a change needs. */
json_t *helperd_patience_change(const char *path, const json_t *command,
                                char error[HELPERD_CALL_ERROR]);

#endif
