#include "helperd/client.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/slice.h"
#include "helperd/supervisor.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONTROL_PACKET = 16384 };

enum { MILLION = 1000000 };

__attribute__((format(printf, 1, 2))) static json_t *error(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return json_pack("{s:b, s:s}", "ok", 0, "error", text);
}

static json_t *ok(void) {
    return json_pack("{s:b}", "ok", 1);
}

static json_t *describe_worker(const struct supervisor *supervisor, const struct worker *worker) {
    json_t *object = json_pack(
        "{s:i, s:s, s:I, s:I}", "pid", (int)worker->pid, "state", worker_state_text(worker->state),
        "served", (json_int_t)worker->served, "cpu_ms", (json_int_t)worker_cpu(worker));
    if (worker->spare)
        json_object_set_new(object, "spare", json_true());
    errno = 0;
    int nice = worker->pid > 0 ? getpriority(PRIO_PROCESS, (id_t)worker->pid) : 0;
    if (worker->pid > 0 && errno == 0) {
        json_object_set_new(object, "nice", json_integer(nice));
        json_object_set_new(
            object, "seconds",
            json_integer((json_int_t)(supervisor->loop.now - worker->started) / 1000));
    }
    return object;
}

/* base/times.h explains `first_us` and `counts`. */
static json_t *describe_times(const struct times *times) {
    json_t *counts = json_array();
    for (unsigned i = 0; i < TIMES_COUNT; i++)
        json_array_append_new(counts, json_integer((json_int_t)times->below[i]));
    return json_pack("{s:i, s:I, s:o}", "first_us", (int)TIMES_FIRST, "sum_us",
                     (json_int_t)times->sum, "counts", counts);
}

static json_t *describe_lane(const struct pool *pool, enum lane lane) {
    const struct queue_lane *waiting = &pool->queue.lanes[lane];
    const struct lane_counts *counts = &pool->lanes[lane];
    const struct share *largest = queue_largest_share(&pool->queue, lane);
    uint64_t mean = counts->begun == 0 ? 0 : counts->waited / counts->begun;
    json_t *object = json_pack(
        "{s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:f}", "name", lane_text(lane), "queued",
        (int)waiting->count, "clients", (int)waiting->share_count, "at_work", (int)counts->at_work,
        "begun", (json_int_t)counts->begun, "mean_wait_ms", (json_int_t)mean, "longest_wait_ms",
        (json_int_t)counts->longest, "ms_for_a_million", pool->pace[lane] * MILLION);
    json_object_set_new(object, "waiting", describe_times(&counts->waiting));
    json_object_set_new(object, "working", describe_times(&counts->working));
    if (largest != NULL)
        json_object_set_new(object, "most",
                            json_pack("{s:s%, s:i, s:I}", "client", largest->client,
                                      strlen(largest->client), "queued", (int)largest->count,
                                      "cost", (json_int_t)largest->cost));
    return object;
}

static json_t *describe_lanes(const struct pool *pool) {
    json_t *lanes = json_array();
    for (int lane = 0; lane < LANE_COUNT; lane++)
        json_array_append_new(lanes, describe_lane(pool, (enum lane)lane));
    return lanes;
}

static json_t *describe_refusals(const struct pool *pool) {
    json_t *object = json_object();
    for (int refusal = REFUSAL_NONE + 1; refusal < REFUSAL_COUNT; refusal++)
        json_object_set_new(object, refusal_text((enum refusal)refusal),
                            json_integer((json_int_t)pool->counts.refusals[refusal]));
    return object;
}

static json_t *describe_pool(const struct supervisor *supervisor, struct pool *pool) {
    const struct pool_counts *counts = &pool->counts;
    json_t *workers = json_array();
    LIST_FOR_EACH (link, &pool->workers)
        json_array_append_new(workers,
                              describe_worker(supervisor, CONTAINER_OF(link, struct worker, link)));
    uint64_t answered = counts->served + counts->unchanged;
    const struct pool_settings *settings = &pool->settings;
    json_t *object =
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:s, s:I, s:o}", "name",
                  settings->name, "command", settings->command[0], "nice", settings->terms.nice,
                  "processes", (int)settings->processes, "max_processes",
                  (int)settings->max_processes, "queued", (int)queue_count(&pool->queue), "queue",
                  (int)settings->queue, "deadline_ms", (json_int_t)settings->deadline, "max_jobs",
                  (json_int_t)settings->max_jobs, "breaker", breaker_text(pool->breaker.state),
                  "cpu_ms", (json_int_t)pool_cpu(pool), "workers", workers);
    json_t *numbers = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "served", (json_int_t)counts->served,
        "unchanged", (json_int_t)counts->unchanged, "failed", (json_int_t)counts->failed, "refused",
        (json_int_t)counts->refused, "timeouts", (json_int_t)counts->timeouts, "cancelled",
        (json_int_t)counts->cancelled, "restarts", (json_int_t)counts->restarts, "broken",
        (json_int_t)pool->breaker.opened, "lines_dropped", (json_int_t)pool->share.dropped,
        "mean_ms", (json_int_t)(answered == 0 ? 0 : counts->milliseconds / answered));
    json_object_update(object, numbers);
    if (pool->breaker.state != BREAKER_CLOSED && !breaker_is_open_for_all(&pool->breaker))
        json_object_set_new(object, "breaker_client", json_string(pool->breaker.client));
    json_object_set_new(object, "configured",
                        json_pack("{s:i, s:i}", "nice", pool->configured_nice, "processes",
                                  (int)pool->configured_processes));
    json_object_set_new(object, "lanes", describe_lanes(pool));
    json_object_set_new(object, "refusals", describe_refusals(pool));
    json_decref(numbers);
    return object;
}

static json_t *call_helpers(struct supervisor *supervisor) {
    json_t *pools = json_array();
    LIST_FOR_EACH (link, &supervisor->pools)
        json_array_append_new(pools,
                              describe_pool(supervisor, CONTAINER_OF(link, struct pool, link)));
    return json_pack("{s:b, s:i, s:I, s:i, s:s, s:o}", "ok", 1, "pid", (int)getpid(), "seconds",
                     (json_int_t)(supervisor->loop.now - supervisor->started) / 1000, "clients",
                     (int)supervisor->client_count, "file", supervisor->path, "pools", pools);
}

static json_t *no_pool(const struct supervisor *supervisor, const char *name) {
    char names[256] = "";
    LIST_FOR_EACH (link, &supervisor->pools) {
        const struct pool *pool = CONTAINER_OF(link, struct pool, link);
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used == 0 ? "" : ", ",
                 pool->settings.name);
    }
    return error("there is no pool \"%s\"; there are: %s", name, names);
}

static json_t *call_renice(struct supervisor *supervisor, json_t *command) {
    const char *name;
    int nice;
    char why[256];
    if (json_unpack(command, "{s:s, s:i}", "pool", &name, "nice", &nice) != 0)
        return error("renice wants \"pool\", a text, and \"nice\", a number");
    struct pool *pool = supervisor_pool(supervisor, name);
    if (pool == NULL)
        return no_pool(supervisor, name);
    return pool_renice(pool, nice, why, sizeof why) ? ok() : error("%s", why);
}

static json_t *call_resize(struct supervisor *supervisor, json_t *command) {
    const char *name;
    int processes;
    if (json_unpack(command, "{s:s, s:i}", "pool", &name, "processes", &processes) != 0)
        return error("resize wants \"pool\", a text, and \"processes\", a number");
    struct pool *pool = supervisor_pool(supervisor, name);
    if (pool == NULL)
        return no_pool(supervisor, name);
    if (processes < 1 || processes > POOL_PROCESSES_MAX)
        return error("processes must be from 1 to %d", POOL_PROCESSES_MAX);
    pool_resize(pool, (unsigned)processes);
    return ok();
}

static json_t *call_reload(struct supervisor *supervisor) {
    struct findings left = {0};
    if (!supervisor_reload(supervisor, &left))
        return error(
            "%s has an error, so the old configuration stays; the log of retort-helperd says "
            "why",
            supervisor->path);
    json_t *reasons = json_array();
    for (unsigned i = 0; i < left.count; i++)
        json_array_append_new(reasons, json_string(left.text[i]));
    return json_pack("{s:b, s:o}", "ok", 1, "not_applied", reasons);
}

static json_t *control_run(struct supervisor *supervisor, json_t *command, bool may_change) {
    const char *call = json_string_value(json_object_get(command, "call"));
    if (call == NULL)
        return error("a command is an object with \"call\": helpers, renice, resize or reload");
    if (strcmp(call, "helpers") == 0)
        return call_helpers(supervisor);
    bool known =
        strcmp(call, "renice") == 0 || strcmp(call, "resize") == 0 || strcmp(call, "reload") == 0;
    if (!known)
        return error("unknown call \"%s\"; there are helpers, renice, resize and reload", call);
    if (!may_change)
        return error(
            "only root and the user that retort-helperd runs as may change something: use sudo");
    if (strcmp(call, "renice") == 0)
        return call_renice(supervisor, command);
    return strcmp(call, "resize") == 0 ? call_resize(supervisor, command) : call_reload(supervisor);
}

/* Runs the command and returns the answer. The answer is never NULL; the caller frees it. */
static char *control_answer(struct supervisor *supervisor, struct slice text, bool may_change) {
    json_error_t why;
    json_t *command = json_loadb(text.base, text.length, 0, &why);
    json_t *answer = command == NULL ? error("the command is no JSON: %s", why.text)
                                     : control_run(supervisor, command, may_change);
    char *line = json_dumps(answer, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(command);
    json_decref(answer);
    ASSERT(line != NULL);
    size_t length = strlen(line);
    line = xrealloc(line, length + 2);
    memcpy(line + length, "\n", 2);
    return line;
}

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
