/* The option take_over_socket. */
#include "takeover/settings.h"

#include "base/findings.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

#include <string.h>

static const struct option rows[] = {
    {ONE("", struct takeover_settings, socket), .name = "take_over_socket", STRING,
     BY_FILE_AT_START, .fallback_note = "the path of admin.listen with .take-over behind it",
     DOC "Sets the path of the Unix socket at which a new process asks to take over (retort "
         "--take-over, or SIGUSR2). Only processes of the same user are listened to. Where "
         "admin.listen is no path and this option is missing, nobody can take over. A reload does "
         "not change this setting.",
     .example = "\"/run/retort/take-over.sock\""},
    {.name = NULL},
};

static bool takeover_load(struct load *load, void *mine) {
    return load_values(load, document_section(load->document, "", NULL), "", mine);
}

static void takeover_compare(const void *first, const void *new, struct findings *left) {
    const char *before = ((const struct takeover_settings *)first)->socket;
    const char *after = ((const struct takeover_settings *)new)->socket;
    if (before != after && (before == NULL || after == NULL || strcmp(before, after) != 0))
        findings_add(left,
                     "take_over_socket is still as it was at the start: restart retort to apply "
                     "the change");
}

const struct part_settings takeover_part_settings = {
    .options = rows,
    .size = sizeof(struct takeover_settings),
    .load = takeover_load,
    .compare = takeover_compare,
};
