#include "disk/reads.h"

#include "base/assert.h"

#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Both kinds of threads take reads from one queue. The thread of the ring sleeps in the ring and
 * is woken by a read of an eventfd. The other threads sleep on the condition variable. */
struct reads {
    unsigned magic;
#define READS_MAGIC 0x4ead3250u
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct list_link queue;
    bool stopping;
    /* the ring's */
    bool has_ring;
    struct io_uring ring;
    int wake;
    uint64_t wake_count; /* where the eventfd is read to */
    unsigned under_way;
    /* the threads' */
    unsigned most, started, idle, queued;
    pthread_t threads[];
};

static struct disk_read *reads_take(struct reads *reads) {
    struct list_link *link = list_first(&reads->queue);
    if (link == NULL)
        return NULL;
    list_remove(link);
    reads->queued--;
    return CONTAINER_OF(link, struct disk_read, link);
}

/* Threads. */

static void read_whole(struct disk_read *read) {
    while (read->got < read->length && read->error == 0) {
        ssize_t got = pread(read->fd, read->bytes + read->got, read->length - read->got,
                            (off_t)(read->offset + read->got));
        if (got > 0)
            read->got += (size_t)got;
        else if (got == 0 || errno != EINTR)
            read->error = got == 0 ? EIO : errno;
    }
}

static void *wait_and_read(void *arg) {
    struct reads *reads;
    CAST_OBJ(reads, arg, READS_MAGIC);
    pthread_mutex_lock(&reads->lock);
    for (;;) {
        struct disk_read *read = reads_take(reads);
        if (read == NULL && reads->stopping)
            break;
        if (read == NULL) {
            reads->idle++;
            pthread_cond_wait(&reads->ready, &reads->lock);
            reads->idle--;
            continue;
        }
        pthread_mutex_unlock(&reads->lock);
        read_whole(read);
        read->done(read);
        pthread_mutex_lock(&reads->lock);
    }
    pthread_mutex_unlock(&reads->lock);
    return NULL;
}

/* The ring. */

static struct io_uring_sqe *next_entry(struct reads *reads) {
    struct io_uring_sqe *entry = io_uring_get_sqe(&reads->ring);
    if (entry == NULL) {
        io_uring_submit(&reads->ring);
        entry = io_uring_get_sqe(&reads->ring);
    }
    ASSERT(entry != NULL);
    return entry;
}

static void put_in_ring(struct reads *reads, struct disk_read *read) {
    struct io_uring_sqe *entry = next_entry(reads);
    io_uring_prep_read(entry, read->fd, read->bytes + read->got,
                       (unsigned)(read->length - read->got), read->offset + read->got);
    io_uring_sqe_set_data(entry, read);
    reads->under_way++;
}

/* Its data is NULL, because it belongs to no read. */
static void await_wake(struct reads *reads) {
    struct io_uring_sqe *entry = next_entry(reads);
    io_uring_prep_read(entry, reads->wake, &reads->wake_count, sizeof reads->wake_count, 0);
    io_uring_sqe_set_data(entry, NULL);
}

/* Returns true when the read is finished, successfully or not. */
static bool reads_take_result(struct disk_read *read, int result) {
    if (result == -EINTR || result == -EAGAIN)
        return false;
    if (result > 0)
        read->got += (size_t)result;
    else
        read->error = result == 0 ? EIO : -result;
    return read->error != 0 || read->got == read->length;
}

static void on_completion(struct reads *reads, struct io_uring_cqe *completion) {
    struct disk_read *read = io_uring_cqe_get_data(completion);
    int result = completion->res;
    io_uring_cqe_seen(&reads->ring, completion);
    if (read == NULL) {
        await_wake(reads);
        return;
    }
    reads->under_way--;
    if (reads_take_result(read, result))
        read->done(read);
    else
        put_in_ring(reads, read);
}

/* Returns false when all reads are done and the queue is closed. */
static bool fill_ring(struct reads *reads) {
    pthread_mutex_lock(&reads->lock);
    struct disk_read *read = NULL;
    while (reads->under_way < READS_DEEP && (read = reads_take(reads)) != NULL)
        put_in_ring(reads, read);
    bool more = !reads->stopping || reads->under_way > 0;
    pthread_mutex_unlock(&reads->lock);
    return more;
}

static void *run_ring(void *arg) {
    struct reads *reads;
    struct io_uring_cqe *completion;
    CAST_OBJ(reads, arg, READS_MAGIC);
    await_wake(reads);
    while (fill_ring(reads)) {
        io_uring_submit_and_wait(&reads->ring, 1);
        while (io_uring_peek_cqe(&reads->ring, &completion) == 0)
            on_completion(reads, completion);
    }
    return NULL;
}

static bool start_ring(struct reads *reads) {
    if (io_uring_queue_init(2 * READS_DEEP, &reads->ring, 0) != 0)
        return false; /* not allowed here, or not known to the kernel */
    reads->wake = eventfd(0, EFD_CLOEXEC);
    reads->has_ring = reads->wake >= 0;
    if (reads->has_ring && pthread_create(&reads->threads[0], NULL, run_ring, reads) == 0) {
        reads->started = 1;
        return true;
    }
    if (reads->has_ring)
        close(reads->wake);
    reads->has_ring = false;
    io_uring_queue_exit(&reads->ring);
    return false;
}

/* Both. */

static bool start_thread(struct reads *reads) {
    bool started = pthread_create(&reads->threads[reads->started], NULL, wait_and_read, reads) == 0;
    reads->started += started;
    return started;
}

struct reads *reads_new(unsigned threads, bool may_use_ring) {
    struct reads *reads = xcalloc(1, sizeof *reads + (threads + 1) * sizeof *reads->threads);
    reads->magic = READS_MAGIC;
    reads->most = threads > 0 ? threads : 1;
    list_init(&reads->queue);
    pthread_mutex_init(&reads->lock, NULL);
    pthread_cond_init(&reads->ready, NULL);
    /* At least one thread is started now, because it might be impossible later. */
    if ((may_use_ring && start_ring(reads)) || start_thread(reads))
        return reads;
    reads_free(&reads);
    return NULL;
}

const char *reads_kind(const struct reads *reads) {
    return reads->has_ring ? "io_uring" : "threads";
}

static void wake_ring(struct reads *reads) {
    const uint64_t one = 1;
    while (write(reads->wake, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

void reads_submit(struct reads *reads, struct disk_read *read) {
    CHECK_OBJ(reads, READS_MAGIC);
    read->got = 0;
    read->error = 0;
    pthread_mutex_lock(&reads->lock);
    list_init(&read->link);
    list_append(&reads->queue, &read->link);
    reads->queued++;
    if (!reads->has_ring && reads->idle < reads->queued && reads->started < reads->most)
        start_thread(reads);
    pthread_cond_signal(&reads->ready);
    pthread_mutex_unlock(&reads->lock);
    if (reads->has_ring)
        wake_ring(reads);
}

void reads_free(struct reads **readsp) {
    struct reads *reads = *readsp;
    *readsp = NULL;
    if (reads == NULL)
        return;
    CHECK_OBJ(reads, READS_MAGIC);
    pthread_mutex_lock(&reads->lock);
    reads->stopping = true;
    pthread_cond_broadcast(&reads->ready);
    pthread_mutex_unlock(&reads->lock);
    if (reads->has_ring)
        wake_ring(reads);
    for (unsigned i = 0; i < reads->started; i++)
        pthread_join(reads->threads[i], NULL);
    if (reads->has_ring) {
        io_uring_queue_exit(&reads->ring);
        close(reads->wake);
    }
    pthread_mutex_destroy(&reads->lock);
    pthread_cond_destroy(&reads->ready);
    FREE_OBJ(reads);
}
