#include "helpers/recipe.h"

#include "base/assert.h"
#include "base/failure.h"

#include <stdio.h>
#include <stdlib.h>

static void free_programs(char ***programs) {
    for (char ***program = programs; program != NULL && *program != NULL; program++) {
        for (char **word = *program; *word != NULL; word++)
            free(*word);
        free(*program);
    }
    free(programs);
}

/* Takes the next piece of *rest, up to one of `ends`, which is skipped. False at the end. */
static bool next_piece(const char **rest, const char *ends, struct slice *piece) {
    if (**rest == 0)
        return false;
    size_t length = strcspn(*rest, ends);
    *piece = slice_trim(slice_make(*rest, length));
    *rest += length + ((*rest)[length] != 0);
    return true;
}

static char **read_words(struct slice text) {
    char **words = xcalloc(RECIPE_WORDS_MAX + 1, sizeof *words);
    char *copy = slice_dup(text);
    unsigned count = 0;
    struct slice word;
    for (const char *rest = copy; count < RECIPE_WORDS_MAX && next_piece(&rest, " \t", &word);)
        if (word.length > 0)
            words[count++] = slice_dup(word);
    free(copy);
    return words;
}

/* NULL when a program is empty, or when there are too many. */
static char ***read_programs(const char *text) {
    char ***programs = xcalloc(PIPELINE_MAX + 1, sizeof *programs);
    unsigned count = 0;
    bool good = true;
    struct slice piece;
    while (good && next_piece(&text, "|", &piece)) {
        good = piece.length > 0 && count < PIPELINE_MAX;
        if (good)
            programs[count++] = read_words(piece);
    }
    if (good)
        return programs;
    free_programs(programs);
    return NULL;
}

bool recipe_add(struct recipe_book *book, const char *text, char *error, size_t error_size) {
    const char *equals = strchr(text, '=');
    char ***programs = NULL;
    struct slice type = slice_make(text, 0);
    if (equals != NULL && book->count < RECIPES_MAX) {
        type = slice_trim(slice_make(text, (size_t)(equals - text)));
        programs = read_programs(equals + 1 + strspn(equals + 1, " \t"));
    }
    if (programs == NULL || type.length == 0) {
        free_programs(programs);
        return failure(
            error, error_size,
            "a recipe is TYPE=PROGRAM WORD... | PROGRAM WORD..., of at most %d programs, "
            "not \"%.80s\"",
            PIPELINE_MAX, text);
    }
    book->recipes[book->count++] = (struct recipe){slice_dup(type), programs};
    return true;
}

const struct recipe *recipe_find(const struct recipe_book *book, struct slice type) {
    for (unsigned i = book->count; i-- > 0;) {
        const struct recipe *recipe = &book->recipes[i];
        if (slice_equal_nocase(slice_from(recipe->type), type))
            return recipe;
    }
    return NULL;
}

void recipe_book_release(struct recipe_book *book) {
    for (unsigned i = 0; i < book->count; i++) {
        free(book->recipes[i].type);
        free_programs(book->recipes[i].programs);
    }
    book->count = 0;
}
