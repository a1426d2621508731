#include "suites.h"

#include "inject/scanner.h"

/* "@" marks the place; it is taken out before scanning. */
static const char *const pages[] = {
    "<html><head><title>x</title>@</head><body>",
    "<HTML><HEAD><TITLE>X</TITLE>@</HEAD ><BODY>",
    "<html><title>x</title>@<body class=x>",
    "@<body>",
    "@</head>",
    "@</head\n>",
    "@<body\tonload='x'>",
    "<!-- </head> <body> -->@</head>",
    "<!---->@</head>",
    "<!-->@</head>",
    "<!--->@</head>",
    "<!-- a -- b --!>@</head>",
    "<!-- a --->@</head>",
    "<!doctype html>@</head>",
    "<?xml version='1.0'?><!DOCTYPE html><html>@</head>",
    "<title></head></title>@</head>",
    "<title></head></TITLE >@</head>",
    "<script>if (a</head>b) x = '<body>';</script>@</head>",
    "<script></scrip></head></script>@</head>",
    "<script><</script>@</head>",
    "<script></</script>@</head>",
    "<style>a > b { content: '</head>' }</style>@</head>",
    "<textarea><body></textarea>@<body>",
    "<meta content=\"</head><body>\">@</head>",
    "<meta content='</head>\"'>@</head>",
    "<meta content = '</head>'>@</head>",
    "<meta content=\"a>b\" name='x'>@</head>",
    "<link href=a><br/>@</head>",
    "<bodyx><body-x>@<body>",
    "</headx></hea></head-x>@</head>",
    "<header></header>@<body>",
    "<<<@</head>",
    "a < b <@<body>",
    "</>@</head>",
    "</ head>@</head>",
    "< head>@</head>",
    "<a href=x/y>@</head>",
    "<script src=\"a>b\"></script>@</head>",
    "</script></title>@</head>",
    "<p '>@</head>",
    "<p=\">@</head>\"></head>",
    "<p =\">@</head>",
    "<p a=b=\">@</head>",
    "<p a=\"x\"b='>'>@</head>",
    "<p a/=\">@</head>",
    "<p a =\n'</head>' b>@</head>",
    "<p a=b/>@</head>",
    "<p a==\">@</head>",
};

/* Without a place. */
static const char *const placeless[] = {
    "",
    "<",
    "</",
    "</hea",
    "</head",
    "<bod",
    "<body",
    "plain text",
    "<script></head><body>",
    "<!-- </head>",
    "<title></head><body>",
    "<a b='</head>",
    "<!doctype </head",
    "</heads>",
};

/* Scans in pieces that end at `first` and `second`; returns where the place is, -1 for nowhere. */
static long scan_split_for(enum scanner_place place, struct slice text, size_t first,
                           size_t second) {
    struct scanner scanner;
    size_t bounds[] = {0, first, second, text.length};
    scanner_init(&scanner, place);
    size_t total = 0;
    for (int i = 0; i < 3; i++) {
        struct slice piece =
            guard_put(slice_make(text.base + bounds[i], bounds[i + 1] - bounds[i]));
        size_t seen = scanner_scan(&scanner, piece);
        total += seen;
        EXPECT(scanner.pending <= SCANNER_PENDING_MAX && scanner.pending <= total,
               "pending %u of %zu", scanner.pending, total);
        if (scanner.found)
            return (long)(total - scanner.pending);
        EXPECT(seen == piece.length, "stopped without a reason");
    }
    return -1;
}

static long scan_split(struct slice text, size_t first, size_t second) {
    return scan_split_for(SCANNER_HEAD_END, text, first, second);
}

/* "@" marks the place again. */
static void expect_at_every_split(enum scanner_place kind, const char *page) {
    char text[256];
    const char *mark = strchr(page, '@');
    long place = mark == NULL ? -1 : mark - page;
    size_t length = 0;
    for (const char *at = page; *at != 0; at++)
        if (*at != '@')
            text[length++] = *at;
    for (size_t a = 0; a <= length; a++)
        for (size_t b = a; b <= length; b++) {
            long got = scan_split_for(kind, slice_make(text, length), a, b);
            EXPECT(got == place, "%s split at %zu and %zu: %ld instead of %ld", page, a, b, got,
                   place);
        }
}

START_TEST(other_places) {
    static const char *const starts[] = {
        "<html><head></head><body>@x</body>",
        "<body class=\"a>b\" onload='c>d'>@x",
        "<BODY\n>@",
        "<template><body></template><body a=b>@",
        "<!-- <body> --><script>'<body>'</script><body>@",
        "<bodyx><p>x",
        "</head>x</body>",
    };
    static const char *const ends[] = {
        "<html><head></head><body>x@</body></html>",
        "<body><!-- </body> --><script>'</body>'</script>@</BODY >",
        "<body><template></body></template>@</body>",
        "<body></bodyx></bod>x",
        "<p a='</body>'>@</body>",
    };
    static const char *const heads[] = {
        "<head><template></head><body></template>@</head>",
        "<template><template></template></head></template>@</head>",
        "</template>@</head>",
        "<template></head><body>",
        "<templates>@</head>",
    };
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        expect_at_every_split(SCANNER_BODY_START, starts[i]);
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        expect_at_every_split(SCANNER_BODY_END, ends[i]);
    for (size_t i = 0; i < COUNT_OF(heads); i++)
        expect_at_every_split(SCANNER_HEAD_END, heads[i]);
}
END_TEST

START_TEST(place_is_found_at_every_split) {
    for (size_t i = 0; i < COUNT_OF(pages); i++)
        expect_at_every_split(SCANNER_HEAD_END, pages[i]);
}
END_TEST

START_TEST(no_place_where_there_is_none) {
    for (size_t i = 0; i < COUNT_OF(placeless); i++) {
        struct slice text = slice_from(placeless[i]);
        for (size_t a = 0; a <= text.length; a++)
            EXPECT(scan_split(text, a, a) == -1, "%s split at %zu", placeless[i], a);
    }
}
END_TEST

/* Whatever comes, every byte is taken and little is held back. */
START_TEST(any_bytes_pass) {
    static const char alphabet[] = "<>/!-=\"' abhdeoyscriptl";
    unsigned state = 1;
    for (int round = 0; round < 3000; round++) {
        char text[64];
        for (size_t i = 0; i < sizeof text; i++) {
            state = state * 1103515245u + 12345u;
            text[i] = alphabet[(state >> 16) % (sizeof alphabet - 1)];
        }
        long whole = scan_split(slice_make(text, sizeof text), 0, 0);
        for (size_t a = 1; a < sizeof text; a++)
            EXPECT(scan_split(slice_make(text, sizeof text), a, a) == whole, "%.64s split at %zu",
                   text, a);
    }
}
END_TEST

Suite *scanner_suite(void) {
    const TTest *const tests[] = {place_is_found_at_every_split, no_place_where_there_is_none,
                                  other_places, any_bytes_pass};
    return suite_of("scanner", tests, COUNT_OF(tests));
}
