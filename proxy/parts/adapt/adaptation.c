#include "adapt/adaptation.h"

#include "adapt/respmod.h"

const struct adaptation adaptation_of_none;

const struct adapting_class adaptation_class = {
    .is_outdated = respmod_is_outdated,
    .note_seen = respmod_note_seen,
};

void adaptation_make(struct transaction *transaction) {
    struct adaptation *adaptation = arena_alloc(&transaction->arena, sizeof *adaptation);
    *adaptation = (struct adaptation){.adapting.class = &adaptation_class};
    transaction->adapting = &adaptation->adapting;
}
