/*
 * A virgin body on its way to an ICAP service, and a copy of it for as long as it may be wanted
 * again: until the verdict, for a 204, a bypass or a repetition on a fresh connection.
 *
 *     virgin_init(&virgin, loop, &source, keep_limit);   takes the source
 *     feed_init(&feed, net, &virgin.first, true);        the way to the service
 *     if (virgin_is_whole(&virgin))                      nothing has been let go yet
 *         struct source *body = virgin_replay(&virgin);  from the first byte to the last
 *     virgin_restart(&virgin);                           the way to the service, from the beginning
 *     virgin_stop_keeping(&virgin);                      the verdict is there
 *     virgin_release(&virgin);
 *
 * Past the limit the copy is dropped and the body is not whole any more. Memory: at most the limit.
 * Threads: the worker's.
 */
#ifndef RETORT_ICAP_VIRGIN_H
#define RETORT_ICAP_VIRGIN_H

#include "base/spool.h"
#include "event/source.h"

struct virgin {
    unsigned magic;
#define VIRGIN_MAGIC 0x51491700u
    struct source *from; /* owned */
    struct spool kept;
    struct spool_cursor cursor; /* after a restart: where `first` is in the kept bytes */
    size_t passed;              /* bytes of `kept` that `first` has passed on */
    size_t limit;
    bool keeping, ended, failed;
    struct source first, replay;
};

void virgin_init(struct virgin *virgin, struct loop *loop, struct source **from, size_t limit);
bool virgin_is_whole(const struct virgin *virgin);
void virgin_restart(struct virgin *virgin);
void virgin_stop_keeping(struct virgin *virgin);
struct source *virgin_replay(struct virgin *virgin);
void virgin_release(struct virgin *virgin);

#endif
