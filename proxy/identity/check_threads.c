#include "identity/check_threads.h"

#include "base/assert.h"

#include <pthread.h>

/* A client's share of the queue, as a fraction. */
enum { SHARES = 4 };

struct check_threads {
    unsigned magic;
#define CHECK_THREADS_MAGIC 0xc4ec7417u
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct list_link queue;
    unsigned queued, queue_max;
    pthread_t *threads;
    unsigned count, started, idle;
    bool stopping;
};

struct check_threads *check_threads_new(unsigned count, unsigned queue_max) {
    struct check_threads *threads;
    ALLOC_OBJ(threads, CHECK_THREADS_MAGIC);
    pthread_mutex_init(&threads->lock, NULL);
    pthread_cond_init(&threads->changed, NULL);
    list_init(&threads->queue);
    threads->count = count > 0 ? count : 1;
    threads->threads = xcalloc(threads->count, sizeof *threads->threads);
    threads->queue_max = queue_max;
    return threads;
}

void check_threads_set_queue(struct check_threads *threads, unsigned queue_max) {
    CHECK_OBJ(threads, CHECK_THREADS_MAGIC);
    pthread_mutex_lock(&threads->lock);
    threads->queue_max = queue_max;
    pthread_mutex_unlock(&threads->lock);
}

static void check_job_on_message(struct message *message) {
    struct check_job *job = CONTAINER_OF(message, struct check_job, message);
    job->done(job);
}

static void answer_job(struct check_job *job) {
    job->message.deliver = check_job_on_message;
    mailbox_post(job->mailbox, &job->message);
}

static struct check_job *next_job(struct check_threads *threads) {
    struct check_job *job = CONTAINER_OF(list_first(&threads->queue), struct check_job, link);
    list_remove(&job->link);
    threads->queued--;
    return job;
}

static void *check_thread_main(void *arg) {
    struct check_threads *threads;
    CAST_OBJ(threads, arg, CHECK_THREADS_MAGIC);
    pthread_mutex_lock(&threads->lock);
    for (;;) {
        while (list_empty(&threads->queue) && !threads->stopping) {
            threads->idle++;
            pthread_cond_wait(&threads->changed, &threads->lock);
            threads->idle--;
        }
        if (threads->stopping)
            break;
        struct check_job *job = next_job(threads);
        pthread_mutex_unlock(&threads->lock);
        job->run(job);
        job->ran = true;
        answer_job(job);
        pthread_mutex_lock(&threads->lock);
    }
    pthread_mutex_unlock(&threads->lock);
    return NULL;
}

void check_threads_stop(struct check_threads *threads) {
    CHECK_OBJ(threads, CHECK_THREADS_MAGIC);
    pthread_mutex_lock(&threads->lock);
    threads->stopping = true;
    pthread_cond_broadcast(&threads->changed);
    pthread_mutex_unlock(&threads->lock);
    for (unsigned i = 0; i < threads->started; i++)
        pthread_join(threads->threads[i], NULL);
    threads->started = 0;
    while (!list_empty(&threads->queue))
        answer_job(next_job(threads));
}

void check_threads_free(struct check_threads **threadsp) {
    struct check_threads *threads = *threadsp;
    *threadsp = NULL;
    if (threads == NULL)
        return;
    check_threads_stop(threads);
    pthread_cond_destroy(&threads->changed);
    pthread_mutex_destroy(&threads->lock);
    free(threads->threads);
    FREE_OBJ(threads);
}

/* Called under the lock. */
static unsigned jobs_of(const struct check_threads *threads, struct slice client) {
    unsigned count = 0;
    LIST_FOR_EACH (link, &threads->queue) {
        const struct check_job *job = CONTAINER_OF(link, struct check_job, link);
        count += slice_equal(slice_make(job->client, job->client_length), client);
    }
    return count;
}

/* Called under the lock. Another thread is started when all are busy. */
static bool have_thread(struct check_threads *threads) {
    if (threads->idle <= threads->queued && threads->started < threads->count &&
        pthread_create(&threads->threads[threads->started], NULL, check_thread_main, threads) == 0)
        threads->started++;
    return threads->started > 0;
}

bool check_threads_post(struct check_threads *threads, struct check_job *job,
                        struct mailbox *mailbox, struct slice client) {
    CHECK_OBJ(threads, CHECK_THREADS_MAGIC);
    ASSERT(client.length <= sizeof job->client);
    job->mailbox = mailbox;
    job->client_length = client.length;
    slice_put(job->client, client);
    pthread_mutex_lock(&threads->lock);
    unsigned share = threads->queue_max / SHARES > 0 ? threads->queue_max / SHARES : 1;
    bool taken = !threads->stopping && threads->queued < threads->queue_max &&
                 jobs_of(threads, client) < share && have_thread(threads);
    if (taken) {
        list_append(&threads->queue, &job->link);
        threads->queued++;
        pthread_cond_signal(&threads->changed);
    }
    pthread_mutex_unlock(&threads->lock);
    return taken;
}
