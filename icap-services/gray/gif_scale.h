/*
 * Makes a GIF smaller and gray. Each frame keeps its delay, its disposal and the rectangle that it
 * covers, scaled down. After each frame a viewer shows the same as before, scaled down. For this a
 * new pixel is made of all old pixels that it covers, also of those that an earlier frame has
 * drawn. A new pixel is transparent when less than half of its area was drawn.
 *
 *     switch (gif_scale(bytes, length, &options, &output)) {       see picture.h
 *
 * The result is PICTURE_BAD when the GIF is damaged, when it would become larger, and when all
 * frames together have more than options.max_pixels. Extensions stay, such as the one that says how
 * often the animation is repeated. Extensions with texts to be drawn go, since no viewer draws
 * them. Interlacing goes too. Threads: pure.
 */
#ifndef RETORT_GRAY_GIF_SCALE_H
#define RETORT_GRAY_GIF_SCALE_H

#include "gray/picture.h"

#include <gif_lib.h>

enum picture_result gif_scale(const unsigned char *bytes, size_t length,
                              const struct picture_options *options, struct picture_output *output);

/*
 * The canvas of an animated GIF: what a viewer shows. Each frame is drawn over what is there, and
 * afterwards taken away as the frame asks for. giflib reads the frames.
 *
 *     struct gif_canvas canvas;
 *     if (!gif_canvas_open(&canvas, width, height)) ...                   no memory
 *     for each frame, when DGifGetImageHeader(file) has read where it stands
 *         gif_canvas_draw(&canvas, file, &control)                        false: damaged, no memory
 *         ... canvas.pixels: what is shown now
 *         gif_canvas_dispose(&canvas)
 *     gif_canvas_close(&canvas);
 *
 * A pixel is two bytes: its luminance and 255, or 0 and 0 where nothing was drawn. Threads: values.
 */

struct gif_rectangle {
    unsigned left, top, width, height;
};

struct gif_canvas {
    unsigned width, height;
    unsigned char *pixels;
    unsigned char *saved;       /* DISPOSE_PREVIOUS: what was there before the frame */
    struct gif_rectangle place; /* of the frame drawn last, within the canvas; may be empty */
    int disposal;
};

bool gif_canvas_open(struct gif_canvas *canvas, unsigned width, unsigned height);
bool gif_canvas_draw(struct gif_canvas *canvas, GifFileType *file,
                     const GraphicsControlBlock *control);
void gif_canvas_dispose(struct gif_canvas *canvas);
void gif_canvas_close(struct gif_canvas *canvas);

#endif
