#include "guard.h"

#include "base/assert.h"

#include <sys/mman.h>
#include <unistd.h>

/* Where a page begins that may not be read, behind `size` bytes that may. */
static char *make_guard(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size = (size + page - 1) / page * page;
    char *memory =
        mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(memory != MAP_FAILED && mprotect(memory + size, page, PROT_NONE) == 0);
    return memory + size;
}

static struct slice put_before(char *end, struct slice bytes) {
    if (bytes.length > 0)
        memcpy(end - bytes.length, bytes.base, bytes.length);
    return slice_make(end - bytes.length, bytes.length);
}

struct slice guard_put(struct slice bytes) {
    static char *end;
    if (end == NULL)
        end = make_guard(GUARD_MAX);
    ASSERT(bytes.length <= GUARD_MAX);
    return put_before(end, bytes);
}

struct slice guard_keep(struct slice bytes) {
    return put_before(make_guard(bytes.length), bytes);
}
