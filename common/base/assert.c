#include "base/assert.h"

#include <stdio.h>
#include <string.h>

_Noreturn void assert_failed(const char *what, const char *file, int line, const char *function) {
    fprintf(stderr, "retort: assertion failed in %s (%s:%d): %s\n", function, file, line, what);
    abort();
}

static void *must(void *memory, size_t size) {
    if (memory == NULL && size != 0) {
        fprintf(stderr, "retort: out of memory allocating %zu bytes\n", size);
        abort();
    }
    return memory;
}

void *xcalloc(size_t count, size_t size) {
    return must(calloc(count, size), count * size);
}

void *xmalloc(size_t size) {
    return must(malloc(size), size);
}

void *xrealloc(void *old, size_t size) {
    return must(realloc(old, size), size);
}

char *xstrdup(const char *text) {
    return must(strdup(text), strlen(text) + 1);
}
