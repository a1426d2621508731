/* The cache and its disks. */
#include "settings/load.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static char *without_trailing_slashes(const char *path) {
    char *copy = xstrdup(path);
    for (size_t length = strlen(copy); length > 1 && copy[length - 1] == '/'; length--)
        copy[length - 1] = '\0';
    return copy;
}

static bool apply_disk(struct load *load, const struct document_section *section,
                       struct disk_settings *disk) {
    disk->path = without_trailing_slashes(section->title);
    if (disk->path[0] != '/')
        return load_fail(load, section->line,
                         "disk: \"%s\" is not an absolute path; write the path of a directory, a "
                         "file or a block device, such as \"/var/cache/retort\"",
                         section->title);
    for (struct disk_settings *other = load->settings->cache.disks; other < disk; other++)
        if (strcmp(other->path, disk->path) == 0)
            return load_fail(load, section->line,
                             "disk: \"%s\" is already used by another disk section",
                             section->title);
    return load_values(load, section, "disk", disk);
}

static bool load_disks(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->cache.disk_count = document_section_count(load->document, "disk");
    settings->cache.disks = xcalloc(settings->cache.disk_count + 1, sizeof *settings->cache.disks);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "disk")
        if (!apply_disk(load, section, &settings->cache.disks[i++]))
            return false;
    return true;
}

bool load_cache(struct load *load) {
    const struct document_section *section = document_section(load->document, "cache", NULL);
    if (!load_values(load, section, "cache", load->settings) || !load_disks(load))
        return false;
    if (load->settings->cache.max_object <= load->settings->cache.memory)
        return true;
    if (document_value(section, "max_object") == NULL) { /* so that a small cache needs no second
                                                          * setting */
        load->settings->cache.max_object = load->settings->cache.memory;
        return true;
    }
    return load_fail(load, load_line_of(section, "max_object"),
                     "max_object is larger than cache.memory; lower it, or raise cache.memory");
}

void release_disks(struct settings *settings) {
    for (size_t i = 0; i < settings->cache.disk_count; i++)
        free(settings->cache.disks[i].path);
    free(settings->cache.disks);
}
