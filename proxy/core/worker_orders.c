#include "worker_internal.h"

#include "base/assert.h"
#include "event/mailbox.h"
#include "net/listener.h"

#include <unistd.h>

/* What other threads want of a worker: orders, and questions. Each is a message to its mailbox, which
 * its thread delivers. */

struct reload_message {
    struct message message;
    struct worker *worker;
    struct worker_news news;
};

static void on_reload(struct message *message) {
    struct reload_message *reload = CONTAINER_OF(message, struct reload_message, message);
    struct worker *worker = reload->worker;
    struct worker_news news = reload->news;
    CHECK_OBJ(worker, WORKER_MAGIC);
    free(reload);
    worker_take_settings(worker, &news);
    claims_free(&news.claims);
    origin_groups_release(&news.origins);
}

void worker_reload(struct worker *worker, struct settings *settings, struct origin_groups *origins,
                   struct claims **claimsp) {
    struct reload_message *reload = xcalloc(1, sizeof *reload);
    reload->message.deliver = on_reload;
    reload->worker = worker;
    reload->news =
        (struct worker_news){settings_use(settings), origin_groups_reference(origins), *claimsp};
    *claimsp = NULL;
    mailbox_post(&worker->mailbox, &reload->message);
}

struct post_message {
    struct message message;
    struct worker *worker;
    void (*run)(struct transaction_host *host, void *arg);
    void *arg;
};

static void on_post(struct message *message) {
    struct post_message *post = CONTAINER_OF(message, struct post_message, message);
    CHECK_OBJ(post->worker, WORKER_MAGIC);
    post->run(&post->worker->host, post->arg);
    free(post);
}

void worker_post(struct worker *worker, void (*run)(struct transaction_host *host, void *arg),
                 void *arg) {
    struct post_message *post = xcalloc(1, sizeof *post);
    *post =
        (struct post_message){.message.deliver = on_post, .worker = worker, .run = run, .arg = arg};
    mailbox_post(&worker->mailbox, &post->message);
}

bool worker_may_answer(struct worker *worker, unsigned patience) {
    char reason[WORKER_REASON];
    uint64_t held;
    return !worker_is_held(worker, &held, reason) || held < patience;
}

bool worker_ask(struct worker *worker, const struct question_class *question, void *subject,
                void *answer, unsigned patience) {
    CHECK_OBJ(worker, WORKER_MAGIC);
    return worker_may_answer(worker, patience) &&
           question_ask(&worker->mailbox, question, subject, answer, patience);
}

static void on_nothing(void *subject, void *answer) {
    *(bool *)answer = subject != NULL;
}

bool worker_answers(struct worker *worker, unsigned patience) {
    static const struct question_class question = {sizeof(bool), on_nothing, NULL};
    bool answer;
    return worker_ask(worker, &question, worker, &answer, patience);
}

static void worker_on_sockets(void *subject, void *answer) {
    struct worker *worker;
    struct worker_sockets *sockets = answer;
    CAST_OBJ(worker, subject, WORKER_MAGIC);
    sockets->fds = xcalloc(worker->listener_count + 1, sizeof *sockets->fds);
    for (size_t i = 0; i < worker->listener_count; i++) {
        int fd = listener_copy(worker->listeners[i]);
        if (fd >= 0)
            sockets->fds[sockets->count++] = fd;
    }
}

void worker_sockets_release(struct worker_sockets *sockets) {
    for (size_t i = 0; i < sockets->count; i++)
        close(sockets->fds[i]);
    free(sockets->fds);
    *sockets = (struct worker_sockets){0};
}

static void release_sockets(void *answer) {
    worker_sockets_release(answer);
}

bool worker_ask_sockets(struct worker *worker, struct worker_sockets *sockets, unsigned patience) {
    static const struct question_class question = {sizeof *sockets, worker_on_sockets,
                                                   release_sockets};
    return worker_ask(worker, &question, worker, sockets, patience);
}

struct order_message {
    struct message message;
    struct worker *worker;
};

static void post_order(struct worker *worker, void (*deliver)(struct message *message)) {
    struct order_message *order = xcalloc(1, sizeof *order);
    order->message.deliver = deliver;
    order->worker = worker;
    mailbox_post(&worker->mailbox, &order->message);
}

static struct worker *take_order(struct message *message) {
    struct order_message *order = CONTAINER_OF(message, struct order_message, message);
    struct worker *worker = order->worker;
    CHECK_OBJ(worker, WORKER_MAGIC);
    free(order);
    return worker;
}

static void on_drain(struct message *message) {
    struct worker *worker = take_order(message);
    timer_cancel(&worker->loop.timers, &worker->retire_timer);
    if (!worker->draining)
        worker_begin_drain(worker);
    clients_drain(&worker->clients);
}

/* A client may be sending a request on an idle connection at this moment, which a close would
 * reset. So the connection is closed by the response to its next request. */
static void on_retire(struct message *message) {
    struct worker *worker = take_order(message);
    if (worker->draining)
        return;
    worker_begin_drain(worker);
    clients_close_with_next(&worker->clients);
    loop_timer_after(&worker->loop, &worker->retire_timer, worker->settings->drain_timeout / 2);
}

void worker_retire(struct worker *worker) {
    post_order(worker, on_retire);
}

void worker_drain(struct worker *worker) {
    post_order(worker, on_drain);
}

static void on_look_again(struct message *message) {
    struct worker *worker = take_order(message);
    for (size_t i = 0; i < worker->listener_count; i++)
        listener_look_again(worker->listeners[i]);
}

void worker_look_again(struct worker *worker) {
    post_order(worker, on_look_again);
}

static void on_reopen(struct message *message) {
    worker_open_logs_again(take_order(message));
}

void worker_reopen_logs(struct worker *worker) {
    post_order(worker, on_reopen);
}

static void on_stop(struct message *message) {
    take_order(message)->stopped = true;
}

void worker_stop(struct worker *worker) {
    post_order(worker, on_stop);
}
