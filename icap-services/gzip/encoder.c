#include "gzip/encoder.h"

#include "base/assert.h"

#include <pthread.h>

struct spare_encoders {
    unsigned magic;
#define SPARE_ENCODERS_MAGIC 0x53706172u
    pthread_mutex_t lock;
    struct {
        struct encoder *encoders[SPARE_ENCODERS];
        unsigned count;
    } of[CODING_COUNT];
};

struct spare_encoders *spare_encoders_new(void) {
    struct spare_encoders *spare;
    ALLOC_OBJ(spare, SPARE_ENCODERS_MAGIC);
    pthread_mutex_init(&spare->lock, NULL);
    return spare;
}

struct encoder *spare_encoders_take(struct spare_encoders *spare, enum coding coding) {
    struct encoder *encoder = NULL;
    CHECK_OBJ(spare, SPARE_ENCODERS_MAGIC);
    pthread_mutex_lock(&spare->lock);
    if (spare->of[coding].count > 0)
        encoder = spare->of[coding].encoders[--spare->of[coding].count];
    pthread_mutex_unlock(&spare->lock);
    return encoder;
}

/* False: there are enough; the encoder stays the caller's. */
static bool spare_encoders_give(struct spare_encoders *spare, enum coding coding,
                                struct encoder *encoder) {
    CHECK_OBJ(spare, SPARE_ENCODERS_MAGIC);
    pthread_mutex_lock(&spare->lock);
    bool room = spare->of[coding].count < SPARE_ENCODERS;
    if (room)
        spare->of[coding].encoders[spare->of[coding].count++] = encoder;
    pthread_mutex_unlock(&spare->lock);
    return room;
}

enum { ENCODER_BUFFER = 16384 };

struct encoder {
    unsigned magic;
#define ENCODER_MAGIC 0x456e636fu
    enum coding coding;
    const struct codec *codec;
    struct spare_encoders *spare; /* where it goes in the end */
    void *state;                  /* of the codec */
    /* Of this body */
    bool flushing, finishing, done, failed;
    uint64_t held;
    size_t at, end; /* of what is in the buffer */
    unsigned char buffer[ENCODER_BUFFER];
};

static struct encoder *encoder_new(enum coding coding, int quality, uint64_t length) {
    void *state = codec_of(coding)->open(quality, length);
    if (state == NULL)
        return NULL;
    struct encoder *encoder = xmalloc(sizeof *encoder); /* the buffer needs no zeros */
    encoder->magic = ENCODER_MAGIC;
    encoder->coding = coding;
    encoder->codec = codec_of(coding);
    encoder->state = state;
    return encoder;
}

static void encoder_destroy(struct encoder **encoderp) {
    struct encoder *encoder = *encoderp;
    *encoderp = NULL;
    CHECK_OBJ(encoder, ENCODER_MAGIC);
    encoder->codec->close(encoder->state);
    FREE_OBJ(encoder);
}

void spare_encoders_free(struct spare_encoders **sparep) {
    struct spare_encoders *spare = *sparep;
    struct encoder *encoder;
    *sparep = NULL;
    if (spare == NULL)
        return;
    CHECK_OBJ(spare, SPARE_ENCODERS_MAGIC);
    for (enum coding coding = 0; coding < CODING_COUNT; coding++)
        while ((encoder = spare_encoders_take(spare, coding)) != NULL)
            encoder_destroy(&encoder);
    pthread_mutex_destroy(&spare->lock);
    FREE_OBJ(spare);
}

struct encoder *encoder_create(struct spare_encoders *spare, enum coding coding, int quality,
                               uint64_t length) {
    struct encoder *encoder = spare_encoders_take(spare, coding);
    if (encoder != NULL && !encoder->codec->renew(encoder->state, quality, length))
        encoder_destroy(&encoder);
    if (encoder == NULL)
        encoder = encoder_new(coding, quality, length);
    if (encoder == NULL)
        return NULL;
    const size_t first = offsetof(struct encoder, flushing);
    memset((char *)encoder + first, 0, offsetof(struct encoder, buffer) - first);
    encoder->spare = spare;
    return encoder;
}

void encoder_free(struct encoder **encoderp) {
    struct encoder *encoder = *encoderp;
    *encoderp = NULL;
    if (encoder == NULL)
        return;
    CHECK_OBJ(encoder, ENCODER_MAGIC);
    if (encoder->codec->renew == NULL ||
        !spare_encoders_give(encoder->spare, encoder->coding, encoder))
        encoder_destroy(&encoder);
}

/* Runs the codec from `bytes` into the free end of the buffer. */
static enum codec_result encoder_run(struct encoder *encoder, struct slice *bytes,
                                     enum codec_step step) {
    if (encoder->at == encoder->end)
        encoder->at = encoder->end = 0;
    struct codec_room room = {.in = (const unsigned char *)bytes->base,
                              .in_length = bytes->length,
                              .out = encoder->buffer + encoder->end,
                              .out_length = sizeof encoder->buffer - encoder->end};
    enum codec_result result = encoder->codec->run(encoder->state, &room, step);
    encoder->end = sizeof encoder->buffer - room.out_length;
    *bytes = slice_make((const char *)room.in, room.in_length);
    if (result == CODEC_FAILED)
        encoder->failed = true;
    return result;
}

/* Goes on with the flush or the end that was asked for. False when the buffer gets full first. */
static bool run_flush(struct encoder *encoder) {
    struct slice nothing = SLICE("");
    enum codec_step step = encoder->flushing ? CODEC_FLUSH : CODEC_FINISH;
    if (encoder_run(encoder, &nothing, step) != CODEC_READY)
        return false;
    if (step == CODEC_FINISH)
        encoder->done = true;
    encoder->flushing = false;
    return true;
}

size_t encoder_push(struct encoder *encoder, struct slice bytes) {
    CHECK_OBJ(encoder, ENCODER_MAGIC);
    ASSERT(!encoder->finishing);
    struct slice rest = bytes;
    if (encoder->flushing && !encoder->failed && !run_flush(encoder))
        return 0;
    bool room = true;
    while (rest.length > 0 && room && !encoder->failed) {
        encoder_run(encoder, &rest, CODEC_RUN);
        room = encoder->end < sizeof encoder->buffer;
    }
    size_t taken = bytes.length - rest.length;
    encoder->held += taken;
    return taken;
}

void encoder_flush(struct encoder *encoder) {
    CHECK_OBJ(encoder, ENCODER_MAGIC);
    encoder->flushing |= encoder->held > 0 && !encoder->finishing;
    encoder->held = 0;
}

void encoder_finish(struct encoder *encoder) {
    encoder->finishing = true;
}

/* Fills the empty buffer. False when there is nothing more. */
static bool encoder_refill(struct encoder *encoder) {
    bool wanted = encoder->flushing || (encoder->finishing && !encoder->done);
    if (!wanted || encoder->failed)
        return false;
    run_flush(encoder);
    return true;
}

size_t encoder_pull(struct encoder *encoder, char *out, size_t capacity) {
    CHECK_OBJ(encoder, ENCODER_MAGIC);
    size_t got = 0;
    while (got < capacity) {
        size_t length = encoder->end - encoder->at;
        if (length == 0) {
            if (!encoder_refill(encoder))
                break;
            continue;
        }
        if (length > capacity - got)
            length = capacity - got;
        memcpy(out + got, encoder->buffer + encoder->at, length);
        encoder->at += length;
        got += length;
    }
    return got;
}

bool encoder_done(const struct encoder *encoder) {
    return encoder->done && encoder->at == encoder->end;
}

bool encoder_failed(const struct encoder *encoder) {
    return encoder->failed;
}

uint64_t encoder_held(const struct encoder *encoder) {
    return encoder->held;
}
