/* The settings of the part disk: settings->parts[PART_DISK]. Threads: read-only. */
#ifndef RETORT_DISK_SETTINGS_H
#define RETORT_DISK_SETTINGS_H

#include "settings/settings.h"

/* cache { disk "PATH" { ... } }: a volume of the cache on disk. */
enum disk_io { DISK_IO_AUTO, DISK_IO_THREADS };
enum disk_admission { DISK_ADMIT_ALL, DISK_ADMIT_SECOND };

struct disk_settings {
    char *path;                    /* a directory, a file, or a block device */
    size_t size;                   /* bytes of the volume */
    enum disk_admission admission; /* DISK_ADMIT_SECOND: only objects that are fetched twice */
    size_t max_object;             /* larger bodies are not written to disk */
    unsigned threads;              /* number of threads that read */
    size_t write_queue;            /* bytes that may wait to be written */
    bool sync;                     /* changes are on the device before they are answered */
    uint64_t write_wait;           /* milliseconds that a large body waits for the queue */
};

struct disks_settings {
    enum disk_io io;
    struct disk_settings *disks; /* in the file's order */
    size_t count;
};

static inline const struct disks_settings *disks_of(const struct settings *settings) {
    return settings->parts[PART_DISK];
}

extern const struct part_settings disk_part_settings;

#endif
