#include "gray/gif_scale.h"

#include "gray/picture.h"
#include "gray/scaler.h"

#include <stdlib.h>

/* The indices of the result are levels of gray. One index stands for transparency; its level
 * becomes the next one. */
enum { TRANSPARENT = 127, CHANNELS = 2, OPAQUE = 128 };

enum { FRAME_COST = 1024 }; /* what a frame costs besides its pixels, in pixels */

/* The smallest size of codes that the format allows. giflib takes smaller ones, but then clears a
 * table of 4096 entries at each clear code, which could be every bit. */
enum { CODE_SIZE_MIN = 2 };

struct gif_work {
    GifFileType *from, *to;
    struct gif_canvas canvas;
    GraphicsControlBlock control; /* of the next frame */
    struct scaler *scaler;
    struct scaler_shape shape;
    unsigned char *shown;       /* indices, as a viewer of the result sees them */
    unsigned char *before;      /* the same without the last frame, for DISPOSE_PREVIOUS */
    unsigned char *frame;       /* indices of the frame that is made */
    struct gif_rectangle stale; /* of `shown`: cleared with more than the original clears */
    uint64_t pixels_left;       /* that may be decoded, */
    uint64_t means_left;        /* and taken means of */
    struct slice input;         /* what giflib has not read yet */
    struct picture_output *output;
    size_t room, limit; /* of the output */
    bool full;          /* something did not fit; giflib does not always look */
};

/* ---- input and output, as giflib wants them ------------------------------------------------ */

static int gif_scale_read_bytes(GifFileType *file, GifByteType *to, int length) {
    struct gif_work *work = file->UserData;
    struct slice *input = &work->input;
    if ((size_t)length > input->length)
        return 0;
    memcpy(to, input->base, (size_t)length);
    *input = slice_make(input->base + length, input->length - (size_t)length);
    return length;
}

static bool gif_scale_make_room(struct gif_work *work, size_t length) {
    struct picture_output *output = work->output;
    if (work->full || length > work->limit - output->length)
        return false;
    if (work->room - output->length >= length)
        return true;
    size_t room = 2 * (work->room + length);
    unsigned char *larger = realloc(output->bytes, room);
    if (larger == NULL)
        return false;
    output->bytes = larger;
    work->room = room;
    return true;
}

static int write_bytes(GifFileType *file, const GifByteType *bytes, int length) {
    struct gif_work *work = file->UserData;
    work->full = !gif_scale_make_room(work, (size_t)length);
    if (work->full)
        return 0;
    memcpy(work->output->bytes + work->output->length, bytes, (size_t)length);
    work->output->length += (size_t)length;
    return length;
}

static unsigned char index_of(unsigned luma) {
    return (unsigned char)(luma == TRANSPARENT ? TRANSPARENT + 1 : luma);
}

static int background_of(const GifFileType *file) {
    const ColorMapObject *table = file->SColorMap;
    if (table == NULL || file->SBackGroundColor >= table->ColorCount)
        return 0;
    const GifColorType *colour = &table->Colors[file->SBackGroundColor];
    return index_of(gray_luma(colour->Red, colour->Green, colour->Blue));
}

static bool put_head(struct gif_work *work) {
    enum { BITS = 8, COLOURS = 1 << BITS };
    ColorMapObject *grays = GifMakeMapObject(COLOURS, NULL);
    if (grays == NULL)
        return false;
    for (int i = 0; i < COLOURS; i++)
        memset(&grays->Colors[i], i, sizeof grays->Colors[i]);
    EGifSetGifVersion(work->to, true);
    work->to->AspectByte = work->from->AspectByte;
    int result = EGifPutScreenDesc(work->to, work->shape.out_width, work->shape.out_height, BITS,
                                   background_of(work->from), grays);
    GifFreeMapObject(grays);
    return result == GIF_OK;
}

static bool gif_scale_put_control(struct gif_work *work, bool transparent) {
    GifByteType block[4];
    work->control.TransparentColor = transparent ? TRANSPARENT : NO_TRANSPARENT_COLOR;
    EGifGCBToExtension(&work->control, block);
    return EGifPutExtension(work->to, GRAPHICS_EXT_FUNC_CODE, sizeof block, block) == GIF_OK;
}

static bool put_frame(struct gif_work *work, const struct gif_rectangle *place) {
    size_t count = (size_t)place->width * place->height;
    bool good = gif_scale_put_control(work, memchr(work->frame, TRANSPARENT, count) != NULL) &&
                EGifPutImageDesc(work->to, place->left, place->top, place->width, place->height,
                                 false, NULL) == GIF_OK;
    for (size_t at = 0; good && at < count; at += place->width)
        good = EGifPutLine(work->to, work->frame + at, place->width) == GIF_OK;
    return good && !work->full;
}

/* ---- rectangles --------------------------------------------------------------------------- */

/* The new pixels between them cover those of the original from `from` to `to`. */
static unsigned scaled_start(unsigned from, unsigned in, unsigned out) {
    return (unsigned)((uint64_t)from * out / in);
}
static unsigned scaled_end(unsigned to, unsigned in, unsigned out) {
    return (unsigned)(((uint64_t)to * out + in - 1) / in);
}

static struct gif_rectangle gif_scale_scaled(const struct gif_work *work,
                                             const struct gif_rectangle *place) {
    const struct scaler_shape *shape = &work->shape;
    if (place->width == 0 || place->height == 0)
        return (struct gif_rectangle){0, 0, 0, 0};
    unsigned left = scaled_start(place->left, shape->in_width, shape->out_width);
    unsigned top = scaled_start(place->top, shape->in_height, shape->out_height);
    unsigned right = scaled_end(place->left + place->width, shape->in_width, shape->out_width);
    unsigned bottom = scaled_end(place->top + place->height, shape->in_height, shape->out_height);
    return (struct gif_rectangle){left, top, right - left, bottom - top};
}

/* The rectangle that holds both. An empty one does not count. */
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

static bool gif_scale_take(uint64_t *left, uint64_t count) {
    bool enough = count <= *left;
    *left -= enough ? count : 0;
    return enough;
}

/* The pixels of a row that have changed go into the frame. The others are transparent there. */
static void make_row(const unsigned char *pixels, unsigned char *shown, unsigned char *frame,
                     unsigned width) {
    for (unsigned x = 0; x < width; x++, pixels += CHANNELS) {
        unsigned char index = pixels[1] < OPAQUE ? TRANSPARENT : index_of(pixels[0]);
        frame[x] = index == shown[x] ? TRANSPARENT : index;
        if (index != TRANSPARENT)
            shown[x] = index;
    }
}

static bool make_frame(struct gif_work *work, const struct gif_rectangle *place) {
    const struct scaler_shape *shape = &work->shape;
    uint64_t rows = (uint64_t)place->height * shape->in_height / shape->out_height + 2;
    uint64_t columns = (uint64_t)place->width * shape->in_width / shape->out_width + 2;
    if (!gif_scale_take(&work->means_left, rows * columns))
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

/* Takes the frame away as a viewer of the result does it. */
static void dispose(struct gif_work *work, const struct gif_rectangle *place) {
    size_t count = (size_t)work->shape.out_width * work->shape.out_height;
    switch (work->control.DisposalMode) {
    case DISPOSE_BACKGROUND:
        for (unsigned y = 0; y < place->height; y++)
            memset(work->shown + (size_t)(place->top + y) * work->shape.out_width + place->left,
                   TRANSPARENT, place->width);
        work->stale = *place;
        break;
    case DISPOSE_PREVIOUS: memcpy(work->shown, work->before, count); break;
    default: work->stale = (struct gif_rectangle){0, 0, 0, 0};
    }
}

static const GraphicsControlBlock no_control = {.TransparentColor = NO_TRANSPARENT_COLOR};

/* Reads the head of a frame. Its last byte is the size of the codes. */
static bool read_frame_head(struct gif_work *work) {
    if (DGifGetImageHeader(work->from) != GIF_OK || work->input.base[-1] < CODE_SIZE_MIN)
        return false;
    const GifImageDesc *frame = &work->from->Image;
    return gif_scale_take(&work->pixels_left,
                          (uint64_t)frame->Width * (uint64_t)frame->Height + FRAME_COST);
}

/* A frame that lies outside the canvas still stands for a time to wait, so it stays. */
static bool scale_frame(struct gif_work *work) {
    static const struct gif_rectangle corner = {0, 0, 1, 1};
    struct gif_canvas *canvas = &work->canvas;
    size_t count = (size_t)work->shape.out_width * work->shape.out_height;
    if (!read_frame_head(work) || !gif_canvas_draw(canvas, work->from, &work->control))
        return false;
    struct gif_rectangle place = joined(gif_scale_scaled(work, &canvas->place), work->stale);
    if (place.width == 0)
        place = corner;
    if (work->control.DisposalMode == DISPOSE_PREVIOUS) {
        if (!gif_scale_take(&work->means_left, count))
            return false;
        memcpy(work->before, work->shown, count);
    }
    if (!make_frame(work, &place) || !put_frame(work, &place))
        return false;
    gif_canvas_dispose(canvas);
    dispose(work, &place);
    work->control = no_control;
    return true;
}

/* Copies the sub-blocks that follow, from `data` on. */
static bool copy_extension(struct gif_work *work, int label, GifByteType *data) {
    EGifPutExtensionLeader(work->to, label);
    while (data != NULL) {
        EGifPutExtensionBlock(work->to, data[0], data + 1);
        if (DGifGetExtensionNext(work->from, &data) != GIF_OK)
            return false;
    }
    EGifPutExtensionTrailer(work->to);
    return !work->full;
}

/* Texts that a viewer should draw are dropped, since no viewer draws them. */
static bool scale_extension(struct gif_work *work) {
    int label;
    GifByteType *data;
    if (DGifGetExtension(work->from, &label, &data) != GIF_OK)
        return false;
    if (label != GRAPHICS_EXT_FUNC_CODE && label != PLAINTEXT_EXT_FUNC_CODE)
        return copy_extension(work, label, data);
    work->control = no_control;
    if (label == GRAPHICS_EXT_FUNC_CODE && data != NULL)
        DGifExtensionToGCB(data[0], data + 1, &work->control);
    while (data != NULL)
        if (DGifGetExtensionNext(work->from, &data) != GIF_OK)
            return false;
    return true;
}

static bool scale_all(struct gif_work *work) {
    GifRecordType type;
    bool good = put_head(work);
    while (good && DGifGetRecordType(work->from, &type) == GIF_OK) {
        if (type == TERMINATE_RECORD_TYPE)
            return true;
        good = type == IMAGE_DESC_RECORD_TYPE ? scale_frame(work) : scale_extension(work);
    }
    return false;
}

static bool gif_scale_prepare(struct gif_work *work) {
    size_t count = (size_t)work->shape.out_width * work->shape.out_height;
    work->scaler = scaler_create(&work->shape);
    work->shown = malloc(count);
    work->before = malloc(count);
    work->frame = malloc(count);
    work->to = EGifOpen(work, write_bytes, NULL);
    if (work->scaler == NULL || work->to == NULL || work->shown == NULL || work->before == NULL ||
        work->frame == NULL ||
        !gif_canvas_open(&work->canvas, work->shape.in_width, work->shape.in_height))
        return false;
    memset(work->shown, TRANSPARENT, count);
    return true;
}

/* Writes the trailer. */
static void gif_scale_release(struct gif_work *work) {
    DGifCloseFile(work->from, NULL);
    EGifCloseFile(work->to, NULL);
    gif_canvas_close(&work->canvas);
    scaler_free(&work->scaler);
    free(work->shown);
    free(work->before);
    free(work->frame);
}

static enum picture_result scale(struct gif_work *work, const struct picture_options *options) {
    if (work->from == NULL || work->from->SHeight == 0)
        return PICTURE_BAD;
    unsigned width = work->from->SWidth, height = work->from->SHeight;
    if (!picture_is_too_wide(options, width))
        return PICTURE_UNCHANGED;
    if ((uint64_t)width * height > options->max_pixels)
        return PICTURE_BAD;
    work->shape =
        (struct scaler_shape){.channels = CHANNELS,
                              .opacity = true,
                              .in_width = width,
                              .in_height = height,
                              .out_width = (unsigned)options->width,
                              .out_height = picture_scaled_height(options, width, height)};
    return gif_scale_prepare(work) && scale_all(work) ? PICTURE_DONE : PICTURE_BAD;
}

enum picture_result gif_scale(const unsigned char *bytes, size_t length,
                              const struct picture_options *options,
                              struct picture_output *output) {
    struct gif_work work = {.pixels_left = options->max_pixels,
                            .means_left = options->max_pixels,
                            .control = no_control,
                            .input = slice_make((const char *)bytes, length),
                            .output = output,
                            .limit = options->larger ? SIZE_MAX : length};
    memset(output, 0, sizeof *output);
    work.from = DGifOpen(&work, gif_scale_read_bytes, NULL);
    enum picture_result result = scale(&work, options);
    gif_scale_release(&work);
    if (result == PICTURE_BAD || work.full)
        return picture_bad(
            output,
            "it is damaged, has too many pixels in all frames together, or would become larger");
    return result;
}

enum { COLOURS = 256 };

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
