#include "turns.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void take(void (*way)(void *), void *arg, double *best) {
    double begun = cpu_seconds();
    way(arg);
    double took = cpu_seconds() - begun;
    if (took < *best)
        *best = took;
}

struct turns turns_take(int count, void (*direct)(void *arg), void (*ours)(void *arg), void *arg) {
    struct turns best = {1e9, 1e9};
    for (int turn = 0; turn < count; turn++) {
        take(direct, arg, &best.direct);
        take(ours, arg, &best.ours);
    }
    return best;
}

struct slice turns_read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fseek(file, 0, SEEK_END);
    size_t length = (size_t)ftell(file);
    rewind(file);
    char *bytes = xmalloc(length + 1);
    length = fread(bytes, 1, length, file);
    fclose(file);
    return slice_make(bytes, length);
}

const char *turns_name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}
