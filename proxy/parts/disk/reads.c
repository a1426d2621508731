#include "disk/reads.h"

#include "base/assert.h"
#include "base/threads.h"

#include <errno.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Both kinds of threads take reads from one queue. The thread of the ring sleeps in the ring and
 * is woken by a read of an eventfd. The other threads sleep on the condition variable. */
struct reads {
    unsigned magic;
#define READS_MAGIC 0x4ead3250u
    struct thread_queue queue;
    /* the ring's */
    bool has_ring;
    struct io_uring ring;
    int wake;
    uint64_t wake_count; /* where the eventfd is read to */
    unsigned under_way;
};

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

static void wait_and_read(void *arg) {
    struct reads *reads;
    struct list_link *link;
    CAST_OBJ(reads, arg, READS_MAGIC);
    while ((link = thread_queue_take(&reads->queue)) != NULL) {
        struct disk_read *read = CONTAINER_OF(link, struct disk_read, link);
        read_whole(read);
        read->done(read);
    }
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
    struct list_link *link;
    pthread_mutex_lock(&reads->queue.lock);
    while (reads->under_way < READS_DEEP && (link = thread_queue_pop(&reads->queue)) != NULL)
        put_in_ring(reads, CONTAINER_OF(link, struct disk_read, link));
    bool more = reads->queue.ends == 0 || reads->under_way > 0;
    pthread_mutex_unlock(&reads->queue.lock);
    return more;
}

static void run_ring(void *arg) {
    struct reads *reads;
    struct io_uring_cqe *completion;
    CAST_OBJ(reads, arg, READS_MAGIC);
    await_wake(reads);
    while (fill_ring(reads)) {
        io_uring_submit_and_wait(&reads->ring, 1);
        while (io_uring_peek_cqe(&reads->ring, &completion) == 0)
            on_completion(reads, completion);
    }
}

static bool open_ring(struct reads *reads) {
    if (io_uring_queue_init(2 * READS_DEEP, &reads->ring, 0) != 0)
        return false; /* not allowed here, or not known to the kernel */
    reads->wake = eventfd(0, EFD_CLOEXEC);
    if (reads->wake < 0)
        io_uring_queue_exit(&reads->ring);
    return reads->wake >= 0;
}

/* Both. */

/* At least one thread is started at once, because it might be impossible later. */
struct reads *reads_new(unsigned threads, bool may_use_ring) {
    struct reads *reads;
    ALLOC_OBJ(reads, READS_MAGIC);
    reads->has_ring = may_use_ring && open_ring(reads);
    thread_queue_init(&reads->queue, reads->has_ring || threads == 0 ? 1 : threads,
                      reads->has_ring ? run_ring : wait_and_read, reads, "rt-disk-read");
    if (!thread_queue_staff(&reads->queue))
        reads_free(&reads);
    return reads;
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
    pthread_mutex_lock(&reads->queue.lock);
    ASSERT(thread_queue_add(&reads->queue, &read->link));
    pthread_mutex_unlock(&reads->queue.lock);
    if (reads->has_ring)
        wake_ring(reads);
}

void reads_free(struct reads **readsp) {
    struct reads *reads = *readsp;
    *readsp = NULL;
    if (reads == NULL)
        return;
    CHECK_OBJ(reads, READS_MAGIC);
    thread_queue_end(&reads->queue, THREADS_DRAIN);
    if (reads->has_ring)
        wake_ring(reads);
    thread_queue_release(&reads->queue);
    if (reads->has_ring) {
        io_uring_queue_exit(&reads->ring);
        close(reads->wake);
    }
    FREE_OBJ(reads);
}
