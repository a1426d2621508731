#include "transaction/step.h"

#include "base/assert.h"
#include "part.h"
#include "settings/settings.h"

static const struct step_row done_step = {.name = "DONE", .step = STEP_DONE};

/* The steps of the core. */
static const struct step_row *const own[STEP_DONE + 1] = {
    [STEP_RECEIVE] = &receive_step, [STEP_ADMIT] = &admit_step, [STEP_LOOKUP] = &lookup_step,
    [STEP_FETCH] = &fetch_step,     [STEP_STORE] = &store_step, [STEP_TUNNEL] = &tunnel_step,
    [STEP_DELIVER] = &deliver_step, [STEP_LOG] = &log_step,     [STEP_DONE] = &done_step,
};

/* The row of the step: the core's, or that of a part; NULL: the step is of a part that this retort does not have. */
static const struct step_row *step_row_of(enum step step) {
    if (own[step] != NULL)
        return own[step];
    PARTS_FOR_EACH (part, steps)
        for (const struct step_row *const *row = part_table[part]->steps; *row != NULL; row++)
            if ((*row)->step == step)
                return *row;
    return NULL;
}

void steps_compile(struct settings *settings) {
    struct step_list *list = xcalloc(1, sizeof *list);
    for (unsigned step = 0; step <= STEP_DONE; step++) {
        const struct step_row *row = step_row_of(step);
        list->at[step] = (uint8_t)list->count;
        if (row == NULL || (row->is_needed != NULL && !row->is_needed(settings)))
            continue;
        ASSERT(!row->begins || row->end != NULL);
        list->let_go |= (uint32_t)(row->let_go != NULL) << list->count;
        list->end |= (uint32_t)(row->end != NULL) << list->count;
        list->rows[list->count++] = row;
        if (row->chain != NULL)
            list->chains[list->chain_count++] = row;
    }
    list->count--;
    free(settings->steps);
    settings->steps = list;
}

const char *step_name(enum step step) {
    const struct step_row *row = step <= STEP_DONE ? step_row_of(step) : NULL;
    return row != NULL ? row->name : "WAIT";
}
