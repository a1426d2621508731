/*
 * Compares how Retort and llhttp read heads: those of the corpora and, of each, several hundred
 * that were made from it by changes which are the same in every run.
 *
 *     compare-heads DIRECTORY-OF-CORPORA PAGE     PAGE has the table of differences
 *
 * A file is a case, and so is each kind of difference: it must occur, and stand in the table.
 */
#include "base/assert.h"
#include "compare.h"

#include <dirent.h>
#include <stdio.h>

enum { CHANGED_PER_FILE = 4000, KINDS_MAX = 64, WORDS_MAX = 24 };

static struct {
    unsigned passed, failed;
    unsigned long heads, seen[KINDS_MAX];
    struct comparison comparison;
} run;

static const char *const words[WORDS_MAX] = {"\r\n",
                                             "\n",
                                             "\r",
                                             " ",
                                             "\t",
                                             ":",
                                             "\r\n ",
                                             "HTTP/1.1",
                                             "HTTP/1.0",
                                             "HTTP/2.0",
                                             "HTTP/1.7",
                                             "chunked",
                                             ", chunked",
                                             "identity",
                                             "Connection",
                                             "Upgrade",
                                             "204",
                                             "304",
                                             "100",
                                             "CONNECT ",
                                             "GET ",
                                             "5",
                                             "Content-Length: 5\r\n",
                                             "Transfer-Encoding: chunked\r\n"};

/* The same numbers in every run (xorshift). */
static uint32_t next_number(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void insert(struct text *head, size_t at, const char *bytes, size_t length) {
    if (head->length + length > COMPARE_MAX)
        return;
    memmove(head->bytes + at + length, head->bytes + at, head->length - at);
    memcpy(head->bytes + at, bytes, length);
    head->length += length;
}

static void change(struct text *head, uint32_t *state) {
    char line[200];
    size_t at = next_number(state) % (head->length + 1), left = head->length - at;
    size_t length = next_number(state) % 8 + 1;
    const char *word = words[next_number(state) % WORDS_MAX];
    switch (next_number(state) % 5) {
    case 0: insert(head, at, word, strlen(word)); break;
    case 1:
        if (left > 0)
            head->bytes[at] = (char)next_number(state);
        break;
    case 2:
        length = length < left ? length : left;
        memmove(head->bytes + at, head->bytes + at + length, left - length);
        head->length -= length;
        break;
    case 3:
        length = left < sizeof line ? left : sizeof line;
        memcpy(line, head->bytes + at, length);
        insert(head, next_number(state) % (head->length + 1), line, length);
        break;
    default:
        length = strlen(word);
        if (length <= left)
            memcpy(head->bytes + at, word, length);
    }
}

static bool compare(const struct text *head, const char *name) {
    const struct difference *kind;
    run.heads++;
    if (compare_heads(&run.comparison, slice_make(head->bytes, head->length), &kind)) {
        if (kind != NULL)
            run.seen[kind - differences]++;
        return true;
    }
    printf("%s, changed: the %s differs and nothing explains it:\n%.*s\n", name,
           run.comparison.what, (int)head->length, head->bytes);
    return false;
}

static bool compare_file(const char *name, const struct text *file) {
    static struct text head;
    uint32_t state = 2463534242u;
    bool good = compare(file, name);
    for (unsigned i = 0; i < CHANGED_PER_FILE && good; i++) {
        head = *file;
        for (uint32_t changes = next_number(&state) % 4 + 1; changes > 0; changes--)
            change(&head, &state);
        good = compare(&head, name);
    }
    return good;
}

/* Those of the fuzzer of responses begin with a byte that says of what. */
static bool read_head(struct text *head, const char *path, bool has_kind) {
    FILE *file = fopen(path, "r");
    ASSERT(file != NULL);
    if (has_kind)
        (void)!getc(file);
    head->length = fread(head->bytes, 1, COMPARE_MAX, file);
    fclose(file);
    return head->length > 0 &&
           (!has_kind || reading_is_response(slice_make(head->bytes, head->length)));
}

static void compare_corpus(const char *corpora, const char *name) {
    char directory[2000], path[4000];
    static struct text head;
    struct dirent *entry;
    snprintf(directory, sizeof directory, "%s/%s", corpora, name);
    DIR *files = opendir(directory);
    while (files != NULL && (entry = readdir(files)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] == '.' || !read_head(&head, path, strcmp(name, "response") == 0))
            continue;
        bool good = compare_file(path, &head);
        run.passed += good;
        run.failed += !good;
    }
    if (files != NULL)
        closedir(files);
}

static bool stands_in(const char *page, const char *name) {
    char line[4000], row[100];
    bool found = false;
    FILE *file = fopen(page, "r");
    snprintf(row, sizeof row, "| %s |", name);
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, row, strlen(row)) == 0;
    if (file != NULL)
        fclose(file);
    return found;
}

static void check_kinds(const char *page) {
    for (unsigned i = 0; i < difference_count(); i++) {
        bool written = stands_in(page, differences[i].name);
        printf("%-18s %lu times%s\n", differences[i].name, run.seen[i],
               run.seen[i] == 0 ? ": no head shows it any more"
               : !written       ? ": not in the table"
                                : "");
        if (run.seen[i] > 0 && written)
            run.passed++;
        else
            run.failed++;
    }
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: compare-heads DIRECTORY-OF-CORPORA PAGE\n");
        return EXIT_FAILURE;
    }
    ASSERT(difference_count() <= KINDS_MAX);
    compare_corpus(arguments[1], "compare");
    compare_corpus(arguments[1], "request");
    compare_corpus(arguments[1], "response");
    check_kinds(arguments[2]);
    printf("%lu heads compared\n%u passed, %u failed\n", run.heads, run.passed, run.failed);
    return run.failed == 0 && run.passed > difference_count() ? EXIT_SUCCESS : EXIT_FAILURE;
}
