#include "settings/settings.h"

/* Prints retort.conf(5) where it is built, also for a retort without --print-options. */
int main(void) {
    settings_print_man(stdout);
    return 0;
}
