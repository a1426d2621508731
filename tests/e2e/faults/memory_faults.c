/*
 * Refuses memory, for the end-to-end tests: a library that is loaded into the proxy before all
 * others.
 *
 *     LD_PRELOAD=memory_faults.so RETORT_MEMORY_FAULTS=CONTROL retort -f ...
 *
 * CONTROL is a file with a struct control, mapped by the test as well, so that faults come and go
 * while the proxy runs and the test sees how many there were; harness/memory_faults.py is the other
 * side. Which calls fail comes of the seed and the number of the call.
 *
 * Threads: any.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

/* In the order of harness/memory_faults.py. */
struct control {
    /* set by the test */
    _Atomic uint64_t chance; /* thousandths of calls that are refused */
    _Atomic uint64_t least;  /* bytes; smaller ones are granted */
    _Atomic uint64_t maps;   /* thousandths of anonymous mappings that are refused */
    _Atomic uint64_t seed;
    /* counted for the test */
    _Atomic uint64_t calls, faults;
};

static struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("RETORT_MEMORY_FAULTS");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *map =
        (void *)syscall(SYS_mmap, NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        control = map;
}

/* Before anything else is begun the C library asks as well. */
static bool refuses(size_t chance_at, size_t size) {
    if (control == NULL)
        return false;
    uint64_t chance = *(_Atomic uint64_t *)((char *)control + chance_at);
    if (chance == 0 || size < control->least)
        return false;
    uint64_t number = control->seed + ++control->calls * UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    if ((number ^ number >> 31) % 1000 >= chance)
        return false;
    control->faults++;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size) {
    return refuses(offsetof(struct control, chance), size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return refuses(offsetof(struct control, chance), count * size) ? NULL
                                                                   : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return refuses(offsetof(struct control, chance), size) ? NULL : __libc_realloc(old, size);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    if ((flags & MAP_ANONYMOUS) != 0 && refuses(offsetof(struct control, maps), length))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
