#include "gzip/spare_codecs.h"

#include "base/assert.h"

#include <pthread.h>

struct spare_codecs {
    unsigned magic;
#define SPARE_CODECS_MAGIC 0x53706172u
    pthread_mutex_t lock;
    struct {
        void *states[SPARE_CODECS];
        unsigned count;
    } of[CODING_COUNT];
};

struct spare_codecs *spare_codecs_new(void) {
    struct spare_codecs *spare;
    ALLOC_OBJ(spare, SPARE_CODECS_MAGIC);
    pthread_mutex_init(&spare->lock, NULL);
    return spare;
}

void spare_codecs_free(struct spare_codecs **sparep) {
    struct spare_codecs *spare = *sparep;
    *sparep = NULL;
    if (spare == NULL)
        return;
    CHECK_OBJ(spare, SPARE_CODECS_MAGIC);
    for (enum coding coding = 0; coding < CODING_COUNT; coding++)
        while (spare->of[coding].count > 0)
            codec_of(coding)->close(spare->of[coding].states[--spare->of[coding].count]);
    pthread_mutex_destroy(&spare->lock);
    FREE_OBJ(spare);
}

static void *take_spare(struct spare_codecs *spare, enum coding coding) {
    void *state = NULL;
    pthread_mutex_lock(&spare->lock);
    if (spare->of[coding].count > 0)
        state = spare->of[coding].states[--spare->of[coding].count];
    pthread_mutex_unlock(&spare->lock);
    return state;
}

void *spare_codecs_take(struct spare_codecs *spare, enum coding coding, int quality,
                        uint64_t length) {
    CHECK_OBJ(spare, SPARE_CODECS_MAGIC);
    const struct codec *codec = codec_of(coding);
    void *state = take_spare(spare, coding);
    if (state != NULL && codec->renew(state, quality, length))
        return state;
    if (state != NULL)
        codec->close(state);
    return codec->open(quality, length);
}

void spare_codecs_give(struct spare_codecs *spare, enum coding coding, void **statep) {
    CHECK_OBJ(spare, SPARE_CODECS_MAGIC);
    const struct codec *codec = codec_of(coding);
    void *state = *statep;
    *statep = NULL;
    if (codec->renew != NULL) {
        pthread_mutex_lock(&spare->lock);
        if (spare->of[coding].count < SPARE_CODECS) {
            spare->of[coding].states[spare->of[coding].count++] = state;
            state = NULL;
        }
        pthread_mutex_unlock(&spare->lock);
    }
    if (state != NULL)
        codec->close(state);
}
