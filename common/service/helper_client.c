#include "service/helper_client.h"

#include "base/assert.h"
#include "service/service.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct helper_job {
    unsigned magic;
#define HELPER_JOB_MAGIC 0x484a6f62u
    int fd;
    int64_t deadline;
    bool finished;
    enum helper_status status;
    char error[160];
    struct helper_packet packet; /* the result */
};

/* A connection has only one job at a time, so all jobs can have the same number. */
enum { JOB_ID = 1 };

static void helper_client_finish(struct helper_job *job, enum helper_status status,
                                 const char *error) {
    job->finished = true;
    job->status = status;
    snprintf(job->error, sizeof job->error, "%s", error);
    if (job->fd >= 0)
        close(job->fd);
    job->fd = -1;
}

static int helper_client_connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* The deadline of the helper is this many milliseconds before that of the service, so that the
 * service still gets the answer. */
static uint32_t answer_time(const struct helper_request *request) {
    enum { PART = 8, MOST = 250 };
    uint32_t part = request->milliseconds / PART;
    return part < MOST ? part : MOST;
}

static bool fill_packet(struct helper_packet *packet, const struct helper_request *request) {
    helper_packet_init(packet, HELPER_JOB, JOB_ID);
    packet->body = request->body;
    packet->message.body_length = request->body >= 0 ? request->body_length : 0;
    packet->message.milliseconds = request->milliseconds - answer_time(request);
    helper_packet_set_origin(packet, request->client, request->cost);
    return helper_packet_set_pool(packet, request->pool) &&
           helper_packet_set_parameters(packet, request->parameters);
}

struct helper_job *helper_job_start(const struct helper_request *request) {
    struct helper_job *job;
    ALLOC_OBJ(job, HELPER_JOB_MAGIC);
    job->packet.body = -1;
    job->deadline = service_now() + request->milliseconds;
    job->fd = helper_client_connect_to(request->socket);
    char error[160];
    if (job->fd < 0) {
        snprintf(error, sizeof error, "no connection to retort-helperd at %s: %s; %s",
                 request->socket == NULL ? "(no socket configured)" : request->socket,
                 strerror(errno),
                 errno == EACCES ? "its socket_group must be one of ours" : "is it running?");
        helper_client_finish(job, HELPER_REFUSED, error);
        return job;
    }
    bool fits = fill_packet(&job->packet, request);
    enum helper_io sent = fits ? helper_packet_send(job->fd, &job->packet) : HELPER_IO_BAD;
    job->packet.body = -1; /* the body belongs to the caller */
    if (fits)
        explicit_bzero(job->packet.parameters, request->parameters.length); /* maybe a password */
    if (sent == HELPER_IO_BAD)
        helper_client_finish(job, HELPER_FAILED, "the parameters of the job are too long");
    else if (sent != HELPER_IO_DONE)
        helper_client_finish(job, HELPER_REFUSED, "retort-helperd does not take the job");
    return job;
}

static void helper_client_take_result(struct helper_job *job) {
    const struct helper_message *message = &job->packet.message;
    if (message->kind != HELPER_RESULT || message->id != JOB_ID) {
        helper_packet_close_body(&job->packet);
        helper_client_finish(job, HELPER_FAILED, "retort-helperd answered something else");
        return;
    }
    char error[sizeof job->error] = "";
    if (message->status != HELPER_DONE && message->status != HELPER_UNCHANGED)
        snprintf(error, sizeof error, "%s: %.*s", helper_status_text(message->status),
                 (int)(message->inline_length < 120 ? message->inline_length : 120),
                 job->packet.parameters);
    helper_client_finish(job, message->status, error);
}

void helper_job_run(struct helper_job *job) {
    CHECK_OBJ(job, HELPER_JOB_MAGIC);
    if (job->finished)
        return;
    switch (helper_packet_receive(job->fd, &job->packet)) {
    case HELPER_IO_DONE: helper_client_take_result(job); break;
    case HELPER_IO_AGAIN:
        if (service_now() >= job->deadline)
            helper_client_finish(job, HELPER_TIMEOUT, "no result before the deadline");
        break;
    case HELPER_IO_CLOSED:
        helper_client_finish(job, HELPER_FAILED, "retort-helperd hung up");
        break;
    case HELPER_IO_BAD:
        helper_client_finish(job, HELPER_FAILED, "retort-helperd is of another version");
        break;
    }
}

void helper_job_end(struct helper_job **jobp) {
    struct helper_job *job = *jobp;
    *jobp = NULL;
    if (job == NULL)
        return;
    CHECK_OBJ(job, HELPER_JOB_MAGIC);
    if (job->fd >= 0)
        close(job->fd);
    helper_packet_close_body(&job->packet);
    FREE_OBJ(job);
}

bool helper_job_finished(const struct helper_job *job) {
    return job->finished;
}

int helper_job_fd(const struct helper_job *job) {
    return job->fd;
}

int64_t helper_job_deadline(const struct helper_job *job) {
    return job->deadline;
}

enum helper_status helper_job_status(const struct helper_job *job) {
    ASSERT(job->finished);
    return job->status;
}

const char *helper_job_error(const struct helper_job *job) {
    return job->error;
}

const char *helper_job_outage(const struct helper_job *job) {
    ASSERT(job->finished);
    return helper_status_is_outage(job->status) ? helper_status_text(job->status) : NULL;
}

struct slice helper_job_parameters(const struct helper_job *job) {
    ASSERT(job->finished);
    if (job->status != HELPER_DONE)
        return slice_make(NULL, 0);
    return helper_packet_parameters(&job->packet);
}

int helper_job_body(const struct helper_job *job, uint64_t *length) {
    *length = job->packet.body >= 0 ? job->packet.message.body_length : 0;
    return job->packet.body;
}
