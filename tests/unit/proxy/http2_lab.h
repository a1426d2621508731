/*
 * The client of a client_lab that speaks HTTP/2, frame by frame.
 *
 *     struct client_lab *lab = lab_open("client { http2_budget = 100 }\n");
 *     lab_put_get(1);
 *     lab_send_all(lab);                                         what was put; and all runs
 *     ck_assert(lab_find_frame(lab, HTTP2_HEADERS, 1));          among what has come
 *     ck_assert(lab_frame.flags & HTTP2_END_HEADERS);
 *     lab_pass(lab, 60000);
 *     client_lab_close(lab);
 *
 * Threads: one, and one client at a time.
 */
#ifndef RETORT_TESTS_UNIT_PROXY_HTTP2_LAB_H
#define RETORT_TESTS_UNIT_PROXY_HTTP2_LAB_H

#include "client_lab.h"

#include "http2/client/exchange.h"
#include "http2/frame.h"

/* The frame that lab_next_frame or lab_find_frame has found. */
extern struct http2_frame lab_frame;
extern struct slice lab_payload;

/* A client whose SETTINGS have one entry; ours are acknowledged. `settings` as for client_lab_open. */
struct client_lab *lab_open_with(const char *settings, uint16_t id, uint32_t value);
struct client_lab *lab_open(const char *settings);

/* What is put waits until it is sent. */
void lab_put_frame(enum http2_frame_type type, unsigned flags, uint32_t stream, struct slice bytes);
void lab_put_settings(uint16_t id, uint32_t value);
void lab_put_request(uint32_t stream, const char *method, const char *path, unsigned flags);
void lab_put_get(uint32_t stream);
void lab_put_reset(uint32_t stream);
void lab_put_update(uint32_t stream, uint32_t bytes);
void lab_send_all(struct client_lab *lab);
/* Without a look at what comes of it. */
void lab_send_only(struct client_lab *lab);

/* Goes to the next frame that has come; false: there is none. */
bool lab_next_frame(struct client_lab *lab);
/* To the next one of that type and stream. */
bool lab_find_frame(struct client_lab *lab, enum http2_frame_type type, uint32_t stream);
void lab_forget_frames(struct client_lab *lab);

/* So much time passes at once, until the loop looks at the clock again. */
void lab_pass(struct client_lab *lab, uint64_t milliseconds);
/* Waits, and all runs meanwhile. */
void lab_wait(struct client_lab *lab, unsigned milliseconds);

/* For lab->answer. With a body of lab_body_size bytes, of a length that is not announced: */
extern size_t lab_body_size;
void lab_answer_bytes(struct asked *asked);
void lab_answer_nothing(struct asked *asked);
/* CONNECT with a tunnel that sends four bytes; other requests as lab_answer_bytes does. */
void lab_answer_tunnel(struct asked *asked);

/* The tunnel that was opened last. */
extern struct lab_tunnel {
    struct duplex *duplex;
    struct task task;
    unsigned wakes;
    size_t put;
} lab_tunnel;

#endif
