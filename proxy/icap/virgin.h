/*
 * A virgin body on its way to an ICAP service, and a copy of it for as long as it may be wanted
 * again: for a 204, a 206, a bypass or a repetition on a fresh connection.
 *
 *     virgin_init(&virgin, loop, &source, &limits);      takes the source
 *     feed_init(&feed, net, &virgin.first, true);        the way to the service
 *     if (virgin_is_whole(&virgin))                      nothing has been let go yet
 *         struct source *body = virgin_replay(&virgin);  from the first byte to the last, or
 *         struct source *body = virgin_hand_on(&virgin);
 *     virgin_restart(&virgin);                           the way to the service, from the beginning
 *     virgin_stop_keeping(&virgin);                      it will not be wanted again
 *     virgin_release(&virgin);
 *
 * Past the limits (base/spill_file.h) the copy is dropped and the body is not whole any more.
 * Threads: the worker's.
 */
#ifndef RETORT_ICAP_VIRGIN_H
#define RETORT_ICAP_VIRGIN_H

#include "base/spill_file.h"
#include "event/source.h"

struct virgin {
    unsigned magic;
#define VIRGIN_MAGIC 0x51491700u
    struct source *from; /* owned */
    struct spill_file kept;
    struct spill_file_cursor cursor; /* where `first` is in the kept bytes, while they are kept */
    bool keeping, replaying, ended, failed;
    bool unkept; /* a limit was reached */
    struct source first, replay;
};

void virgin_init(struct virgin *virgin, struct loop *loop, struct source **from,
                 const struct spill_file_limits *limits);
bool virgin_is_whole(const struct virgin *virgin);
void virgin_restart(struct virgin *virgin);
void virgin_stop_keeping(struct virgin *virgin);
struct source *virgin_replay(struct virgin *virgin);
/* The same for others, who close it: the source itself, if it takes back what was read of it. */
struct source *virgin_hand_on(struct virgin *virgin);
void virgin_release(struct virgin *virgin);

#endif
