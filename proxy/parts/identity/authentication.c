#include "identity/authentication.h"

#include "base/assert.h"
#include "base/table.h"
#include "base/threads.h"

/* A client's share of the queue, as a fraction. */
enum { SHARES = 4 };

struct check_threads {
    unsigned magic;
#define CHECK_THREADS_MAGIC 0xc4ec7417u
    struct thread_queue queue;
    unsigned queue_max; /* under its lock */
};

static void check_job_on_message(struct message *message) {
    struct check_job *job = CONTAINER_OF(message, struct check_job, message);
    job->done(job);
}

static void answer_job(struct check_job *job) {
    job->message.deliver = check_job_on_message;
    mailbox_post(job->mailbox, &job->message);
}

static void check_thread_main(void *arg) {
    struct check_threads *threads;
    struct list_link *link;
    CAST_OBJ(threads, arg, CHECK_THREADS_MAGIC);
    while ((link = thread_queue_take(&threads->queue)) != NULL) {
        struct check_job *job = CONTAINER_OF(link, struct check_job, link);
        job->run(job);
        job->ran = true;
        answer_job(job);
    }
}

struct check_threads *check_threads_new(unsigned count, unsigned queue_max) {
    struct check_threads *threads;
    ALLOC_OBJ(threads, CHECK_THREADS_MAGIC);
    thread_queue_init(&threads->queue, count > 0 ? count : 1, check_thread_main, threads,
                      "rt-check");
    threads->queue_max = queue_max;
    return threads;
}

void check_threads_set_queue(struct check_threads *threads, unsigned queue_max) {
    CHECK_OBJ(threads, CHECK_THREADS_MAGIC);
    pthread_mutex_lock(&threads->queue.lock);
    threads->queue_max = queue_max;
    pthread_mutex_unlock(&threads->queue.lock);
}

void check_threads_stop(struct check_threads *threads) {
    struct list_link *link;
    CHECK_OBJ(threads, CHECK_THREADS_MAGIC);
    thread_queue_end(&threads->queue, THREADS_DROP);
    thread_queue_join(&threads->queue);
    while ((link = thread_queue_pop(&threads->queue)) != NULL)
        answer_job(CONTAINER_OF(link, struct check_job, link));
}

void check_threads_free(struct check_threads **threadsp) {
    struct check_threads *threads = *threadsp;
    *threadsp = NULL;
    if (threads == NULL)
        return;
    check_threads_stop(threads);
    thread_queue_release(&threads->queue);
    FREE_OBJ(threads);
}

/* Under the lock. */
static unsigned jobs_of(const struct check_threads *threads, struct slice client) {
    unsigned count = 0;
    LIST_FOR_EACH (link, &threads->queue.jobs) {
        const struct check_job *job = CONTAINER_OF(link, struct check_job, link);
        count += slice_equal(slice_make(job->client, job->client_length), client);
    }
    return count;
}

bool check_threads_post(struct check_threads *threads, struct check_job *job,
                        struct mailbox *mailbox, struct slice client) {
    CHECK_OBJ(threads, CHECK_THREADS_MAGIC);
    ASSERT(client.length <= sizeof job->client);
    job->mailbox = mailbox;
    job->client_length = client.length;
    slice_put(job->client, client);
    pthread_mutex_lock(&threads->queue.lock);
    unsigned share = threads->queue_max / SHARES > 0 ? threads->queue_max / SHARES : 1;
    bool taken = threads->queue.waiting < threads->queue_max && jobs_of(threads, client) < share &&
                 thread_queue_add(&threads->queue, &job->link);
    pthread_mutex_unlock(&threads->queue.lock);
    return taken;
}

enum { WAITS = 2 };

struct flight {
    struct table_entry entry;
    struct list_link waiting;
    char key[SECRET_DIGEST];
};

struct flights {
    unsigned magic;
#define FLIGHTS_MAGIC 0xf117f115u
    pthread_mutex_t lock;
    struct table table;
};

struct flights *flights_new(void) {
    struct flights *flights;
    ALLOC_OBJ(flights, FLIGHTS_MAGIC);
    pthread_mutex_init(&flights->lock, NULL);
    table_init(&flights->table);
    return flights;
}

void flights_free(struct flights **flightsp) {
    struct flights *flights = *flightsp;
    *flightsp = NULL;
    if (flights == NULL)
        return;
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    ASSERT(flights->table.count == 0);
    table_release(&flights->table);
    pthread_mutex_destroy(&flights->lock);
    FREE_OBJ(flights);
}

bool flights_enter(struct flights *flights, const unsigned char key[SECRET_DIGEST],
                   struct flight_place *place, struct mailbox *mailbox, struct task *task) {
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    place->flights = flights;
    if (place->waits == WAITS)
        return true;
    pthread_mutex_lock(&flights->lock);
    struct slice digest = slice_make((const char *)key, SECRET_DIGEST);
    struct table_entry *entry = table_find(&flights->table, digest);
    if (entry != NULL) {
        waiter_add(&CONTAINER_OF(entry, struct flight, entry)->waiting, &place->waiter, mailbox,
                   task);
        place->waits++;
    } else {
        struct flight *flight = place->leads = xcalloc(1, sizeof *flight);
        list_init(&flight->waiting);
        table_add(&flights->table, &flight->entry, slice_copy(flight->key, digest));
    }
    pthread_mutex_unlock(&flights->lock);
    return entry == NULL;
}

void flights_leave(struct flight_place *place, const struct loop *loop) {
    struct flights *flights = place->flights;
    if (flights == NULL)
        return;
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    place->flights = NULL;
    if (place->waiter != NULL)
        waiter_cancel(&place->waiter, &flights->lock);
    if (place->leads == NULL)
        return;
    pthread_mutex_lock(&flights->lock);
    table_remove(&flights->table, &place->leads->entry);
    waiters_wake(&place->leads->waiting, loop);
    pthread_mutex_unlock(&flights->lock);
    free(place->leads);
    place->leads = NULL;
}

struct authentication *authentication_new(const struct authentication_settings *settings,
                                          unsigned workers) {
    struct authentication *authentication;
    ALLOC_OBJ(authentication, AUTHENTICATION_MAGIC);
    authentication->threads =
        check_threads_new(settings->threads > 0 ? settings->threads : workers, settings->queue_max);
    authentication->remembered = remembered_new(settings->remember_entries);
    authentication->attempts = attempts_new(settings);
    authentication->flights = flights_new();
    return authentication;
}

void authentication_configure(struct authentication *authentication,
                              const struct authentication_settings *settings) {
    CHECK_OBJ(authentication, AUTHENTICATION_MAGIC);
    check_threads_set_queue(authentication->threads, settings->queue_max);
    attempts_configure(authentication->attempts, settings);
}

void authentication_stop(struct authentication *authentication) {
    if (authentication == NULL)
        return;
    CHECK_OBJ(authentication, AUTHENTICATION_MAGIC);
    check_threads_stop(authentication->threads);
}

void authentication_free(struct authentication **authenticationp) {
    struct authentication *authentication = *authenticationp;
    *authenticationp = NULL;
    if (authentication == NULL)
        return;
    CHECK_OBJ(authentication, AUTHENTICATION_MAGIC);
    check_threads_free(&authentication->threads);
    remembered_free(&authentication->remembered);
    attempts_free(&authentication->attempts);
    flights_free(&authentication->flights);
    FREE_OBJ(authentication);
}
