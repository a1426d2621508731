/*
 * A virgin body on its way to a service, and a copy of it for as long as it may be wanted again:
 * for a service that leaves it alone or keeps a part of it, for a bypass, or to repeat the request.
 *
 *     virgin_body_init(&virgin, loop, &source, &limits);          takes the source
 *     feed_init(&feed, net, &virgin.first, true);                 the way to the service
 *     if (virgin_body_is_whole(&virgin))                          nothing has been let go yet
 *         struct source *body = virgin_body_replay(&virgin);      from the first byte to the last
 *     virgin_body_restart(&virgin);                  the service gets it from the beginning again
 *     virgin_body_stop_keeping(&virgin);             it will not be wanted again
 *     virgin_body_release(&virgin);
 *
 * If the reader closes the body itself, virgin_body_hand_on is called in place of
 * virgin_body_replay. Past the limits (base/spill_file.h) the copy is dropped, and the body is not
 * whole any more.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_VIRGIN_BODY_H
#define RETORT_ADAPT_VIRGIN_BODY_H

#include "base/spill_file.h"
#include "event/source.h"

struct virgin_body {
    unsigned magic;
#define VIRGIN_BODY_MAGIC 0x51491700u
    struct source *from; /* owned */
    struct spill_file kept;
    struct spill_file_cursor cursor; /* where `first` is in the kept bytes, while they are kept */
    bool keeping, replaying, ended, failed;
    bool unkept; /* a limit was reached */
    struct source first, replay;
};

void virgin_body_init(struct virgin_body *virgin, struct loop *loop, struct source **from,
                      const struct spill_file_limits *limits);
bool virgin_body_is_whole(const struct virgin_body *virgin);
void virgin_body_restart(struct virgin_body *virgin);
void virgin_body_stop_keeping(struct virgin_body *virgin);
struct source *virgin_body_replay(struct virgin_body *virgin);
/* As virgin_body_replay, for a reader that closes the body. Returns the source itself, if that
 * takes back what was read of it. */
struct source *virgin_body_hand_on(struct virgin_body *virgin);
void virgin_body_release(struct virgin_body *virgin);

#endif
