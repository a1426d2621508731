/*
 * A recipe is a list of programs that make one kind of picture gray, one behind another. An
 * operator writes it. There is no shell: blanks separate words, "|" separates programs, and no
 * other character means anything special.
 *
 *     struct recipe_book book = {0};
 *     if (!recipe_add(&book, "image/bmp=bmptopnm | ppmtopgm | ppmtobmp", error, sizeof error)) ...
 *     const struct recipe *recipe = recipe_find(&book, SLICE("image/bmp"));    NULL: none
 *     pipeline_run(recipe->programs, input, output, error, sizeof error);
 *     recipe_book_release(&book);
 *
 * The last recipe for a type counts. A recipe without programs ("image/bmp=") means that the helper
 * does not change this type, not even without programs. Threads: one.
 */
#ifndef RETORT_HELPERS_RECIPE_H
#define RETORT_HELPERS_RECIPE_H

#include "base/slice.h"

/* PIPELINE_MAX: programs that run one behind another. */
enum { RECIPES_MAX = 32, RECIPE_WORDS_MAX = 24, PIPELINE_MAX = 8 };

struct recipe {
    char *type;
    char ***programs; /* each a list of words; both end with NULL */
};

struct recipe_book {
    struct recipe recipes[RECIPES_MAX];
    unsigned count;
};

bool recipe_add(struct recipe_book *book, const char *text, char *error, size_t error_size);
const struct recipe *recipe_find(const struct recipe_book *book, struct slice type);
static inline bool recipe_is_empty(const struct recipe *recipe) {
    return recipe->programs[0] == NULL;
}
void recipe_book_release(struct recipe_book *book);

#endif
