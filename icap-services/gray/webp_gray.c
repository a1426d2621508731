#include "gray/webp_gray.h"

#include "gray/exif.h"

#include <stdio.h>
#include <stdlib.h>

#include <webp/decode.h>
#include <webp/encode.h>
#include <webp/mux.h>

enum { FORMAT_LOSSLESS = 2 };

static void make_gray(unsigned char *pixels, size_t count, bool *changed) {
    for (unsigned char *end = pixels + 4 * count; pixels < end; pixels += 4) {
        unsigned char luma = gray_luma(pixels[0], pixels[1], pixels[2]);
        *changed |= pixels[0] != luma || pixels[1] != luma || pixels[2] != luma;
        pixels[0] = pixels[1] = pixels[2] = luma;
    }
}

/* NULL when it can't be decoded. */
static unsigned char *decode(struct slice bytes, WebPDecoderConfig *config) {
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

/* The original's EXIF data, or of it the orientation, joined to what was encoded. */
static bool join_exif(struct slice original, const struct picture_options *options,
                      const WebPMemoryWriter *encoded, WebPData *whole) {
    WebPData in = {(const uint8_t *)original.base, original.length};
    WebPData image = {encoded->mem, encoded->size}, exif = {NULL, 0};
    char room[EXIF_MINIMAL];
    WebPMux *from = WebPMuxCreate(&in, 0), *to = WebPMuxCreate(&image, 0);
    bool has = from != NULL && WebPMuxGetChunk(from, "EXIF", &exif) == WEBP_MUX_OK;
    if (has && options->strip) {
        struct slice left = exif_stripped(slice_make((const char *)exif.bytes, exif.size), room);
        has = left.length > 0;
        exif = (WebPData){(const uint8_t *)left.base, left.length};
    }
    bool good = to != NULL && (!has || WebPMuxSetChunk(to, "EXIF", &exif, 1) == WEBP_MUX_OK) &&
                WebPMuxAssemble(to, whole) == WEBP_MUX_OK;
    WebPMuxDelete(from);
    WebPMuxDelete(to);
    return good;
}

static enum picture_result convert(struct slice bytes, WebPDecoderConfig *config,
                                   const struct picture_options *options,
                                   struct picture_output *output) {
    bool changed = options->quality > 0 || config->options.use_scaling;
    unsigned char *pixels = decode(bytes, config);
    if (pixels == NULL)
        return picture_bad(output, "not a whole WebP");
    make_gray(pixels, (size_t)config->output.width * (size_t)config->output.height, &changed);
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
        return picture_bad(output, "it can not be encoded again");
    output->bytes = (unsigned char *)whole.bytes; /* libwebp's allocator is malloc */
    output->length = whole.size;
    return picture_done(options, bytes.length, output);
}

/* What is left as it is may still speak about itself. */
static enum picture_result strip(struct slice bytes, struct picture_output *output) {
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

static enum picture_result make(struct slice bytes, WebPDecoderConfig *config,
                                const struct picture_options *options,
                                struct picture_output *output) {
    unsigned width = (unsigned)config->input.width, height = (unsigned)config->input.height;
    if ((uint64_t)width * height > options->max_pixels)
        return picture_bad(output, "too many pixels");
    if (config->input.has_animation)
        return PICTURE_UNCHANGED;
    if (picture_is_too_wide(options, width)) {
        config->options.use_scaling = 1;
        config->options.scaled_width = (int)options->width;
        config->options.scaled_height = (int)picture_scaled_height(options, width, height);
    }
    return convert(bytes, config, options, output);
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
    enum picture_result result = make(original, &config, options, output);
    return result == PICTURE_UNCHANGED && options->strip ? strip(original, output) : result;
}
