#include "part.h"

#include "access/settings.h"
#include "access/state.h"

const struct part part_access = {
    .settings = &access_part_settings,
    .steps = (const struct step_row *const[]){&access_step, &purge_step, &recheck_step, NULL},
};
