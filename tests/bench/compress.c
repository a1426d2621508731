/*
 * What the compressor costs beyond the libraries: the same bytes through the encoder, in the pieces
 * in which c-icap brings and takes them, and through zlib, brotli and zstd called directly, whole
 * input and whole output at once, with the same parameters.
 *
 *     compress FILE...
 *
 *     FILE           coding      direct us   encoder us   ratio   bytes
 */
#include "gzip/encoder.h"

#include "base/assert.h"
#include "turns.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE_IN = 4096, PIECE_OUT = 4064, TURNS = 25 };

static const int levels[CODING_COUNT] = {6, 5, 6};

struct work {
    enum coding coding;
    struct spare_encoders *spare;
    struct slice bytes;
    char *out;
    size_t capacity, length; /* of `out`; what came out */
    void *state;             /* of the library, for the next turn; NULL: none yet */
};

/* As the encoder does, it uses a state of the library again where that can be done. */
static void direct(void *arg) {
    struct work *work = arg;
    const struct codec *codec = codec_of(work->coding);
    int level = levels[work->coding];
    void *state = work->state;
    if (state == NULL || codec->renew == NULL || !codec->renew(state, level, work->bytes.length)) {
        if (state != NULL)
            codec->close(state);
        state = codec->open(level, work->bytes.length);
    }
    work->state = state;
    struct codec_room room = {(const unsigned char *)work->bytes.base, work->bytes.length,
                              (unsigned char *)work->out, work->capacity};
    ASSERT(codec->run(state, &room, CODEC_FINISH) == CODEC_READY);
    work->length = work->capacity - room.out_length;
}

static void by_encoder(void *arg) {
    struct work *work = arg;
    struct encoder *encoder =
        encoder_create(work->spare, work->coding, levels[work->coding], work->bytes.length);
    size_t in = 0, got = 0;
    while (!encoder_done(encoder)) {
        size_t left = work->bytes.length - in, piece = left < PIECE_IN ? left : PIECE_IN;
        if (left > 0)
            in += encoder_push(encoder, slice_make(work->bytes.base + in, piece));
        else
            encoder_finish(encoder);
        got += encoder_pull(encoder, work->out + got, PIECE_OUT);
    }
    encoder_free(&encoder);
    work->length = got;
}

static void compare(const char *name, enum coding coding, struct slice bytes) {
    struct work work = {.coding = coding,
                        .spare = spare_encoders_new(),
                        .bytes = bytes,
                        .capacity = 2 * bytes.length + 65536};
    work.out = xmalloc(work.capacity);
    struct turns turns = turns_take(TURNS, direct, by_encoder, &work);
    printf("%-24s %-5.*s %10.1f %10.1f %7.3f %10zu\n", name, SLICE_PRINT(codec_of(coding)->name),
           turns.direct * 1e6, turns.ours * 1e6, turns.ours / turns.direct, work.length);
    free(work.out);
    if (work.state != NULL)
        codec_of(coding)->close(work.state);
    spare_encoders_free(&work.spare);
}

int main(int argc, char **argv) {
    printf("%-24s %-5s %10s %10s %7s %10s\n", "", "", "direct us", "encoder us", "ratio", "bytes");
    for (int i = 1; i < argc; i++) {
        struct slice bytes = turns_read_file(argv[i]);
        for (enum coding coding = 0; coding < CODING_COUNT; coding++)
            compare(turns_name_of(argv[i]), coding, bytes);
        free((void *)bytes.base);
    }
    return EXIT_SUCCESS;
}
