#include "base/assert.h"

#include "base/reserve.h"

#include <stdio.h>
#include <string.h>

_Noreturn void assert_failed(const char *what, const char *file, int line, const char *function) {
    fprintf(stderr, "retort: assertion failed in %s (%s:%d): %s\n", function, file, line, what);
    abort();
}

/* calloc of the C library passes over what its thread has freed (glibc before 2.41), and takes ten
 * times as long as malloc for it. */
enum { SMALL = 1024 };

void *xcalloc(size_t count, size_t size) {
    void *memory;
    if (size > 0 && count > 0 && count <= SMALL / size)
        return memset(xmalloc(count * size), 0, count * size);
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
