/*
 * A job for a helper process, as the service sees it: the service starts the job, waits for its
 * descriptor and takes the result. No call blocks.
 *
 *     struct helper_request request = {
 *         .socket = "/run/retort/helperd.sock", .pool = SLICE("gray"),
 *         .parameters = SLICE("image/jpeg"), .body = memfd, .body_length = 4711,
 *         .milliseconds = 10000, .client = SLICE("192.0.2.7"), .cost = 480000};
 *     struct helper_job *job = helper_job_start(&request);
 *     while (!helper_job_finished(job)) {
 *         ... wait for helper_job_fd(job) to become readable, or helper_job_deadline(job) to pass
 *         helper_job_run(job);
 *     }
 *     switch (helper_job_status(job)) { case HELPER_DONE: ... helper_job_body(job, &length) ... }
 *     helper_job_end(&job);              at any time: cancels the job
 *
 * helper_job_start always returns a job. When retort-helperd is not there or too busy, the job is
 * finished at once with HELPER_REFUSED, and helper_job_error says why.
 *
 * Ownership: the request's body belongs to the caller and must be sealed (helper_body_seal); the
 * result's body belongs to the job. Threads: a job belongs to one thread.
 */
#ifndef RETORT_SERVICE_HELPER_CLIENT_H
#define RETORT_SERVICE_HELPER_CLIENT_H

#include "service/helper_protocol.h"

struct helper_job;

struct helper_request {
    const char *socket;
    struct slice pool;
    struct slice parameters;
    int body; /* -1: none */
    uint64_t body_length;
    uint32_t milliseconds; /* until the result is there */
    struct slice client;   /* its address; clients share helpers equally; empty: not known */
    uint64_t cost;         /* expected work, in a unit of the pool; 0: not known */
};

struct helper_job *helper_job_start(const struct helper_request *request);
void helper_job_run(struct helper_job *job);
void helper_job_end(struct helper_job **jobp);

bool helper_job_finished(const struct helper_job *job);
int helper_job_fd(const struct helper_job *job);
int64_t helper_job_deadline(const struct helper_job *job); /* CLOCK_MONOTONIC milliseconds */
enum helper_status helper_job_status(const struct helper_job *job);
/* A sentence, unless the status is HELPER_DONE or HELPER_UNCHANGED. */
const char *helper_job_error(const struct helper_job *job);
/* A word for service_failed that says why there is no result. NULL: there is a result, or the cause
 * is the job itself, so that the same job would fail each time. */
const char *helper_job_outage(const struct helper_job *job);
struct slice helper_job_parameters(const struct helper_job *job);
/* The memfd of the result, positioned at its beginning; -1: the result has no memfd. */
int helper_job_body(const struct helper_job *job, uint64_t *length);

#endif
