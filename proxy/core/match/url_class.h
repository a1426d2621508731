/*
 * URL classes: named sets of requests (and responses) that services are enabled for.
 *
 *     url_class photos { host = { "img.example.com" }  path_regex = "\\.jpe?g$" }
 *
 * A class matches when every condition that it states matches; a condition with several values
 * matches when one of them does. The built-in class "all" states none. A class with a content_type
 * matches only where there is a response.
 *
 *     struct class_subject subject = { .method = ..., .host = ..., .url = ..., .path = ... };
 *     switch (url_class_judge(class, &subject)) ...
 *
 * Requests are compared with many classes at once by struct rules (rules.h).
 *
 * Threads: classes are read-only; matching keeps PCRE2's scratch memory per thread.
 */
#ifndef RETORT_MATCH_URL_CLASS_H
#define RETORT_MATCH_URL_CLASS_H

#include "http/head.h"
#include "match/class_conditions.h"
#include "net/address.h"

struct class_list;
struct class_lists;
struct url_class;

/* Who a request is from, as far as it is proven. */
struct class_user {
    struct slice name;
    const struct slice *groups;
    size_t group_count;
};

/* The request (and response) that a class is compared with. Slices may have any content; they are
 * not changed. What is not known is left empty, and conditions on it do not match. */
struct class_subject {
    struct slice method;
    struct slice host;         /* lower case, without port and brackets */
    struct slice url;          /* absolute, normalised; of a CONNECT: "host:port" */
    struct slice path;         /* path without the query */
    struct slice scheme;       /* "http", "https"; empty: that of a CONNECT, which has none */
    uint16_t port;             /* of the URL, also where it is the scheme's */
    struct slice content_type; /* of the response, with parameters; base NULL: no response yet */
    bool response_pending;     /* no response yet: could a later response match? */
    const struct address *client;
    struct slice listener;        /* its name */
    const struct http_head *head; /* of the request; NULL: none */
    struct slice sni;         /* that the client's TLS, or the TLS around the request, asks for */
    struct slice certificate; /* subject of the client's certificate, RFC 4514 */
    const struct class_user *user;      /* NULL: nobody is proven */
    bool user_pending;                  /* NULL, but a later proof could give one */
    const struct address *destinations; /* that the host has resolved to */
    size_t destination_count;           /* 0: not known */
    bool destination_pending;           /* not known, but the host can still be resolved */
    int64_t wall;                       /* seconds since 1970 */
};

/* CLASS_UNKNOWN: it depends on a user or a destination that is pending. */
enum class_answer { CLASS_NO, CLASS_YES, CLASS_UNKNOWN };

enum class_answer url_class_judge(const struct url_class *url_class,
                                  const struct class_subject *subject);

/* What a class depends on besides the URL and the method, through `not` and `any_of` too. */
enum class_asks {
    CLASS_ASKS_USER = 1,
    CLASS_ASKS_GROUP = 2,
    CLASS_ASKS_DESTINATION = 4,
    CLASS_ASKS_TYPE = 8, /* the media type of the response */
    CLASS_ASKS_HEAD = 16,
    CLASS_ASKS_TIME = 32,
    CLASS_ASKS_SNI = 64,
    CLASS_ASKS_CERTIFICATE = 128,
    CLASS_ASKS_LISTENER = 256,
    CLASS_ASKS_SERVER = 512,  /* which server the request is for, by its name or by the SNI */
    CLASS_ASKS_CLIENT = 1024, /* the client's address */
    /* Who asks. */
    CLASS_ASKS_WHO =
        CLASS_ASKS_USER | CLASS_ASKS_GROUP | CLASS_ASKS_CERTIFICATE | CLASS_ASKS_CLIENT,
    /* The client, its connection, or its request. */
    CLASS_ASKS_CLIENTS_SIDE =
        CLASS_ASKS_WHO | CLASS_ASKS_HEAD | CLASS_ASKS_SNI | CLASS_ASKS_LISTENER,
    /* What becomes known later than the request. */
    CLASS_ASKS_LATER = CLASS_ASKS_USER | CLASS_ASKS_GROUP | CLASS_ASKS_DESTINATION,
};
unsigned url_class_asks(const struct url_class *url_class);

/* Is the answer CLASS_YES? */
bool url_class_matches(const struct url_class *url_class, const struct class_subject *subject);
/* The condition that need not be compared, because the caller knows that it holds. */
enum url_class_known {
    URL_CLASS_KNOWN_NOTHING,
    URL_CLASS_KNOWN_HOST,
    URL_CLASS_KNOWN_DOMAIN,
    URL_CLASS_KNOWN_CLIENT,
    URL_CLASS_KNOWN_USER,
    URL_CLASS_KNOWN_GROUP,
};
/* Compares only the conditions on the request, whatever is known of the response. */
enum class_answer url_class_judge_request(const struct url_class *url_class,
                                          const struct class_subject *subject,
                                          enum url_class_known known);
/* The form of a host that classes compare: without the dot of the root. */
static inline struct slice url_class_host(struct slice host) {
    if (host.length > 1 && host.base[host.length - 1] == '.')
        host.length--;
    return host;
}
/* Writes the media type of a Content-Type in small letters, with a NUL at the end. It is cut off if
 * it is longer than any type that a class can name. Returns its length. */
size_t url_class_type_name(struct slice content_type, char out[URL_CLASS_TYPE_MAX]);
const char *url_class_name(const struct url_class *url_class);

/* NULL on error with a message in `error`. The strings are copied. */
struct url_class *url_class_new(const char *name, const struct url_class_conditions *conditions,
                                char *error, size_t error_size);
void url_class_free(struct url_class **url_classp);
/* As given to url_class_new; lives as long as the class. */
const struct url_class_conditions *url_class_conditions(const struct url_class *url_class);

/* Opens the lists that the class names, and finds the classes of its conditions `not` and `any_of`,
 * which `find` gives and which live as long. */
struct url_class_surroundings {
    struct class_lists *lists;
    struct url_class *(*find)(void *arg, const char *name);
    void *arg;
};
bool url_class_link(struct url_class *url_class, const struct url_class_surroundings *around,
                    char *error, size_t error_size);
/* Refuses classes that name each other in a circle, once all are linked. */
bool url_class_settle(struct url_class *url_class, char *error, size_t error_size);

/* The lists of a condition, and the classes of any_of, for those who file classes by them. */
enum class_lists_of {
    LISTS_OF_HOSTS,
    LISTS_OF_DOMAINS,
    LISTS_OF_CLIENTS,
    LISTS_OF_DESTINATIONS,
    LISTS_OF_URLS,
    LISTS_OF_ALL
};
struct class_list_array {
    const struct class_list **each;
    size_t count;
};
struct class_references {
    struct url_class **each;
    size_t count;
};
const struct class_list_array *url_class_lists(const struct url_class *url_class,
                                               enum class_lists_of of);
const struct class_references *url_class_any_of(const struct url_class *url_class);
/* The name of a condition that can not be compared with a connection whose content is not known, of
 * the class or of one that it names; NULL: there is none. */
const char *url_class_unknown_of_connection(const struct url_class *url_class);
/* Does it match every request? */
bool url_class_is_for_all(const struct url_class *url_class);
/* Why no request can match the class; NULL: one can, as far as conditions show by themselves. */
const char *url_class_contradiction(const struct url_class *url_class);

#endif
