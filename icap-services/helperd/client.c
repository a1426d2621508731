#include "helperd/client.h"

#include "base/assert.h"
#include "base/log.h"
#include "helperd/control.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct client {
    unsigned magic;
#define CLIENT_MAGIC 0x436c6965u
    struct list_link link;
    struct supervisor *supervisor;
    int fd;
    struct event event;
    struct job *job;
    uint64_t job_id;   /* as the client numbers it */
    bool brought_jobs; /* it speaks the helper protocol: no commands */
};

static void client_close(struct client *client) {
    CHECK_OBJ(client, CLIENT_MAGIC);
    if (client->job != NULL)
        pool_cancel(&client->job);
    loop_remove(&client->supervisor->loop, &client->event); /* a child may hold a copy still */
    close(client->fd);
    list_remove(&client->link);
    client->supervisor->client_count--;
    FREE_OBJ(client);
}

/* ---- jobs --------------------------------------------------------------------------------- */

/* The answer goes out at once. A client has one job, so its socket has room for one answer. */
static bool client_answer(struct client *client, struct helper_packet *packet) {
    packet->message.id = client->job_id;
    return helper_packet_send(client->fd, packet) == HELPER_IO_DONE;
}

static bool answer_without_result(struct client *client, enum helper_status status,
                                  const char *why) {
    struct helper_packet packet;
    helper_packet_init(&packet, HELPER_RESULT, 0);
    packet.message.status = status;
    helper_packet_set_parameters(&packet, slice_from(why));
    return client_answer(client, &packet);
}

static void client_on_result(struct job *job, enum helper_status status,
                             struct helper_packet *result, const char *why) {
    struct client *client;
    CAST_OBJ(client, job->client, CLIENT_MAGIC);
    client->job = NULL;
    bool sent = false;
    if (result != NULL)
        sent = client_answer(client, result);
    else
        sent = answer_without_result(client, status, why);
    if (!sent)
        shutdown(client->fd, SHUT_RDWR); /* closed when its event comes */
}

static bool take_job(struct client *client, struct job *job) {
    if (job->packet.message.kind != HELPER_JOB || client->job != NULL) {
        job_free(job);
        return false;
    }
    client->job_id = job->packet.message.id;
    struct pool *pool = supervisor_pool(client->supervisor, job->packet.message.pool);
    if (pool == NULL) {
        char why[HELPER_POOL_MAX + 100];
        snprintf(why, sizeof why, "retort-helperd has no pool \"%s\": look at its configuration",
                 job->packet.message.pool);
        job_free(job);
        return answer_without_result(client, HELPER_REFUSED, why);
    }
    job->client = client;
    job->on_result = client_on_result;
    client->job = job;
    pool_submit(pool, &job);
    return true;
}

/* ---- commands ----------------------------------------------------------------------------- */

static bool may_command(const struct client *client) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static bool obey(struct client *client, struct slice command) {
    char *text = control_answer(client->supervisor, command, may_command(client));
    /* An answer that is longer than a packet goes out in several. A newline ends the last one. */
    size_t size = strlen(text), sent = 0;
    while (sent < size) {
        size_t piece = size - sent < CONTROL_PACKET ? size - sent : CONTROL_PACKET;
        if (send(client->fd, text + sent, piece, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)piece)
            break;
        sent += piece;
    }
    free(text);
    return sent == size;
}

/* ---- both --------------------------------------------------------------------------------- */

/* The packet is no job: it is a command in JSON, or nonsense. */
static bool read_other(struct client *client, const struct helper_packet *packet) {
    _Static_assert(offsetof(struct helper_packet, parameters) == sizeof packet->message,
                   "a packet's bytes are one after the other");
    enum { COMMAND_MAX = 4096 };
    const char *bytes = (const char *)packet;
    if (packet->received > 0 && bytes[0] == '{' && !client->brought_jobs)
        return obey(client, slice_make(bytes, packet->received <= COMMAND_MAX ? packet->received
                                                                              : 0)); /* no JSON */
    log_warn("a client sent something that is not a job of version %d; its connection is closed",
             HELPER_VERSION);
    return false;
}

static bool read_packet(struct client *client) {
    struct job *job = xmalloc(sizeof *job);
    memset(job, 0, offsetof(struct job, packet)); /* which is large, and read into */
    job->magic = JOB_MAGIC;
    enum helper_io io = helper_packet_receive(client->fd, &job->packet);
    if (io == HELPER_IO_DONE) {
        client->brought_jobs = true;
        return take_job(client, job);
    }
    bool good = io == HELPER_IO_AGAIN || (io == HELPER_IO_BAD && read_other(client, &job->packet));
    FREE_OBJ(job);
    return good;
}

static void client_on_event(struct event *event, uint32_t events) {
    struct client *client = CONTAINER_OF(event, struct client, event);
    CHECK_OBJ(client, CLIENT_MAGIC);
    bool gone = (events & EPOLLHUP) != 0 && client->brought_jobs;
    if (gone || !read_packet(client))
        client_close(client);
}

void client_create(struct supervisor *supervisor, int fd) {
    struct client *client;
    ALLOC_OBJ(client, CLIENT_MAGIC);
    client->supervisor = supervisor;
    client->fd = fd;
    event_init(&client->event);
    list_append(&supervisor->clients, &client->link);
    supervisor->client_count++;
    if (!loop_add(&supervisor->loop, &client->event, fd, EPOLLIN, client_on_event))
        client_close(client);
    else /* what it wants is there already, mostly */
        client_on_event(&client->event, EPOLLIN);
}

void client_close_all(struct supervisor *supervisor) {
    LIST_FOR_EACH_SAFE (link, next, &supervisor->clients)
        client_close(CONTAINER_OF(link, struct client, link));
}
