#include "gray/gif_canvas.h"

#include "gray/picture.h"

#include <stdlib.h>

enum { CHANNELS = 2, COLOURS = 256 };

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

/* The part of the frame that lies on the canvas. */
static struct gif_rectangle clip(const struct gif_canvas *canvas, const GifImageDesc *frame) {
    struct gif_rectangle place = {(unsigned)frame->Left, (unsigned)frame->Top,
                                  (unsigned)frame->Width, (unsigned)frame->Height};
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
        if (canvas->disposal == DISPOSE_BACKGROUND)
            memset(at, 0, row);
        else if (canvas->disposal == DISPOSE_PREVIOUS)
            memcpy(at, canvas->saved + y * row, row);
    }
    free(canvas->saved);
    canvas->saved = NULL;
}

/* Fills in the luma of each index. An index beyond the table is black. */
static void make_lumas(unsigned char lumas[COLOURS], const ColorMapObject *table) {
    memset(lumas, 0, COLOURS);
    for (int i = 0; table != NULL && i < table->ColorCount; i++)
        lumas[i] = gray_luma(table->Colors[i].Red, table->Colors[i].Green, table->Colors[i].Blue);
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
                     const unsigned char lumas[COLOURS], int transparent) {
    unsigned char *to = pixel_at(canvas, canvas->place.left, y);
    for (unsigned x = 0; x < canvas->place.width; x++, to += CHANNELS)
        if (row[x] != transparent) {
            to[0] = lumas[row[x]];
            to[1] = 255;
        }
}

static bool draw_rows(struct gif_canvas *canvas, GifFileType *file, unsigned char *row,
                      const unsigned char lumas[COLOURS], int transparent) {
    const GifImageDesc *frame = &file->Image;
    unsigned y = 0, pass = 0, height = (unsigned)frame->Height;
    for (unsigned made = 0; made < height; made++) {
        if (DGifGetLine(file, row, frame->Width) != GIF_OK)
            return false;
        if (y < canvas->place.height)
            draw_row(canvas, row, canvas->place.top + y, lumas, transparent);
        y = next_row(y, height, frame->Interlace, &pass);
    }
    return true;
}

/* A frame without a pixel counts as damaged, since giflib would read past the end of its data. */
bool gif_canvas_draw(struct gif_canvas *canvas, GifFileType *file,
                     const GraphicsControlBlock *control) {
    unsigned char lumas[COLOURS];
    const GifImageDesc *frame = &file->Image;
    if (frame->Width == 0 || frame->Height == 0)
        return false;
    canvas->place = clip(canvas, frame);
    canvas->disposal = control->DisposalMode;
    if (canvas->disposal == DISPOSE_PREVIOUS && !save(canvas))
        return false;
    make_lumas(lumas, frame->ColorMap != NULL ? frame->ColorMap : file->SColorMap);
    unsigned char *row = malloc((size_t)frame->Width);
    bool good = row != NULL && draw_rows(canvas, file, row, lumas, control->TransparentColor);
    free(row);
    return good;
}
