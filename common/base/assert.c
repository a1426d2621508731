#include "base/assert.h"

#include "base/reserve.h"

#include <stdio.h>
#include <string.h>

_Noreturn void assert_failed(const char *what, const char *file, int line, const char *function) {
    fprintf(stderr, "retort: assertion failed in %s (%s:%d): %s\n", function, file, line, what);
    abort();
}

void *xcalloc(size_t count, size_t size) {
    void *memory;
    while ((memory = calloc(count, size)) == NULL && count * size > 0)
        reserve_spend(count * size);
    return memory;
}

void *xmalloc(size_t size) {
    void *memory;
    while ((memory = malloc(size)) == NULL && size > 0)
        reserve_spend(size);
    return memory;
}

void *xrealloc(void *old, size_t size) {
    void *memory;
    while ((memory = realloc(old, size)) == NULL && size > 0)
        reserve_spend(size);
    return memory;
}

char *xstrdup(const char *text) {
    char *copy;
    while ((copy = strdup(text)) == NULL)
        reserve_spend(strlen(text) + 1);
    return copy;
}
