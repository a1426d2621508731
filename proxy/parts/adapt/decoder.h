/*
 * A decoder: a body without its content codings, as a source that reads another one.
 *
 *     int count = coding_list(value, codings);                     1 to CODING_LAYERS_MAX of them
 *     decoder_init(&decoder, codings, count, &limits, &virgin.first, loop);
 *     struct source *body = decoder_body(&decoder);                its length is unknown
 *     ... SOURCE_FAILED: decoder.error says why; NULL: the coded body itself broke off
 *     decoder_close(&decoder);                                     leaves the coded body alone
 *
 * The decoder decodes at once what has come: the first bytes are there before the last ones have
 * been sent. Each coding is a layer of its own. A body without any bytes counts as an empty one. A
 * few coded bytes may decode to very many, so two numbers are limited for every layer: the decoded
 * bytes, and the decoded bytes for each coded one. Bytes past a limit are not given out.
 *
 * Memory: up to 16 KB a coding, and what its library takes: 40 KB for gzip, up to 8 MB for zstd,
 * up to 16 MB for br. Threads: the worker's.
 */
#ifndef RETORT_ADAPT_DECODER_H
#define RETORT_ADAPT_DECODER_H

#include "adapt/coding.h"
#include "event/source.h"

struct decoder_limits {
    uint64_t size;  /* bytes */
    unsigned ratio; /* to the coded body, beyond the first DECODER_FREE bytes; 0: any */
};

/* Small bodies may shrink as they like. */
enum { DECODER_FREE = 1 << 20 };

struct decoder;

struct decoder_layer {
    struct source source;
    struct decoder *decoder;
    const struct coding *coding;
    void *state;         /* NULL: nothing has been read yet, or all is over */
    struct source *from; /* the layer before it, or the coded body */
    char *input;
    size_t begin, end; /* of what is left in the input */
    uint64_t taken, given;
    bool over;   /* the coding's end has come: what follows is passed over */
    bool whole;  /* the body may end here */
    bool broken; /* to be told with the next read */
    bool ended, failed;
};

struct decoder {
    unsigned magic;
#define DECODER_MAGIC 0xdec0de12u
    struct decoder_limits limits;
    bool limited; /* the error is a limit */
    const char *error;
    unsigned count;
    struct decoder_layer layers[CODING_LAYERS_MAX]; /* the one applied last is the first */
};

void decoder_init(struct decoder *decoder, const struct coding *const *codings, int count,
                  const struct decoder_limits *limits, struct source *from, struct loop *loop);
struct source *decoder_body(struct decoder *decoder);
/* Bytes given out so far. */
uint64_t decoder_given(const struct decoder *decoder);
void decoder_close(struct decoder *decoder);

#endif
