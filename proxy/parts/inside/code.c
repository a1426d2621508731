#include "inside/code.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/threads.h"
#include "inside/runners.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* A file that is loaded. They are never unloaded, and the table of the dynamic linker has them all the
 * same, so these are the process's too. */
struct loaded_file {
    struct loaded_file *next;
    dev_t device;
    ino_t number;
    const struct service_ops *ops;
};

struct loaded_path {
    struct loaded_path *next;
    char *path;
    unsigned spellings; /* that dlopen was given, also of files that it or we refused */
    struct loaded_file *files;
};

static struct loaded_path *loaded_paths;
static pthread_mutex_t loaded_lock = PTHREAD_MUTEX_INITIALIZER;

static struct loaded_path *code_path_of(const char *path) {
    struct loaded_path *loaded = loaded_paths;
    while (loaded != NULL && strcmp(loaded->path, path) != 0)
        loaded = loaded->next;
    if (loaded != NULL)
        return loaded;
    loaded = xcalloc(1, sizeof *loaded);
    loaded->path = xstrdup(path);
    loaded->next = loaded_paths;
    loaded_paths = loaded;
    return loaded;
}

/* NULL: it is not loaded. */
static const struct loaded_file *code_file_of(const struct loaded_path *path,
                                              const struct stat *status) {
    const struct loaded_file *file = path->files;
    while (file != NULL && (file->device != status->st_dev || file->number != status->st_ino))
        file = file->next;
    return file;
}

static void add_file(struct loaded_path *path, const struct stat *status,
                     const struct service_ops *ops) {
    struct loaded_file *file = xcalloc(1, sizeof *file);
    file->device = status->st_dev;
    file->number = status->st_ino;
    file->ops = ops;
    file->next = path->files;
    path->files = file;
}

/* Another spelling of the path for each number: in front of the file's name, a "/" for each bit that is
 * 0 and a "./" for each that is 1. The caller frees it. */
static char *spell_path(const char *path, unsigned number) {
    char dots[2 * 8 * sizeof number + 1] = "", *spelt;
    const char *slash = strrchr(path, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    for (; number > 0; number /= 2)
        strcat(dots, number % 2 == 1 ? "./" : "/");
    ASSERT(asprintf(&spelt, "%.*s%s%s", (int)folder, path, dots, path + folder) >= 0);
    return spelt;
}

/* False: another file took its place meanwhile. */
static bool load_file(struct loaded_path *path, const struct stat *status,
                      const struct service_ops **ops, char error[SERVICE_MODULE_ERROR]) {
    struct stat after;
    char *spelt = spell_path(path->path, path->spellings++);
    *ops = service_module_load(spelt, error);
    free(spelt);
    if (stat(path->path, &after) != 0 || after.st_dev != status->st_dev ||
        after.st_ino != status->st_ino)
        return false;
    if (*ops != NULL)
        add_file(path, status, *ops);
    return true;
}

static const struct service_ops *load_code(struct loaded_path *path,
                                           char error[SERVICE_MODULE_ERROR]) {
    enum { TRIES = 10 };
    const struct service_ops *ops = NULL;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct stat status;
        if (!service_module_readable(path->path, &status, error))
            return NULL;
        const struct loaded_file *file = code_file_of(path, &status);
        if (file != NULL)
            return file->ops;
        if (load_file(path, &status, &ops, error))
            return ops;
    }
    snprintf(error, SERVICE_MODULE_ERROR,
             "%s is replaced again and again while it is loaded; wait for the end of that",
             path->path);
    return NULL;
}

const struct service_ops *inside_code_load(const char *path, char error[SERVICE_MODULE_ERROR]) {
    pthread_mutex_lock(&loaded_lock);
    const struct service_ops *ops = load_code(code_path_of(path), error);
    pthread_mutex_unlock(&loaded_lock);
    return ops;
}

enum { START_LOOK_EVERY = 50 }; /* milliseconds between two looks at whether the proxy ends */

struct inside_start {
    unsigned magic;
#define INSIDE_START_MAGIC 0x1451de57u
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct inside_start_order order;
    void *context;
    bool done, left;
    struct inside_thread *thread;
};

static void inside_start_free(struct inside_start *start) {
    pthread_mutex_destroy(&start->lock);
    pthread_cond_destroy(&start->changed);
    FREE_OBJ(start);
}

static void inside_start_main(void *arg) {
    struct inside_start *start;
    CAST_OBJ(start, arg, INSIDE_START_MAGIC);
    start->order.run(start->context);
    pthread_mutex_lock(&start->lock);
    start->done = true;
    bool left = start->left;
    struct inside_thread *thread = start->thread;
    pthread_cond_signal(&start->changed);
    pthread_mutex_unlock(&start->lock);
    if (left) {
        start->order.leave(start->context);
        inside_start_free(start);
    }
    inside_thread_ended(&thread);
}

static bool inside_start_thread(struct inside_start *start) {
    start->thread = inside_thread_begun(start->order.name, "its function start does not come back");
    if (thread_start_alone(inside_start_main, start, "rt-start-%s", start->order.name))
        return true;
    inside_thread_ended(&start->thread);
    return false;
}

/* False: the proxy ends, and it is not done. */
static bool inside_start_wait(struct inside_start *start) {
    uint64_t began = clocks_milliseconds(CLOCK_MONOTONIC);
    bool told = false;
    pthread_mutex_lock(&start->lock);
    while (!start->done && !inside_starts_abandoned()) {
        threads_wait(&start->changed, &start->lock, threads_in(START_LOOK_EVERY));
        if (told || clocks_milliseconds(CLOCK_MONOTONIC) - began < start->order.patience)
            continue;
        told = true;
        log_warn("service %s: its module has not started within start_timeout (%llu ms); it is "
                 "waited for",
                 start->order.name, (unsigned long long)start->order.patience);
    }
    start->left = !start->done;
    bool done = start->done;
    pthread_mutex_unlock(&start->lock);
    return done;
}

static struct inside_start *inside_start_new(const struct inside_start_order *order,
                                             void *context) {
    struct inside_start *start;
    ALLOC_OBJ(start, INSIDE_START_MAGIC);
    start->order = *order;
    start->context = context;
    pthread_mutex_init(&start->lock, NULL);
    pthread_cond_init(&start->changed, NULL);
    return start;
}

bool inside_start_run(const struct inside_start_order *order, void *context) {
    struct inside_start *start = inside_start_new(order, context);
    bool done = true;
    if (inside_start_thread(start))
        done = inside_start_wait(start);
    else
        order->run(context);
    if (done)
        inside_start_free(start);
    return done;
}
