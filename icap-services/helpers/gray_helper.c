/*
 * gray-helper: makes images gray; started by retort-helperd. JPEG and GIF by our own code, PNG and
 * others by the programs of netpbm.
 */
#include "base/log.h"
#include "gray/gif_gray.h"
#include "gray/image_type.h"
#include "gray/jpeg_gray.h"
#include "gray/png_info.h"
#include "helpers/helper_loop.h"
#include "helpers/pipeline.h"
#include "service/option.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct {
    uint64_t memory, file, cpu, pixels;
} limits = {
    .memory = UINT64_C(512) << 20, .file = UINT64_C(256) << 20, .cpu = 20, .pixels = 100000000};

static enum helper_status failed(struct helper_work *work, const char *why) {
    helper_work_reply(work, slice_from(why));
    return HELPER_FAILED;
}

static enum helper_status give_bytes(struct helper_work *work, const void *bytes, size_t length) {
    work->output = helper_body_create("gray");
    if (work->output < 0 || !helper_body_write(work->output, bytes, length))
        return failed(work, "no room for the result");
    return HELPER_DONE;
}

static enum helper_status jpeg(struct helper_work *work) {
    struct jpeg_gray_output output;
    switch (jpeg_gray((const unsigned char *)work->input.base, work->input.length, limits.pixels,
                      &output)) {
    case JPEG_GRAY_UNCHANGED: return HELPER_UNCHANGED;
    case JPEG_GRAY_BAD: return failed(work, output.error);
    default: break;
    }
    enum helper_status status = give_bytes(work, output.bytes, output.length);
    free(output.bytes);
    return status;
}

static enum helper_status gif(struct helper_work *work) {
    unsigned char *bytes = malloc(work->input.length);
    if (bytes == NULL)
        return failed(work, "out of memory");
    memcpy(bytes, work->input.base, work->input.length);
    enum helper_status status = HELPER_UNCHANGED;
    switch (gif_gray(bytes, work->input.length)) {
    case GIF_GRAY_DONE: status = give_bytes(work, bytes, work->input.length); break;
    case GIF_GRAY_UNCHANGED: break;
    case GIF_GRAY_BAD: status = failed(work, "not a whole GIF"); break;
    }
    free(bytes);
    return status;
}

/* decode | ppmtopgm | encode, from the job's body to a new one. */
static enum helper_status netpbm(struct helper_work *work, char *const *decode,
                                 char *const *encode) {
    static char *const gray[] = {"ppmtopgm", NULL};
    char *const *const programs[] = {decode, gray, encode, NULL};
    char error[200];
    work->output = helper_body_create("gray");
    if (work->output < 0 || lseek(work->input_fd, 0, SEEK_SET) != 0)
        return failed(work, "no room for the result");
    if (!pipeline_run(programs, work->input_fd, work->output, error, sizeof error)) {
        close(work->output);
        work->output = -1;
        return failed(work, error);
    }
    return HELPER_DONE;
}

/* The transparency, as a picture of its own for pnmtopng. Its descriptor is inherited, hence
 * without close-on-exec; -1 on failure. */
static int png_alpha(struct helper_work *work) {
    static char *const decode[] = {"pngtopnm", "-alpha", NULL};
    char *const *const programs[] = {decode, NULL};
    char error[200];
    int kept = helper_body_create("alpha");
    int alpha = kept < 0 ? -1 : dup(kept);
    if (kept >= 0)
        close(kept);
    if (alpha >= 0 && lseek(work->input_fd, 0, SEEK_SET) == 0 &&
        pipeline_run(programs, work->input_fd, alpha, error, sizeof error))
        return alpha;
    if (alpha >= 0)
        close(alpha);
    return -1;
}

static enum helper_status png(struct helper_work *work) {
    struct png_info info;
    if (!png_info_read(&info, work->input))
        return failed(work, "not a whole PNG");
    if (info.is_gray || info.is_animated) /* netpbm knows only the first frame */
        return HELPER_UNCHANGED;
    if (info.pixels > limits.pixels)
        return failed(work, "too many pixels");
    char alpha_option[64];
    char *encode[4] = {"pnmtopng", NULL, NULL, NULL};
    int at = 1, alpha = -1;
    if (info.is_interlaced)
        encode[at++] = "-interlace";
    if (info.has_alpha) {
        alpha = png_alpha(work);
        if (alpha < 0)
            return failed(work, "pngtopnm can not read the transparency");
        snprintf(alpha_option, sizeof alpha_option, "-alpha=/proc/self/fd/%d", alpha);
        encode[at++] = alpha_option;
    }
    static char *const decode[] = {"pngtopnm", NULL};
    enum helper_status status = netpbm(work, decode, encode);
    if (alpha >= 0)
        close(alpha);
    return status;
}

static enum helper_status bmp(struct helper_work *work) {
    static char *const decode[] = {"bmptopnm", NULL}, *const encode[] = {"ppmtobmp", NULL};
    return netpbm(work, decode, encode);
}

static enum helper_status ppm(struct helper_work *work) {
    static char *const copy[] = {"pnmtopnm", NULL};
    return netpbm(work, copy, copy);
}

static enum helper_status work_on(struct helper_work *work) {
    helper_limit_cpu((unsigned)limits.cpu);
    switch (image_type_of_bytes(work->input)) {
    case IMAGE_JPEG: return jpeg(work);
    case IMAGE_GIF: return gif(work);
    case IMAGE_PNG: return png(work);
    case IMAGE_BMP: return bmp(work);
    case IMAGE_PPM: return ppm(work);
    default: return failed(work, "not an image of a known kind");
    }
}

static void usage(void) {
    fprintf(stderr, "usage: gray-helper [--memory SIZE] [--file SIZE] [--cpu SECONDS] "
                    "[--pixels NUMBER]\n"
                    "Takes jobs on descriptor 0; started by retort-helperd. 0 is no limit, except "
                    "for --pixels.\n");
    exit(2);
}

static void read_options(int argc, char **argv) {
    static const struct option options[] = {{"memory", required_argument, NULL, 'm'},
                                            {"file", required_argument, NULL, 'f'},
                                            {"cpu", required_argument, NULL, 'c'},
                                            {"pixels", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "m:f:c:p:", options, NULL)) != -1;) {
        uint64_t *place = c == 'm'   ? &limits.memory
                          : c == 'f' ? &limits.file
                          : c == 'c' ? &limits.cpu
                          : c == 'p' ? &limits.pixels
                                     : NULL;
        if (place == NULL || !service_option_size(slice_from(optarg), place))
            usage();
    }
    if (optind != argc)
        usage();
}

int main(int argc, char **argv) {
    log_open(STDERR_FILENO, "gray-helper", LOG_LEVEL_INFO);
    read_options(argc, argv);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    helper_limit_memory(limits.memory);
    helper_limit_file(limits.file);
    return helper_loop_run(work_on);
}
