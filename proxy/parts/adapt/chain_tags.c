#include "adapt/chain_tags.h"

#include "base/assert.h"

#include <xxhash.h>

void chain_tags_begin(struct chain_tags *mark, struct adapter *const *services, unsigned count) {
    ASSERT(count <= ADAPT_CHAIN_MAX);
    mark->count = count;
    for (unsigned i = 0; i < count; i++) {
        mark->services[i] = services[i];
        mark->tags[i] = service_tag_value(services[i]->tag);
    }
}

void chain_tags_take(struct chain_tags *mark, const struct adapt_chain *chain) {
    for (unsigned i = 0; i < mark->count; i++)
        for (unsigned j = 0; j < chain->at; j++)
            if (chain->services[j] == mark->services[i] && chain->calls[j] != NULL)
                mark->tags[i] = chain->calls[j]->result.tag;
}

static uint32_t fold(const uint64_t *numbers, unsigned count) {
    uint32_t hash = (uint32_t)XXH3_64bits(numbers, count * sizeof *numbers);
    return hash == 0 ? 1 : hash;
}

uint32_t chain_tags_tag(const struct chain_tags *mark) {
    for (unsigned i = 0; i < mark->count; i++)
        if (mark->tags[i] == 0)
            return 0;
    return fold(mark->tags, mark->count);
}

uint32_t chain_tags_chain(struct adapter *const *services, unsigned count) {
    uint64_t bases[ADAPT_CHAIN_MAX];
    for (unsigned i = 0; i < count; i++)
        bases[i] = services[i]->tag->base;
    return fold(bases, count);
}

bool chain_tags_are_old(struct adapter *const *services, unsigned count, uint32_t tag) {
    struct chain_tags mark;
    chain_tags_begin(&mark, services, count);
    for (unsigned i = 0; i < count; i++)
        services[i]->class->refresh(services[i]);
    uint32_t now = chain_tags_tag(&mark);
    return now != 0 && now != tag;
}
