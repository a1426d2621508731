/*
 * Makes a picture smaller, a row at a time: each new pixel is the mean of the area it covers.
 *
 *     struct scaler *scaler = scaler_create(&shape);       NULL: no memory
 *     for each row of the original
 *         if (scaler_push(scaler, row)) ... scaler_row(scaler): the next row of the result
 *     scaler_free(&scaler);
 *
 * A window of the result needs only some of the rows:
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
    unsigned channels; /* bytes a pixel; each channel is averaged by itself */
    unsigned in_width, in_height, out_width, out_height;
    bool opacity; /* the last channel is the weight of the pixel in the means of the others */
};

struct scaler *scaler_create(const struct scaler_shape *shape);
void scaler_free(struct scaler **scalerp);
/* From now on only a window of the result comes out: from its row `top` on, `width` pixels of each
 * row from `left` on. Returns the first row of the original that is needed. Rows of the original
 * are still pushed whole. */
unsigned scaler_window(struct scaler *scaler, unsigned left, unsigned top, unsigned width);
bool scaler_push(struct scaler *scaler, const unsigned char *row);
const unsigned char *scaler_row(const struct scaler *scaler);

#endif
