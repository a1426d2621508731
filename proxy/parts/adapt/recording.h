/*
 * The recording of one message that a service is given: the virgin message as it comes in, and the
 * adapted one as it goes out, of whichever kind the service is. Who records messages, a part, sets
 * `records` of the adapter_host while somebody wants some. What `begin` returns stands beside the call
 * (adapt/adapter_call.h), which has a pointer to it where the message is wanted, and else none.
 *
 *     if (host->records != NULL)
 *         recording = host->records->begin(adapter, &request);    NULL: it is not wanted
 *     recording->class->settled(recording, call);                and so on, each where it happens
 *     recording->class->described(recording, call);              the call is still there
 *     recording->class->end(recording, host);                    the last call
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_RECORDING_H
#define RETORT_ADAPT_RECORDING_H

#include "adapt/adapter_call.h"

struct recording {
    const struct recording_class *class;
};

struct recording_class {
    /* Takes the place of the request's virgin source. */
    struct recording *(*begin)(struct adapter *adapter, const struct adapter_request *request);
    /* Of a service at an ICAP server: the head that is sent, to the endpoint of that URI; of another
     * try, instead of the one before. */
    void (*asked)(struct recording *recording, const char *uri, struct slice head);
    /* Likewise: a head that came. */
    void (*answered)(struct recording *recording, struct slice head);
    /* The call has its verdict. */
    void (*settled)(struct recording *recording, const struct adapter_call *call);
    /* What to read instead of the adapted body. */
    struct source *(*body)(struct recording *recording, struct source *body);
    /* The call is about to end. */
    void (*described)(struct recording *recording, const struct adapter_call *call);
    /* It has ended, and its sources are closed. */
    void (*end)(struct recording *recording, struct adapter_host *host);
};

#endif
