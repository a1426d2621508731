#include "disk/read_locks.h"

#include "disk/segment.h"

#include <fcntl.h>
#include <unistd.h>

static struct flock range_of(short type, uint64_t offset, uint64_t length) {
    return (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = (off_t)offset,
        .l_len = (off_t)length,
    };
}

bool read_locks_set(const struct volume *volume) {
    for (uint32_t i = 0; i < volume->header.segment_count; i++) {
        const struct volume_segment *segment = &volume->segments[i];
        struct flock range = range_of(F_RDLCK, segment_offset_of(volume, i),
                                      segment->run * volume->header.segment_size);
        if (atomic_load(&segment->pins) > 0 && fcntl(volume->fd, F_OFD_SETLK, &range) != 0)
            return false;
    }
    return true;
}

void read_locks_drop(const struct volume *volume) {
    struct flock range = range_of(F_UNLCK, 0, 0);
    fcntl(volume->fd, F_OFD_SETLK, &range);
}

bool read_locks_of_others(const struct volume *volume, uint64_t offset, uint64_t length) {
    struct flock range = range_of(F_WRLCK, offset, length);
    return fcntl(volume->fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}
