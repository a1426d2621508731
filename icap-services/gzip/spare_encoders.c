#include "gzip/spare_encoders.h"

#include "base/assert.h"
#include "gzip/encoder.h"

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

struct encoder *spare_encoders_take(struct spare_encoders *spare, enum coding coding) {
    struct encoder *encoder = NULL;
    CHECK_OBJ(spare, SPARE_ENCODERS_MAGIC);
    pthread_mutex_lock(&spare->lock);
    if (spare->of[coding].count > 0)
        encoder = spare->of[coding].encoders[--spare->of[coding].count];
    pthread_mutex_unlock(&spare->lock);
    return encoder;
}

bool spare_encoders_give(struct spare_encoders *spare, enum coding coding,
                         struct encoder *encoder) {
    CHECK_OBJ(spare, SPARE_ENCODERS_MAGIC);
    pthread_mutex_lock(&spare->lock);
    bool room = spare->of[coding].count < SPARE_ENCODERS;
    if (room)
        spare->of[coding].encoders[spare->of[coding].count++] = encoder;
    pthread_mutex_unlock(&spare->lock);
    return room;
}
