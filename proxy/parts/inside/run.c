#include "inside/run.h"

#include "base/assert.h"
#include "runner/link.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* The seals keep the other side from taking pages away under the proxy. */
static int run_memory(size_t size) {
    int fd = memfd_create("retort-service", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)size) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool run_map(struct inside_run *run, bool shared) {
    size_t size = board_size(run->workers);
    run->memory_fd = shared ? run_memory(size) : -1;
    if (shared && run->memory_fd < 0)
        return false;
    int flags = shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, run->memory_fd, 0);
    run->board = memory == MAP_FAILED ? NULL : memory;
    return run->board != NULL;
}

static int run_eventfd(void) {
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

static bool run_open(struct inside_run *run) {
    run->event_fd = run_eventfd();
    bool good = run->event_fd >= 0;
    for (unsigned i = 0; i < run->workers; i++) {
        run->worker_fds[i] = run_eventfd();
        good &= run->worker_fds[i] >= 0;
    }
    return good;
}

struct inside_run *inside_run_new(unsigned workers, bool shared, int watcher_fd) {
    struct inside_run *run;
    ALLOC_OBJ(run, INSIDE_RUN_MAGIC);
    atomic_init(&run->references, 1);
    run->workers = workers;
    run->memory_fd = -1;
    run->watcher_fd = watcher_fd;
    run->worker_fds = xcalloc(workers, sizeof *run->worker_fds);
    if (run_open(run) && run_map(run, shared))
        return run;
    inside_run_release(&run);
    return NULL;
}

struct inside_run *inside_run_reference(struct inside_run *run) {
    CHECK_OBJ(run, INSIDE_RUN_MAGIC);
    atomic_fetch_add(&run->references, 1);
    return run;
}

static void close_one(int fd) {
    if (fd >= 0)
        close(fd);
}

void inside_run_release(struct inside_run **runp) {
    struct inside_run *run = *runp;
    *runp = NULL;
    if (run == NULL)
        return;
    CHECK_OBJ(run, INSIDE_RUN_MAGIC);
    if (atomic_fetch_sub(&run->references, 1) != 1)
        return;
    if (run->board != NULL)
        munmap(run->board, board_size(run->workers));
    for (unsigned i = 0; i < run->workers; i++)
        close_one(run->worker_fds[i]);
    close_one(run->event_fd);
    close_one(run->memory_fd);
    free(run->worker_fds);
    FREE_OBJ(run);
}

void inside_run_end(struct inside_run *run) {
    CHECK_OBJ(run, INSIDE_RUN_MAGIC);
    atomic_store(&run->ended, true);
    for (unsigned i = 0; i < run->workers; i++)
        link_wake(run->worker_fds[i]);
}

void inside_run_break(struct inside_run *run, const char *why) {
    const char *none = NULL;
    CHECK_OBJ(run, INSIDE_RUN_MAGIC);
    if (atomic_compare_exchange_strong(&run->broken, &none, why))
        link_wake(run->watcher_fd);
}
