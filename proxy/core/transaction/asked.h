/*
 * A service that was asked about a message of the transaction, as logs and traces tell of it. Who asks services, a part, fills
 * it in when somebody wants to know (transaction/adapting.h).
 *
 *     struct asked_service asked[ASKED_MAX];
 *     unsigned count = transaction_asked(transaction, STEP_RESPMOD, asked);
 *
 * Threads: the worker's. It points to what lives until the transaction ends.
 */
#ifndef RETORT_TRANSACTION_ASKED_H
#define RETORT_TRANSACTION_ASKED_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { ASKED_MAX = 16 }; /* services of one step */

/* What the exchange with the service came to. Microseconds from its start on. */
struct asked_figures {
    uint64_t queue;     /* while it waited for its turn */
    uint64_t last_byte; /* until the service had said all; 0: it has not */
    uint64_t bytes_out, bytes_in;
    unsigned status; /* of the answer in the terms of its protocol; 0: there was none */
};

struct asked_service {
    const char *service, *verdict;
    const char
        *error; /* why it failed, before its verdict or in the body behind it; NULL: it did not */
    unsigned milliseconds; /* to the verdict */
    bool reqmod;
    uint64_t started; /* nanoseconds */
    uint64_t span;    /* of the trace that the message belongs to; 0: none */
    /* NULL: nobody was asked, or what it sent was of no use. Then the two others are not set. */
    const struct asked_figures *figures;
    struct slice outcome; /* the verdict in Squid's words */
    const char *uri;      /* the first one; "": it has none */
};

#endif
