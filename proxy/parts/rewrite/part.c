#include "part.h"

#include "rewrite/head_rules.h"
#include "rewrite/settings.h"

/* The part rewrite: rules that change the URLs of requests, and the fields of requests and responses. */

const struct part part_rewrite = {
    .settings = &rewrite_part_settings,
    .steps = (const struct step_row *const[]){&rewrite_step, NULL},
};
