/*
 * Remembered verdicts: what services said about requests, if they permit that it is used again for
 * equal requests (RFC 3507 §5). All of them together stay below a limit of bytes.
 *
 *     struct verdicts *verdicts = verdicts_new(8 << 20);
 *     if (verdicts_find(verdicts, key, tag, now, &arena, &verdict)) ...       no need to ask
 *     ...
 *     verdict.tag = call->tag, verdict.expires = now + lifetime;
 *     evicted = verdicts_keep(verdicts, key, &verdict, now, &kept);
 *
 * The key is all that the verdict may depend on, as text: see recall.h. It is kept and compared
 * whole, since a request that only had the same sum would be let past a service that refuses it.
 *
 * A verdict ends when its time is over, and when the service's tag (adapt/service_tag.h) has
 * changed since: the tag is compared when the verdict is looked up. When room is needed, verdicts
 * are evicted as objects of the cache are (base/eviction.h).
 *
 * Threads: any. Parts with a lock each, held for a look-up and for a copy of at most
 * VERDICT_BODY_MAX bytes and a head. Units: bytes, milliseconds of the loops' clock.
 */
#ifndef RETORT_ADAPT_VERDICTS_H
#define RETORT_ADAPT_VERDICTS_H

#include "adapt/adapter_call.h"
#include "base/arena.h"

/* Longer bodies of answers are not kept. */
enum { VERDICT_BODY_MAX = 64 * 1024 };

struct verdict {
    enum adapter_verdict kind; /* ADAPTER_UNMODIFIED, _MODIFIED or _SATISFIED */
    struct slice head;         /* of the adapted request, or of the answer; with the empty line */
    bool has_body;             /* of the answer */
    struct slice body;
    bool routed; /* it came with X-Next-Services, which may be empty */
    struct slice next_services;
    uint64_t tag;
    uint64_t expires;
};

struct verdicts_statistics {
    uint64_t count, bytes, limit;
};

struct verdicts;

struct verdicts *verdicts_new(size_t limit);
void verdicts_free(struct verdicts **verdictsp);
void verdicts_set_limit(struct verdicts *verdicts, size_t limit);
/* Is any verdict remembered? Asked first, so that no key is made in vain. */
bool verdicts_any(const struct verdicts *verdicts);

/* The verdict's slices are copies in the arena. */
bool verdicts_find(struct verdicts *verdicts, struct slice key, uint64_t tag, uint64_t now,
                   struct arena *arena, struct verdict *verdict);
/* Copies it, in place of one with the same key; returns how many others went. One that is too large
 * for its part of the limit is not kept: *kept. */
unsigned verdicts_keep(struct verdicts *verdicts, struct slice key, const struct verdict *verdict,
                       uint64_t now, bool *kept);
void verdicts_statistics(struct verdicts *verdicts, struct verdicts_statistics *statistics);

#endif
