#include "disk/readers.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdbool.h>

struct readers {
    unsigned magic;
#define READERS_MAGIC 0x4ead3250u
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct list_link jobs;
    unsigned most, started, idle;
    bool stopping;
    pthread_t threads[];
};

struct readers *readers_new(unsigned threads) {
    struct readers *readers = xcalloc(1, sizeof *readers + threads * sizeof *readers->threads);
    readers->magic = READERS_MAGIC;
    readers->most = threads;
    list_init(&readers->jobs);
    pthread_mutex_init(&readers->lock, NULL);
    pthread_cond_init(&readers->ready, NULL);
    return readers;
}

static void *work(void *arg) {
    struct readers *readers;
    CAST_OBJ(readers, arg, READERS_MAGIC);
    pthread_mutex_lock(&readers->lock);
    for (;;) {
        struct list_link *link = list_first(&readers->jobs);
        if (link == NULL && readers->stopping)
            break;
        if (link == NULL) {
            readers->idle++;
            pthread_cond_wait(&readers->ready, &readers->lock);
            readers->idle--;
            continue;
        }
        struct reader_job *job = CONTAINER_OF(link, struct reader_job, link);
        list_remove(link);
        pthread_mutex_unlock(&readers->lock);
        job->run(job);
        pthread_mutex_lock(&readers->lock);
    }
    pthread_mutex_unlock(&readers->lock);
    return NULL;
}

void readers_submit(struct readers *readers, struct reader_job *job) {
    CHECK_OBJ(readers, READERS_MAGIC);
    pthread_mutex_lock(&readers->lock);
    list_init(&job->link);
    list_append(&readers->jobs, &job->link);
    if (readers->idle == 0 && readers->started < readers->most &&
        pthread_create(&readers->threads[readers->started], NULL, work, readers) == 0)
        readers->started++;
    ASSERT(readers->started > 0);
    pthread_cond_signal(&readers->ready);
    pthread_mutex_unlock(&readers->lock);
}

void readers_free(struct readers **readersp) {
    struct readers *readers = *readersp;
    *readersp = NULL;
    if (readers == NULL)
        return;
    CHECK_OBJ(readers, READERS_MAGIC);
    pthread_mutex_lock(&readers->lock);
    readers->stopping = true;
    pthread_cond_broadcast(&readers->ready);
    pthread_mutex_unlock(&readers->lock);
    for (unsigned i = 0; i < readers->started; i++)
        pthread_join(readers->threads[i], NULL);
    pthread_mutex_destroy(&readers->lock);
    pthread_cond_destroy(&readers->ready);
    FREE_OBJ(readers);
}
