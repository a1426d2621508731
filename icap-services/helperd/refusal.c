#include "helperd/refusal.h"

const char *refusal_text(enum refusal refusal) {
    static const char *const texts[] = {"none",     "queue_full", "share",
                                        "too_late", "breaker",    "stopping"};
    return texts[refusal];
}

const char *refusal_reason(enum refusal refusal) {
    static const char *const reasons[] = {
        "",
        "the queue of the pool is full",
        "the queue of the pool is full, and this client has the most work in it",
        "it could not be done before its deadline",
        "the helpers of the pool die one after another",
        "retort-helperd is stopping"};
    return reasons[refusal];
}
