/*
 * Handover: passes the listening sockets, the admin socket and the volumes of this process to
 * another one, usually a newer program, which takes over (takeover/takeover.h; takeover/wire.h has
 * the messages).
 *
 *     struct handover *handover = handover_open(&calls, settings, inherited, error);
 *     ... serve ...
 *     handover_start(handover);
 *     ...
 *     if (handover_is_done(handover)) ...      another process serves; drain and end
 *     handover_stop(&handover);
 *
 * The other process must belong to the same user. It first checks everything that can fail. Then
 * this one gives up its volumes and goes on to serve from memory. When the other one says that it
 * serves, this process retires: each connection gets an answer to the request that is under way or
 * the next one. When the other process ends before, or is silent for too long, this one takes its
 * volumes back and goes on.
 *
 * Threads: one of its own, which makes all `calls`; the calls of this header from the main thread.
 */
#ifndef RETORT_TAKEOVER_HANDOVER_H
#define RETORT_TAKEOVER_HANDOVER_H

#include "base/findings.h"
#include "net/inherited.h"

#include "settings/settings.h"

struct second_level;
struct handover;

enum { HANDOVER_HEARS = 16 };

/* Passes descriptors, which stay the caller's. False: the other process is gone. */
typedef bool handover_pass_fn(void *arg, const int *fds, unsigned count);

/* What the process does that hands over. */
struct handover_calls {
    void *context;
    struct second_level *second_level; /* NULL: there is none */
    /* Calls `pass` with all sockets that listen. False: they can't be had. */
    bool (*sockets)(void *context, handover_pass_fn *pass, void *arg);
    /* From now on, or no longer: another process has the configuration. */
    void (*forbid_reload)(void *context, bool forbidden);
    /* Is this process about to end? */
    bool (*is_ending)(void *context);
    /* What clients remove from the cache: it is noted from the first call on, told to the other process
     * by the second (`fd` is the callee's then; -1: it does not hear; false: it was not told), and
     * from then on as it happens. The third: that process does not take over. */
    void (*note_removals)(void *context);
    bool (*tell_removals)(void *context, int fd);
    void (*forget_removals)(void *context);
    /* Stores copies of the descriptors at which this process hears of removals itself, at most
     * HANDOVER_HEARS, and returns their number. The caller closes them. */
    unsigned (*hears_removals)(void *context, int *fds);
    /* Accepts nothing any more, and ends when the last connection has ended. */
    void (*retire)(void *context);
};

/* Adds a finding when the socket of the settings can't be made, without touching anything. */
void handover_possible(const struct settings *settings, struct findings *findings);
/* Listens at the socket of the settings, or at the inherited one. Returns NULL with a message when
 * that is not possible; an empty message: the settings have no such socket. */
struct handover *handover_open(const struct handover_calls *calls, const struct settings *settings,
                               struct inherited *inherited, char error[SETTINGS_ERROR]);
/* From now on another process may take over, and the file of the socket belongs to this process.
 * NULL does nothing. */
void handover_start(struct handover *handover);
/* Has another process taken over? */
bool handover_is_done(const struct handover *handover);
/* Has that process died since, so that nobody serves? */
bool handover_has_failed(const struct handover *handover);
/* Ends the thread, and a handover under way. */
void handover_stop(struct handover **handoverp);

#endif
