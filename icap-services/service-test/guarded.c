#include "service-test/guarded.h"

#include "base/assert.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 32, CANARY_BYTE = 0x5c, SPOILT_BYTE = 0xdb };

static void guarded_make(struct guarded *guarded, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    guarded->size = (size + page - 1) / page * page;
    guarded->memory = mmap(NULL, guarded->size + page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(guarded->memory != MAP_FAILED);
    ASSERT(mprotect(guarded->memory + guarded->size, page, PROT_NONE) == 0);
}

char *guarded_take(struct guarded *guarded, size_t length) {
    if (guarded->memory == NULL || guarded->size < length + CANARY) {
        guarded_release(guarded);
        guarded_make(guarded, 2 * length + CANARY);
    }
    guarded->taken = length;
    char *bytes = guarded->memory + guarded->size - length;
    memset(bytes - CANARY, CANARY_BYTE, CANARY);
    return bytes;
}

bool guarded_is_intact(const struct guarded *guarded) {
    const char *canary = guarded->memory + guarded->size - guarded->taken - CANARY;
    for (int i = 0; i < CANARY; i++)
        if (canary[i] != CANARY_BYTE)
            return false;
    return true;
}

void guarded_spoil(struct guarded *guarded) {
    memset(guarded->memory + guarded->size - guarded->taken, SPOILT_BYTE, guarded->taken);
}

void guarded_release(struct guarded *guarded) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (guarded->memory != NULL)
        munmap(guarded->memory, guarded->size + page);
    *guarded = (struct guarded){0};
}
