/*
 * The answer of a program to --version: its name and Retort's version, and a line with the
 * libraries whose versions decide what the program can do.
 *
 *     static const struct version_library libraries[] = {{"libpng", PNG_LIBPNG_VER_STRING},
 *                                                        {NULL}};
 *     case 'V': version_print("gray-helper", libraries); return 0;
 *
 * prints to standard output:
 *
 *     gray-helper 0.1.0
 *     with libpng 1.6.39
 */
#ifndef RETORT_BASE_VERSION_H
#define RETORT_BASE_VERSION_H

struct version_library {
    const char *name, *version;
};

/* `libraries` ends with a NULL name; NULL: no line about libraries. */
void version_print(const char *program, const struct version_library *libraries);

#endif
