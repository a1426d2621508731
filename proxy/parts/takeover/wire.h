/*
 * The messages between a process that takes over (takeover/takeover.h) and the one that hands over
 * (takeover/handover.h), on a Unix socket that keeps their bounds (SOCK_SEQPACKET).
 *
 *     new                          old
 *     take-over 3            ->                        3 is the version of these messages
 *                           <-     process             or: refused REASON
 *                           <-     sockets             any number, each with descriptors
 *                           <-     ready
 *     (checks everything)
 *     give                  ->                         the volumes
 *                           <-     given
 *     (opens the volumes)
 *     prepared              ->                         with a descriptor: see takeover/invalidation_relay.h
 *                                                      (tells what was removed since "give")
 *                           <-     serve
 *     (accepts connections)
 *     serving               ->
 *                           <-     retired             the old process accepts nothing any more; with the
 *                                                      descriptors at which it hears of removals itself
 *     done                  ->                         the new process ends as it should
 *
 * Exactly one of both has the last word, whenever the other one ends or is silent. Up to "serving",
 * the old process goes on as before when the connection ends, so the new one accepts no connection
 * before "serve". From "serving" on, the new one stays. "process" comes with a descriptor of the old
 * process (pidfd_open(2)): the new one goes on without an answer only if that process has ended, and
 * gives up otherwise.
 *
 * Threads: one at a time for each connection. All calls may block.
 */
#ifndef RETORT_TAKEOVER_WIRE_H
#define RETORT_TAKEOVER_WIRE_H

#include "net/address.h"
#include "settings/settings.h"

#include <stdbool.h>
#include <stddef.h>

/* Of settings->parts[PART_TAKEOVER]. */
struct takeover_settings {
    char *socket; /* path; NULL: beside the admin socket */
};

extern const struct part_settings takeover_part_settings;

#define TAKEOVER_HELLO "take-over 3"
/* The variable of the environment with the number of the process that has started this one to be
 * taken over by it (takeover/part.c). */
#define TAKEOVER_STARTER "RETORT_STARTED_BY"

enum {
    TAKEOVER_MESSAGE = 16 * 1024, /* bytes of a message at most */
    TAKEOVER_FDS = 64,            /* descriptors of a message at most */
    TAKEOVER_FOR_EVER = -1,       /* a patience */
};

struct takeover_message {
    size_t length;                    /* 0: the other process has closed the connection */
    char bytes[TAKEOVER_MESSAGE + 1]; /* ends with a zero byte */
    int fds[TAKEOVER_FDS];            /* owned by the caller */
    unsigned fd_count;
};

/* Stores the address of the socket of these settings. False: there is none. */
bool takeover_address(const struct settings *settings, struct address *address);
/* Is the other process one of this user? *pid is set to the number of the one that has connected, and
 * for that one to the number of the process that has opened the socket. */
bool takeover_is_same_user(int fd, int *pid);
bool takeover_send(int fd, const char *text);
bool takeover_send_fds(int fd, const char *text, const int *fds, unsigned count);
/* Waits for a message for at most `patience` milliseconds. False: none came, or it is unusable. */
bool takeover_receive(int fd, struct takeover_message *message, int patience);
/* No message arrives any more, except those that have arrived already. */
void takeover_shut(int fd);
bool takeover_is(const struct takeover_message *message, const char *text);

#endif
