#include "adapt/adaptation.h"

#include "adapt/adapted_variant.h"
#include "adapt/respmod.h"
#include "adapt/waiting_page.h"

const struct adaptation adaptation_of_none;

static bool adaptation_goes_on(struct transaction *transaction) {
    const struct adapted_variant *variant = adaptation_of(transaction)->variant;
    return (adaptation_of(transaction)->waiting_page != NULL &&
            waiting_page_goes_on(transaction)) ||
           (variant != NULL && adapted_variant_is_at_work(variant));
}

const struct adapting_class adaptation_class = {
    .look_up = adapted_variant_look_up,
    .is_outdated = respmod_is_outdated,
    .note_seen = respmod_note_seen,
    .forget_variant = adapted_variant_forget,
    .settle = adapted_variant_settle,
    .goes_on = adaptation_goes_on,
};

void adaptation_make(struct transaction *transaction) {
    struct adaptation *adaptation = arena_alloc(&transaction->arena, sizeof *adaptation);
    *adaptation = (struct adaptation){.adapting.class = &adaptation_class};
    transaction->adapting = &adaptation->adapting;
}
