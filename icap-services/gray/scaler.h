/*
 * Makes a picture smaller, a row at a time: each new pixel is the mean of the area it covers.
 *
 *     struct scaler *scaler = scaler_create(&shape);       NULL: no memory
 *     for each row of the original
 *         if (scaler_push(scaler, row)) ... scaler_row(scaler): the next row of the result
 *     scaler_free(&scaler);
 *
 * A part of the result is made of a part of the rows:
 *
 *     unsigned first = scaler_window(scaler, left, top, width);
 *     for each row of the original from `first` on, until the rows wanted have come out
 *         if (scaler_push(scaler, row)) ... scaler_row(scaler): `width` pixels from `left` on
 *
 * The result is not larger than the original in either direction; exactly out_height rows come out.
 * Threads: belongs to one thread.
 */
#ifndef RETORT_GRAY_SCALER_H
#define RETORT_GRAY_SCALER_H

#include <stdbool.h>

struct scaler;

struct scaler_shape {
    unsigned channels; /* bytes a pixel, each of which is averaged by itself */
    unsigned in_width, in_height, out_width, out_height;
    bool opacity; /* the last channel says how much each pixel counts in the others */
};

struct scaler *scaler_create(const struct scaler_shape *shape);
void scaler_free(struct scaler **scalerp);
/* From the result's row `top` on, and of the rows the pixels left to left + width only. Rows are
 * still pushed whole. */
unsigned scaler_window(struct scaler *scaler, unsigned left, unsigned top, unsigned width);
bool scaler_push(struct scaler *scaler, const unsigned char *row);
const unsigned char *scaler_row(const struct scaler *scaler);

#endif
