#include "gray/gif_scale.h"

#include "gray/gif_canvas.h"
#include "gray/lzw.h"
#include "gray/scaler.h"

#include <stdlib.h>

/* Indices of the result are levels of gray, but for the one that stands for transparency; its level
 * becomes the next one. */
enum { TRANSPARENT = 127, CHANNELS = 2, OPAQUE = 128 };

enum { FRAME_COST = 1024 }; /* what a frame costs besides its pixels, in pixels */

struct gif_work {
    struct gif_reader reader;
    struct gif_canvas canvas;
    struct gif_control control; /* of the next frame */
    struct scaler *scaler;
    struct scaler_shape shape;
    unsigned char *shown;       /* indices, as a viewer of the result sees them */
    unsigned char *before;      /* the same without the last frame, for GIF_RESTORE */
    unsigned char *frame;       /* indices of the frame that is made */
    struct gif_rectangle stale; /* of `shown`: cleared with more than the original clears */
    uint64_t pixels_left;       /* that may be decoded, */
    uint64_t means_left;        /* and taken means of */
    struct picture_output *output;
    size_t room, limit; /* of the output */
};

/* ---- output ------------------------------------------------------------------------------- */

static bool put(void *context, const unsigned char *bytes, size_t length) {
    struct gif_work *work = context;
    struct picture_output *output = work->output;
    if (length > work->limit - output->length)
        return false;
    if (work->room - output->length < length) {
        size_t room = 2 * (work->room + length);
        unsigned char *larger = realloc(output->bytes, room);
        if (larger == NULL)
            return false;
        output->bytes = larger;
        work->room = room;
    }
    memcpy(output->bytes + output->length, bytes, length);
    output->length += length;
    return true;
}

#define NUMBER(value) (unsigned char)(value), (unsigned char)((value) >> 8)

static unsigned index_of(unsigned luma) {
    return luma == TRANSPARENT ? TRANSPARENT + 1 : luma;
}

static unsigned char background_of(const struct gif_reader *reader) {
    if (reader->background >= reader->table.count)
        return 0;
    const unsigned char *colour = reader->table.entries + 3 * (size_t)reader->background;
    return (unsigned char)index_of(gray_luma(colour[0], colour[1], colour[2]));
}

static bool put_head(struct gif_work *work) {
    enum { TABLE_OF_256 = 0xf7 };
    static const unsigned char signature[] = {'G', 'I', 'F', '8', '9', 'a'};
    const unsigned char screen[] = {NUMBER(work->shape.out_width), NUMBER(work->shape.out_height),
                                    TABLE_OF_256, background_of(&work->reader),
                                    (unsigned char)work->reader.aspect};
    unsigned char table[256 * 3];
    for (unsigned i = 0; i < sizeof table; i++)
        table[i] = (unsigned char)(i / 3);
    return put(work, signature, sizeof signature) && put(work, screen, sizeof screen) &&
           put(work, table, sizeof table);
}

static bool put_control(struct gif_work *work, bool transparent) {
    const struct gif_control *control = &work->control;
    unsigned flags =
        control->disposal << 2 | (control->user_input ? 2u : 0u) | (transparent ? 1u : 0u);
    const unsigned char block[] = {
        '!', GIF_EXTENSION_CONTROL, 4, (unsigned char)flags, NUMBER(control->delay), TRANSPARENT,
        0};
    return (!control->given && !transparent) || put(work, block, sizeof block);
}

static bool put_frame(struct gif_work *work, const struct gif_rectangle *place) {
    size_t count = (size_t)place->width * place->height;
    const unsigned char head[] = {
        ',', NUMBER(place->left), NUMBER(place->top), NUMBER(place->width), NUMBER(place->height),
        0};
    return put_control(work, memchr(work->frame, TRANSPARENT, count) != NULL) &&
           put(work, head, sizeof head) && lzw_encode(work->frame, count, put, work);
}

/* ---- rectangles --------------------------------------------------------------------------- */

/* The new pixels between them cover those of the original from `from` to `to`. */
static unsigned scaled_start(unsigned from, unsigned in, unsigned out) {
    return (unsigned)((uint64_t)from * out / in);
}
static unsigned scaled_end(unsigned to, unsigned in, unsigned out) {
    return (unsigned)(((uint64_t)to * out + in - 1) / in);
}

static struct gif_rectangle scaled(const struct gif_work *work, const struct gif_rectangle *place) {
    const struct scaler_shape *shape = &work->shape;
    if (place->width == 0 || place->height == 0)
        return (struct gif_rectangle){0, 0, 0, 0};
    unsigned left = scaled_start(place->left, shape->in_width, shape->out_width);
    unsigned top = scaled_start(place->top, shape->in_height, shape->out_height);
    unsigned right = scaled_end(place->left + place->width, shape->in_width, shape->out_width);
    unsigned bottom = scaled_end(place->top + place->height, shape->in_height, shape->out_height);
    return (struct gif_rectangle){left, top, right - left, bottom - top};
}

/* What holds both; an empty one counts for nothing. */
static struct gif_rectangle joined(struct gif_rectangle a, struct gif_rectangle b) {
    if (a.width == 0)
        return b;
    if (b.width == 0)
        return a;
    unsigned left = a.left < b.left ? a.left : b.left, top = a.top < b.top ? a.top : b.top;
    unsigned right = a.left + a.width > b.left + b.width ? a.left + a.width : b.left + b.width;
    unsigned bottom = a.top + a.height > b.top + b.height ? a.top + a.height : b.top + b.height;
    return (struct gif_rectangle){left, top, right - left, bottom - top};
}

/* ---- frames ------------------------------------------------------------------------------- */

static bool take(uint64_t *left, uint64_t count) {
    bool enough = count <= *left;
    *left -= enough ? count : 0;
    return enough;
}

/* What is new of a row goes into the frame, the rest is transparent there. */
static void make_row(const unsigned char *pixels, unsigned char *shown, unsigned char *frame,
                     unsigned width) {
    for (unsigned x = 0; x < width; x++, pixels += CHANNELS) {
        unsigned index = pixels[1] < OPAQUE ? TRANSPARENT : index_of(pixels[0]);
        frame[x] = (unsigned char)(index == shown[x] ? TRANSPARENT : index);
        if (index != TRANSPARENT)
            shown[x] = (unsigned char)index;
    }
}

static bool make_frame(struct gif_work *work, const struct gif_rectangle *place) {
    const struct scaler_shape *shape = &work->shape;
    uint64_t rows = (uint64_t)place->height * shape->in_height / shape->out_height + 2;
    uint64_t columns = (uint64_t)place->width * shape->in_width / shape->out_width + 2;
    if (!take(&work->means_left, rows * columns))
        return false;
    unsigned y = scaler_window(work->scaler, place->left, place->top, place->width);
    for (unsigned made = 0; made < place->height; y++) {
        const unsigned char *row = work->canvas.pixels + (size_t)y * shape->in_width * CHANNELS;
        if (!scaler_push(work->scaler, row))
            continue;
        size_t at = (size_t)(place->top + made) * shape->out_width + place->left;
        make_row(scaler_row(work->scaler), work->shown + at,
                 work->frame + (size_t)made * place->width, place->width);
        made++;
    }
    return true;
}

/* As a viewer of the result does it. */
static void dispose(struct gif_work *work, const struct gif_rectangle *place) {
    size_t count = (size_t)work->shape.out_width * work->shape.out_height;
    switch (work->control.disposal) {
    case GIF_CLEAR:
        for (unsigned y = 0; y < place->height; y++)
            memset(work->shown + (size_t)(place->top + y) * work->shape.out_width + place->left,
                   TRANSPARENT, place->width);
        work->stale = *place;
        break;
    case GIF_RESTORE: memcpy(work->shown, work->before, count); break;
    default: work->stale = (struct gif_rectangle){0, 0, 0, 0};
    }
}

/* A frame without a place on the canvas is still a time to wait. */
static bool scale_frame(struct gif_work *work, const struct gif_block *frame) {
    static const struct gif_rectangle corner = {0, 0, 1, 1};
    struct gif_canvas *canvas = &work->canvas;
    size_t count = (size_t)work->shape.out_width * work->shape.out_height;
    uint64_t pixels = (uint64_t)frame->place.width * frame->place.height + FRAME_COST;
    if (!take(&work->pixels_left, pixels) ||
        !gif_canvas_draw(canvas, &work->reader, frame, &work->control))
        return false;
    struct gif_rectangle place = joined(scaled(work, &canvas->place), work->stale);
    if (place.width == 0)
        place = corner;
    if (work->control.disposal == GIF_RESTORE) {
        if (!take(&work->means_left, count))
            return false;
        memcpy(work->before, work->shown, count);
    }
    if (!make_frame(work, &place) || !put_frame(work, &place))
        return false;
    gif_canvas_dispose(canvas);
    dispose(work, &place);
    work->control = (struct gif_control){.transparent = GIF_NOT_TRANSPARENT};
    return true;
}

/* Texts that a viewer should draw are dropped: none does. */
static bool take_extension(struct gif_work *work, const struct gif_block *block) {
    if (block->label == GIF_EXTENSION_CONTROL)
        gif_control_read(&work->control, block);
    else if (block->label == GIF_EXTENSION_TEXT)
        work->control = (struct gif_control){.transparent = GIF_NOT_TRANSPARENT};
    else
        return put(work, (const unsigned char *)block->whole.base, block->whole.length);
    return true;
}

static bool scale_all(struct gif_work *work) {
    static const unsigned char trailer = ';';
    struct gif_block block;
    if (!put_head(work))
        return false;
    while (gif_reader_next(&work->reader, &block))
        if (block.kind == GIF_FRAME ? !scale_frame(work, &block) : !take_extension(work, &block))
            return false;
    return work->reader.whole && put(work, &trailer, 1);
}

static bool prepare(struct gif_work *work) {
    size_t count = (size_t)work->shape.out_width * work->shape.out_height;
    work->scaler = scaler_create(&work->shape);
    work->shown = malloc(count);
    work->before = malloc(count);
    work->frame = malloc(count);
    if (work->scaler == NULL || work->shown == NULL || work->before == NULL ||
        work->frame == NULL ||
        !gif_canvas_open(&work->canvas, work->shape.in_width, work->shape.in_height))
        return false;
    memset(work->shown, TRANSPARENT, count);
    return true;
}

static void release(struct gif_work *work) {
    gif_canvas_close(&work->canvas);
    scaler_free(&work->scaler);
    free(work->shown);
    free(work->before);
    free(work->frame);
}

enum picture_result gif_scale(const unsigned char *bytes, size_t length,
                              const struct picture_options *options,
                              struct picture_output *output) {
    struct gif_work work = {.pixels_left = options->max_pixels,
                            .means_left = options->max_pixels,
                            .control = {.transparent = GIF_NOT_TRANSPARENT},
                            .output = output,
                            .limit = options->larger ? SIZE_MAX : length};
    memset(output, 0, sizeof *output);
    if (!gif_reader_open(&work.reader, bytes, length) || work.reader.height == 0)
        return picture_bad(output, "not a whole GIF");
    unsigned width = work.reader.width, height = work.reader.height;
    if (!picture_is_too_wide(options, width))
        return PICTURE_UNCHANGED;
    if ((uint64_t)width * height > options->max_pixels)
        return picture_bad(output, "too many pixels");
    work.shape = (struct scaler_shape){.channels = CHANNELS,
                                       .opacity = true,
                                       .in_width = width,
                                       .in_height = height,
                                       .out_width = (unsigned)options->width,
                                       .out_height = picture_scaled_height(options, width, height)};
    bool good = prepare(&work) && scale_all(&work);
    release(&work);
    return good ? PICTURE_DONE
                : picture_bad(output, "damaged, too many pixels in all its frames, or larger then");
}
