#include "suites.h"

#include "base/assert.h"

#include <sys/mman.h>
#include <unistd.h>

struct slice guard_put(struct slice bytes) {
    static char *end;
    if (end == NULL) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *memory = mmap(NULL, GUARD_MAX + page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT(memory != MAP_FAILED);
        end = memory + GUARD_MAX;
        ASSERT(mprotect(end, page, PROT_NONE) == 0);
    }
    ASSERT(bytes.length <= GUARD_MAX);
    if (bytes.length > 0)
        memcpy(end - bytes.length, bytes.base, bytes.length);
    return slice_make(end - bytes.length, bytes.length);
}
