/*
 * What an animated GIF shows: its frames drawn one over the other, each taken away as it asks for.
 *
 *     struct gif_canvas canvas;
 *     if (!gif_canvas_open(&canvas, width, height)) ...                   no memory
 *     for each frame
 *         gif_canvas_draw(&canvas, &reader, &block, control)              false: damaged, no memory
 *         ... canvas.pixels: what is shown now
 *         gif_canvas_dispose(&canvas)
 *     gif_canvas_close(&canvas);
 *
 * A pixel is two bytes: its luminance and 255, or 0 and 0 where nothing was drawn. Threads: values.
 */
#ifndef RETORT_GRAY_GIF_CANVAS_H
#define RETORT_GRAY_GIF_CANVAS_H

#include "gray/gif_reader.h"

enum { GIF_NOT_TRANSPARENT = 256 };

/* How a frame goes away. Other numbers are left to the future, and keep it too. */
enum gif_disposal { GIF_UNSAID, GIF_KEEP, GIF_CLEAR, GIF_RESTORE };

/* What a Graphic Control Extension says of the frame behind it. */
struct gif_control {
    bool given;
    unsigned disposal; /* 0 to 7 */
    bool user_input;
    unsigned delay;       /* hundredths of a second */
    unsigned transparent; /* index, or GIF_NOT_TRANSPARENT */
};

struct gif_canvas {
    unsigned width, height;
    unsigned char *pixels;
    unsigned char *saved;       /* GIF_RESTORE: what the frame was drawn over */
    struct gif_rectangle place; /* of the frame drawn last, within the canvas; may be empty */
    unsigned disposal;
};

void gif_control_read(struct gif_control *control, const struct gif_block *extension);
bool gif_canvas_open(struct gif_canvas *canvas, unsigned width, unsigned height);
bool gif_canvas_draw(struct gif_canvas *canvas, const struct gif_reader *reader,
                     const struct gif_block *frame, const struct gif_control *control);
void gif_canvas_dispose(struct gif_canvas *canvas);
void gif_canvas_close(struct gif_canvas *canvas);

#endif
