/*
 * One ICAP transaction in c-icap. It connects the exchange of a service with the calls of c-icap.
 * It alone knows the particular rules of c-icap's `io` and of its answers:
 *
 *   - A length of `io` can also mean the end or an error (CI_EOF, CI_ERROR). transaction_io
 *     translates.
 *   - After the client's last byte, an `io` that gives nothing truncates the body, and no error is
 *     reported. So transaction_io blocks there: it polls what the service waits for, up to the
 *     service's deadline.
 *   - c-icap takes it as an error when `io` neither takes nor gives anything though there was room
 *     for both. So transaction_io blocks there too.
 *   - In any other case transaction_io returns, and c-icap waits for the network.
 *   - Behind the preview the answer is 204 only when the client said Allow: 204. Otherwise the
 *     original is given back.
 *   - The answer 206 is possible inside the preview only, when a service changed the head alone.
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

#include "service/driver.h"

struct ci_request;
struct transaction;

/* How transactions ended: counters of the module. */
enum transaction_outcome { TRANSACTION_ADAPTED, TRANSACTION_SKIPPED, TRANSACTION_FAILED };

struct transaction_owner {
    const struct service_ops *ops;
    void *service;
    struct service_host host;
    /* Called when a transaction ends, with the host's context. */
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
