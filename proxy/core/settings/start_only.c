#include "settings/start_only.h"

#include "part.h"
#include "settings/part_settings.h"

#include <string.h>

/* One finding for each option of the section authentication that differs. */
static void compare_authentication(const struct authentication_settings *first,
                                   const struct authentication_settings *new,
                                   struct findings *left) {
    const struct {
        const char *name;
        unsigned before, after;
    } options[] = {
        {"threads", first->threads, new->threads},
        {"remember_entries", first->remember_entries, new->remember_entries},
        {"attempt_entries", first->attempt_entries, new->attempt_entries},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].before != options[i].after)
            findings_add(left,
                         "authentication.%s is still %u, not %u: restart retort to apply the "
                         "change",
                         options[i].name, options[i].before, options[i].after);
}

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
    compare_authentication(&first->authentication, &new->authentication, left);
    PARTS_FOR_EACH (part, settings)
        if (part_table[part]->settings->compare != NULL)
            part_table[part]->settings->compare(first->parts[part], new->parts[part], left);
}
