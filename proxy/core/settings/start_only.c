#include "settings/start_only.h"

#include "part.h"
#include "settings/part_settings.h"

void start_only_compare(const struct settings *first, const struct settings *new,
                        struct findings *left) {
    if (first->workers != new->workers)
        findings_add(left, "workers is still %u, not %u: restart retort to apply the change",
                     first->workers, new->workers);
    PARTS_FOR_EACH (part, settings)
        if (part_table[part]->settings->compare != NULL)
            part_table[part]->settings->compare(first->parts[part], new->parts[part], left);
}
