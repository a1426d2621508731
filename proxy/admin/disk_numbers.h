/*
 * The numbers of the disk as /status and /metrics show them.
 *
 *     for (const struct disk_number *number = disk_numbers; number->name != NULL; number++)
 *         ... number->name ... disk_number_value(&report->disk, number) ...
 *
 * Threads: a constant table.
 */
#ifndef RETORT_ADMIN_DISK_NUMBERS_H
#define RETORT_ADMIN_DISK_NUMBERS_H

#include "disk/volume.h"
#include "net/counters.h"

#include <stddef.h>

struct disk_number {
    const char *name, *help;
    size_t at; /* offset in struct volume_statistics */
    enum counter_kind kind;
};

extern const struct disk_number disk_numbers[]; /* ends with name NULL */

uint64_t disk_number_value(const struct volume_statistics *disk, const struct disk_number *number);

#endif
