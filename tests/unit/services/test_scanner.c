#include "suites.h"

#include "inject/scanner.h"

#include <limits.h>
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
    "<style><body></style>@<body>",
    "<meta content=\"</head><body>\">@</head>",
    "<meta content='</head>\"'>@</head>",
    "<meta content = '</head>'>@</head>",
    "<meta content=\"a>b\" name='x'>@</head>",
    "<link href=a><meta/>@</head>",
    "</>@</head>",
    "</ head>@</head>",
    "</headx></hea></head-x>@</head>",
    "<script src=\"a>b\"></script>@</head>",
    "<link '>@</head>",
    "<link =\">@</head>",
    "<link a=b=\">@</head>",
    "<link a=\"x\"b='>'>@</head>",
    "<link a/=\">@</head>",
    "<link a =\n'</head>' b>@</head>",
    "<link a=b/>@</head>",
    "<link a==\">@</head>",
    "</script></title>@</head>",
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
    /* the page's end */
    "<html>@",
    "<!doctype html><!-- <p> --><script><p></script> @",
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
    "<header></header><body>",
    "text</head>",
    "\xff\xfe<\0",
    "{\"a\": \"</head>\"}",
    "<script><!-- <script> </script></head>",
    "<svg><![CDATA[</head>",
    "<plaintext></head></plaintext></head><body>",
};

/* Scans in pieces that end at `first` and `second`; returns where the place is, -1 for nowhere. */
static long scan_split_for(enum scanner_place place, enum scanner_page page, struct slice text,
                           size_t first, size_t second) {
    struct scanner scanner;
    size_t bounds[] = {0, first, second, text.length};
    scanner_init(&scanner, place, page);
    size_t total = 0;
    for (int i = 0; i < 3 && !scanner.hopeless; i++) {
        struct slice piece =
            guard_put(slice_make(text.base + bounds[i], bounds[i + 1] - bounds[i]));
        size_t seen = scanner_scan(&scanner, piece);
        total += seen;
        EXPECT(scanner.pending <= SCANNER_PENDING_MAX && scanner.pending <= total,
               "pending %u of %zu", scanner.pending, total);
        if (scanner.found)
            return (long)(total - scanner.pending);
        EXPECT(seen == piece.length || scanner.hopeless, "stopped without a reason");
    }
    return scanner_end(&scanner) ? (long)total : -1;
}

static long scan_split(struct slice text, size_t first, size_t second) {
    return scan_split_for(SCANNER_HEAD_END, SCANNER_FRAGMENT, text, first, second);
}

/* "@" marks the place again. */
static void expect_of_page(enum scanner_place kind, enum scanner_page sort, const char *page) {
    char text[256];
    const char *mark = strchr(page, '@');
    long place = mark == NULL ? -1 : mark - page;
    size_t length = 0;
    for (const char *at = page; *at != 0; at++)
        if (*at != '@')
            text[length++] = *at;
    for (size_t a = 0; a <= length; a++)
        for (size_t b = a; b <= length; b++) {
            long got = scan_split_for(kind, sort, slice_make(text, length), a, b);
            EXPECT(got == place, "%s split at %zu and %zu: %ld instead of %ld", page, a, b, got,
                   place);
        }
}

static void expect_at_every_split(enum scanner_place kind, const char *page) {
    expect_of_page(kind, SCANNER_FRAGMENT, page);
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
        "<html><head></head>@<noscript></noscript><body>",
        "<html><noscript></noscript><body>@",
        "<html><head></head>@",
    };
    static const char *const ends[] = {
        "<html><head></head><body>x@</body></html>",
        "<body><!-- </body> --><script>'</body>'</script>@</BODY >",
        "<body><template></body></template>@</body>",
        "<body></bodyx></bod>x@",
        "<p>a fragment</p>",
        "<p>a fragment</p>@</body>",
        "<body><iframe></body></iframe>@</body>",
        /* where a browser ignores it: in select, table, object and template */
        "<body><select><option></body></select>@</body></html>",
        "<body><select><svg></select>@</body>",
        "<body><select><input>@</body>",
        "<body><table><tr><td><select></td>x</body></table>@</body>",
        "<body><table><caption></body></caption><tr><td></html></td></tr></body></table>@</body>",
        "<body><table><td><table></body></table></body></table>@</html>",
        "<body><table><table></table>@</html>",
        "<body><td>@</body>",
        "<body><object></body></object><applet></body></applet><marquee></body></marquee>@</body>",
        "<body><table></body>@",
        "<body><select></body>",
        "<body><template></body>",
        /* in SVG and MathML, and where HTML begins again in them */
        "<body><svg><![CDATA[</body>]] ></body>]]]></svg>@</body>",
        "<body><svg><style><![CDATA[</body></style>]]></style></svg>@</body>",
        "<body><svg><desc><![CDATA[></desc></svg>@</body>",
        "<body><svg><g><path/></g><![CDATA[<body>]]></svg>@</body>",
        "<body><svg/><![CDATA[>@</body>]]>",
        "<body><svg><div><![CDATA[>@</body>]]>",
        "<body><svg></svg><![CDATA[>@</body>]]>",
        "<body><svg><desc><xmp></body></xmp><svg><![CDATA[</body>]]></svg></desc></svg>@</body>",
        "<body><svg><foreignObject></foreignObject><![CDATA[</body>]]></svg>@</body>",
        "<body><svg><foreignObject><p></body></foreignObject></svg>@</body>",
        "<body><svg><template></body></svg>@</body>",
        "<body><svg><mi></body></mi></svg>@</body>",
        "<body><math><mi><![CDATA[></body>]]></math>@</body>",
        "<body><math><mi></body></mi></math><p>x@</body>",
        "<body><math><![CDATA[</body>]]></math>@</body>",
        "<body><svg></body></p>@</body>",
        "<body><svg><![CDAT[></svg>@</body>]]>",
        /* no body */
        "<html><frameset><frame><noframes></body></noframes></frameset></html>",
        "<html><p><frameset></frameset></html>",
        "<html>text<frameset></frameset>@</html>",
        "<html><body><frameset></frameset>@</html>",
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
        "<html>@<templates></head>",
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

/* What a browser shows has a head and a body, tags or none (§13.2.6.4.3: "Insert an HTML element
 * for a "head" start tag token with no attributes"). */
START_TEST(documents_without_tags) {
    static const struct {
        enum scanner_place place;
        const char *page;
    } cases[] = {
        {SCANNER_HEAD_END, "@<h1>title</h1><p>text"},
        {SCANNER_HEAD_END, "\n<!-- c --> @text"},
        {SCANNER_HEAD_END, "<title>x</title>\n@<p>x</head>"},
        {SCANNER_HEAD_END, "<meta><link>@"},
        {SCANNER_HEAD_END, "\xef\xbb\xbf@<p>"},
        {SCANNER_HEAD_END, "</p></div>@<header>"},
        {SCANNER_HEAD_END, "@< b"},
        {SCANNER_HEAD_END, "@</br>"},
        {SCANNER_HEAD_END, " {\"a\": 1}"},
        {SCANNER_HEAD_END, "[1, 2]"},
        {SCANNER_HEAD_END, "<!doctype html>@{x}"},
        {SCANNER_HEAD_END, "\xfe\xff"},
        {SCANNER_BODY_START, "@<h1>title</h1><p>text"},
        {SCANNER_BODY_START, "<title>x</title>@<noscripts>"},
        {SCANNER_BODY_START, "<title>x</title></head>@<noscript>"},
        {SCANNER_BODY_END, "<h1>title</h1><p>text\n@"},
        {SCANNER_BODY_END, "<h1>title</h1>@</html>\n"},
        {SCANNER_BODY_END, "<p>text<!-- x"},
        {SCANNER_BODY_END, "<p>text<script>x"},
        {SCANNER_BODY_END, "<p>text<a b"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect_of_page(cases[i].place, SCANNER_DOCUMENT, cases[i].page);
}
END_TEST

/* In XML tags are not left out, elements without content are raw text to nobody, and a doctype has
 * declarations of its own. */
START_TEST(xml_has_all_tags) {
    static const struct {
        enum scanner_place place;
        const char *page;
    } cases[] = {
        {SCANNER_HEAD_END, "<?xml?><!DOCTYPE html [<!ENTITY a 'b'> ]><html><head>@</head><body/>"},
        {SCANNER_HEAD_END, "<html><head/>@<body><p/></body></html>"},
        {SCANNER_HEAD_END, "<html><head><script src='x'/>@</head>"},
        {SCANNER_HEAD_END, "<p>x</p>"},
        {SCANNER_BODY_START, "<html><head><title/></head><body>@x</body>"},
        {SCANNER_BODY_END, "<html><body><![CDATA[</body>]]><iframe/>@</body></html>"},
        {SCANNER_BODY_END, "<html><body>x"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect_of_page(cases[i].place, SCANNER_XML, cases[i].page);
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
    scanner_init(&scanner, place, SCANNER_DOCUMENT);
    scanner.wants_metas = true;
    while (at < text.length && !scanner.found && !scanner.hopeless) {
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

/* They have all that pages are made of. */
START_TEST(pages_are_read_the_same_in_pieces) {
    static const char *const names[] = {"app",  "forms", "fragment", "frames",
                                        "news", "old",   "short",    "tables"};
    static char text[12288], path[PATH_MAX];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(path, sizeof path, PAGES "/%s.html", names[i]);
        FILE *file = fopen(path, "rb");
        ck_assert_msg(file != NULL, "%s", path);
        size_t length = fread(text, 1, sizeof text, file);
        fclose(file);
        expect_one_reading(path, slice_make(text, length));
    }
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
    scanner_init(&scanner, SCANNER_HEAD_END, SCANNER_DOCUMENT);
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
                                  documents_without_tags,
                                  xml_has_all_tags,
                                  pages_are_read_the_same_in_pieces,
                                  metas_are_shown,
                                  any_bytes_pass};
    return suite_of("scanner", tests, COUNT_OF(tests));
}
