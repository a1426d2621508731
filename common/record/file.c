#include "record/file.h"

#include "base/assert.h"
#include "base/plural.h"

#include <errno.h>
#include <stdarg.h>

enum { STEP = 1 << 20 };

struct record_file {
    unsigned magic;
#define RECORD_FILE_MAGIC 0x1ca9f11eu
    FILE *stream;
    char *name;
    uint64_t at; /* bytes read */
    bool over;
    struct record_file_end end;
    char complaint[RECORD_FILE_ERROR];
};

static void record_file_complain(struct record_file *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Keeps only the first error. */
static void record_file_complain(struct record_file *file, const char *format, ...) {
    va_list arguments;
    if (file->end.complaint != NULL)
        return;
    va_start(arguments, format);
    vsnprintf(file->complaint, sizeof file->complaint, format, arguments);
    va_end(arguments);
    file->end.complaint = file->complaint;
}

static bool check_beginning(struct record_file *file, char *error) {
    char bytes[RECORDED_FILE_HEAD_LENGTH];
    static const char family[] = "retort-icap ";
    if (fread(bytes, 1, sizeof bytes, file->stream) != sizeof bytes ||
        memcmp(bytes, family, sizeof family - 1) != 0)
        snprintf(error, RECORD_FILE_ERROR,
                 "%s is not a recording: `retortctl icap record` makes them", file->name);
    else if (memcmp(bytes, RECORDED_FILE_HEAD, sizeof bytes) != 0)
        snprintf(error, RECORD_FILE_ERROR,
                 "%s is a recording of a version that this program does not know; use the "
                 "Retort that made it",
                 file->name);
    else
        return true;
    return false;
}

struct record_file *record_file_of(FILE *stream, const char *name, char error[RECORD_FILE_ERROR]) {
    struct record_file *file;
    ALLOC_OBJ(file, RECORD_FILE_MAGIC);
    file->stream = stream;
    file->name = xstrdup(name);
    file->at = RECORDED_FILE_HEAD_LENGTH;
    if (!check_beginning(file, error))
        record_file_close(&file);
    return file;
}

struct record_file *record_file_open(const char *path, char error[RECORD_FILE_ERROR]) {
    FILE *stream = fopen(path, "re");
    if (stream != NULL)
        return record_file_of(stream, path, error);
    snprintf(error, RECORD_FILE_ERROR, "can't open %s: %s", path, strerror(errno));
    return NULL;
}

/* Allocates only as much memory as there are bytes, whatever the head says. Returns NULL when
 * the file ends too early. */
static char *read_content(struct record_file *file, size_t length) {
    char *content = NULL;
    size_t got = 0;
    do {
        size_t step = length - got < STEP ? length - got : STEP;
        content = xrealloc(content, got + step + 1);
        size_t count = fread(content + got, 1, step, file->stream);
        got += count;
        if (count < step) {
            free(content);
            return NULL;
        }
    } while (got < length);
    return content;
}

static void take_end(struct record_file *file, const struct recorded_exchange *last) {
    struct record_file_end *end = &file->end;
    file->over = true;
    end->dropped = last->dropped;
    end->unfinished = last->unfinished;
    snprintf(end->reason, sizeof end->reason, "%.*s", SLICE_PRINT(last->ended));
    if (last->kept != end->read + end->damaged)
        record_file_complain(file, "%s: its end states %llu %s, but it contains %llu", file->name,
                             (unsigned long long)last->kept,
                             plural((int64_t)last->kept, "exchange", "exchanges"),
                             (unsigned long long)(end->read + end->damaged));
    else if (fgetc(file->stream) != EOF)
        record_file_complain(file, "%s: there is data after its end", file->name);
}

/* Returns NULL at the end. */
static char *read_record(struct record_file *file, struct icap_record_head *head) {
    char bytes[RECORDED_HEAD];
    size_t got = fread(bytes, 1, sizeof bytes, file->stream);
    if (got < sizeof bytes) {
        record_file_complain(file,
                             "%s is cut off at byte %llu: the end of the recording is missing",
                             file->name, (unsigned long long)(file->at + got));
        return NULL;
    }
    if (!icap_record_head_parse(head, bytes)) {
        record_file_complain(file, "%s is damaged at byte %llu: what follows can't be read",
                             file->name, (unsigned long long)file->at);
        return NULL;
    }
    char *content = read_content(file, head->length);
    if (content == NULL)
        record_file_complain(file, "%s is cut off inside the record at byte %llu", file->name,
                             (unsigned long long)file->at);
    return content;
}

static bool is_sound(struct record_file *file, const struct icap_record_head *head,
                     const char *content, struct recorded_exchange *recorded) {
    struct slice bytes = slice_make(content, head->length);
    const char *error = "its checksum is wrong";
    if (icap_record_content_fits(head, bytes) && recorded_exchange_parse(recorded, bytes, &error))
        return true;
    record_file_complain(file, "%s is damaged in the record at byte %llu: %s", file->name,
                         (unsigned long long)file->at, error);
    file->end.damaged += head->kind == RECORDED_EXCHANGE;
    return false;
}

bool record_file_next(struct record_file *file, struct recorded_exchange *recorded,
                      char **content) {
    CHECK_OBJ(file, RECORD_FILE_MAGIC);
    struct icap_record_head head;
    *content = NULL;
    while (!file->over) {
        char *bytes = read_record(file, &head);
        file->over = bytes == NULL || head.kind == RECORDED_END;
        bool sound = bytes != NULL && is_sound(file, &head, bytes, recorded);
        if (sound && head.kind == RECORDED_EXCHANGE) {
            *content = bytes;
            file->end.read++;
        } else if (sound) {
            take_end(file, recorded);
        }
        file->at += RECORDED_HEAD + (bytes == NULL ? 0 : head.length);
        if (*content != NULL)
            return true;
        free(bytes);
    }
    return false;
}

const struct record_file_end *record_file_end(const struct record_file *file) {
    CHECK_OBJ(file, RECORD_FILE_MAGIC);
    return &file->end;
}

void record_file_close(struct record_file **filep) {
    struct record_file *file = *filep;
    *filep = NULL;
    if (file == NULL)
        return;
    CHECK_OBJ(file, RECORD_FILE_MAGIC);
    fclose(file->stream);
    free(file->name);
    FREE_OBJ(file);
}
