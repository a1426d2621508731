#include "gray/gif_canvas.h"

#include "gray/lzw.h"
#include "gray/picture.h"

#include <stdlib.h>

enum { CHANNELS = 2, COLOURS = 256 };

void gif_control_read(struct gif_control *control, const struct gif_block *extension) {
    const unsigned char *data = (const unsigned char *)extension->data.base;
    enum { LENGTH = 4, HAS_TRANSPARENT = 1, USER_INPUT = 2 };
    *control = (struct gif_control){.transparent = GIF_NOT_TRANSPARENT};
    if (extension->data.length < 1 + LENGTH || data[0] != LENGTH)
        return;
    control->given = true;
    control->disposal = data[1] >> 2 & 7;
    control->user_input = data[1] & USER_INPUT;
    control->delay = (unsigned)(data[2] | data[3] << 8);
    if (data[1] & HAS_TRANSPARENT)
        control->transparent = data[4];
}

bool gif_canvas_open(struct gif_canvas *canvas, unsigned width, unsigned height) {
    memset(canvas, 0, sizeof *canvas);
    canvas->width = width;
    canvas->height = height;
    canvas->pixels = calloc((size_t)width * height, CHANNELS);
    return canvas->pixels != NULL;
}

void gif_canvas_close(struct gif_canvas *canvas) {
    free(canvas->pixels);
    free(canvas->saved);
    memset(canvas, 0, sizeof *canvas);
}

static unsigned char *pixel_at(const struct gif_canvas *canvas, unsigned x, unsigned y) {
    return canvas->pixels + ((size_t)y * canvas->width + x) * CHANNELS;
}

/* What of it lies on the canvas. */
static struct gif_rectangle clip(const struct gif_canvas *canvas, struct gif_rectangle place) {
    if (place.left >= canvas->width || place.top >= canvas->height)
        return (struct gif_rectangle){0, 0, 0, 0};
    if (place.width > canvas->width - place.left)
        place.width = canvas->width - place.left;
    if (place.height > canvas->height - place.top)
        place.height = canvas->height - place.top;
    return place;
}

static bool save(struct gif_canvas *canvas) {
    const struct gif_rectangle *place = &canvas->place;
    size_t row = (size_t)place->width * CHANNELS;
    canvas->saved = malloc(row * place->height + 1);
    for (unsigned y = 0; canvas->saved != NULL && y < place->height; y++)
        memcpy(canvas->saved + y * row, pixel_at(canvas, place->left, place->top + y), row);
    return canvas->saved != NULL;
}

void gif_canvas_dispose(struct gif_canvas *canvas) {
    const struct gif_rectangle *place = &canvas->place;
    size_t row = (size_t)place->width * CHANNELS;
    for (unsigned y = 0; y < place->height; y++) {
        unsigned char *at = pixel_at(canvas, place->left, place->top + y);
        if (canvas->disposal == GIF_CLEAR)
            memset(at, 0, row);
        else if (canvas->disposal == GIF_RESTORE)
            memcpy(at, canvas->saved + y * row, row);
    }
    free(canvas->saved);
    canvas->saved = NULL;
}

/* What each index looks like; those beyond the table are black. */
static void make_lumas(unsigned char lumas[COLOURS], const struct gif_table *table) {
    memset(lumas, 0, COLOURS);
    for (unsigned i = 0; i < table->count; i++)
        lumas[i] =
            gray_luma(table->entries[3 * i], table->entries[3 * i + 1], table->entries[3 * i + 2]);
}

/* The rows of an interlaced frame come in four passes. */
static unsigned next_row(unsigned row, unsigned height, bool interlaced, unsigned *pass) {
    static const unsigned starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    if (!interlaced)
        return row + 1;
    for (row += steps[*pass]; row >= height && *pass < 3;)
        row = starts[++*pass];
    return row;
}

static void draw_row(struct gif_canvas *canvas, const unsigned char *row, unsigned y,
                     const unsigned char lumas[COLOURS], unsigned transparent) {
    unsigned char *to = pixel_at(canvas, canvas->place.left, y);
    for (unsigned x = 0; x < canvas->place.width; x++, to += CHANNELS)
        if (row[x] != transparent) {
            to[0] = lumas[row[x]];
            to[1] = 255;
        }
}

static bool draw_rows(struct gif_canvas *canvas, const struct gif_block *frame,
                      struct lzw_decoder *decoder, unsigned char *row,
                      const unsigned char lumas[COLOURS], unsigned transparent) {
    unsigned y = 0, pass = 0;
    for (unsigned made = 0; made < frame->place.height; made++) {
        if (!lzw_decode(decoder, row, frame->place.width))
            return false;
        if (y < canvas->place.height)
            draw_row(canvas, row, canvas->place.top + y, lumas, transparent);
        y = next_row(y, frame->place.height, frame->interlaced, &pass);
    }
    return true;
}

bool gif_canvas_draw(struct gif_canvas *canvas, const struct gif_reader *reader,
                     const struct gif_block *frame, const struct gif_control *control) {
    unsigned char lumas[COLOURS];
    canvas->place = clip(canvas, frame->place);
    canvas->disposal = control->disposal;
    if (canvas->disposal == GIF_RESTORE && !save(canvas))
        return false;
    make_lumas(lumas, frame->table.count > 0 ? &frame->table : &reader->table);
    unsigned char *row = malloc(frame->place.width + 1);
    struct lzw_decoder *decoder = lzw_decoder_create(frame->code_size, frame->data);
    bool good = row != NULL && decoder != NULL &&
                draw_rows(canvas, frame, decoder, row, lumas, control->transparent);
    lzw_decoder_free(&decoder);
    free(row);
    return good;
}
