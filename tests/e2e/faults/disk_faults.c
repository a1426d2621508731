/*
 * Makes calls to a disk fail, for the end-to-end tests: a library that is loaded into the proxy
 * before all others.
 *
 *     LD_PRELOAD=disk_faults.so RETORT_DISK_FAULTS=CONTROL RETORT_DISK_FILE=VOLUME retort -f ...
 *
 * CONTROL is a file with a struct control, mapped by the test as well, so that faults come and go
 * while the proxy runs and the test sees how many there were; harness/disk_faults.py is the other
 * side. Only descriptors of the file VOLUME, which may be a directory, are concerned, known by
 * its device and inode.
 * Likelihoods are in thousandths.
 *
 * The calls are made by number, not through the C library, which this stands in the place of.
 *
 * Threads: any.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* In the order of harness/disk_faults.py. */
struct control {
    /* set by the test */
    _Atomic uint64_t read_error;  /* reads fail with EIO */
    _Atomic uint64_t read_short;  /* reads bring less than there is */
    _Atomic uint64_t read_flip;   /* reads bring a wrong bit */
    _Atomic uint64_t read_absent; /* what is asked for is not in memory: EAGAIN, mincore says no */
    _Atomic uint64_t read_delay;  /* milliseconds that each read takes */
    _Atomic uint64_t write_error; /* writes fail with EIO */
    _Atomic uint64_t write_full;  /* writes fail with ENOSPC */
    _Atomic uint64_t write_room;  /* bytes until every write fails with ENOSPC, plus 1; 0: no end */
    _Atomic uint64_t write_short; /* writes take less than was given */
    _Atomic uint64_t write_flip;  /* what was written gets a wrong bit */
    _Atomic uint64_t write_delay; /* milliseconds that each write takes */
    _Atomic uint64_t sync_error;  /* fsync, fdatasync, sync_file_range fail with EIO */
    _Atomic uint64_t allocate_error; /* fallocate fails with ENOSPC */
    _Atomic uint64_t send_error;     /* sendfile fails with EIO */
    _Atomic uint64_t send_short;     /* sendfile sends less than it could */
    _Atomic uint64_t wall_back;      /* seconds that the wall clock is behind */
    /* counted for the test */
    _Atomic uint64_t reads, writes, syncs, sends, written;
    _Atomic uint64_t read_faults, write_faults, sync_faults, allocate_faults, send_faults;
};

static struct control *control;
static const char *volume;
static struct { _Atomic uint64_t device, inode; } volume_file;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("RETORT_DISK_FAULTS");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    void *map;

    volume = getenv("RETORT_DISK_FILE");
    if (fd < 0 || volume == NULL)
        return;
    map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        control = map;
}

static bool is_volume(int fd) {
    struct stat file, named;

    if (control == NULL || fstat(fd, &file) != 0 ||
        !(S_ISREG(file.st_mode) || S_ISBLK(file.st_mode) || S_ISDIR(file.st_mode)))
        return false;
    if (volume_file.inode != file.st_ino || volume_file.device != file.st_dev) {
        if (stat(volume, &named) != 0 || named.st_ino != file.st_ino || named.st_dev != file.st_dev)
            return false;
        volume_file.inode = file.st_ino;
        volume_file.device = file.st_dev;
    }
    return true;
}

static uint64_t chance(void) {
    static __thread uint64_t state;

    if (state == 0)
        state = ((uint64_t)time(NULL) * 2654435761u ^ (uint64_t)(uintptr_t)&state) | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}

static bool strikes(_Atomic uint64_t *thousandths, _Atomic uint64_t *count) {
    uint64_t likely = *thousandths;

    if (likely == 0 || chance() % 1000 >= likely)
        return false;
    ++*count;
    return true;
}

static void pause_ms(uint64_t ms) {
    struct timespec wait = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    if (ms > 0)
        nanosleep(&wait, NULL);
}

static ssize_t fail(int error) {
    errno = error;
    return -1;
}

static size_t total(const struct iovec *pieces, int count) {
    size_t length = 0;

    for (int i = 0; i < count; i++)
        length += pieces[i].iov_len;
    return length;
}

/* The first pieces up to `most` bytes. */
static int shorten(struct iovec *shorter, const struct iovec *pieces, int count, size_t most) {
    int used = 0;

    for (; used < count && used < 64 && most > 0; used++) {
        shorter[used] = pieces[used];
        if (shorter[used].iov_len > most)
            shorter[used].iov_len = most;
        most -= shorter[used].iov_len;
    }
    return used;
}

static long call_read(int fd, const struct iovec *pieces, int count, off_t at, int flags) {
    return syscall(SYS_preadv2, fd, pieces, (unsigned long)count, (unsigned long)at, 0ul, flags);
}

static long call_write(int fd, const struct iovec *pieces, int count, off_t at, int flags) {
    return syscall(SYS_pwritev2, fd, pieces, (unsigned long)count, (unsigned long)at, 0ul, flags);
}

static void flip_read(const struct iovec *pieces, int count, size_t length) {
    size_t at = length == 0 ? 0 : chance() % length;

    for (int i = 0; i < count && length > 0; i++) {
        if (at < pieces[i].iov_len) {
            ((unsigned char *)pieces[i].iov_base)[at] ^= 16;
            return;
        }
        at -= pieces[i].iov_len;
    }
}

static ssize_t volume_read(int fd, const struct iovec *pieces, int count, off_t at, int flags) {
    struct iovec shorter[64];
    size_t length = total(pieces, count);
    long got;

    control->reads++;
    if ((flags & RWF_NOWAIT) != 0 && strikes(&control->read_absent, &control->read_faults))
        return fail(EAGAIN);
    pause_ms(control->read_delay);
    if (strikes(&control->read_error, &control->read_faults))
        return fail(EIO);
    if (length > 1 && strikes(&control->read_short, &control->read_faults)) {
        count = shorten(shorter, pieces, count, 1 + chance() % (length - 1));
        pieces = shorter;
    }
    got = call_read(fd, pieces, count, at, flags);
    if (got > 0 && strikes(&control->read_flip, &control->read_faults))
        flip_read(pieces, count, (size_t)got);
    return got;
}

/* Past the descriptor, which may be one for direct access. */
static void flip_written(int fd, off_t at, size_t length) {
    struct iovec piece;
    unsigned char byte;
    char path[64];
    int other;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    other = open(path, O_RDWR | O_CLOEXEC);
    piece.iov_base = &byte;
    piece.iov_len = 1;
    at += (off_t)(chance() % length);
    if (call_read(other, &piece, 1, at, 0) == 1) {
        byte ^= 32;
        call_write(other, &piece, 1, at, 0);
    }
    close(other);
}

static bool is_full(size_t length) {
    uint64_t room = control->write_room;

    if (room == 0)
        return false;
    if (length < room) {
        control->write_room = room - length;
        return false;
    }
    control->write_faults++;
    return true;
}

static ssize_t volume_write(int fd, const struct iovec *pieces, int count, off_t at, int flags) {
    struct iovec shorter[64];
    size_t length = total(pieces, count);
    long put;

    control->writes++;
    pause_ms(control->write_delay);
    if (is_full(length) || strikes(&control->write_full, &control->write_faults))
        return fail(ENOSPC);
    if (strikes(&control->write_error, &control->write_faults))
        return fail(EIO);
    if (length > 1 && strikes(&control->write_short, &control->write_faults)) {
        count = shorten(shorter, pieces, count, 1 + chance() % (length - 1));
        pieces = shorter;
    }
    put = call_write(fd, pieces, count, at, flags);
    if (put > 0) {
        control->written += (uint64_t)put;
        if (strikes(&control->write_flip, &control->write_faults))
            flip_written(fd, at, (size_t)put);
    }
    return put;
}

/* The calls, each also by the name for 64-bit offsets. */

ssize_t preadv2(int fd, const struct iovec *pieces, int count, off_t at, int flags) {
    return is_volume(fd) ? volume_read(fd, pieces, count, at, flags)
                         : call_read(fd, pieces, count, at, flags);
}

ssize_t preadv64v2(int fd, const struct iovec *pieces, int count, off64_t at, int flags) {
    return preadv2(fd, pieces, count, at, flags);
}

ssize_t preadv(int fd, const struct iovec *pieces, int count, off_t at) {
    return preadv2(fd, pieces, count, at, 0);
}

ssize_t preadv64(int fd, const struct iovec *pieces, int count, off64_t at) {
    return preadv2(fd, pieces, count, at, 0);
}

ssize_t pread(int fd, void *bytes, size_t length, off_t at) {
    struct iovec piece = {bytes, length};

    return preadv2(fd, &piece, 1, at, 0);
}

ssize_t pread64(int fd, void *bytes, size_t length, off64_t at) {
    return pread(fd, bytes, length, at);
}

ssize_t pwritev2(int fd, const struct iovec *pieces, int count, off_t at, int flags) {
    return is_volume(fd) ? volume_write(fd, pieces, count, at, flags)
                         : call_write(fd, pieces, count, at, flags);
}

ssize_t pwritev64v2(int fd, const struct iovec *pieces, int count, off64_t at, int flags) {
    return pwritev2(fd, pieces, count, at, flags);
}

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t at) {
    return pwritev2(fd, pieces, count, at, 0);
}

ssize_t pwritev64(int fd, const struct iovec *pieces, int count, off64_t at) {
    return pwritev2(fd, pieces, count, at, 0);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
    struct iovec piece = {(void *)(uintptr_t)bytes, length};

    return pwritev2(fd, &piece, 1, at, 0);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    return pwrite(fd, bytes, length, at);
}

/* An offset of -1 is the place where the file stands. */
ssize_t write(int fd, const void *bytes, size_t length) {
    struct iovec piece = {(void *)(uintptr_t)bytes, length};

    return is_volume(fd) ? volume_write(fd, &piece, 1, -1, 0)
                         : syscall(SYS_write, fd, bytes, length);
}

ssize_t sendfile(int out, int in, off_t *at, size_t length) {
    if (is_volume(in)) {
        control->sends++;
        if (strikes(&control->send_error, &control->send_faults))
            return fail(EIO);
        if (length > 1 && strikes(&control->send_short, &control->send_faults))
            length = 1 + chance() % (length - 1);
    }
    return syscall(SYS_sendfile, out, in, at, length);
}

ssize_t sendfile64(int out, int in, off64_t *at, size_t length) {
    return sendfile(out, in, at, length);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);

    if (control != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec -= (time_t)control->wall_back;
    return result;
}

time_t time(time_t *at) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}

static bool sync_fails(int fd) {
    if (!is_volume(fd))
        return false;
    control->syncs++;
    return strikes(&control->sync_error, &control->sync_faults);
}

int fdatasync(int fd) {
    return sync_fails(fd) ? (int)fail(EIO) : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd) {
    return sync_fails(fd) ? (int)fail(EIO) : (int)syscall(SYS_fsync, fd);
}

int sync_file_range(int fd, off64_t at, off64_t length, unsigned flags) {
    return sync_fails(fd) ? (int)fail(EIO)
                          : (int)syscall(SYS_sync_file_range, fd, at, length, flags);
}

int fallocate(int fd, int mode, off_t at, off_t length) {
    if (is_volume(fd) && strikes(&control->allocate_error, &control->allocate_faults))
        return (int)fail(ENOSPC);
    return (int)syscall(SYS_fallocate, fd, mode, at, length);
}

int fallocate64(int fd, int mode, off64_t at, off64_t length) {
    return fallocate(fd, mode, at, length);
}

/* Returns the error, unlike the others. */
int posix_fallocate(int fd, off_t at, off_t length) {
    return fallocate(fd, 0, at, length) == 0 ? 0 : errno;
}

int posix_fallocate64(int fd, off64_t at, off64_t length) {
    return posix_fallocate(fd, at, length);
}

int mincore(void *at, size_t length, unsigned char *pages) {
    int result = (int)syscall(SYS_mincore, at, length, pages);

    if (result == 0 && control != NULL && strikes(&control->read_absent, &control->read_faults))
        for (size_t i = 0; i < (length + 4095) / 4096; i++)
            pages[i] = 0;
    return result;
}
