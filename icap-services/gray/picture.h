/*
 * The options and the result of a conversion. The converters of all kinds of pictures share them.
 *
 *     struct picture_options options = {.max_pixels = 100000000};
 *     picture_options_read(&options, SLICE("width=320&quality=60&strip"));
 *     struct picture_output output;
 *     switch (jpeg_gray(bytes, length, &options, &output)) {
 *     case PICTURE_DONE:      output.bytes, output.length; free(output.bytes)
 *     case PICTURE_UNCHANGED: it is as it is wanted, or would not be smaller
 *     case PICTURE_BAD:       output.error says why
 *     }
 *
 * Threads: values.
 */
#ifndef RETORT_GRAY_PICTURE_H
#define RETORT_GRAY_PICTURE_H

#include "base/slice.h"

enum { PICTURE_SIDE_MAX = 65535 };

struct picture_options {
    uint64_t max_pixels; /* a picture with more is refused */
    uint64_t width;      /* pixels: a picture that is shown wider is scaled down; 0: none is */
    uint64_t quality;    /* 1..100: lossy kinds are encoded again in it; 0: the kind's own way */
    bool strip;          /* metadata goes, but for the orientation */
    bool larger;         /* a result that is larger than the original is good too */
};

struct picture_size {
    unsigned width, height;
};

struct picture_output {
    unsigned char *bytes; /* malloc'ed */
    size_t length;
    char error[200];
};

enum picture_result { PICTURE_DONE, PICTURE_UNCHANGED, PICTURE_BAD };

/* Reads the options that stand in the arguments of a service (service/arguments.h). An option that
 * is missing there, or whose number is bad, keeps its value. */
void picture_options_read(struct picture_options *options, struct slice arguments);

/* Must a picture of that width become smaller? */
static inline bool picture_is_too_wide(const struct picture_options *options, uint64_t width) {
    return options->width > 0 && width > options->width;
}
/* The height that belongs to options->width for a picture of that size; at least 1. */
unsigned picture_scaled_height(const struct picture_options *options, unsigned width,
                               unsigned height);
/* The size that the picture shall have in the file. `turned`: it is shown on its side. */
struct picture_size picture_wanted_size(const struct picture_options *options,
                                        struct picture_size size, bool turned);

/* What a converter returns. picture_bad: PICTURE_BAD, with `why` in the output. picture_done:
 * PICTURE_DONE, or PICTURE_UNCHANGED when the result is larger than it may be. */
enum picture_result picture_bad(struct picture_output *output, const char *why);
enum picture_result picture_done(const struct picture_options *options, size_t original_length,
                                 struct picture_output *output);

/* ITU-R BT.601 luma, rounded. */
static inline unsigned char gray_luma(unsigned red, unsigned green, unsigned blue) {
    return (unsigned char)((299 * red + 587 * green + 114 * blue + 500) / 1000);
}

#endif
