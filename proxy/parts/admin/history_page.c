#include "admin/history_page.h"

#include "admin/history.h"
#include "base/assert.h"
#include "base/clocks.h"

#include <string.h>

/* All values of a sample are numbers of 64 bits, in the order of these names. */
static const char *const history_names[] = {
    "at", "lasted", "requests", "measured", "mean", "p50", "p90", "p99",
#define COUNTED(name, counter, help) #name,
#define LEVEL(name, counter, help)   #name,
#include "admin/history.def"
#undef COUNTED
#undef LEVEL
};

enum { HISTORY_VALUES = sizeof history_names / sizeof *history_names };

_Static_assert(sizeof(struct history_sample) == HISTORY_VALUES * sizeof(uint64_t),
               "a name for each value of a sample");

static json_t *sample_to_json(const struct history_sample *sample) {
    uint64_t values[HISTORY_VALUES];
    json_t *array = json_array();
    memcpy(values, sample, sizeof values);
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        json_array_append_new(array, json_integer((json_int_t)values[i]));
    return array;
}

static json_t *history_to_json(struct history *history, bool coarse, uint64_t after) {
    struct history_sample *samples = xcalloc(HISTORY_MOST, sizeof *samples);
    json_t *array = json_array();
    size_t count = history_read(history, coarse, after, samples, HISTORY_MOST);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, sample_to_json(&samples[i]));
    free(samples);
    return array;
}

void history_page_make(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request) {
    uint64_t after = 0;
    const char *given = page_argument(request, "after"), *long_time = page_argument(request, "day");
    bool coarse = long_time != NULL && strcmp(long_time, "yes") == 0;
    if (given != NULL)
        slice_to_uint64(slice_from(given), &after);
    if (calls->history == NULL) {
        page_error(page, 404, "there is no history");
        return;
    }
    json_t *names = json_array();
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        json_array_append_new(names, json_string(history_names[i]));
    uint64_t step = calls->history_step * (coarse ? HISTORY_GATHERED : 1);
    page_json_dense(page, json_pack("{s:I, s:I, s:o, s:o}", "step", (json_int_t)step, "now",
                                    (json_int_t)clocks_milliseconds(CLOCK_REALTIME), "names", names,
                                    "samples", history_to_json(calls->history, coarse, after)));
}
