#include "suites.h"

#include "inject/scanner.h"

#include <glob.h>
#include <stdio.h>

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
    /* scripts: escaped, and escaped twice */
    "<script><!-- </script>@</head>",
    "<script><!-- <script> </script></head> --></script>@</head>",
    "<script><!-- <script> </script></head></script>@</head>",
    "<script><!-- <script></head>--></head></script>@</head>",
    "<script><!--> <script></script>@</head>",
    "<script><!---> <script></script>@</head>",
    "<script><!- <script></script>@</head>",
    "<script><!s</script>@</head>",
    "<script><!-- <SCRIPT/</head></scripts></Script\n></head></script>@</head>",
    "<script><!-- <scripts> </script>@</head>",
    "<script><!-- <script -- > --></script>@</head>",
    "<script><!-- <script <!-- </script></head></script>@</head>",
    "<style><!-- <style></style>@</head>",
    "<title><!-- <title></title>@</head>",
    "<noscript><link></head><body></noscript>@</head>",
    "<noscript><!-- </noscript>@</head>",
    "<iframe></head></iframe>@</head>",
    /* SVG and MathML */
    "<svg><![CDATA[</head>]]></svg>@</head>",
    "<svg><![CDATA[</head>]] ></head>]]]></svg>@</head>",
    "<svg><style><![CDATA[</head></style>]]></style></svg>@</head>",
    "<svg><desc><![CDATA[>@</head>",
    "<svg><g><path/></g><![CDATA[<body>]]></svg>@</head>",
    "<svg/><![CDATA[>@</head>]]>",
    "<svg><div><![CDATA[>@</head>]]>",
    "<svg></svg><![CDATA[>@</head>]]>",
    "<svg><desc><xmp></head></xmp><svg><![CDATA[</head>]]></svg></desc></svg>@</head>",
    "<svg><foreignObject></foreignObject><![CDATA[</head>]]></svg>@</head>",
    "<math><mi><![CDATA[>@</head>]]>",
    "<math><![CDATA[</head>]]></math>@</head>",
    "<svg><![CDAT[>@</head>]]>",
    /* a document whose head has no end of its own */
    "<!doctype html><title>x</title>@<p>y</head>",
    "<!doctype html>\n@text",
    "<!DOCTYPE html><meta a='b'> <link>\n@<div>",
    "<html>@<p>",
    "<html><head>@</body>",
    "<html><head></title></p>@</html>",
    "<head><base><script>x</script><template><p>x</template><noscript><p></noscript>@<x-y>",
    "<html>@<frameset><frame>",
    "<html>@< b",
    "<html>@<<b",
    "<html><!-- x -->@<nos>",
    "<html>@<noscripts>",
    "\xef\xbb\xbf<!doctype html>@<p>",
    "<!doctype html>@\xef\xbb\xbf<p>", /* a byte-order mark is text there */
    "<!doctype html><title>x</title>@\xef\xbc\x88x\xef\xbc\x89", /* full-width brackets */
    "<head>@<METAx></head>",
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
    "<p>a fragment</p><div></div>",
    "<title>x</title><p>",
    "<html>",
    "<!doctype html><!-- <p> --><script><p></script> ",
    "<script><!-- <script> </script></head>",
    "<svg><![CDATA[</head>",
    "<plaintext></head></plaintext></head><body>",
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
        "<!doctype html><title>x</title></head> <!-- x --> @<p>",
        "<html><head></head>\n<script>x</script>@text",
        "<html><head></head><body x>@text",
        "<html>@</body>",
        "<html><head></head><frameset><p></frameset><noframes><body></noframes>",
        "<html>@<bod>",
        "<html>@<framesets>",
    };
    static const char *const ends[] = {
        "<html><head></head><body>x@</body></html>",
        "<body><!-- </body> --><script>'</body>'</script>@</BODY >",
        "<body><template></body></template>@</body>",
        "<body></bodyx></bod>x",
        "<p a='</body>'>@</body>",
        "<body><plaintext>x</body></plaintext></body></html>",
        "<!doctype html><p>text@</html>",
        "<body><svg><![CDATA[ </body> ]]></svg>@</body></html>",
        "<body><noscript></body></noscript><textarea></html></textarea>@</body>",
    };
    static const char *const heads[] = {
        "<head><template></head><body></template>@</head>",
        "<template><template></template></head></template>@</head>",
        "</template>@</head>",
        "<template></head><body>",
        "<templates>@</head>",
        "<html><template><p>text</template>@<p>",
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

/* Where a page's metas end, and where the place is. */
struct found {
    long place;
    size_t metas[8];
    unsigned meta_count;
};

static struct found find_all(enum scanner_place place, struct slice text, size_t cut) {
    struct scanner scanner;
    struct found found = {.place = -1};
    size_t at = 0;
    scanner_init(&scanner, place);
    scanner.wants_metas = true;
    while (at < text.length && !scanner.found) {
        size_t end = at < cut ? cut : text.length;
        at += scanner_scan(&scanner, slice_make(text.base + at, end - at));
        if (scanner.found)
            found.place = (long)(at - scanner.pending);
        else if (scanner.meta.length > 0 && found.meta_count < COUNT_OF(found.metas)) {
            const char *tag = text.base + at - scanner.meta.length;
            EXPECT(scanner.pending == scanner.meta.length &&
                       memcmp(tag, scanner.meta.base, scanner.meta.length) == 0,
                   "not the meta that ends at %zu: %.*s", at, SLICE_PRINT(scanner.meta));
            found.metas[found.meta_count++] = at;
        }
    }
    return found;
}

/* The same at every cut, around and in what matters. */
static void expect_one_reading(const char *name, struct slice page) {
    for (enum scanner_place place = SCANNER_HEAD_END; place <= SCANNER_BODY_END; place++) {
        struct found whole = find_all(place, page, 0);
        size_t from = 0;
        if (place == SCANNER_BODY_END && page.length > 2048) /* its cost is the square */
            from = page.length - 2048;
        size_t to = whole.place < 0 ? page.length : (size_t)whole.place + 32;
        for (size_t cut = from; cut <= to && cut <= page.length; cut++) {
            struct found cut_found = find_all(place, page, cut);
            EXPECT(memcmp(&cut_found, &whole, sizeof whole) == 0,
                   "%s, place %d, cut at %zu: %ld instead of %ld, %u metas instead of %u", name,
                   (int)place, cut, cut_found.place, whole.place, cut_found.meta_count,
                   whole.meta_count);
        }
    }
}

/* Ours, which have all that pages are made of, and some of what is installed here. */
START_TEST(pages_are_read_the_same_in_pieces) {
    static const char *const patterns[] = {PAGES "/*.html", "/usr/share/doc/*/*.html",
                                           "/usr/share/doc/*/*/*.html"};
    enum { PAGES_MAX = 12 };
    static char text[12288];
    glob_t files = {0};
    unsigned own = 0;
    for (size_t i = 0; i < COUNT_OF(patterns); i++)
        glob(patterns[i], i > 0 ? GLOB_APPEND : 0, NULL, &files);
    for (size_t i = 0; i < files.gl_pathc && i < PAGES_MAX; i++) {
        FILE *file = fopen(files.gl_pathv[i], "rb");
        if (file == NULL)
            continue;
        size_t length = fread(text, 1, sizeof text, file);
        fclose(file);
        expect_one_reading(files.gl_pathv[i], slice_make(text, length));
        own += strncmp(files.gl_pathv[i], PAGES, strlen(PAGES)) == 0;
    }
    globfree(&files);
    ck_assert_uint_ge(own, 4);
}
END_TEST

START_TEST(metas_are_shown) {
    static char huge[SCANNER_META_MAX + 100];
    struct slice page = SLICE("<html><meta a='>' b><META\n/><metax><template><meta></template>"
                              "<!-- <meta> --><script><meta></script></meta><svg><meta>");
    struct found found = find_all(SCANNER_BODY_END, page, 0);
    ck_assert_uint_eq(found.meta_count, 3);
    ck_assert_uint_eq(found.metas[0], strlen("<html><meta a='>' b>"));
    memset(huge, 'x', sizeof huge);
    memcpy(huge, "<meta ", 6);
    huge[sizeof huge - 1] = '>';
    struct scanner scanner;
    scanner_init(&scanner, SCANNER_HEAD_END);
    scanner.wants_metas = true;
    ck_assert_uint_eq(scanner_scan(&scanner, slice_make(huge, sizeof huge)), sizeof huge);
    ck_assert(scanner.lost_meta && scanner.pending == 0 && scanner.meta.length == 0);
}
END_TEST

/* Whatever comes, every byte is taken and little is held back. */
START_TEST(any_bytes_pass) {
    static const char alphabet[] = "<>/!-=\"' abhdeoyscriptlmvg[]";
    static const char *const starts[] = {"", "<html>", "<script><!--", "<svg><![CDATA["};
    unsigned state = 1;
    for (int round = 0; round < 3000; round++) {
        char text[64];
        for (size_t i = 0; i < sizeof text; i++) {
            state = state * 1103515245u + 12345u;
            text[i] = alphabet[(state >> 16) % (sizeof alphabet - 1)];
        }
        const char *start = starts[round % COUNT_OF(starts)];
        memcpy(text, start, strlen(start));
        long whole = scan_split(slice_make(text, sizeof text), 0, 0);
        for (size_t a = 1; a < sizeof text; a++)
            EXPECT(scan_split(slice_make(text, sizeof text), a, a) == whole, "%.64s split at %zu",
                   text, a);
    }
}
END_TEST

Suite *scanner_suite(void) {
    const TTest *const tests[] = {place_is_found_at_every_split,
                                  no_place_where_there_is_none,
                                  other_places,
                                  pages_are_read_the_same_in_pieces,
                                  metas_are_shown,
                                  any_bytes_pass};
    return suite_of("scanner", tests, COUNT_OF(tests));
}
