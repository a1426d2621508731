#include "gray/jpeg_gray.h"

#include "gray/scaler.h"
#include "gray/tiff.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

enum { EXIF_NAME = 6 };

/* libjpeg's state of one conversion. Its errors lead back here. */
struct jpeg_work {
    struct jpeg_error_mgr errors; /* first: libjpeg hands out its address */
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_progress_mgr progress;
    jmp_buf on_error;
    const struct picture_options *options;
    struct picture_size wanted;
    unsigned char *bytes; /* of the result; only libjpeg knows where it is until it is whole */
    unsigned long length;
    bool encoding;      /* libjpeg has begun to write it */
    unsigned char *row; /* of the decoding path */
    struct scaler *scaler;
    struct picture_output *output;
};

static void on_error_exit(j_common_ptr common) {
    struct jpeg_work *work = (struct jpeg_work *)common->err;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    picture_bad(work->output, text);
    longjmp(work->on_error, 1);
}

/* Warnings are ignored. But a picture that ends in the middle is not worth a conversion. */
static void on_message(j_common_ptr common, int level) {
    int code = common->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
        on_error_exit(common);
}

static void jpeg_gray_fail(struct jpeg_work *work, const char *why) {
    picture_bad(work->output, why);
    longjmp(work->on_error, 1);
}

/* A small file can hold thousands of scans, and each of them costs a pass over the whole
 * picture. */
static void on_progress(j_common_ptr common) {
    struct jpeg_work *work = (struct jpeg_work *)common->err;
    if (common->is_decompressor && work->in.input_scan_number > JPEG_GRAY_SCANS_MAX)
        jpeg_gray_fail(work, "too many scans");
}

static void jpeg_gray_create(struct jpeg_work *work) {
    work->in.err = jpeg_std_error(&work->errors);
    work->out.err = &work->errors;
    work->errors.error_exit = on_error_exit;
    work->errors.emit_message = on_message;
    work->progress.progress_monitor = on_progress;
    jpeg_create_decompress(&work->in);
    jpeg_create_compress(&work->out);
    work->in.progress = &work->progress;
}

static void destroy(struct jpeg_work *work) {
    jpeg_destroy_compress(&work->out);
    jpeg_destroy_decompress(&work->in);
    scaler_free(&work->scaler);
    free(work->row);
}

static bool begins_with(const struct jpeg_marker_struct *marker, const char *tag, size_t length) {
    return marker->data_length >= length && memcmp(marker->data, tag, length) == 0;
}

/* ICC.1: the profile's colour space stands at byte 16 of its header; the profile begins behind
 * "ICC_PROFILE", a NUL, and the number and count of the chunk. */
static bool profile_is_gray(const struct jpeg_decompress_struct *in) {
    enum { CHUNK_HEAD = 14, SPACE_AT = CHUNK_HEAD + 16 };
    for (const struct jpeg_marker_struct *marker = in->marker_list; marker != NULL;
         marker = marker->next)
        if (marker->marker == JPEG_APP0 + 2 && begins_with(marker, "ICC_PROFILE", 12) &&
            marker->data_length >= SPACE_AT + 4 && marker->data[12] == 1)
            return memcmp(marker->data + SPACE_AT, "GRAY", 4) == 0;
    return false;
}

static bool is_exif(const struct jpeg_marker_struct *marker) {
    return marker->marker == JPEG_APP0 + 1 && begins_with(marker, "Exif\0", EXIF_NAME);
}

static bool marker_stays(const struct jpeg_work *work, const struct jpeg_marker_struct *marker,
                         bool keep_profile) {
    if (marker->marker == JPEG_APP0 && begins_with(marker, "JFIF", 5))
        return !work->out.write_JFIF_header;
    if (marker->marker == JPEG_APP0 + 14 && begins_with(marker, "Adobe", 5))
        return false; /* says how to read three or four components */
    if (marker->marker == JPEG_APP0 + 2 && begins_with(marker, "ICC_PROFILE", 12))
        return keep_profile;
    if (marker->marker == JPEG_APP0 + 2 && begins_with(marker, "MPF", 4))
        return false; /* points at pictures behind this one, which do not come along */
    return !work->options->strip;
}

/* The EXIF data behind the name. */
static struct slice exif_of(const struct jpeg_marker_struct *marker) {
    return slice_make((const char *)marker->data + EXIF_NAME, marker->data_length - EXIF_NAME);
}

static bool is_turned(const struct jpeg_decompress_struct *in) {
    for (const struct jpeg_marker_struct *marker = in->marker_list; marker != NULL;
         marker = marker->next)
        if (is_exif(marker))
            return exif_orientation(exif_of(marker)) >= EXIF_TURNED;
    return false;
}

static void write_orientation(struct jpeg_work *work, const struct jpeg_marker_struct *exif) {
    char bytes[EXIF_NAME + EXIF_MINIMAL] = "Exif\0";
    if (exif_stripped(exif_of(exif), bytes + EXIF_NAME).length > 0)
        jpeg_write_marker(&work->out, JPEG_APP0 + 1, (const JOCTET *)bytes, sizeof bytes);
}

static void copy_markers(struct jpeg_work *work) {
    bool keep_profile = profile_is_gray(&work->in);
    for (const struct jpeg_marker_struct *marker = work->in.marker_list; marker != NULL;
         marker = marker->next)
        if (marker_stays(work, marker, keep_profile))
            jpeg_write_marker(&work->out, marker->marker, marker->data, marker->data_length);
        else if (is_exif(marker))
            write_orientation(work, marker);
}

static bool jpeg_gray_is_scaled(const struct jpeg_work *work) {
    return work->wanted.width != work->in.image_width ||
           work->wanted.height != work->in.image_height;
}

/* The luminance must have the full resolution. Otherwise dropping the rest would shrink the
 * picture. */
static bool luminance_can_be_kept(const struct jpeg_work *work) {
    const struct jpeg_decompress_struct *in = &work->in;
    if (work->options->quality > 0 || jpeg_gray_is_scaled(work))
        return false;
    if (in->num_components == 1)
        return true;
    return in->jpeg_color_space == JCS_YCbCr && in->num_components == 3 &&
           in->comp_info[0].h_samp_factor == in->max_h_samp_factor &&
           in->comp_info[0].v_samp_factor == in->max_v_samp_factor;
}

static void set_destination(struct jpeg_work *work) {
    jpeg_mem_dest(&work->out, &work->bytes, &work->length);
    work->encoding = true;
}

/* Cleans up after an error in the middle. The buffer that work->bytes points at may have been freed
 * for a larger one, which libjpeg tells only at the end. */
static void throw_away(struct jpeg_work *work) {
    if (work->encoding)
        work->out.dest->term_destination(&work->out);
    free(work->bytes);
    work->bytes = NULL;
}

static void keep_luminance(struct jpeg_work *work) {
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&work->in);
    set_destination(work);
    jpeg_copy_critical_parameters(&work->in, &work->out);
    /* Setting the colour space resets which quantisation table the component uses. */
    int table = work->out.comp_info[0].quant_tbl_no;
    jpeg_set_colorspace(&work->out, JCS_GRAYSCALE);
    work->out.comp_info[0].quant_tbl_no = table;
    work->out.arith_code = work->in.arith_code;
    work->out.optimize_coding = !work->in.arith_code;
    if (work->in.progressive_mode)
        jpeg_simple_progression(&work->out);
    jpeg_write_coefficients(&work->out, coefficients);
    copy_markers(work);
    jpeg_finish_compress(&work->out);
    jpeg_finish_decompress(&work->in);
}

/* Inverted, as Adobe writes CMYK: 255 is no ink. Browsers read all files in this way, with Adobe's
 * marker and without it. */
static void cmyk_row_to_gray(unsigned char *row, unsigned width) {
    for (unsigned x = 0; x < width; x++) {
        const unsigned char *pixel = row + x * 4;
        unsigned black = pixel[3];
        row[x] = gray_luma(pixel[0] * black / 255, pixel[1] * black / 255, pixel[2] * black / 255);
    }
}

/* libjpeg scales by eighths while it decodes, which is less work than decoding all. The scaler does
 * the rest, row by row. */
static void scale_down(struct jpeg_work *work) {
    struct jpeg_decompress_struct *in = &work->in;
    in->scale_denom = 8;
    for (in->scale_num = 1; in->scale_num < 8; in->scale_num++) {
        jpeg_calc_output_dimensions(in);
        if (in->output_width >= work->wanted.width && in->output_height >= work->wanted.height)
            break;
    }
    jpeg_calc_output_dimensions(in);
    struct scaler_shape shape = {.channels = 1,
                                 .in_width = in->output_width,
                                 .in_height = in->output_height,
                                 .out_width = work->wanted.width,
                                 .out_height = work->wanted.height};
    work->out.image_width = shape.out_width;
    work->out.image_height = shape.out_height;
    work->scaler = scaler_create(&shape);
    if (work->scaler == NULL)
        jpeg_gray_fail(work, "out of memory");
}

/* Passes a row on, through the scaler if there is one. */
static void write_row(struct jpeg_work *work) {
    JSAMPROW rows[1] = {work->row};
    if (work->scaler != NULL) {
        if (!scaler_push(work->scaler, work->row))
            return;
        rows[0] = (unsigned char *)scaler_row(work->scaler);
    }
    jpeg_write_scanlines(&work->out, rows, 1);
}

static void start_encoding(struct jpeg_work *work) {
    struct jpeg_compress_struct *out = &work->out;
    set_destination(work);
    if (work->scaler == NULL) {
        out->image_width = work->in.output_width;
        out->image_height = work->in.output_height;
    }
    out->input_components = 1;
    out->in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(out);
    int quality = work->options->quality > 0 ? (int)work->options->quality : JPEG_GRAY_QUALITY;
    jpeg_set_quality(out, quality, TRUE);
    out->optimize_coding = TRUE;
    if (work->in.progressive_mode)
        jpeg_simple_progression(out);
    jpeg_start_compress(out, TRUE);
    copy_markers(work);
}

static void encode_anew(struct jpeg_work *work) {
    struct jpeg_decompress_struct *in = &work->in;
    bool is_cmyk = in->jpeg_color_space == JCS_CMYK || in->jpeg_color_space == JCS_YCCK;
    in->out_color_space = is_cmyk ? JCS_CMYK : JCS_GRAYSCALE;
    if (jpeg_gray_is_scaled(work))
        scale_down(work);
    jpeg_start_decompress(in);
    work->row = malloc((size_t)in->output_width * (size_t)in->output_components);
    if (work->row == NULL)
        jpeg_gray_fail(work, "out of memory");
    start_encoding(work);
    while (in->output_scanline < in->output_height) {
        JSAMPROW rows[1] = {work->row};
        jpeg_read_scanlines(in, rows, 1);
        if (is_cmyk)
            cmyk_row_to_gray(work->row, in->output_width);
        write_row(work);
    }
    jpeg_finish_compress(&work->out);
    jpeg_finish_decompress(in);
}

static void jpeg_gray_read_header(struct jpeg_work *work, const unsigned char *bytes,
                                  size_t length) {
    jpeg_mem_src(&work->in, bytes, length);
    jpeg_save_markers(&work->in, JPEG_COM, 0xffff);
    for (int i = 0; i < 16; i++)
        jpeg_save_markers(&work->in, JPEG_APP0 + i, 0xffff);
    jpeg_read_header(&work->in, TRUE);
    if ((uint64_t)work->in.image_width * work->in.image_height > work->options->max_pixels)
        jpeg_gray_fail(work, "too many pixels");
    struct picture_size size = {work->in.image_width, work->in.image_height};
    work->wanted = picture_wanted_size(work->options, size, is_turned(&work->in));
}

static bool has_to_change(const struct jpeg_work *work) {
    const struct jpeg_decompress_struct *in = &work->in;
    return in->num_components != 1 || work->options->quality > 0 || work->options->strip ||
           jpeg_gray_is_scaled(work);
}

enum picture_result jpeg_gray(const unsigned char *bytes, size_t length,
                              const struct picture_options *options,
                              struct picture_output *output) {
    struct jpeg_work *work = calloc(1, sizeof *work);
    memset(output, 0, sizeof *output);
    if (work == NULL)
        return picture_bad(output, "out of memory");
    work->options = options;
    work->output = output;
    /* Variables that change between setjmp and longjmp must lie on the heap or be volatile. */
    volatile enum picture_result result = PICTURE_BAD;
    if (setjmp(work->on_error) == 0) {
        jpeg_gray_create(work);
        jpeg_gray_read_header(work, bytes, length);
        result = has_to_change(work) ? PICTURE_DONE : PICTURE_UNCHANGED;
        if (result == PICTURE_DONE && luminance_can_be_kept(work))
            keep_luminance(work);
        else if (result == PICTURE_DONE)
            encode_anew(work);
    } else {
        result = PICTURE_BAD;
        throw_away(work);
    }
    destroy(work);
    if (result == PICTURE_DONE) {
        output->bytes = work->bytes;
        output->length = work->length;
        result = picture_done(options, length, output);
    }
    free(work);
    return result;
}
