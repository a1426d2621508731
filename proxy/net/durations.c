#include "net/durations.h"

const struct duration_description duration_descriptions[] = {
#define DURATION(name, help) {#name, help},
#include "net/durations.def"
#undef DURATION
};

void durations_sum(struct durations *sum, const struct durations *more) {
#define DURATION(name, help) times_sum(&sum->name, &more->name);
#include "net/durations.def"
#undef DURATION
}
