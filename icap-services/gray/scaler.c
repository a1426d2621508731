#include "gray/scaler.h"

#include "base/assert.h"

#include <stdlib.h>

/* In both directions an original pixel is out_... units long and a new one in_... units, so that
 * borders are whole numbers. */
struct scaler {
    unsigned magic;
#define SCALER_MAGIC 0x5363616cu
    struct scaler_shape shape;
    unsigned filled;    /* units of the new row that are summed up */
    float *line, *sums; /* the original row made narrower; the new row so far */
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

static void make_narrower(struct scaler *scaler, const unsigned char *row, unsigned channel) {
    const struct scaler_shape *shape = &scaler->shape;
    unsigned channels = shape->channels, left = shape->out_width; /* of the pixel at *row */
    row += channel;
    for (unsigned x = 0; x < shape->out_width; x++) {
        float sum = 0;
        for (unsigned wanted = shape->in_width; wanted > 0;) {
            unsigned part = left < wanted ? left : wanted;
            sum += (float)*row * (float)part;
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

static void add_line(struct scaler *scaler, unsigned weight) {
    size_t count = (size_t)scaler->shape.out_width * scaler->shape.channels;
    for (size_t i = 0; i < count; i++)
        scaler->sums[i] += scaler->line[i] * (float)weight;
    scaler->filled += weight;
}

static void finish_row(struct scaler *scaler) {
    size_t count = (size_t)scaler->shape.out_width * scaler->shape.channels;
    for (size_t i = 0; i < count; i++) {
        scaler->row[i] = (unsigned char)(scaler->sums[i] / (float)scaler->shape.in_height + 0.5f);
        scaler->sums[i] = 0;
    }
    scaler->filled = 0;
}

bool scaler_push(struct scaler *scaler, const unsigned char *row) {
    CHECK_OBJ(scaler, SCALER_MAGIC);
    unsigned left = scaler->shape.out_height, room = scaler->shape.in_height - scaler->filled;
    for (unsigned channel = 0; channel < scaler->shape.channels; channel++)
        make_narrower(scaler, row, channel);
    add_line(scaler, left < room ? left : room);
    if (left < room)
        return false;
    finish_row(scaler);
    if (left > room)
        add_line(scaler, left - room);
    return true;
}

const unsigned char *scaler_row(const struct scaler *scaler) {
    return scaler->row;
}
