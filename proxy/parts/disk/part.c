#include "part.h"

#include "base/findings.h"
#include "disk/disk.h"

#include <string.h>

/* The part disk: the cache on disk. */

static void disk_is_possible(const struct settings *settings, struct findings *findings) {
    const struct disks_settings *mine = disks_of(settings);
    char error[SETTINGS_ERROR];
    for (size_t i = 0; i < mine->count; i++)
        if (!volume_possible(&mine->disks[i], error))
            findings_add(findings, "%s", error);
}

/* Disks as they are have been opened. */
static bool disk_may_save(const struct settings *old, const struct settings *new, char *error) {
    const struct disks_settings *before = disks_of(old), *mine = disks_of(new);
    for (size_t i = 0; i < mine->count; i++) {
        const struct disk_settings *disk = &mine->disks[i];
        bool same = i < before->count && before->disks[i].size == disk->size &&
                    strcmp(before->disks[i].path, disk->path) == 0;
        if (!same && (!volume_fits(disk, error) || !volume_possible(disk, error)))
            return false;
    }
    return true;
}

static bool disks_are_there(const struct settings *settings, char error[SETTINGS_ERROR]) {
    const struct disks_settings *mine = disks_of(settings);
    bool there = true;
    for (size_t i = 0; there && i < mine->count; i++)
        there = volume_is_there(&mine->disks[i], error);
    return there;
}

static struct second_level *disk_start(struct settings *settings, struct cache *cache, bool taken,
                                       char *error) {
    return disks_are_there(settings, error) ? disk_open(settings, cache, taken, error) : NULL;
}

const struct part part_disk = {
    .settings = &disk_part_settings,
    .process = {.is_possible = disk_is_possible, .may_save = disk_may_save},
    .open_second_level = disk_start,
};
