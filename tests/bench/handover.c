/*
 * What it costs to hand a job to a helper process and its result back, in time: through
 * retort-helperd, one job after another, each with a connection of its own as the services do it.
 *
 *     handover SOCKET POOL JOBS [BYTES]       with a body of so many bytes
 *
 * Prints the mean and the median in microseconds. The pool's helper should do nothing of weight:
 * text-helper without a file.
 */
#include "base/assert.h"
#include "service/helper_client.h"
#include "service/service.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int make_body(size_t length) {
    char *bytes = xcalloc(1, length + 1);
    int body = helper_body_create("bench");
    ASSERT(body >= 0 && helper_body_write(body, bytes, length) && helper_body_seal(body));
    free(bytes);
    return body;
}

static double run_job(const struct helper_request *request) {
    double begun = now();
    struct helper_job *job = helper_job_start(request);
    while (!helper_job_finished(job)) {
        struct pollfd wait = {.fd = helper_job_fd(job), .events = POLLIN};
        poll(&wait, 1, 1000);
        helper_job_run(job);
    }
    if (helper_job_status(job) != HELPER_DONE) {
        fprintf(stderr, "%s\n", helper_job_error(job));
        exit(EXIT_FAILURE);
    }
    helper_job_end(&job);
    return now() - begun;
}

static int compare(const void *a, const void *b) {
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: handover SOCKET POOL JOBS [BYTES]\n");
        return 2;
    }
    size_t jobs = (size_t)atol(argv[3]), length = argc > 4 ? (size_t)atol(argv[4]) : 0;
    double *times = xcalloc(jobs + 1, sizeof *times), total = 0;
    for (size_t i = 0; i < jobs; i++) {
        struct helper_request request = {.socket = argv[1],
                                         .pool = slice_from(argv[2]),
                                         .parameters = SLICE("192.0.2.1"),
                                         .body = length > 0 ? make_body(length) : -1,
                                         .body_length = length,
                                         .milliseconds = 10000};
        times[i] = run_job(&request);
        total += times[i];
        if (request.body >= 0)
            close(request.body);
    }
    qsort(times, jobs, sizeof *times, compare);
    printf("%zu jobs: mean %.1f us, median %.1f us\n", jobs, total / (double)jobs, times[jobs / 2]);
    free(times);
    return 0;
}
