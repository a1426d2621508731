/* The disks of the cache. */
#include "disk/settings.h"

#include "base/assert.h"
#include "base/findings.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

#include <stdlib.h>
#include <string.h>

static const struct option_section sections[] = {
    {
        .name = "disk",
        .parent = "cache",
        .title = "PATH",
        .after = "cache",
        .documentation =
            "Defines a volume of the cache on disk, which survives a restart. PATH is a "
            "directory, where retort creates the file retort.cache, or a file or a block device, "
            "which is overwritten. It must exist: a slip in the name of a directory makes no file "
            "beside it. The section may occur several times in cache with different "
            "paths, one for each device. A reload does not change volumes. Each volume belongs "
            "to one running retort.",
        .example = "cache {\n"
                   "    memory = \"1GB\"\n"
                   "    disk \"/var/cache/retort\" { size = \"10GB\" }\n"
                   "    disk \"/dev/nvme1n1\" { size = \"900GB\" admission = second }\n"
                   "}",
    },
    {.name = NULL},
};

static const char *const io_words[] = {"auto", "threads", NULL};
static const char *const admission_words[] = {"all", "second", NULL};

#define DISK(member) ONE("disk", struct disk_settings, member)

static const struct option rows[] = {
    {ONE("cache", struct disks_settings, io), .name = "disk_io", WORD(io_words), DEFAULT("auto"),
     AT_START,
     DOC "Sets how Retort reads from disk when a read has to wait. auto: io_uring where the "
         "kernel allows it, otherwise threads. threads: threads that block until the data is "
         "there. A change takes effect at the next start.",
     .example = "threads"},
    {DISK(size), .name = "size", SIZE_OF(16 * MB, 2000 * GB), DEFAULT("1GB"), AT_START,
     DOC "Sets the size of the volume. The space is reserved at the start. When the volume is "
         "full, the oldest objects are removed first, except those that were used recently.",
     .example = "\"10GB\""},
    {DISK(admission), .name = "admission", WORD(admission_words), DEFAULT("all"), AT_START,
     DOC "Sets which objects are written to the volume. all: everything that is stored. second: "
         "only objects that come from their origin for the second time, as far back as a filter "
         "remembers. This spares the device when most responses are requested only once.",
     .example = "second"},
    {DISK(max_object), .name = "max_object", SIZE_OF(0, 4096 * GB), DEFAULT("1GB"), AT_START,
     DOC "Limits the size of a body on the volume. Larger bodies are not written to it.",
     .example = "\"64MB\""},
    {DISK(threads), .name = "threads", COUNT(1, 64), DEFAULT("4"), AT_START,
     DOC "Sets the number of threads that read from the volume when the kernel does not have the "
         "data in memory.",
     .example = "16"},
    {DISK(write_queue), .name = "write_queue", SIZE_OF(1 * MB, 64 * GB), DEFAULT("64MB"), AT_START,
     DOC "Limits the number of bytes that wait to be written. While the queue is full, new "
         "objects stay in memory only, and retort_disk_writes_dropped_total counts them.",
     .example = "\"256MB\""},
    {DISK(sync), .name = "sync", BOOL, DEFAULT("true"), AT_START,
     DOC "Makes changes by the admin plane survive a loss of power: purges, removals, injected "
         "objects, lifetimes and bumps are on the device (fdatasync) before the admin plane "
         "answers. Removals by unsafe methods such as POST follow within 0.2 seconds. With "
         "false, these changes survive a crash of the process, but not of the machine.",
     .example = "false"},
    {DISK(write_wait), .name = "write_wait", TIME_OF(0, DAY), DEFAULT("1s"), AT_START,
     DOC "Sets how long a client waits for a slow volume. A body that is too large for memory is "
         "read from its origin only as fast as the volume writes it. When such bodies have "
         "filled a quarter of write_queue for this time, the body is delivered without being "
         "stored. The value 0 means that a client never waits for the disk.",
     .example = "\"5s\""},
    {.name = NULL},
};

static const char *disk_title(const void *element) {
    return ((const struct disk_settings *)element)->path;
}

static const struct section_place places[] = {
    {.section = "disk",
     SECTION_LIST(struct disks_settings, disks, count, struct disk_settings),
     .title = disk_title,
     .title_name = "path",
     .at_start = true},
    {.section = NULL},
};

static char *without_trailing_slashes(const char *path) {
    char *copy = xstrdup(path);
    for (size_t length = strlen(copy); length > 1 && copy[length - 1] == '/'; length--)
        copy[length - 1] = '\0';
    return copy;
}

static bool disk_apply(struct load *load, const struct document_section *section,
                       const struct disks_settings *mine, struct disk_settings *disk) {
    disk->path = without_trailing_slashes(section->title);
    if (disk->path[0] != '/')
        return load_fail(load, section->line,
                         "disk: \"%s\" is not an absolute path; write the path of a directory, a "
                         "file or a block device, such as \"/var/cache/retort\"",
                         section->title);
    for (struct disk_settings *other = mine->disks; other < disk; other++)
        if (strcmp(other->path, disk->path) == 0)
            return load_fail(load, section->line,
                             "disk: \"%s\" is already used by another disk section",
                             section->title);
    return load_values(load, section, "disk", disk);
}

static bool disk_load(struct load *load, void *settings) {
    struct disks_settings *mine = settings;
    size_t i = 0;
    if (!load_values(load, document_section(load->document, "cache", NULL), "cache", mine))
        return false;
    mine->count = document_section_count(load->document, "disk");
    mine->disks = xcalloc(mine->count + 1, sizeof *mine->disks);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "disk")
        if (!disk_apply(load, section, mine, &mine->disks[i++]))
            return false;
    return true;
}

static void disk_release(void *settings) {
    struct disks_settings *mine = settings;
    for (size_t i = 0; i < mine->count; i++)
        free(mine->disks[i].path);
    free(mine->disks);
}

static bool same_disk(const struct disk_settings *a, const struct disk_settings *b) {
    return strcmp(a->path, b->path) == 0 && a->size == b->size && a->admission == b->admission &&
           a->max_object == b->max_object && a->threads == b->threads &&
           a->write_queue == b->write_queue && a->write_wait == b->write_wait && a->sync == b->sync;
}

static bool same_disks(const struct disks_settings *old, const struct disks_settings *new) {
    bool same = old->count == new->count && old->io == new->io;
    for (size_t i = 0; same && i < new->count; i++)
        same = same_disk(&old->disks[i], &new->disks[i]);
    return same;
}

static void disk_compare(const void *first, const void *new, struct findings *left) {
    if (!same_disks(first, new))
        findings_add(left, "cache.disk and cache.disk_io are still as they were at the start: "
                           "restart retort to apply the change");
}

const struct part_settings disk_part_settings = {
    .options = rows,
    .sections = sections,
    .places = places,
    .size = sizeof(struct disks_settings),
    .load = disk_load,
    .release = disk_release,
    .compare = disk_compare,
};
