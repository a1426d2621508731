/*
 * One call to retort-helperd: a command of one line of JSON goes to its socket, and its answer comes
 * back. retortctl and the admin plane ask it so; icap-services/helperd/client.c lists the commands.
 *
 *     char error[HELPERD_CALL_ERROR];
 *     json_t *command = json_pack("{s:s}", "call", "helpers");
 *     json_t *answer = helperd_call("/run/retort/helperd.sock", command, error);
 *     json_decref(command);
 *     if (answer == NULL) ... error says why, and what to do ...
 *     json_decref(answer);
 *
 * Threads: any; it blocks for at most HELPERD_CALL_MILLISECONDS, or the time given, in all. Ownership: the caller
 * releases the answer. Errors: no connection, no answer, an answer that is no JSON or too long, and
 * an answer that refuses.
 */
#ifndef RETORT_ADMIN_HELPERD_CALL_H
#define RETORT_ADMIN_HELPERD_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HELPERD_CALL_ERROR = 512,
    HELPERD_CALL_MILLISECONDS = 5000,
    HELPERD_CALL_MOST = 16 << 20, /* bytes of an answer */
};

json_t *helperd_call(const char *path, const json_t *command, char error[HELPERD_CALL_ERROR]);
/* Likewise, within a time of the caller's own, and for an answer of at most so many bytes. */
json_t *helperd_call_within(const char *path, const json_t *command, uint64_t milliseconds,
                            size_t most, char error[HELPERD_CALL_ERROR]);

/* Does a retort-helperd own the socket, whether it answers or not? Does not wait. */
bool helperd_call_finds_one(const char *path);

#endif
