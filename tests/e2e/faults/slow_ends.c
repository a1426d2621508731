/*
 * Threads that take their time to end, for the end-to-end tests: a library that is loaded into the
 * proxy before all others. A thread whose function has returned stays for a while. When the process
 * ends, the number of threads that were still there goes to a file.
 *
 *     LD_PRELOAD=slow_ends.so RETORT_THREADS_LEFT=/tmp/left retort -f ...
 *
 * Threads: any.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STAYS = 300000 }; /* microseconds */

static atomic_int there;

struct thread {
    void *(*function)(void *);
    void *argument;
};

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static void end_slowly(void *arg) {
    (void)arg;
    usleep(STAYS);
    atomic_fetch_sub(&there, 1);
}

/* The thread may also be cancelled. */
static void *run(void *arg) {
    struct thread thread = *(struct thread *)arg;
    void *result;
    free(arg);
    pthread_cleanup_push(end_slowly, NULL);
    result = thread.function(thread.argument);
    pthread_cleanup_pop(1);
    return result;
}

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument) {
    create_fn *real = (create_fn *)dlsym(RTLD_NEXT, "pthread_create");
    struct thread *thread = malloc(sizeof *thread);
    if (thread == NULL)
        return ENOMEM;
    *thread = (struct thread){function, argument};
    atomic_fetch_add(&there, 1);
    int error = real(id, attributes, run, thread);
    if (error != 0) {
        atomic_fetch_sub(&there, 1);
        free(thread);
    }
    return error;
}

static void write_left(void) {
    const char *path = getenv("RETORT_THREADS_LEFT");
    FILE *file = path == NULL ? NULL : fopen(path, "w");
    if (file == NULL)
        return;
    fprintf(file, "%d\n", atomic_load(&there));
    fclose(file);
}

/* What is registered first runs last. */
__attribute__((constructor)) static void watch_the_end(void) {
    atexit(write_left);
}
