/*
 * What the compressor costs beyond the libraries: the same bytes through the encoder, in the pieces
 * in which c-icap brings and takes them, and through zlib, brotli and zstd called directly, whole
 * input and whole output at once, with the same parameters. By turns, and of each the fastest, so
 * that a busy machine matters little.
 *
 *     compress FILE...
 *
 *     FILE           coding      direct us   encoder us   ratio   bytes
 */
#include "gzip/encoder.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PIECE_IN = 4096, PIECE_OUT = 4064, TURNS = 25 };

static const int levels[CODING_COUNT] = {6, 5, 6};

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t direct(enum coding coding, struct slice bytes, char *out, size_t capacity) {
    const struct codec *codec = codec_of(coding);
    void *state = codec->open(levels[coding], bytes.length);
    struct codec_room room = {(const unsigned char *)bytes.base, bytes.length, (unsigned char *)out,
                              capacity};
    ASSERT(codec->run(state, &room, CODEC_FINISH) == CODEC_READY);
    codec->close(state);
    return capacity - room.out_length;
}

static size_t by_encoder(enum coding coding, struct slice bytes, char *out) {
    struct encoder *encoder = encoder_create(coding, levels[coding], bytes.length);
    size_t in = 0, got = 0;
    while (!encoder_done(encoder)) {
        size_t left = bytes.length - in;
        if (left > 0)
            in += encoder_push(encoder,
                               slice_make(bytes.base + in, left < PIECE_IN ? left : PIECE_IN));
        else
            encoder_finish(encoder);
        got += encoder_pull(encoder, out + got, PIECE_OUT);
    }
    encoder_free(&encoder);
    return got;
}

static void compare(const char *name, enum coding coding, struct slice bytes) {
    size_t capacity = 2 * bytes.length + 65536, length = 0;
    char *out = xmalloc(capacity);
    double best[2] = {1e9, 1e9};
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        double begun = cpu_seconds();
        length =
            turn % 2 == 0 ? direct(coding, bytes, out, capacity) : by_encoder(coding, bytes, out);
        double took = cpu_seconds() - begun;
        if (took < best[turn % 2])
            best[turn % 2] = took;
    }
    printf("%-24s %-5.*s %10.0f %10.0f %7.3f %10zu\n", name, SLICE_PRINT(codec_of(coding)->name),
           best[0] * 1e6, best[1] * 1e6, best[1] / best[0], length);
    free(out);
}

static struct slice read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fseek(file, 0, SEEK_END);
    size_t length = (size_t)ftell(file);
    rewind(file);
    char *bytes = xmalloc(length + 1);
    length = fread(bytes, 1, length, file);
    fclose(file);
    return slice_make(bytes, length);
}

int main(int argc, char **argv) {
    printf("%-24s %-5s %10s %10s %7s %10s\n", "", "", "direct us", "encoder us", "ratio", "bytes");
    for (int i = 1; i < argc; i++) {
        struct slice bytes = read_file(argv[i]);
        const char *slash = strrchr(argv[i], '/');
        for (enum coding coding = 0; coding < CODING_COUNT; coding++)
            compare(slash == NULL ? argv[i] : slash + 1, coding, bytes);
        free((void *)bytes.base);
    }
    return EXIT_SUCCESS;
}
