/*
 * The messages that a service is run against: HTTP requests, or responses with their requests. They
 * come from recordings (record/file.h), from texts, or are made here.
 *
 *     struct test_messages messages = {0};
 *     if (!test_messages_read(&messages, "page.http", 200, error)) ...        a sentence
 *     test_messages_make(&messages);                    where the user has none of his own
 *     for (unsigned i = 0; i < messages.count; i++) ... messages.list[i].body ...
 *     test_messages_release(&messages);
 *
 * A text begins with a request and goes on with its response, or has one of them. The body follows
 * the empty line behind the head, up to the end of the file. A request in front of a response has
 * none, or Content-Length says where it ends. Lines of heads may end with LF alone, as editors and
 * `curl -i` write them. The fields of the head that are about the transfer (Transfer-Encoding,
 * Connection) are left out, since services do not see them.
 *
 * Threads: one at a time; read-only afterwards.
 */
#ifndef RETORT_TESTER_MESSAGE_H
#define RETORT_TESTER_MESSAGE_H

#include "base/arena.h"

enum { TEST_MESSAGE_ERROR = 400, TEST_MESSAGE_BODY = 64 << 20 };

struct test_message {
    const char *name;
    struct slice request;  /* the head, with its empty line */
    struct slice response; /* likewise; empty: the request is the message */
    struct slice body;
    bool has_body;
};

struct test_messages {
    struct test_message *list;
    unsigned count;
    unsigned left_out; /* recorded exchanges whose bodies are not whole in the recording */
    bool more;         /* and there were more than asked for */
    struct arena arena;
    void **memory;
    unsigned memory_count;
};

/* Adds the messages of a file, while there are fewer than `most`. */
bool test_messages_read(struct test_messages *messages, const char *path, uint64_t most,
                        char error[TEST_MESSAGE_ERROR]);
/* Adds messages of each kind that services meet. */
void test_messages_make(struct test_messages *messages);
void test_messages_release(struct test_messages *messages);

#endif
