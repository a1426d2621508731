/*
 * Assertions and magic numbers: they find our own bugs, and never check input from outside.
 *
 * Every heap struct begins with `unsigned magic`, set by ALLOC_OBJ or INIT_OBJ and checked on entry
 * by CHECK_OBJ. A `void *` becomes a type only through CAST_OBJ. A failed check prints its place in
 * the source and aborts: to continue with a corrupted object would be worse.
 *
 *     struct pipe {
 *         unsigned magic;
 *     #define PIPE_MAGIC 0x70697065u
 *         ...
 *     };
 *
 *     struct pipe *pipe;
 *     ALLOC_OBJ(pipe, PIPE_MAGIC);             zeroed; see xcalloc
 *     static void on_ready(void *arg) {
 *         struct pipe *pipe;
 *         CAST_OBJ(pipe, arg, PIPE_MAGIC);
 *         ...
 *     FREE_OBJ(pipe);                           clears the magic, frees, leaves NULL
 *
 * Threads: all of it may be used from any thread.
 */
#ifndef RETORT_BASE_ASSERT_H
#define RETORT_BASE_ASSERT_H

#include <stddef.h>
#include <stdlib.h>

_Noreturn void assert_failed(const char *what, const char *file, int line, const char *function);

#define ASSERT(condition)                                                                          \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            assert_failed(#condition, __FILE__, __LINE__, __func__);                               \
    } while (0)

#define CHECK_OBJ(object, type_magic)                                                              \
    do {                                                                                           \
        ASSERT((object) != NULL);                                                                  \
        ASSERT((object)->magic == (type_magic));                                                   \
    } while (0)

#define CAST_OBJ(to, from, type_magic)                                                             \
    do {                                                                                           \
        (to) = (from);                                                                             \
        CHECK_OBJ(to, type_magic);                                                                 \
    } while (0)

#define INIT_OBJ(object, type_magic)                                                               \
    do {                                                                                           \
        __builtin_memset((object), 0, sizeof *(object));                                           \
        (object)->magic = (type_magic);                                                            \
    } while (0)

#define ALLOC_OBJ(object, type_magic)                                                              \
    do {                                                                                           \
        (object) = xcalloc(1, sizeof *(object));                                                   \
        (object)->magic = (type_magic);                                                            \
    } while (0)

#define FREE_OBJ(object)                                                                           \
    do {                                                                                           \
        (object)->magic = 0;                                                                       \
        free(object);                                                                              \
        (object) = NULL;                                                                           \
    } while (0)

/* The object that contains `member` at address `pointer`. */
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Allocate small objects of bounded size. They draw on the reserve (base/reserve.h) when memory is
 * exhausted, and never return NULL. Use malloc, and handle NULL, for bodies and for anything whose
 * size comes from outside. */
void *xcalloc(size_t count, size_t size);
void *xmalloc(size_t size);
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *text);

#endif
