#include "disk/summing.h"

#include "base/assert.h"
#include "base/reserve.h"
#include "disk/record.h"

#include <string.h>
#include <xxhash.h>

void summing_begin(struct summing *summing, uint64_t *sums) {
    memset(summing, 0, sizeof *summing);
    while ((summing->state = XXH3_createState()) == NULL)
        reserve_spend(sizeof(XXH3_state_t *));
    XXH3_64bits_reset(summing->state);
    summing->sums = sums;
}

static void summing_chunk(struct summing *summing) {
    summing->sums[summing->chunk++] = XXH3_64bits_digest(summing->state);
    XXH3_64bits_reset(summing->state);
    summing->in_chunk = 0;
}

void summing_add(struct summing *summing, const char *bytes, size_t length) {
    while (length > 0) {
        size_t room = RECORD_CHUNK - summing->in_chunk, piece = length < room ? length : room;
        XXH3_64bits_update(summing->state, bytes, piece);
        summing->in_chunk += piece;
        bytes += piece;
        length -= piece;
        if (summing->in_chunk == RECORD_CHUNK)
            summing_chunk(summing);
    }
}

void summing_release(struct summing *summing) {
    XXH3_freeState(summing->state);
    summing->state = NULL;
}

void summing_end(struct summing *summing) {
    if (summing->in_chunk > 0)
        summing_chunk(summing);
    summing_release(summing);
}

uint64_t *summing_of(const struct iovec *pieces, int count, uint64_t length) {
    struct summing summing;
    uint64_t *sums = xcalloc(record_chunks(length) + 1, sizeof *sums);
    summing_begin(&summing, sums);
    for (int i = 0; i < count; i++)
        summing_add(&summing, pieces[i].iov_base, pieces[i].iov_len);
    summing_end(&summing);
    return sums;
}
