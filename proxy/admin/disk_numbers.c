#include "admin/disk_numbers.h"

#include <string.h>

const struct disk_number disk_numbers[] = {
#define NUMBER(name, member, kind, help)                                                           \
    { name, help, offsetof(struct volume_statistics, member), COUNTER_##kind }
    NUMBER("disk_objects", objects, GAUGE, "Objects on disk."),
    NUMBER("disk_capacity_bytes", capacity, GAUGE, "Bytes that the volumes have for records."),
    NUMBER("disk_index_bytes", index_bytes, GAUGE,
           "Bytes of memory that the index of the disk takes."),
    NUMBER("disk_writes", writes, TOTAL, "Records written to disk."),
    NUMBER("disk_bytes_written", bytes_written, TOTAL, "Bytes written to disk."),
    NUMBER("disk_writes_dropped", dropped, TOTAL,
           "Objects that were not written because disk.write_queue was full or a write failed."),
    NUMBER("disk_errors", errors, TOTAL, "Reads and writes that failed."),
    NUMBER("disk_corrupt", corrupt, TOTAL, "Damaged records found on disk."),
    NUMBER("disk_segments_reclaimed", reclaimed, TOTAL,
           "Segments whose objects were removed to make room for newer ones."),
    NUMBER("disk_rewritten", rewritten, TOTAL,
           "Objects written again because they were in use when their segment was removed."),
#undef NUMBER
    {NULL, NULL, 0, COUNTER_TOTAL},
};

uint64_t disk_number_value(const struct volume_statistics *disk, const struct disk_number *number) {
    uint64_t value;
    memcpy(&value, (const char *)disk + number->at, sizeof value);
    return value;
}
