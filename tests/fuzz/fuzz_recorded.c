/*
 * Files of recorded ICAP exchanges. The first byte of the input says what the rest is: 'f' a whole
 * file, anything else the content of one record, whose sums are right then.
 *
 * What must hold: nothing but what is there is read; what was parsed and is written again is parsed
 * to the same; a head without its secrets has as many lines as before.
 */
#include "base/assert.h"
#include "lines.h"
#include "record/file.h"
#include "record/mask.h"

#include <stdio.h>

static void read_file(struct slice bytes) {
    char error[RECORD_FILE_ERROR], *content;
    struct recorded_exchange exchange;
    FILE *stream = bytes.length == 0 ? NULL : fmemopen((void *)bytes.base, bytes.length, "r");
    struct record_file *file = stream == NULL ? NULL : record_file_of(stream, "input", error);
    if (file == NULL)
        return;
    uint64_t count = 0;
    while (record_file_next(file, &exchange, &content)) {
        count++;
        free(content);
    }
    ASSERT(record_file_end(file)->read == count);
    record_file_close(&file);
}

static size_t lines_in(struct slice text) {
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += text.base[i] == '\n';
    return count;
}

static void mask(struct slice head) {
    size_t length;
    char *masked = record_mask_head(head, &length);
    if (head.length > 0 && head.base[head.length - 1] == '\n')
        ASSERT(lines_in(slice_make(masked, length)) == lines_in(head));
    free(masked);
}

/* Control bytes are replaced when a text is written. */
static bool same_text(struct slice written, struct slice read) {
    if (written.length != read.length)
        return false;
    for (size_t i = 0; i < read.length; i++)
        if (written.base[i] != read.base[i] && read.base[i] != '?')
            return false;
    return true;
}

static void compare(const struct recorded_exchange *a, const struct recorded_exchange *b) {
#define TEXT(name, help)   ASSERT(same_text(a->name, b->name));
#define NUMBER(name, help) ASSERT(a->name == b->name);
#define PART(name, help)   ASSERT(slice_equal(a->name, b->name));
#include "record/recorded_exchange.def"
#undef TEXT
#undef NUMBER
#undef PART
}

static void read_content(struct slice content) {
    struct recorded_exchange exchange, again;
    struct icap_record_head head;
    const char *error;
    size_t length;
    if (!recorded_exchange_parse(&exchange, content, &error))
        return;
    mask(exchange.request_head);
    char *record = recorded_exchange_write(&exchange, RECORDED_EXCHANGE, &length);
    ASSERT(record != NULL && icap_record_head_parse(&head, record));
    struct slice written = slice_make(record + RECORDED_HEAD, length - RECORDED_HEAD);
    ASSERT(icap_record_content_fits(&head, written));
    ASSERT(recorded_exchange_parse(&again, written, &error));
    compare(&exchange, &again);
    free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    struct slice rest = lines_copy(slice_make((const char *)data + 1, size - 1));
    if (data[0] == 'f')
        read_file(rest);
    else
        read_content(rest);
    free((void *)rest.base);
    return 0;
}
