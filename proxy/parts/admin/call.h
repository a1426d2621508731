/*
 * A row of the table of calls (admin/calls.def): a page of the admin plane, a command of retortctl, or a command that asks for a
 * page. Each fact about them stands there once. The proxy makes from it: routes with 405 and Allow, the check of parameters and
 * roles, OpenAPI and /v1/help. retortctl makes from it: the check of words, help, completion, the manual's list, and the requests.
 *
 *     #define CALL(...)  {__VA_ARGS__},
 *     #define PAGE(...)  __VA_ARGS__,          nothing, in retortctl
 *     #define WORDS(...)                       __VA_ARGS__, in retortctl
 *     #define COMMAND(...)                     {__VA_ARGS__}, in retortctl
 *     const struct call table[] = {
 *     #include "admin/calls.def"
 *     };
 *
 * To add a call: its row, its page's function, and "make docs". A command that only asks for its page needs nothing else: its
 * arguments are the parameters of `of_words`, its options are the parameters of the same names, and it prints what it gets.
 *
 * Threads: constants.
 */
#ifndef RETORT_ADMIN_CALL_H
#define RETORT_ADMIN_CALL_H

#include "admin/operators.h"
#include "part.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct admin_calls;
struct cache_call;
struct page;
struct page_request;

enum call_parameter_type {
    CALL_TEXT,
    CALL_NUMBER,
    CALL_PLACE, /* a number that an earlier answer has as text */
    CALL_FLAG,  /* yes or no */
    CALL_END,   /* the last row */
};

struct call_parameter {
    const char *name;
    enum call_parameter_type type;
    bool required;
    const char *what; /* for people: "the lifetime in seconds" */
    uint64_t least, most;
    enum operator_role role; /* for a flag that is set; 0: that of the page */
};

/* A member of the answer. Its type is one of JSON, "any", or "place": a text, or null. "integer?": not every answer has it. */
struct call_member {
    const char *name, *type;
};

struct call_option {
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* "URL", or words with | between; NULL: the option has no value */
    const char *help;
};

enum { CALL_PARAMETERS = 16, CALL_BODY = 64 << 10, CALL_INJECTED = 64 << 20 };

struct call {
    /* The page. */
    const char *method, *path; /* without /v1; NULL: the command asks for none by itself */
    enum operator_role role;
    bool changes; /* something, or it shows what people do: it is in the audit log */
    bool
        apart; /* made in a thread of its own, where it may wait (admin/apart.h), beside other pages */
    bool takes_json; /* its body is a JSON object */
    size_t body_max;
    struct call_parameter parameters[CALL_PARAMETERS];
    /* One of them; all NULL: it is the page of a part. */
    void (*show)(struct page *page, const struct admin_calls *calls);
    void (*ask)(struct page *page, const struct admin_calls *calls,
                const struct page_request *request);
    void (*cache)(const struct cache_call *call);
    enum part_number part;            /* without which there is no such page */
    const struct call_member *answer; /* ends with a NULL name; NULL: no JSON */
    const char *type;                 /* of the answer; NULL: JSON */
    const char *form;                 /* of its text (admin/answer_text.h); NULL: there is none */
    bool form_of_refusal;             /* the form is for status 409, too */
    const char *summary;

    /* The command. */
    const char *name;      /* one or two words; NULL: there is none */
    const char *arguments; /* NULL: none */
    int least, most;       /* the number of arguments */
    const char
        *of_words;      /* the parameters that the arguments are, with blanks between; NULL: none */
    bool group;         /* only the first word of other commands */
    const char *line;   /* the help in a line */
    const char *text;   /* a paragraph; NULL: the line says all */
    const char *status; /* exit status where it differs from the usual; NULL: nowhere */
    const struct call_option *options; /* ends with a NULL name; NULL: none */
};

#endif
