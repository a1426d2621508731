#include "settings/start_only.h"

#include "part.h"
#include "settings/part_settings.h"

#include <string.h>

void start_only_compare(const struct settings *first, const struct settings *new,
                        struct findings *left) {
    if (first->workers != new->workers)
        findings_add(left, "workers is still %u, not %u: restart retort to apply the change",
                     first->workers, new->workers);
    const char *before = first->admin.listen == NULL ? "off" : first->admin.listen;
    const char *after = new->admin.listen == NULL ? "off" : new->admin.listen;
    if (strcmp(before, after) != 0)
        findings_add(left, "admin.listen is still %s, not %s: restart retort to apply the change",
                     before, after);
    if ((first->admin.certificates == NULL) != (new->admin.certificates == NULL))
        findings_add(left,
                     "admin.certificates: the admin plane still speaks %s: restart retort "
                     "to apply the change",
                     first->admin.certificates == NULL ? "clear text" : "TLS");
    if (first->admin.history_step != new->admin.history_step)
        findings_add(left,
                     "admin.history_step is still %llu ms: restart retort to apply the change",
                     (unsigned long long)first->admin.history_step);
    PARTS_FOR_EACH (part, settings)
        if (part_table[part]->settings->compare != NULL)
            part_table[part]->settings->compare(first->parts[part], new->parts[part], left);
}
