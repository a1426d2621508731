/*
 * Calls to retort-helperd by the pages of the admin plane, which are made one at a time: while one
 * waits for retort-helperd, others wait for that page. So a call has little time, and after one that
 * took too long nobody asks that socket for a while. A late look delays other looks; a late change delays
 * both.
 *
 *     json_t *answer = helperd_patience_look(settings->admin.helpers, command, error);
 *     if (answer == NULL) ... error says why, and what to do ...
 *     json_decref(answer);
 *
 * Units: milliseconds. Threads: any. Ownership and errors: as admin/helperd_call.h has them.
 */
#ifndef RETORT_ADMIN_HELPERD_PATIENCE_H
#define RETORT_ADMIN_HELPERD_PATIENCE_H

#include "admin/helperd_call.h"

enum {
    HELPERD_PATIENCE_LOOK = 1000,
    HELPERD_PATIENCE_CHANGE = 2000, /* what becomes of a change that took longer is not known */
    HELPERD_PATIENCE_PAUSE = 10000,
};

/* A command that changes nothing. */
json_t *helperd_patience_look(const char *path, const json_t *command,
                              char error[HELPERD_CALL_ERROR]);
/* One that does, or a look that a change needs. */
json_t *helperd_patience_change(const char *path, const json_t *command,
                                char error[HELPERD_CALL_ERROR]);

#endif
