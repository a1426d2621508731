#include "adapt/decoder.h"

#include "base/assert.h"

/* TURNS: pieces of input in a row without output before other work gets its turn. */
enum { INPUT_SIZE = 16384, TURNS = 16 };

static void end_layer(struct decoder_layer *layer) {
    if (layer->state != NULL)
        layer->coding->close(layer->state);
    layer->state = NULL;
    free(layer->input);
    layer->input = NULL;
    layer->begin = layer->end = 0;
}

static enum source_status decoder_ended(struct decoder_layer *layer) {
    end_layer(layer);
    layer->ended = true;
    return SOURCE_END;
}

/* Without an error the failure is not in the decoder. */
static enum source_status decoder_failed(struct decoder_layer *layer, const char *error) {
    end_layer(layer);
    layer->failed = true;
    if (layer->decoder->error == NULL)
        layer->decoder->error = error;
    return SOURCE_FAILED;
}

static bool open_layer(struct decoder_layer *layer) {
    layer->input = malloc(INPUT_SIZE);
    layer->state = layer->coding->open();
    return layer->input != NULL && layer->state != NULL;
}

static enum source_status decoder_refill(struct decoder_layer *layer) {
    size_t got;
    source_set_waker(layer->from, layer->source.waker);
    enum source_status status = source_read(layer->from, layer->input, INPUT_SIZE, &got);
    layer->begin = layer->end = 0;
    if (status == SOURCE_DATA) {
        layer->end = got;
        layer->taken += got;
    }
    return status;
}

/* Decodes the bytes that are in the buffer. */
static size_t decoder_run(struct decoder_layer *layer, char *buffer, size_t capacity) {
    struct coding_room room = {layer->input + layer->begin, layer->end - layer->begin, buffer,
                               capacity};
    if (layer->over || layer->broken) {
        layer->begin = layer->end;
        return 0;
    }
    enum coding_result result = layer->coding->run(layer->state, &room);
    size_t got = capacity - room.out_length;
    bool stuck = got == 0 && room.in_length > 0 && layer->end - layer->begin == room.in_length;
    layer->begin = layer->end - room.in_length;
    layer->over = result == CODING_OVER;
    layer->whole = result == CODING_OVER || result == CODING_WHOLE;
    layer->broken = result == CODING_BROKEN || (stuck && !layer->over);
    layer->given += got;
    return got;
}

/* The bytes of the body that came over the network. */
static uint64_t coded_bytes(const struct decoder *decoder) {
    return decoder->layers[0].taken;
}

static const char *limit_passed(const struct decoder_layer *layer) {
    const struct decoder_limits *limits = &layer->decoder->limits;
    if (layer->given > limits->size)
        return "its body decodes to more than decode_size";
    if (limits->ratio > 0 && layer->given > DECODER_FREE &&
        layer->given / limits->ratio > coded_bytes(layer->decoder))
        return "its body decodes to more than decode_ratio times its size";
    return NULL;
}

static enum source_status given(struct decoder_layer *layer) {
    const char *error = limit_passed(layer);
    if (error == NULL)
        return SOURCE_DATA;
    layer->decoder->limited = true;
    return decoder_failed(layer, error);
}

static enum source_status at_end_of_input(struct decoder_layer *layer) {
    if (layer->taken == 0 || layer->whole)
        return decoder_ended(layer);
    return decoder_failed(layer, "its body ends in the middle of its content coding");
}

static enum source_status layer_read(struct source *source, char *buffer, size_t capacity,
                                     size_t *got) {
    struct decoder_layer *layer = CONTAINER_OF(source, struct decoder_layer, source);
    CHECK_OBJ(layer->decoder, DECODER_MAGIC);
    *got = 0;
    if (layer->ended)
        return SOURCE_END;
    if (layer->failed)
        return SOURCE_FAILED;
    if (layer->state == NULL && !open_layer(layer))
        return decoder_failed(layer, "there is not enough memory to decode its body");
    for (unsigned turn = 0; turn < TURNS; turn++) {
        *got = decoder_run(layer, buffer, capacity);
        if (*got > 0)
            return given(layer);
        if (layer->broken)
            return decoder_failed(layer, "its body is not coded as its Content-Encoding says");
        if (layer->begin < layer->end)
            continue;
        enum source_status status = decoder_refill(layer);
        if (status == SOURCE_WAIT)
            return status;
        if (status == SOURCE_FAILED)
            return decoder_failed(layer, NULL);
        if (status == SOURCE_END)
            return at_end_of_input(layer);
    }
    source_wake(source);
    return SOURCE_WAIT;
}

static void layer_close(struct source *source) {
    (void)source; /* goes with the decoder */
}

static const struct source_class layer_class = {"decoded body", layer_read, layer_close, NULL};

void decoder_init(struct decoder *decoder, const struct coding *const *codings, int count,
                  const struct decoder_limits *limits, struct source *from, struct loop *loop) {
    ASSERT(count > 0 && count <= CODING_LAYERS_MAX);
    INIT_OBJ(decoder, DECODER_MAGIC);
    decoder->limits = *limits;
    decoder->count = (unsigned)count;
    for (unsigned i = 0; i < decoder->count; i++) {
        struct decoder_layer *layer = &decoder->layers[i];
        source_init(&layer->source, &layer_class, loop, -1);
        layer->decoder = decoder;
        layer->coding = codings[decoder->count - 1 - i];
        layer->from = i == 0 ? from : &decoder->layers[i - 1].source;
    }
}

struct source *decoder_body(struct decoder *decoder) {
    CHECK_OBJ(decoder, DECODER_MAGIC);
    return &decoder->layers[decoder->count - 1].source;
}

uint64_t decoder_given(const struct decoder *decoder) {
    CHECK_OBJ(decoder, DECODER_MAGIC);
    return decoder->layers[decoder->count - 1].given;
}

void decoder_close(struct decoder *decoder) {
    if (decoder->magic != DECODER_MAGIC)
        return;
    for (unsigned i = 0; i < decoder->count; i++)
        end_layer(&decoder->layers[i]);
    decoder->magic = 0;
}
