#include "part.h"

#include "access/state.h"

const struct part part_access = {
    .steps = (const struct step_row *const[]){&access_step, &purge_step, &recheck_step, NULL},
};
