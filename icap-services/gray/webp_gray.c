#include "gray/webp_gray.h"

#include "gray/tiff.h"

#include <stdio.h>
#include <stdlib.h>

#include <webp/decode.h>
#include <webp/encode.h>
#include <webp/mux.h>

enum { FORMAT_LOSSLESS = 2 };

static void webp_gray_make_gray(unsigned char *pixels, size_t count, bool *changed) {
    for (unsigned char *end = pixels + 4 * count; pixels < end; pixels += 4) {
        unsigned char luma = gray_luma(pixels[0], pixels[1], pixels[2]);
        *changed |= pixels[0] != luma || pixels[1] != luma || pixels[2] != luma;
        pixels[0] = pixels[1] = pixels[2] = luma;
    }
}

/* NULL when it can't be decoded. */
static unsigned char *webp_gray_decode(struct slice bytes, WebPDecoderConfig *config) {
    config->output.colorspace = MODE_RGBA;
    if (WebPDecode((const uint8_t *)bytes.base, bytes.length, config) != VP8_STATUS_OK) {
        WebPFreeDecBuffer(&config->output);
        return NULL;
    }
    return config->output.u.RGBA.rgba;
}

static bool encode(const WebPDecoderConfig *decoded, const struct picture_options *options,
                   WebPMemoryWriter *writer) {
    WebPConfig config;
    WebPPicture picture;
    float quality = options->quality > 0 ? (float)options->quality : WEBP_GRAY_QUALITY;
    bool lossless = decoded->input.format == FORMAT_LOSSLESS && options->quality == 0;
    if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, quality) || !WebPPictureInit(&picture))
        return false;
    if (lossless)
        WebPConfigLosslessPreset(&config, 4);
    picture.use_argb = lossless;
    picture.width = decoded->output.width;
    picture.height = decoded->output.height;
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = writer;
    const WebPRGBABuffer *pixels = &decoded->output.u.RGBA;
    bool good = WebPPictureImportRGBA(&picture, pixels->rgba, pixels->stride) &&
                WebPEncode(&config, &picture);
    WebPPictureFree(&picture);
    return good;
}

/* Copies the EXIF data of the original, or only the orientation. */
static bool webp_gray_copy_exif(WebPMux *from, WebPMux *to, const struct picture_options *options) {
    WebPData exif = {NULL, 0};
    char room[EXIF_MINIMAL];
    bool has = from != NULL && WebPMuxGetChunk(from, "EXIF", &exif) == WEBP_MUX_OK;
    if (has && options->strip) {
        struct slice left = exif_stripped(slice_make((const char *)exif.bytes, exif.size), room);
        has = left.length > 0;
        exif = (WebPData){(const uint8_t *)left.base, left.length};
    }
    return !has || WebPMuxSetChunk(to, "EXIF", &exif, 1) == WEBP_MUX_OK;
}

/* Joins the EXIF data to what was encoded. */
static bool join_exif(struct slice original, const struct picture_options *options,
                      const WebPMemoryWriter *encoded, WebPData *whole) {
    WebPData in = {(const uint8_t *)original.base, original.length};
    WebPData image = {encoded->mem, encoded->size};
    WebPMux *from = WebPMuxCreate(&in, 0), *to = WebPMuxCreate(&image, 0);
    bool good = to != NULL && webp_gray_copy_exif(from, to, options) &&
                WebPMuxAssemble(to, whole) == WEBP_MUX_OK;
    WebPMuxDelete(from);
    WebPMuxDelete(to);
    return good;
}

static enum picture_result webp_gray_convert(struct slice bytes, WebPDecoderConfig *config,
                                             const struct picture_options *options,
                                             struct picture_output *output) {
    bool changed = options->quality > 0 || config->options.use_scaling;
    unsigned char *pixels = webp_gray_decode(bytes, config);
    if (pixels == NULL)
        return picture_bad(output, "not a whole WebP");
    webp_gray_make_gray(pixels, (size_t)config->output.width * (size_t)config->output.height,
                        &changed);
    WebPMemoryWriter writer;
    WebPData whole = {NULL, 0};
    WebPMemoryWriterInit(&writer);
    bool good =
        changed && encode(config, options, &writer) && join_exif(bytes, options, &writer, &whole);
    WebPMemoryWriterClear(&writer);
    WebPFreeDecBuffer(&config->output);
    if (!changed)
        return PICTURE_UNCHANGED;
    if (!good)
        return picture_bad(output, "it can't be encoded again");
    output->bytes = (unsigned char *)whole.bytes; /* libwebp's allocator is malloc */
    output->length = whole.size;
    return picture_done(options, bytes.length, output);
}

/* A picture that stays as it is may still lose its metadata. */
static enum picture_result webp_gray_strip(struct slice bytes, struct picture_output *output) {
    char room[EXIF_MINIMAL];
    WebPData in = {(const uint8_t *)bytes.base, bytes.length}, exif, whole = {NULL, 0};
    WebPMux *mux = WebPMuxCreate(&in, 0);
    bool less = mux != NULL && WebPMuxDeleteChunk(mux, "XMP ") == WEBP_MUX_OK;
    if (mux != NULL && WebPMuxGetChunk(mux, "EXIF", &exif) == WEBP_MUX_OK) {
        struct slice left = exif_stripped(slice_make((const char *)exif.bytes, exif.size), room);
        WebPData kept = {(const uint8_t *)left.base, left.length};
        if (left.length == 0)
            less |= WebPMuxDeleteChunk(mux, "EXIF") == WEBP_MUX_OK;
        else if (left.length < exif.size)
            less |= WebPMuxSetChunk(mux, "EXIF", &kept, 1) == WEBP_MUX_OK;
    }
    bool good = less && WebPMuxAssemble(mux, &whole) == WEBP_MUX_OK;
    WebPMuxDelete(mux);
    if (!good)
        return PICTURE_UNCHANGED;
    output->bytes = (unsigned char *)whole.bytes; /* libwebp's allocator is malloc */
    output->length = whole.size;
    return PICTURE_DONE;
}

/* ---- animations --------------------------------------------------------------------------- */

/* libwebp walks through a list at each frame, so the number of chunks is limited. */
enum { CHUNKS_MOST = 8192, FRAME_WORK = 1024 };

static uint32_t webp_gray_number_at(const char *at) {
    const unsigned char *bytes = (const unsigned char *)at;
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static uint64_t side_at(const char *at) {
    return (webp_gray_number_at(at) & 0xffffff) + 1;
}

/* Tells by the headers of its chunks why a file is too much work; NULL: it is not. */
static const char *excess_of(struct slice bytes, uint64_t max_pixels) {
    enum { CHUNKS = 12, CHUNK = 8, WIDTH = 14, HEIGHT = 17, FRAME = 24 };
    unsigned count = 0;
    uint64_t pixels = 0;
    for (size_t at = CHUNKS; at < bytes.length && bytes.length - at >= CHUNK; count++) {
        uint64_t length = webp_gray_number_at(bytes.base + at + 4);
        if (length > bytes.length - at - CHUNK)
            break;
        const char *chunk = bytes.base + at;
        if (length + CHUNK >= FRAME && memcmp(chunk, "ANMF", 4) == 0)
            pixels += side_at(chunk + WIDTH) * side_at(chunk + HEIGHT) + FRAME_WORK;
        at += CHUNK + length + (length & 1);
    }
    if (count > CHUNKS_MOST)
        return "too many chunks";
    return pixels > max_pixels ? "too many pixels in all frames together" : NULL;
}

/* Each frame is a still picture of its own size; its place, time and disposal stay. */
static enum picture_result convert_frame(WebPMux *to, WebPMuxFrameInfo *frame,
                                         const struct picture_options *options,
                                         struct picture_output *output) {
    struct picture_output made;
    enum picture_result result =
        webp_gray(frame->bitstream.bytes, frame->bitstream.size, options, &made);
    if (result == PICTURE_BAD)
        return picture_bad(output, made.error);
    WebPMuxFrameInfo gray = *frame;
    if (result == PICTURE_DONE)
        gray.bitstream = (WebPData){made.bytes, made.length};
    bool good = WebPMuxPushFrame(to, &gray, 1) == WEBP_MUX_OK;
    if (result == PICTURE_DONE)
        free(made.bytes);
    return good ? result : picture_bad(output, "its frames can't be put together again");
}

static enum picture_result convert_frames(WebPMux *from, WebPMux *to,
                                          const struct picture_options *options,
                                          struct picture_output *output) {
    const struct picture_options each = {
        .max_pixels = options->max_pixels, .quality = options->quality, .larger = true};
    bool changed = false;
    WebPMuxFrameInfo frame;
    for (uint32_t i = 1; WebPMuxGetFrame(from, i, &frame) == WEBP_MUX_OK; i++) {
        enum picture_result result = frame.id == WEBP_CHUNK_ANMF
                                         ? convert_frame(to, &frame, &each, output)
                                         : picture_bad(output, "not a whole WebP");
        WebPDataClear(&frame.bitstream);
        if (result == PICTURE_BAD)
            return PICTURE_BAD;
        changed |= result == PICTURE_DONE;
    }
    return changed ? PICTURE_DONE : PICTURE_UNCHANGED;
}

/* The background is a colour as well: blue, green, red, alpha. */
static uint32_t gray_background(uint32_t color) {
    uint32_t luma = gray_luma(color >> 8 & 0xff, color >> 16 & 0xff, color >> 24);
    return luma << 24 | luma << 16 | luma << 8 | (color & 0xff);
}

static bool copy_terms(WebPMux *from, WebPMux *to, const struct picture_options *options) {
    int width, height;
    WebPMuxAnimParams terms;
    if (WebPMuxGetCanvasSize(from, &width, &height) != WEBP_MUX_OK ||
        WebPMuxGetAnimationParams(from, &terms) != WEBP_MUX_OK)
        return false;
    terms.bgcolor = gray_background(terms.bgcolor);
    return WebPMuxSetCanvasSize(to, width, height) == WEBP_MUX_OK &&
           WebPMuxSetAnimationParams(to, &terms) == WEBP_MUX_OK &&
           webp_gray_copy_exif(from, to, options);
}

static enum picture_result convert_animation(struct slice bytes,
                                             const struct picture_options *options,
                                             struct picture_output *output) {
    WebPData in = {(const uint8_t *)bytes.base, bytes.length}, whole = {NULL, 0};
    WebPMux *from = WebPMuxCreate(&in, 0), *to = WebPMuxNew();
    enum picture_result result = from != NULL && to != NULL
                                     ? convert_frames(from, to, options, output)
                                     : picture_bad(output, "not a whole WebP");
    bool good = result == PICTURE_DONE && copy_terms(from, to, options) &&
                WebPMuxAssemble(to, &whole) == WEBP_MUX_OK;
    WebPMuxDelete(from);
    WebPMuxDelete(to);
    if (result != PICTURE_DONE)
        return result;
    if (!good)
        return picture_bad(output, "its frames can't be put together again");
    output->bytes = (unsigned char *)whole.bytes; /* libwebp's allocator is malloc */
    output->length = whole.size;
    return picture_done(options, bytes.length, output);
}

static enum picture_result webp_gray_make(struct slice bytes, WebPDecoderConfig *config,
                                          const struct picture_options *options,
                                          struct picture_output *output) {
    unsigned width = (unsigned)config->input.width, height = (unsigned)config->input.height;
    if ((uint64_t)width * height > options->max_pixels)
        return picture_bad(output, "too many pixels");
    if (config->input.has_animation)
        return convert_animation(bytes, options, output);
    if (picture_is_too_wide(options, width)) {
        config->options.use_scaling = 1;
        config->options.scaled_width = (int)options->width;
        config->options.scaled_height = (int)picture_scaled_height(options, width, height);
    }
    return webp_gray_convert(bytes, config, options, output);
}

enum picture_result webp_gray(const unsigned char *bytes, size_t length,
                              const struct picture_options *options,
                              struct picture_output *output) {
    WebPDecoderConfig config;
    memset(output, 0, sizeof *output);
    if (!WebPInitDecoderConfig(&config) ||
        WebPGetFeatures(bytes, length, &config.input) != VP8_STATUS_OK)
        return picture_bad(output, "not a whole WebP");
    struct slice original = slice_make((const char *)bytes, length);
    const char *excess = excess_of(original, options->max_pixels);
    if (excess != NULL)
        return picture_bad(output, excess);
    enum picture_result result = webp_gray_make(original, &config, options, output);
    return result == PICTURE_UNCHANGED && options->strip ? webp_gray_strip(original, output)
                                                         : result;
}
