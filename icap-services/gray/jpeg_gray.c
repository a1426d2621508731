#include "gray/jpeg_gray.h"

#include "gray/gif_gray.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

/* libjpeg's state of one conversion, with its errors led back here. */
struct jpeg_work {
    struct jpeg_error_mgr errors; /* first: libjpeg hands out its address */
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_progress_mgr progress;
    jmp_buf on_error;
    unsigned char *bytes;
    unsigned long length;
    unsigned char *row; /* of the decoding path */
    char *error;
    size_t error_size;
};

static void on_error_exit(j_common_ptr common) {
    struct jpeg_work *work = (struct jpeg_work *)common->err;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    snprintf(work->error, work->error_size, "%s", text);
    longjmp(work->on_error, 1);
}

/* Warnings pass, but a picture that ends in the middle is not worth a conversion. */
static void on_message(j_common_ptr common, int level) {
    int code = common->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
        on_error_exit(common);
}

static void fail(struct jpeg_work *work, const char *why) {
    snprintf(work->error, work->error_size, "%s", why);
    longjmp(work->on_error, 1);
}

/* A small file can hold thousands of scans that each cost a pass over the whole picture. */
static void on_progress(j_common_ptr common) {
    struct jpeg_work *work = (struct jpeg_work *)common->err;
    if (common->is_decompressor && work->in.input_scan_number > JPEG_GRAY_SCANS_MAX)
        fail(work, "too many scans");
}

static void create(struct jpeg_work *work) {
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

static bool marker_stays(const struct jpeg_marker_struct *marker, bool keep_profile,
                         bool writes_jfif) {
    if (marker->marker == JPEG_APP0)
        return !(writes_jfif && begins_with(marker, "JFIF", 5));
    if (marker->marker == JPEG_APP0 + 14 && begins_with(marker, "Adobe", 5))
        return false; /* says how to read three or four components */
    if (marker->marker == JPEG_APP0 + 2 && begins_with(marker, "ICC_PROFILE", 12))
        return keep_profile;
    if (marker->marker == JPEG_APP0 + 2 && begins_with(marker, "MPF", 4))
        return false; /* points at pictures behind this one, which do not come along */
    return true;
}

static void copy_markers(struct jpeg_work *work) {
    bool keep_profile = profile_is_gray(&work->in);
    for (const struct jpeg_marker_struct *marker = work->in.marker_list; marker != NULL;
         marker = marker->next)
        if (marker_stays(marker, keep_profile, work->out.write_JFIF_header))
            jpeg_write_marker(&work->out, marker->marker, marker->data, marker->data_length);
}

/* The luminance must have the full resolution, or dropping the rest would shrink the picture. */
static bool luminance_can_be_kept(const struct jpeg_decompress_struct *in) {
    return in->jpeg_color_space == JCS_YCbCr && in->num_components == 3 &&
           in->comp_info[0].h_samp_factor == in->max_h_samp_factor &&
           in->comp_info[0].v_samp_factor == in->max_v_samp_factor;
}

static void keep_luminance(struct jpeg_work *work) {
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&work->in);
    jpeg_mem_dest(&work->out, &work->bytes, &work->length);
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

/* Adobe writes CMYK inverted: 255 is no ink. */
static void cmyk_row_to_gray(unsigned char *row, unsigned width, bool inverted) {
    for (unsigned x = 0; x < width; x++) {
        unsigned ink[4];
        for (int i = 0; i < 4; i++)
            ink[i] = inverted ? row[x * 4 + i] : 255u - row[x * 4 + i];
        row[x] = gray_luma(ink[0] * ink[3] / 255, ink[1] * ink[3] / 255, ink[2] * ink[3] / 255);
    }
}

static void encode_anew(struct jpeg_work *work) {
    struct jpeg_decompress_struct *in = &work->in;
    struct jpeg_compress_struct *out = &work->out;
    bool is_cmyk = in->jpeg_color_space == JCS_CMYK || in->jpeg_color_space == JCS_YCCK;
    in->out_color_space = is_cmyk ? JCS_CMYK : JCS_GRAYSCALE;
    jpeg_start_decompress(in);
    work->row = malloc((size_t)in->output_width * (size_t)in->output_components);
    if (work->row == NULL)
        fail(work, "out of memory");
    jpeg_mem_dest(out, &work->bytes, &work->length);
    out->image_width = in->output_width;
    out->image_height = in->output_height;
    out->input_components = 1;
    out->in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(out);
    jpeg_set_quality(out, JPEG_GRAY_QUALITY, TRUE);
    out->optimize_coding = TRUE;
    if (in->progressive_mode)
        jpeg_simple_progression(out);
    jpeg_start_compress(out, TRUE);
    copy_markers(work);
    while (in->output_scanline < in->output_height) {
        JSAMPROW rows[1] = {work->row};
        jpeg_read_scanlines(in, rows, 1);
        if (is_cmyk)
            cmyk_row_to_gray(work->row, in->output_width, in->saw_Adobe_marker);
        jpeg_write_scanlines(out, rows, 1);
    }
    jpeg_finish_compress(out);
    jpeg_finish_decompress(in);
}

static void read_header(struct jpeg_work *work, const unsigned char *bytes, size_t length,
                        uint64_t max_pixels) {
    jpeg_mem_src(&work->in, bytes, length);
    jpeg_save_markers(&work->in, JPEG_COM, 0xffff);
    for (int i = 0; i < 16; i++)
        jpeg_save_markers(&work->in, JPEG_APP0 + i, 0xffff);
    jpeg_read_header(&work->in, TRUE);
    if ((uint64_t)work->in.image_width * work->in.image_height > max_pixels)
        fail(work, "too many pixels");
}

enum jpeg_gray_result jpeg_gray(const unsigned char *bytes, size_t length, uint64_t max_pixels,
                                struct jpeg_gray_output *output) {
    struct jpeg_work *work = calloc(1, sizeof *work);
    memset(output, 0, sizeof *output);
    if (work == NULL) {
        snprintf(output->error, sizeof output->error, "out of memory");
        return JPEG_GRAY_BAD;
    }
    work->error = output->error;
    work->error_size = sizeof output->error;
    /* What is changed between setjmp and longjmp lies on the heap or is volatile. */
    volatile enum jpeg_gray_result result = JPEG_GRAY_BAD;
    if (setjmp(work->on_error) == 0) {
        create(work);
        read_header(work, bytes, length, max_pixels);
        if (work->in.num_components == 1)
            result = JPEG_GRAY_UNCHANGED;
        else {
            if (luminance_can_be_kept(&work->in))
                keep_luminance(work);
            else
                encode_anew(work);
            result = JPEG_GRAY_DONE;
        }
    }
    destroy(work);
    if (result == JPEG_GRAY_DONE) {
        output->bytes = work->bytes;
        output->length = work->length;
    } else
        free(work->bytes);
    free(work);
    return result;
}
