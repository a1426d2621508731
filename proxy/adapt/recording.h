/*
 * The recording of one message that a service is given: the virgin message as it comes in, and the
 * adapted one as it goes out, of whichever kind the service is. It stands beside a call
 * (adapt/adapter_call.h), which has a pointer to it where a recorder (record/recorder.h) wanted it,
 * and else none.
 *
 *     if (host->recorder != NULL)
 *         recording = recording_begin(adapter, &request);     NULL: it is not wanted
 *     recording_settled(recording, call);                     and so on, each where it happens
 *     recording_described(recording, call);                   the call is still there
 *     recording_end(&recording, host);                        gives it to the recorder
 *
 * A service at an ICAP server has two heads more: recording_asked and recording_answered.
 *
 * Bodies are copied by the way: a source in front of the virgin one, and one behind the adapted
 * one, pass on what they read. Nothing waits for a recording: where memory has come to its limit it
 * forgets what it has, counts itself as dropped, and only passes on. Secrets are replaced before
 * anything is kept.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_RECORDING_H
#define RETORT_ADAPT_RECORDING_H

#include "adapt/adapter_call.h"
#include "record/recorder.h"

struct recording;

/* Takes the place of the request's virgin source. */
struct recording *recording_begin(struct adapter *adapter, const struct adapter_request *request);
/* The ICAP head that is sent, to the endpoint of that URI; of another try, instead of the one before. */
void recording_asked(struct recording *recording, const char *uri, struct slice head);
/* An ICAP head that came. */
void recording_answered(struct recording *recording, struct slice head);
/* The call has its verdict. */
void recording_settled(struct recording *recording, const struct adapter_call *call);
/* What to read instead of the adapted body. */
struct source *recording_body(struct recording *recording, struct source *body);
/* The call is about to end. */
void recording_described(struct recording *recording, const struct adapter_call *call);
/* It has ended, and its sources are closed. */
void recording_end(struct recording **recordingp, struct adapter_host *host);

#endif
