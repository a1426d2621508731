/*
 * The length that a service states of a body that it makes, and the body that has to agree with it.
 *
 *     stated_length_init(&stated, head, length);           what the service is given
 *     stated_length_take(&stated, adapted, method);        its head is there
 *     status = stated_length_read(&stated, read, call, buffer, capacity, &got);
 *     if (stated.error != NULL) ...                        the body contradicts
 *
 * RFC 9112 §8: "A message body that uses a valid Content-Length is incomplete if the size of the
 * message body received (in octets) is less than the value given by Content-Length." RFC 9110 §8.6:
 * "a sender MUST NOT forward a message with a Content-Length header field value that is known to be
 * incorrect." So a body that contradicts is a failure of the service, and its reader must not take
 * it for whole: the last byte is held back until the end is known.
 *
 * Some services put another response in the place of the original, and leave the Content-Length of
 * the original behind. Such a length is not told to anybody. A shorter body with the status of the
 * original fails all the same, since nobody can tell it from an original that has lost a part. A
 * longer one has lost nothing, and another status is another response: both pass. The length of a
 * request always counts, because some origins need one.
 *
 * Threads: the worker's. The members are for reading.
 */
#ifndef RETORT_ADAPT_STATED_LENGTH_H
#define RETORT_ADAPT_STATED_LENGTH_H

#include "event/source.h"
#include "http/head.h"

struct stated_length {
    int64_t before;    /* in the head that the service was given; -1: none */
    unsigned status;   /* of that head; 0: a request */
    int64_t exact;     /* -1: none is stated, or one that was left behind */
    uint64_t least;    /* the body has no fewer bytes */
    uint64_t given;    /* of the body, to its reader */
    const char *error; /* NULL: the body has not contradicted */
    char last;
    bool last_there; /* `last` waits for the end */
};

/* The length in a head that is sound, of a request or of the response to a request with that
 * method; -1: none, or there is no body by the method or the status. */
int64_t stated_length_of_head(const struct http_head *head, enum http_method method);
/* Nothing is stated yet. `length`: of the body that the service is given, -1: not known. */
void stated_length_init(struct stated_length *stated, const struct http_head *given,
                        int64_t length);
/* Nothing is stated any more: the service, or another one, is asked again. */
void stated_length_forget(struct stated_length *stated);
/* The service means that length. */
void stated_length_set(struct stated_length *stated, uint64_t length);
/* The service states the length of its head, and may have left it behind. */
void stated_length_take(struct stated_length *stated, const struct http_head *adapted,
                        enum http_method method);

typedef enum source_status stated_length_reader(void *call, char *buffer, size_t capacity,
                                                size_t *got);
/* As source_read; `read` gives what the service made. SOURCE_FAILED with an error: the body
 * contradicts; without one, `read` failed. */
enum source_status stated_length_read(struct stated_length *stated, stated_length_reader *read,
                                      void *call, char *buffer, size_t capacity, size_t *got);

extern const char stated_length_too_long[], stated_length_no_body[];

#endif
