#include "admin/apart.h"

#include "base/assert.h"
#include "base/threads.h"

struct apart_job {
    unsigned magic;
#define APART_JOB_MAGIC 0x4a9a4700u
    struct apart *apart;
    struct MHD_Connection *connection;
    void (*make)(void *arg);
    void *arg;
};

void apart_init(struct apart *apart) {
    *apart = (struct apart){.made = 0};
    pthread_mutex_init(&apart->lock, NULL);
    pthread_cond_init(&apart->fewer, NULL);
}

void apart_release(struct apart *apart) {
    pthread_cond_destroy(&apart->fewer);
    pthread_mutex_destroy(&apart->lock);
}

static void apart_count_down(struct apart *apart, unsigned *count) {
    pthread_mutex_lock(&apart->lock);
    (*count)--;
    pthread_cond_broadcast(&apart->fewer);
    pthread_mutex_unlock(&apart->lock);
}

void apart_ended(struct apart *apart) {
    apart_count_down(apart, &apart->waited);
}

/* It begins when its connection is suspended, under the lock, and ends behind the moment at which that is
 * resumed. */
static void apart_main(void *arg) {
    struct apart_job *job;
    CAST_OBJ(job, arg, APART_JOB_MAGIC);
    struct apart *apart = job->apart;
    pthread_mutex_lock(&apart->lock);
    pthread_mutex_unlock(&apart->lock);
    job->make(job->arg);
    MHD_resume_connection(job->connection);
    FREE_OBJ(job);
    apart_count_down(apart, &apart->made);
}

/* Under the lock. */
static bool apart_begin_job(struct apart *apart, struct apart_job *job) {
    if (apart->stops || !thread_start_alone(apart_main, job, "rt-page"))
        return false;
    MHD_suspend_connection(job->connection);
    apart->made++;
    apart->waited++;
    return true;
}

bool apart_begin(struct apart *apart, struct MHD_Connection *connection, void (*make)(void *arg),
                 void *arg) {
    struct apart_job *job;
    ALLOC_OBJ(job, APART_JOB_MAGIC);
    job->apart = apart;
    job->connection = connection;
    job->make = make;
    job->arg = arg;
    pthread_mutex_lock(&apart->lock);
    bool begun = apart_begin_job(apart, job);
    pthread_mutex_unlock(&apart->lock);
    if (!begun)
        FREE_OBJ(job);
    return begun;
}

void apart_stop(struct apart *apart, unsigned patience) {
    pthread_mutex_lock(&apart->lock);
    apart->stops = true;
    while (apart->made > 0)
        pthread_cond_wait(&apart->fewer, &apart->lock);
    uint64_t until = threads_in(patience);
    while (apart->waited > 0 && threads_wait(&apart->fewer, &apart->lock, until))
        continue;
    pthread_mutex_unlock(&apart->lock);
}
