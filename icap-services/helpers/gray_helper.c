/*
 * gray-helper: makes images gray. retort-helperd starts it, or an operator does for one image. Our
 * own code converts JPEG, GIF, PNG, WebP and BMP, in a process that can't open anything. Programs
 * convert the other kinds, as recipes say.
 */

#include "base/log.h"
#include "base/units.h"
#include "base/version.h"
#include "gray/bmp_gray.h"
#include "gray/gif_gray.h"
#include "gray/image_type.h"
#include "gray/jpeg_gray.h"
#include "gray/png_gray.h"
#include "gray/tiff.h"
#include "gray/webp_gray.h"
#include "helpers/helper_loop.h"
#include "helpers/runner.h"
#include "helpers/sandbox.h"
#include "service/arguments.h"

#include <getopt.h>
#include <gif_lib.h>
#include <png.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <webp/encode.h>

#include <jpeglib.h> /* wants <stdio.h> before it */

#define STRING_OF(macro)     STRING_OF_TEXT(macro)
#define STRING_OF_TEXT(text) #text

/* Valid until the next call; called by one thread. */
static const struct version_library *picture_libraries(void) {
    static char webp[16];
    static const struct version_library list[] = {
#ifdef LIBJPEG_TURBO_VERSION
        {"libjpeg-turbo", STRING_OF(LIBJPEG_TURBO_VERSION)},
#endif
        {"libpng", PNG_LIBPNG_VER_STRING},
        {"libwebp", webp},
        {"giflib",
         STRING_OF(GIFLIB_MAJOR) "." STRING_OF(GIFLIB_MINOR) "." STRING_OF(GIFLIB_RELEASE)},
        {NULL, NULL},
    };
    int number = WebPGetEncoderVersion();
    snprintf(webp, sizeof webp, "%d.%d.%d", number >> 16 & 255, number >> 8 & 255, number & 255);
    return list;
}

static struct {
    uint64_t memory, file, cpu, pixels;
    bool once;
    enum sandbox_kind programs; /* what those of recipes may do */
    struct recipe_book book;
    struct runner runner;
} helper = {.memory = UINT64_C(512) << 20,
            .file = UINT64_C(256) << 20,
            .cpu = 20,
            .pixels = 100000000,
            .programs = SANDBOX_PROGRAMS};

/* Recipes with netpbm's programs. They make a picture gray and nothing more. */
static const char *const recipes[] = {
    "image/tiff=tifftopnm | ppmtopgm | pamtotiff -lzw",
    "image/x-portable-pixmap=pnmtopnm | ppmtopgm | pnmtopnm",
};

static enum helper_status gray_helper_failed(struct helper_work *work, const char *why) {
    helper_work_reply(work, slice_from(why));
    return HELPER_FAILED;
}

/* The job fails by the picture's own fault. */
static enum helper_status unusable(struct helper_work *work, const char *why) {
    helper_work_reply(work, slice_from(why));
    return HELPER_UNUSABLE;
}

static enum helper_status give_bytes(struct helper_work *work, const void *bytes, size_t length) {
    work->output = helper_body_create("gray");
    if (work->output < 0 || !helper_body_write(work->output, bytes, length))
        return gray_helper_failed(work, "no room for the result");
    return HELPER_DONE;
}

typedef enum picture_result converter(const unsigned char *bytes, size_t length,
                                      const struct picture_options *options,
                                      struct picture_output *output);

static enum helper_status gray_helper_convert(struct helper_work *work, converter *function) {
    struct picture_output output;
    struct picture_options options = {.max_pixels = helper.pixels};
    picture_options_read(&options, work->parameters);
    switch (
        function((const unsigned char *)work->input.base, work->input.length, &options, &output)) {
    case PICTURE_UNCHANGED: return HELPER_UNCHANGED;
    case PICTURE_BAD: return unusable(work, output.error);
    default: break;
    }
    enum helper_status status = give_bytes(work, output.bytes, output.length);
    free(output.bytes);
    return status;
}

static bool is_larger(const struct helper_work *work) {
    off_t length = lseek(work->output, 0, SEEK_END);
    return length < 0 || (uint64_t)length > work->input.length;
}

static enum helper_status by_recipe(struct helper_work *work, const struct recipe *recipe) {
    char error[200];
    struct slice value;
    bool larger = service_argument(work->parameters, SLICE("larger"), &value);
    work->output = helper_body_create("gray");
    if (work->output < 0 || lseek(work->input_fd, 0, SEEK_SET) != 0)
        return gray_helper_failed(work, "no room for the result");
    bool good =
        runner_run(&helper.runner, recipe, work->input_fd, work->output, error, sizeof error);
    if (good && (larger || !is_larger(work)))
        return HELPER_DONE;
    close(work->output);
    work->output = -1;
    return good ? HELPER_UNCHANGED : gray_helper_failed(work, error);
}

/* The recipe for the type that the origin told, or for the type of the bytes; NULL: none. */
static const struct recipe *recipe_for(const struct helper_work *work, enum image_type type) {
    struct slice named;
    const struct recipe *recipe = NULL;
    if (service_argument(work->parameters, SLICE("type"), &named))
        recipe = recipe_find(&helper.book, named);
    return recipe != NULL ? recipe : recipe_find(&helper.book, image_type_media(type));
}

/* Is the recipe one of ours? The programs of other recipes may know more forms of TIFF. */
static bool is_our_own(const struct recipe *recipe) {
    return recipe - helper.book.recipes < (ptrdiff_t)(sizeof recipes / sizeof *recipes);
}

static enum helper_status by_programs(struct helper_work *work, enum image_type type,
                                      const struct recipe *recipe) {
    const char *why =
        recipe_is_empty(recipe) ? "a recipe without programs has removed its type" : NULL;
    if (type == IMAGE_TIFF && is_our_own(recipe))
        why = tiff_refusal(work->input);
    return why != NULL ? unusable(work, why) : by_recipe(work, recipe);
}

static enum helper_status work_on(struct helper_work *work) {
    helper_limit_cpu((unsigned)helper.cpu);
    enum image_type type = image_type_of_bytes(work->input);
    const struct recipe *recipe = recipe_for(work, type);
    if (recipe != NULL)
        return by_programs(work, type, recipe);
    switch (type) {
    case IMAGE_JPEG: return gray_helper_convert(work, jpeg_gray);
    case IMAGE_GIF: return gray_helper_convert(work, gif_gray);
    case IMAGE_PNG: return gray_helper_convert(work, png_gray);
    case IMAGE_WEBP: return gray_helper_convert(work, webp_gray);
    case IMAGE_BMP: return gray_helper_convert(work, bmp_gray);
    default: return unusable(work, "it is not an image of a known type");
    }
}

static _Noreturn void gray_helper_usage(FILE *to, int status) {
    fprintf(to, "usage: gray-helper [OPTION...]             jobs from descriptor 0\n"
                "       gray-helper [OPTION...] --once [ARGUMENTS] < IMAGE > GRAY-IMAGE\n"
                "  --memory SIZE, --file SIZE, --cpu SECONDS   limits; 0 is none\n"
                "  --pixels NUMBER                             larger images are refused\n"
                "  --recipe 'TYPE=PROGRAM WORD... | PROGRAM'   images for other programs\n"
                "  --programs-write                            those may write files\n"
                "  --help, --version                           print this, or the version\n"
                "ARGUMENTS are width=N, quality=N, strip, larger, joined by '&'.\n");
    exit(status);
}

static _Noreturn void gray_helper_version(void) {
    version_print("gray-helper", picture_libraries());
    exit(0);
}

static void add_recipe(const char *text) {
    char error[300];
    if (recipe_add(&helper.book, text, error, sizeof error))
        return;
    fprintf(stderr, "%s\n", error);
    exit(2);
}

static void read_option(int name) {
    uint64_t *place = name == 'm'   ? &helper.memory
                      : name == 'f' ? &helper.file
                      : name == 'c' ? &helper.cpu
                      : name == 'p' ? &helper.pixels
                                    : NULL;
    if (name == 'h')
        gray_helper_usage(stdout, 0);
    if (name == 'V')
        gray_helper_version();
    if (name == 'r')
        add_recipe(optarg);
    else if (name == 'o')
        helper.once = true;
    else if (name == 'w')
        helper.programs = SANDBOX_WRITERS;
    else if (place == NULL || !units_read_size(slice_from(optarg), place))
        gray_helper_usage(stderr, 2);
}

static void gray_helper_read_options(int argc, char **argv) {
    static const struct option options[] = {
        {"memory", required_argument, NULL, 'm'},   {"file", required_argument, NULL, 'f'},
        {"cpu", required_argument, NULL, 'c'},      {"pixels", required_argument, NULL, 'p'},
        {"recipe", required_argument, NULL, 'r'},   {"once", no_argument, NULL, 'o'},
        {"programs-write", no_argument, NULL, 'w'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},        {NULL, 0, NULL, 0}};
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        add_recipe(recipes[i]);
    for (int c; (c = getopt_long(argc, argv, "hV", options, NULL)) != -1;)
        read_option(c);
    if (argc - optind > (helper.once ? 1 : 0))
        gray_helper_usage(stderr, 2);
}

int main(int argc, char **argv) {
    log_open(STDERR_FILENO, "gray-helper", LOG_LEVEL_INFO);
    gray_helper_read_options(argc, argv);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a result beyond the limit fails, and the helper lives */
    helper_limit_memory(helper.memory);
    helper_limit_file(helper.file);
    if (!runner_start(&helper.runner, &helper.book, helper.programs))
        log_warn(
            "can't start the process that runs programs: images that need a recipe pass unchanged");
    if (!sandbox_enter(SANDBOX_COMPUTE) && !sandbox_under_checker())
        log_warn("seccomp is not available: this process keeps all rights of its user");
    int status = helper.once ? helper_loop_once(slice_from(argv[optind]), STDIN_FILENO,
                                                STDOUT_FILENO, work_on)
                             : helper_loop_run(work_on);
    runner_stop(&helper.runner);
    recipe_book_release(&helper.book);
    return status;
}
