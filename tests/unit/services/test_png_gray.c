#include "suites.h"

#include "gray/png_gray.h"
#include "gray/tiff.h"

#include <math.h>
#include <time.h>

#include <png.h>
#include <zlib.h>
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

enum { WIDTH = 37, HEIGHT = 23, SIZE_MAX_PNG = 64 * 1024 };

static const struct picture_options plain = {.max_pixels = 1 << 20, .larger = true};

struct form {
    int color, depth, interlace;
    png_fixed_point gamma; /* 0: none */
    bool transparent;      /* a tRNS chunk */
    unsigned orientation;  /* 0: no EXIF data */
    bool exif_at_end;
    bool dark; /* neutral pixels from black on, and some that are nearly so */
};

struct file {
    unsigned char bytes[SIZE_MAX_PNG];
    size_t length;
};

static void on_write(png_structp png, png_bytep bytes, size_t length) {
    struct file *file = png_get_io_ptr(png);
    ck_assert_uint_le(file->length + length, sizeof file->bytes);
    memcpy(file->bytes + file->length, bytes, length);
    file->length += length;
}

static void on_read(png_structp png, png_bytep out, size_t length) {
    struct slice *rest = png_get_io_ptr(png);
    ck_assert_uint_le(length, rest->length);
    memcpy(out, rest->base, length);
    *rest = slice_make(rest->base + length, rest->length - length);
}

static void set_colours(png_structp png, png_infop info, const struct form *form) {
    png_color palette[200];
    png_byte alphas[100];
    png_color_16 clear = {.red = 1, .green = 2, .blue = 3, .gray = 1};
    for (int i = 0; i < 200; i++) {
        palette[i] = (png_color){(png_byte)i, (png_byte)(200 - i), (png_byte)(i * 7)};
        alphas[i / 2] = (png_byte)i;
    }
    if (form->color == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, palette, 1 << (form->depth == 8 ? 7 : form->depth));
    if (form->transparent)
        png_set_tRNS(png, info, alphas, form->depth == 8 ? 100 : 2, &clear);
}

/* The orientation, and the first letters of something else. */
static void set_exif(png_structp png, png_infop info, const struct form *form) {
    char bytes[EXIF_MINIMAL + 3] = "";
    if (form->orientation == 0)
        return;
    exif_minimal(form->orientation, bytes);
    memcpy(bytes + EXIF_MINIMAL, "els", 3);
    png_set_eXIf_1(png, info, sizeof bytes, (png_bytep)bytes);
}

static void make_dark(unsigned char rows[HEIGHT][WIDTH * 8], const struct form *form) {
    unsigned channels = form->color == PNG_COLOR_TYPE_RGB_ALPHA ? 4 : 3;
    for (unsigned i = 0; i < WIDTH * HEIGHT; i++)
        for (unsigned c = 0; c < channels; c++) {
            unsigned sample = (i >> 1) + (i & 1) * c, at = i % WIDTH * channels + c;
            if (form->depth == 16) {
                rows[i / WIDTH][2 * at] = (unsigned char)(sample * 7 >> 8);
                rows[i / WIDTH][2 * at + 1] = (unsigned char)(sample * 7);
            } else
                rows[i / WIDTH][at] = (unsigned char)(sample > 255 ? 255 : sample);
        }
}

static void encode(const struct form *form, struct file *file) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_text text = {.compression = PNG_TEXT_COMPRESSION_NONE, .key = "Comment", .text = "hello"};
    static unsigned char rows[HEIGHT][WIDTH * 8];
    unsigned char *pointers[HEIGHT];
    file->length = 0;
    png_set_write_fn(png, file, on_write, NULL);
    png_set_IHDR(png, info, WIDTH, HEIGHT, form->depth, form->color, form->interlace, 0, 0);
    if (form->gamma > 0)
        png_set_gAMA_fixed(png, info, form->gamma);
    png_set_pHYs(png, info, 5000, 5000, PNG_RESOLUTION_METER);
    png_set_text(png, info, &text, 1);
    set_colours(png, info, form);
    if (!form->exif_at_end)
        set_exif(png, info, form);
    png_write_info(png, info);
    for (unsigned y = 0; y < HEIGHT; y++) {
        pointers[y] = rows[y];
        for (unsigned x = 0; x < WIDTH * 8; x++)
            rows[y][x] = (unsigned char)(((x * 7 + y * 3) ^ (x * y >> 4)) &
                                         (form->color == PNG_COLOR_TYPE_PALETTE ? 0x7f : 0xff));
    }
    if (form->dark)
        make_dark(rows, form);
    png_write_image(png, pointers);
    if (form->exif_at_end)
        set_exif(png, info, form);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

/* What a viewer sees: RGBA, 16 bits each, and what the header says. */
struct view {
    unsigned width, height;
    int color, depth, interlace;
    bool has_text, has_gamma, has_size;
    uint16_t pixels[HEIGHT][WIDTH][4];
};

static void decode(struct slice bytes, struct view *view) {
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    unsigned char *pointers[HEIGHT];
    png_set_read_fn(png, &bytes, on_read);
    png_read_info(png, info);
    png_get_IHDR(png, info, &view->width, &view->height, &view->depth, &view->color,
                 &view->interlace, NULL, NULL);
    ck_assert(view->width <= WIDTH && view->height <= HEIGHT);
    view->has_text = png_get_text(png, info, NULL, NULL) > 0;
    view->has_gamma = png_get_valid(png, info, PNG_INFO_gAMA) != 0;
    view->has_size = png_get_valid(png, info, PNG_INFO_pHYs) != 0;
    png_set_expand_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xffff, PNG_FILLER_AFTER);
    png_set_swap(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    for (unsigned y = 0; y < HEIGHT; y++)
        pointers[y] = (unsigned char *)view->pixels[y];
    png_read_image(png, pointers);
    png_destroy_read_struct(&png, &info, NULL);
}

/* Of the samples as they are in the file, of 8 bits or 16. */
static void expect_luma(const struct view *before, const struct view *after, bool wide) {
    for (unsigned y = 0; y < HEIGHT; y++)
        for (unsigned x = 0; x < WIDTH; x++) {
            const uint16_t *from = before->pixels[y][x], *to = after->pixels[y][x];
            unsigned unit = wide ? 1 : 257;
            unsigned luma =
                unit *
                ((299 * (from[0] / unit) + 587 * (from[1] / unit) + 114 * (from[2] / unit) + 500) /
                 1000);
            EXPECT(to[0] == to[1] && to[0] == to[2] && from[3] == to[3] && to[0] == luma,
                   "at %u,%u: %u of %u, %u, %u", x, y, to[0], from[0], from[1], from[2]);
        }
}

static const struct form forms[] = {
    {PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, 0, false, 0, false, false},
    {PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_ADAM7, 0, true, 0, false, false},
    {PNG_COLOR_TYPE_RGB, 16, PNG_INTERLACE_NONE, 0, false, 0, false, false},
    {PNG_COLOR_TYPE_RGB_ALPHA, 8, PNG_INTERLACE_NONE, 0, false, 0, false, false},
    {PNG_COLOR_TYPE_RGB_ALPHA, 16, PNG_INTERLACE_ADAM7, 0, false, 0, false, false},
    {PNG_COLOR_TYPE_PALETTE, 8, PNG_INTERLACE_NONE, 0, true, 0, false, false},
    {PNG_COLOR_TYPE_PALETTE, 4, PNG_INTERLACE_ADAM7, 0, false, 0, false, false},
    {PNG_COLOR_TYPE_PALETTE, 1, PNG_INTERLACE_NONE, 0, true, 0, false, false},
};

START_TEST(pictures_become_gray) {
    static struct file file;
    static struct view before, after;
    struct picture_output output, again;
    const struct form *form = &forms[_i];
    encode(form, &file);
    decode(slice_make((char *)file.bytes, file.length), &before);
    ck_assert_int_eq(png_gray(file.bytes, file.length, &plain, &output), PICTURE_DONE);
    decode(slice_make((char *)output.bytes, output.length), &after);
    expect_luma(&before, &after, form->depth == 16);
    ck_assert_int_eq(after.interlace, form->interlace);
    ck_assert(after.has_text && after.has_size);
    ck_assert_int_eq(after.depth, form->depth);
    if (form->color == PNG_COLOR_TYPE_PALETTE) { /* all but palette and its checksum */
        ck_assert_uint_eq(output.length, file.length);
        size_t different = 0;
        for (size_t i = 0; i < file.length; i++)
            different += output.bytes[i] != file.bytes[i];
        ck_assert_uint_le(different, 3 * 128 + 4);
    }
    ck_assert_int_eq(png_gray(output.bytes, output.length, &plain, &again), PICTURE_UNCHANGED);
    free(output.bytes);
}
END_TEST

/* Luminance is a matter of light: with a gamma of 1/2.2 pure green is lighter than 0.587. */
START_TEST(gamma_counts) {
    static struct file file;
    static struct view before, after;
    struct picture_output output;
    struct form form = {PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, 45455, false, 0, false, false};
    for (int kind = 0; kind < 2; kind++) {
        form.color = kind == 0 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_PALETTE;
        encode(&form, &file);
        decode(slice_make((char *)file.bytes, file.length), &before);
        ck_assert_int_eq(png_gray(file.bytes, file.length, &plain, &output), PICTURE_DONE);
        decode(slice_make((char *)output.bytes, output.length), &after);
        ck_assert(after.has_gamma);
        const uint16_t *from = before.pixels[5][5], *to = after.pixels[5][5];
        double light = 0, weights[] = {0.299, 0.587, 0.114};
        for (int i = 0; i < 3; i++)
            light += weights[i] * pow(from[i] / 65535.0, 2.2);
        EXPECT(fabs(to[0] / 65535.0 - pow(light, 1 / 2.2)) < 0.02, "%u of %u, %u, %u", to[0],
               from[0], from[1], from[2]);
        free(output.bytes);
    }
}
END_TEST

/* What is neutral, or nearly so, stays as dark as it is, whatever gamma the file tells: luma lies
 * between the least and the largest of the three samples. */
START_TEST(shadows_stay) {
    static const png_fixed_point gammas[] = {45455, 45454, 55556, 100000, 22727, 16, 625000000};
    static struct file file;
    static struct view before, after;
    struct picture_output output;
    for (size_t kind = 0; kind < 4 * COUNT_OF(gammas); kind++) {
        bool wide = kind % 2 != 0, alpha = kind / 2 % 2 != 0;
        struct form form = {.color = alpha ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB,
                            .depth = wide ? 16 : 8,
                            .gamma = gammas[kind / 4],
                            .dark = true};
        encode(&form, &file);
        decode(slice_make((char *)file.bytes, file.length), &before);
        ck_assert_int_eq(png_gray(file.bytes, file.length, &plain, &output), PICTURE_DONE);
        decode(slice_make((char *)output.bytes, output.length), &after);
        ck_assert_int_eq(after.depth, form.depth);
        for (unsigned y = 0; y < HEIGHT; y++)
            for (unsigned x = 0; x < WIDTH; x++) {
                const uint16_t *from = before.pixels[y][x], *to = after.pixels[y][x];
                unsigned low = from[0] < from[1] ? from[0] : from[1];
                unsigned high = from[0] < from[1] ? from[1] : from[0];
                low = from[2] < low ? from[2] : low;
                high = from[2] > high ? from[2] : high;
                EXPECT(to[0] >= low && to[0] <= high && to[0] == to[1] && to[0] == to[2],
                       "gamma %d, depth %d: %u of %u, %u, %u", (int)form.gamma, form.depth, to[0],
                       from[0], from[1], from[2]);
            }
        free(output.bytes);
    }
}
END_TEST

/* A picture and its like with a palette become the same. */
START_TEST(palettes_and_pixels_agree) {
    struct gamma_luma *luma = gamma_luma_create(45455, 255);
    for (unsigned red = 0; red < 256; red += 5)
        for (unsigned green = 0; green < 256; green += 3)
            for (unsigned blue = 0; blue < 256; blue += 17) {
                double light = 0.299 * pow(red / 255.0, 2.2) + 0.587 * pow(green / 255.0, 2.2) +
                               0.114 * pow(blue / 255.0, 2.2);
                double exact = 255 * pow(light, 1 / 2.2);
                EXPECT(fabs(gamma_luma_of(luma, red, green, blue) - exact) < 0.51, "%u %u %u", red,
                       green, blue);
            }
    gamma_luma_free(&luma);
}
END_TEST

START_TEST(wide_pictures_are_scaled) {
    static struct file file;
    static struct view after;
    struct picture_output output;
    const struct picture_options small = {.max_pixels = 1 << 20, .width = 12, .strip = true};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        encode(&forms[i], &file);
        ck_assert_int_eq(png_gray(file.bytes, file.length, &small, &output), PICTURE_DONE);
        decode(slice_make((char *)output.bytes, output.length), &after);
        ck_assert_uint_eq(after.width, 12);
        ck_assert_uint_eq(after.height, 7);
        ck_assert(!after.has_text);
        ck_assert_uint_lt(output.length, file.length);
        free(output.bytes);
    }
}
END_TEST

static bool is_within(const struct picture_output *output, struct slice text, size_t *at) {
    char *place = memmem(output->bytes, output->length, text.base, text.length);
    *at = place == NULL ? 0 : (size_t)(place - (char *)output->bytes);
    return place != NULL;
}

/* A picture that its EXIF data turns is turned by the same data when it is gray, and its width is
 * that which one sees. */
START_TEST(what_is_turned_stays_so) {
    static struct file file;
    static struct view after;
    struct picture_output output;
    struct form form = forms[0];
    form.orientation = 6;
    for (int kind = 0; kind < 12; kind++) {
        const struct picture_options options = {.max_pixels = 1 << 20,
                                                .strip = kind & 1,
                                                .larger = true,
                                                .width = kind < 4 ? 0 : HEIGHT - kind};
        char room[EXIF_MINIMAL];
        size_t exif, pixels, other;
        form.exif_at_end = kind & 2;
        encode(&form, &file);
        ck_assert_int_eq(png_gray(file.bytes, file.length, &options, &output), PICTURE_DONE);
        decode(slice_make((char *)output.bytes, output.length), &after);
        ck_assert(is_within(&output, exif_minimal(6, room), &exif));
        ck_assert(is_within(&output, SLICE("IDAT"), &pixels));
        ck_assert_int_eq(exif > pixels, form.exif_at_end);
        ck_assert_int_eq(is_within(&output, SLICE("els"), &other), !options.strip);
        if (options.width > 0)
            ck_assert_uint_eq(form.exif_at_end ? after.width : after.height, options.width);
        free(output.bytes);
    }
}
END_TEST

/* Whether they are gray already, keep their size and get another palette, or are written anew. */
START_TEST(metadata_goes) {
    static struct file file;
    static struct view before, after;
    struct picture_output output, again;
    const struct picture_options options = {.max_pixels = 1 << 20, .strip = true, .larger = true};
    for (size_t i = 0; i < 2 * COUNT_OF(forms); i++) {
        struct form form = forms[i / 2];
        size_t at;
        form.orientation = i % 2 == 0 ? 6 : 0;
        encode(&form, &file);
        decode(slice_make((char *)file.bytes, file.length), &before);
        ck_assert(before.has_text);
        EXPECT(png_gray(file.bytes, file.length, &options, &output) == PICTURE_DONE, "form %zu", i);
        decode(slice_make((char *)output.bytes, output.length), &after);
        ck_assert(!after.has_text);
        ck_assert_uint_eq(after.width, before.width);
        ck_assert_int_eq(is_within(&output, SLICE("eXIf"), &at), form.orientation != 0);
        ck_assert(!is_within(&output, SLICE("els"), &at));
        ck_assert_int_eq(png_gray(output.bytes, output.length, &options, &again),
                         PICTURE_UNCHANGED);
        free(output.bytes);
    }
}
END_TEST

static void put_number(unsigned char *to, size_t number) {
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* At *to, which moves on. */
static void put_chunk(unsigned char **to, const char *name, const void *data, size_t length) {
    put_number(*to, length);
    memcpy(*to + 4, name, 4);
    memcpy(*to + 8, data, length);
    put_number(*to + 8 + length, crc32(0, *to + 4, (uInt)length + 4));
    *to += length + 12;
}

/* The picture with `count` more chunks behind its header. */
static size_t with_chunks(const struct file *file, unsigned char *out, const char *name,
                          const void *data, size_t length, unsigned count) {
    enum { HEADER_END = 33 };
    unsigned char *at = out + HEADER_END;
    memcpy(out, file->bytes, HEADER_END);
    for (unsigned i = 0; i < count; i++)
        put_chunk(&at, name, data, length);
    memcpy(at, file->bytes + HEADER_END, file->length - HEADER_END);
    return (size_t)(at - out) + file->length - HEADER_END;
}

/* Chunks that are large once they are decompressed, or say that they are, cost no more than their
 * bytes, and what goes along is what it was. */
START_TEST(compressed_chunks_cost_their_bytes) {
    enum { MEGABYTE = 1 << 20, OUT = 4 << 20, TIMES = 200 };
    static const char *const names[] = {"zTXt", "iTXt", "iCCP", "eXIf"};
    static const unsigned char claims[] = "MM\0*\0\0\0\x08\xff\xff";
    static struct file file;
    static unsigned char out[OUT], text[MEGABYTE];
    struct picture_output output;
    memset(text, 'x', sizeof text);
    encode(&forms[0], &file);
    for (size_t i = 0; i < 2 * COUNT_OF(names); i++) {
        struct picture_options options = {.max_pixels = 1 << 20, .larger = true, .strip = i & 1};
        const char *name = names[i / 2];
        unsigned char chunk[4096];
        memcpy(chunk, "key\0\1\0\0\0", 8); /* as iTXt has it */
        size_t before = strcmp(name, "iTXt") == 0 ? 8 : 5;
        chunk[4] = before == 8;
        uLongf length = sizeof chunk - before;
        ck_assert_int_eq(compress2(chunk + before, &length, text, sizeof text, 9), Z_OK);
        length += before;
        bool exif = strcmp(name, "eXIf") == 0;
        size_t size = with_chunks(&file, out, name, exif ? claims : chunk,
                                  exif ? sizeof claims - 1 : length, exif ? 20 * TIMES : TIMES);
        clock_t begun = clock();
        ck_assert_int_eq(png_gray(out, size, &options, &output), PICTURE_DONE);
        double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
        EXPECT(seconds < 0.1 || RUNNING_ON_VALGRIND, "%s: %f s", name, seconds);
        bool goes_along = strstr(name, "TXt") != NULL && !options.strip;
        ck_assert_int_eq(memmem(output.bytes, output.length, chunk, length) != NULL, goes_along);
        free(output.bytes);
    }
}
END_TEST

START_TEST(damage_is_reported) {
    static struct file file;
    struct picture_output output;
    const struct picture_options few = {.max_pixels = WIDTH * HEIGHT - 1};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        encode(&forms[i], &file);
        for (size_t cut = 0; cut < file.length; cut += i == 0 || i == 5 ? 1 : 97) {
            struct slice input = guard_put(slice_make((char *)file.bytes, cut));
            EXPECT(png_gray((const unsigned char *)input.base, cut, &plain, &output) == PICTURE_BAD,
                   "form %zu cut at %zu of %zu", i, cut, file.length);
            EXPECT(output.error[0] != 0, "no reason given");
        }
        ck_assert_int_eq(png_gray(file.bytes, file.length, &few, &output), PICTURE_BAD);
        ck_assert_str_eq(output.error, "too many pixels");
    }
}
END_TEST

Suite *png_gray_suite(void) {
    const TTest *const tests[] = {gamma_counts,
                                  shadows_stay,
                                  palettes_and_pixels_agree,
                                  wide_pictures_are_scaled,
                                  what_is_turned_stays_so,
                                  metadata_goes,
                                  compressed_chunks_cost_their_bytes,
                                  damage_is_reported};
    Suite *suite = suite_of("png_gray", tests, COUNT_OF(tests));
    TCase *cases = tcase_create("each form");
    tcase_add_loop_test(cases, pictures_become_gray, 0, COUNT_OF(forms));
    suite_add_tcase(suite, cases);
    return suite;
}
