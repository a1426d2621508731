#include "gray/gif_gray.h"

#include "gray/gif_reader.h"
#include "gray/gif_scale.h"

#include <stdlib.h>

/* Makes a table gray in `copy`, which is a copy of the file's bytes; the table has the same place
 * in both. */
static bool gray_table(unsigned char *copy, const unsigned char *bytes,
                       const struct gif_table *table) {
    bool changed = false;
    unsigned char *entry = copy + (table->entries - bytes);
    for (unsigned i = 0; i < table->count; i++, entry += 3) {
        unsigned char luma = gray_luma(entry[0], entry[1], entry[2]);
        changed |= entry[0] != luma || entry[1] != luma || entry[2] != luma;
        entry[0] = entry[1] = entry[2] = luma;
    }
    return changed;
}

static enum picture_result gray_tables(const unsigned char *bytes, size_t length,
                                       struct picture_output *output) {
    struct gif_reader reader;
    struct gif_block block;
    bool changed = false;
    if (!gif_reader_open(&reader, bytes, length))
        return picture_bad(output, "not a whole GIF");
    output->bytes = malloc(length);
    if (output->bytes == NULL)
        return picture_bad(output, "out of memory");
    memcpy(output->bytes, bytes, length);
    output->length = length;
    if (reader.table.count > 0)
        changed = gray_table(output->bytes, bytes, &reader.table);
    while (gif_reader_next(&reader, &block))
        if (block.table.count > 0)
            changed |= gray_table(output->bytes, bytes, &block.table);
    if (!reader.whole)
        return picture_bad(output, "not a whole GIF");
    if (changed)
        return PICTURE_DONE;
    free(output->bytes);
    output->bytes = NULL;
    return PICTURE_UNCHANGED;
}

enum picture_result gif_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output) {
    if (options->width > 0 && gif_scale(bytes, length, options, output) == PICTURE_DONE)
        return PICTURE_DONE;
    memset(output, 0, sizeof *output);
    return gray_tables(bytes, length, output);
}
