/*
 * The recording of one ICAP transaction: the virgin message as it comes in, both ICAP heads, and
 * the adapted message as it goes out. It stands beside a call (icap/call.h), which has a pointer to
 * it where a recorder (record/recorder.h) wanted it, and else none.
 *
 *     if (net->recorder != NULL)
 *         icap_recording_begin(call, request);     sets call->recording, or does not
 *     if (call->recording != NULL)
 *         icap_recording_asked(call, head);        and so on, each where it happens
 *     icap_recording_end(call);                    gives it to the recorder
 *
 * Bodies are copied by the way: a source in front of the virgin one, and one behind the adapted
 * one, pass on what they read. Nothing waits for a recording: where memory has come to its limit it
 * forgets what it has, counts itself as dropped, and only passes on. Secrets are replaced before
 * anything is kept.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ICAP_RECORDING_H
#define RETORT_ICAP_RECORDING_H

#include "record/recorder.h"

struct icap_call;
struct icap_request;
struct source;

/* Takes the place of the request's virgin source. */
void icap_recording_begin(struct icap_call *call, const struct icap_request *request);
/* The ICAP head that is sent; of another try, instead of the one before. */
void icap_recording_asked(struct icap_call *call, struct slice head);
/* An ICAP head that came. */
void icap_recording_answered(struct icap_call *call, struct slice head);
/* The call has its verdict. */
void icap_recording_settled(struct icap_call *call);
/* What to read instead of the adapted body. */
struct source *icap_recording_body(struct icap_call *call, struct source *body);
/* The transaction is over, and its sources are closed. */
void icap_recording_end(struct icap_call *call);

#endif
