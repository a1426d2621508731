#include "settings/settings.h"
void settings_print_markdown(FILE *out) {
    (void)out;
}
void settings_print_man(FILE *out) {
    (void)out;
}
