/* Prints the manual of the settings: print-manual markdown | man. "make docs" runs it. */
#include "settings/settings.h"

#include <string.h>

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "markdown") == 0)
        settings_print_markdown(stdout);
    else if (argc == 2 && strcmp(argv[1], "man") == 0)
        settings_print_man(stdout);
    else
        return 2;
    return fflush(stdout) == 0 ? 0 : 1;
}
