#include "gray/picture.h"

#include "service/arguments.h"

#include <stdio.h>
#include <stdlib.h>

void picture_options_read(struct picture_options *options, struct slice arguments) {
    struct slice value;
    service_argument_number(arguments, SLICE("width"), 1, PICTURE_SIDE_MAX, &options->width);
    service_argument_number(arguments, SLICE("quality"), 1, 100, &options->quality);
    options->strip |= service_argument(arguments, SLICE("strip"), &value);
    options->larger |= service_argument(arguments, SLICE("larger"), &value);
}

unsigned picture_scaled_height(const struct picture_options *options, unsigned width,
                               unsigned height) {
    uint64_t scaled = ((uint64_t)height * options->width + width / 2) / width;
    return scaled == 0 ? 1 : (unsigned)scaled;
}

struct picture_size picture_wanted_size(const struct picture_options *options,
                                        struct picture_size size, bool turned) {
    unsigned shown_width = turned ? size.height : size.width;
    unsigned shown_height = turned ? size.width : size.height;
    if (!picture_is_too_wide(options, shown_width))
        return size;
    shown_height = picture_scaled_height(options, shown_width, shown_height);
    shown_width = (unsigned)options->width;
    return turned ? (struct picture_size){shown_height, shown_width}
                  : (struct picture_size){shown_width, shown_height};
}

enum picture_result picture_bad(struct picture_output *output, const char *why) {
    free(output->bytes);
    output->bytes = NULL;
    output->length = 0;
    snprintf(output->error, sizeof output->error, "%s", why);
    return PICTURE_BAD;
}

enum picture_result picture_done(const struct picture_options *options, size_t original_length,
                                 struct picture_output *output) {
    if (options->larger || output->length <= original_length)
        return PICTURE_DONE;
    free(output->bytes);
    output->bytes = NULL;
    output->length = 0;
    return PICTURE_UNCHANGED;
}
