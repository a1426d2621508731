/*
 * One ICAP transaction in c-icap: the service's exchange on one side, c-icap's calls on the other.
 * What is peculiar about c-icap's `io` is known here and nowhere else:
 *
 *   - a length that is also end and error (CI_EOF, CI_ERROR): transaction_io translates;
 *   - after the client's last byte an `io` that gives nothing truncates the body without a trace,
 *     so there transaction_io blocks in poll() on what the service waits for, up to its deadline;
 *   - an `io` that takes nothing and gives nothing while there was room for both is an error to
 *     c-icap, so there it blocks as well;
 *   - in any other case it returns, and c-icap waits for the network;
 *   - 204 behind the preview only when the client said Allow: 204, else the original is given back;
 *   - 206 inside the preview only, where a service changed the head alone.
 *
 *     init_request_data     transaction_create
 *     check_preview         transaction_preview     returns CI_MOD_*
 *     io                    transaction_io
 *     end_of_data           transaction_finish      returns CI_MOD_*
 *     release_request_data  transaction_destroy
 *
 * Threads: a transaction lives in the thread of its connection.
 */
#ifndef RETORT_HOST_TRANSACTION_H
#define RETORT_HOST_TRANSACTION_H

#include "service/service.h"

struct ci_request;
struct transaction;

/* How transactions ended: counters of the module. */
enum transaction_outcome { TRANSACTION_ADAPTED, TRANSACTION_SKIPPED, TRANSACTION_FAILED };

struct transaction_owner {
    const struct service_ops *ops;
    void *service;
    struct service_host host;
    /* Called with the host's context. */
    void (*count_outcome)(void *context, enum transaction_outcome outcome);
};

struct transaction *transaction_create(const struct transaction_owner *owner);
int transaction_preview(struct transaction *transaction, const char *bytes, int length,
                        struct ci_request *request);
int transaction_io(struct transaction *transaction, char *out, int *out_length, const char *in,
                   int *in_length, bool at_end, struct ci_request *request);
int transaction_finish(struct transaction *transaction, struct ci_request *request);
void transaction_destroy(struct transaction *transaction);

#endif
