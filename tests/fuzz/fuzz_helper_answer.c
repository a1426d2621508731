/* Answers of helpers that speak lines. The input is one answer, without its newline.
 *
 * What must be true: no value and no name has a control character, or more bytes than are allowed.
 * Pairs stand in the answer in their order. The same answer with a channel in front means the same.
 * Names and values that are written as a question are escaped so that a plain value in an answer
 * reads as they were. */
#include "base/assert.h"
#include "lines.h"
#include "service/helper_line.h"

static void check_text(struct slice text) {
    for (size_t i = 0; i < text.length; i++)
        ASSERT((unsigned char)text.base[i] >= 0x20 && text.base[i] != 0x7f);
}

/* A value goes out as a question, and comes back as the same value. */
static void check_way_back(struct slice value) {
    static const char front[] = "OK back=";
    char line[sizeof front + HELPER_LINE_QUESTION];
    struct helper_line_answer answer;
    struct helper_line_pair pair;
    if (!helper_line_fields_valid(value, 1, 1))
        return;
    memcpy(line, front, sizeof front - 1);
    size_t length = helper_line_write(line + sizeof front - 1, HELPER_LINE_QUESTION, value, NULL);
    ASSERT(length > value.length &&
           memchr(line, '\n', sizeof front + length) == line + sizeof front - 1 + length - 1);
    struct slice text = slice_make(line, sizeof front - 1 + length - 1);
    ASSERT(helper_line_read(text, &answer) && answer.result == HELPER_LINE_OK);
    ASSERT(helper_line_next(&answer, &pair) == HELPER_LINE_PAIR);
    ASSERT(slice_equal(slice_make(pair.value, pair.length), value));
    ASSERT(helper_line_next(&answer, &pair) == HELPER_LINE_END);
}

static void check_channel(struct slice line, bool valid) {
    static const char front[] = "4711 ";
    uint64_t channel;
    char *copy = xmalloc(line.length + sizeof front);
    memcpy(copy, front, sizeof front - 1);
    if (line.length > 0)
        memcpy(copy + sizeof front - 1, line.base, line.length);
    struct slice whole = slice_make(copy, line.length + sizeof front - 1);
    ASSERT(!helper_line_valid(whole));
    ASSERT(helper_line_take_channel(&whole, &channel) && channel == 4711);
    if (valid)
        ASSERT(helper_line_valid(whole));
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice line = lines_copy(slice_make((const char *)data, size));
    struct helper_line_answer answer;
    struct helper_line_pair pair;
    const char *before = line.base;
    bool valid = helper_line_valid(line);
    check_channel(line, valid);
    check_way_back(line);
    if (helper_line_read(line, &answer)) {
        enum helper_line_next next;
        while ((next = helper_line_next(&answer, &pair)) == HELPER_LINE_PAIR) {
            ASSERT(pair.name.base >= before && pair.name.length > 0);
            before = pair.name.base + pair.name.length;
            ASSERT(before < line.base + line.length && *before == '=');
            ASSERT(pair.length <= HELPER_LINE_VALUE);
            check_text(slice_make(pair.value, pair.length));
            check_way_back(slice_make(pair.value, pair.length));
        }
        ASSERT(valid == (next == HELPER_LINE_END));
    } else {
        ASSERT(!valid);
    }
    free((void *)line.base);
    return 0;
}
