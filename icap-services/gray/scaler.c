#include "gray/scaler.h"

#include "base/assert.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Lengths are counted in units, so that all borders are whole numbers. In each direction an
 * original pixel is out_... units long, and a new one in_... units. */
struct scaler {
    unsigned magic;
#define SCALER_MAGIC 0x5363616cu
    struct scaler_shape shape;
    unsigned filled;      /* units of the new row that are summed up */
    unsigned skipped;     /* units of the next original row that belong to no row */
    unsigned left, width; /* the pixels that are made of a row */
    float *line, *sums;   /* the original row made narrower; the new row so far */
    unsigned char *row;
};

struct scaler *scaler_create(const struct scaler_shape *shape) {
    size_t count = (size_t)shape->out_width * shape->channels;
    ASSERT(shape->out_width >= 1 && shape->out_width <= shape->in_width);
    ASSERT(shape->out_height >= 1 && shape->out_height <= shape->in_height);
    struct scaler *scaler = calloc(1, sizeof *scaler);
    if (scaler == NULL)
        return NULL;
    scaler->magic = SCALER_MAGIC;
    scaler->shape = *shape;
    scaler->width = shape->out_width;
    scaler->line = calloc(count, sizeof *scaler->line);
    scaler->sums = calloc(count, sizeof *scaler->sums);
    scaler->row = malloc(count);
    if (scaler->line == NULL || scaler->sums == NULL || scaler->row == NULL)
        scaler_free(&scaler);
    return scaler;
}

void scaler_free(struct scaler **scalerp) {
    struct scaler *scaler = *scalerp;
    *scalerp = NULL;
    if (scaler == NULL)
        return;
    CHECK_OBJ(scaler, SCALER_MAGIC);
    free(scaler->line);
    free(scaler->sums);
    free(scaler->row);
    FREE_OBJ(scaler);
}

unsigned scaler_window(struct scaler *scaler, unsigned left, unsigned top, unsigned width) {
    const struct scaler_shape *shape = &scaler->shape;
    CHECK_OBJ(scaler, SCALER_MAGIC);
    ASSERT(left < shape->out_width && width <= shape->out_width - left && top < shape->out_height);
    uint64_t start = (uint64_t)top * shape->in_height;
    memset(scaler->sums, 0, (size_t)shape->out_width * shape->channels * sizeof *scaler->sums);
    scaler->left = left;
    scaler->width = width;
    scaler->filled = 0;
    scaler->skipped = (unsigned)(start % shape->out_height);
    return (unsigned)(start / shape->out_height);
}

/* The weight of the pixel at `row` in that channel. */
static float weight_of(const struct scaler_shape *shape, const unsigned char *row,
                       unsigned channel) {
    unsigned last = shape->channels - 1;
    return shape->opacity && channel < last ? (float)row[last - channel] : 1;
}

static void make_narrower(struct scaler *scaler, const unsigned char *row, unsigned channel) {
    const struct scaler_shape *shape = &scaler->shape;
    uint64_t start = (uint64_t)scaler->left * shape->in_width;
    unsigned channels = shape->channels;
    unsigned left = shape->out_width - (unsigned)(start % shape->out_width); /* of that at *row */
    row += start / shape->out_width * channels + channel;
    for (unsigned x = 0; x < scaler->width; x++) {
        float sum = 0;
        for (unsigned wanted = shape->in_width; wanted > 0;) {
            unsigned part = left < wanted ? left : wanted;
            sum += (float)*row * weight_of(shape, row, channel) * (float)part;
            wanted -= part;
            left -= part;
            if (left == 0) {
                row += channels;
                left = shape->out_width;
            }
        }
        scaler->line[x * channels + channel] = sum / (float)shape->in_width;
    }
}

static void scaler_add_line(struct scaler *scaler, unsigned weight) {
    size_t count = (size_t)scaler->width * scaler->shape.channels;
    for (size_t i = 0; i < count; i++)
        scaler->sums[i] += scaler->line[i] * (float)weight;
    scaler->filled += weight;
}

/* What a sum is divided by. If pixels count by their opacity, it is the opacity of the area. */
static float divisor_of(const struct scaler *scaler, size_t at) {
    const struct scaler_shape *shape = &scaler->shape;
    size_t last = at - at % shape->channels + shape->channels - 1;
    if (!shape->opacity || at == last)
        return (float)shape->in_height;
    return scaler->sums[last] > 0 ? scaler->sums[last] : 1;
}

static void finish_row(struct scaler *scaler) {
    size_t count = (size_t)scaler->width * scaler->shape.channels;
    for (size_t i = 0; i < count; i++)
        scaler->row[i] = (unsigned char)(scaler->sums[i] / divisor_of(scaler, i) + 0.5f);
    memset(scaler->sums, 0, count * sizeof *scaler->sums);
    scaler->filled = 0;
}

bool scaler_push(struct scaler *scaler, const unsigned char *row) {
    CHECK_OBJ(scaler, SCALER_MAGIC);
    unsigned left = scaler->shape.out_height - scaler->skipped;
    unsigned room = scaler->shape.in_height - scaler->filled;
    scaler->skipped = 0;
    for (unsigned channel = 0; channel < scaler->shape.channels; channel++)
        make_narrower(scaler, row, channel);
    scaler_add_line(scaler, left < room ? left : room);
    if (left < room)
        return false;
    finish_row(scaler);
    if (left > room)
        scaler_add_line(scaler, left - room);
    return true;
}

const unsigned char *scaler_row(const struct scaler *scaler) {
    return scaler->row;
}
