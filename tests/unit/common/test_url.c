#include "suites.h"

#include "http/dot_segments.h"
#include "http/url.h"

static bool parse(struct url *url, const char *text) {
    return url_parse(url, guard_put(slice_from(text)));
}

static void check_refused(const char *text) {
    struct url url;
    ck_assert_msg(!parse(&url, text), "\"%s\" is taken", text);
}

/* Parses, and writes the parts in brackets. */
static void check_parts(const char *text, const char *expected) {
    struct url url;
    char parts[512];
    ck_assert_msg(parse(&url, text), "\"%s\" is refused", text);
    snprintf(parts, sizeof parts, "[%.*s][%.*s]%s[%u]%s[%.*s]", SLICE_PRINT(url.scheme),
             SLICE_PRINT(url.host), url.host_is_ipv6 ? "6" : "", url.port,
             url.port_given ? "given" : "", SLICE_PRINT(url.path_query));
    ck_assert_str_eq(parts, expected);
}

START_TEST(parts_of_urls) {
    check_parts("http://[::1]:8080/a?b", "[http][::1]6[8080]given[/a?b]");
    check_parts("http://example.com", "[http][example.com][80][]");
    check_parts("https://example.com/", "[https][example.com][443][/]");
    check_parts("icap://h/reqmod", "[icap][h][1344][/reqmod]");
    check_parts("icaps://h/", "[icaps][h][11344][/]");
    check_parts("HTTP://EXAMPLE.com:80/A", "[HTTP][EXAMPLE.com][80]given[/A]");
    check_parts("http://a-b_c.1.:1?q", "[http][a-b_c.1][1]given[?q]");
    check_parts("http://a:/b", "[http][a][80][/b]");
    check_parts("http://1.2.3.4:65535/", "[http][1.2.3.4][65535]given[/]");
    check_parts("http://[::ffff:1.2.3.4]", "[http][::ffff:1.2.3.4]6[80][]");
    check_parts("http://a/b@c:d//e?f/?g@[h]", "[http][a][80][/b@c:d//e?f/?g@[h]]");
    check_parts("http://a/\xc3\xa4", "[http][a][80][/\xc3\xa4]");
}
END_TEST

START_TEST(schemes_of_texts) {
    ck_assert_slice_eq(url_scheme_of(SLICE("ws://a/")), SLICE("ws"));
    ck_assert_slice_eq(url_scheme_of(SLICE("X+y-1.z://")), SLICE("X+y-1.z"));
    static const char *const none[] = {"",      ":",  "://a",    "ws:/a",
                                       "ws//a", "ws", "1ws://a", "w s://a"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        ck_assert_uint_eq(url_scheme_of(slice_from(none[i])).length, 0);
}
END_TEST

START_TEST(fragments_are_cut_off) {
    check_parts("http://a/b?c#d?e/f", "[http][a][80][/b?c]");
    check_parts("http://a#b", "[http][a][80][]");
    check_parts("http://a?#", "[http][a][80][?]");
}
END_TEST

START_TEST(what_is_not_such_a_url) {
    static const char *const texts[] = {
        "",          "/",           "/a",         "*",          "a:443",        "http",
        "http:",     "http:/",      "http:/a",    "http://",    "http:///a",    "http://?a",
        "http://#a", "http://:80/", "//a/b",      "ftp://a/",   "httpx://a/",   "file:///etc",
        "://a/",     " http://a/",  "http ://a/", "http:// a/", "javascript:x", "http:\\\\a\\b",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check_refused(texts[i]);
}
END_TEST

START_TEST(hosts_that_mislead) {
    static const char *const texts[] = {
        "http://user@a/",
        "http://user:pw@a/",
        "http://a@b@c/",
        "http://@a/",
        "http://a%2eb/",
        "http://a%00/",
        "http://a\\b/",
        "http://a\\@b/",
        "http://a b/",
        "http://a\tb/",
        "http://a,b/",
        "http://a;b/",
        "http://a!b/",
        "http://\xc3\xa4/",
        "http://a\x7f/",
        "http://a*/",
        "http://[::1/",
        "http://::1/",
        "http://[]/",
        "http://[a]/",
        "http://[::1%eth0]/",
        "http://[::1]a/",
        "http://[::1]]/",
        "http://[1.2.3.4]/",
        "http://[[::1]]/",
        "http://a[::1]/",
        "http://[::1]8080/",
        "http://[::1.]/",
        "http://./",
        "http://../",
        "http://[:::1]/",
        "http://[v1.a]/",
        "http://[1:2:3]/",
        "http://[1111:2222:3333:4444:5555:6666:7777:8888:9999]/",
        "http://[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]/",
    };
    struct url url;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check_refused(texts[i]);
    ck_assert(!url_parse(&url, SLICE("http://a\0b/")));
    ck_assert(!url_parse(&url, SLICE("http://[::1\0]/")));
    ck_assert(!url_parse(&url, SLICE("http\0://a/")));
}
END_TEST

START_TEST(long_hosts) {
    char text[512];
    struct url url;
    memset(text, 'a', sizeof text);
    memcpy(text, "http://", 7);
    ck_assert(url_parse(&url, guard_put(slice_make(text, 7 + 255))));
    ck_assert(!url_parse(&url, guard_put(slice_make(text, 7 + 256))));
}
END_TEST

START_TEST(bad_ports) {
    static const char *const texts[] = {
        "http://a:0/",
        "http://a:65536/",
        "http://a:65537/",
        "http://a:99999/",
        "http://a:-1/",
        "http://a:+80/",
        "http://a:8x/",
        "http://a: 80/",
        "http://a:80 /",
        "http://a::/",
        "http://a:80:80/",
        "http://a:000080/",
        "http://a:99999999999999999999/",
        "http://[::1]:x/",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check_refused(texts[i]);
}
END_TEST

START_TEST(bad_paths) {
    struct url url;
    check_refused("http://a/b c");
    check_refused("http://a/b\r\nX: y");
    check_refused("http://a/\x7f");
    check_refused("http://a?\t");
    ck_assert(!url_parse(&url, SLICE("http://a/\0")));
}
END_TEST

/* Every beginning of a URL is read within its bounds. */
START_TEST(prefixes) {
    static const char text[] = "https://[2001:db8::1]:8443/a/b?c=d#e";
    for (size_t length = 0; length < sizeof text; length++) {
        struct url url;
        struct slice input = guard_put(slice_make(text, length));
        bool good = url_parse(&url, input);
        ck_assert_msg(good == (length >= strlen("https://[2001:db8::1]")), "%.*s", (int)length,
                      text);
        if (good)
            ck_assert(url.path_query.base + url.path_query.length <= input.base + length);
    }
}
END_TEST

static void check_authority(const char *text, const char *expected) {
    struct url url;
    char parts[128] = "refused";
    if (url_parse_authority(&url, guard_put(slice_from(text)), 7))
        snprintf(parts, sizeof parts, "[%.*s]%s[%u]%s", SLICE_PRINT(url.host),
                 url.host_is_ipv6 ? "6" : "", url.port, url.port_given ? "given" : "");
    ck_assert_msg(strcmp(parts, expected) == 0, "\"%s\" is %s", text, parts);
}

START_TEST(authorities) {
    check_authority("a", "[a][7]");
    check_authority("a.b:443", "[a.b][443]given");
    check_authority("[::]:0", "[::]6[0]given");
    check_authority("[::1]", "[::1]6[7]");
    check_authority("a:", "[a][7]");
    check_authority("127.0.0.1:3128", "[127.0.0.1][3128]given");
    check_authority("", "refused");
    check_authority(":80", "refused");
    check_authority("a:b", "refused");
    check_authority("a:80/", "refused");
    check_authority("a/b", "refused");
    check_authority("a?b", "refused");
    check_authority("u@a:80", "refused");
    check_authority("a,b", "refused");
    check_authority("a a", "refused");
    check_authority("[::1", "refused");
    check_authority("[::1]80", "refused");
    check_authority("http://a", "refused");
    check_authority("a:80,b:80", "refused");
    struct url url;
    ck_assert(!url_parse_authority(&url, slice_make(NULL, 0), 80));
    ck_assert(!url_parse(&url, slice_make(NULL, 0)));
}
END_TEST

static void check_user_info(const char *text, const char *expected) {
    ck_assert_slice_eq(url_user_info(guard_put(slice_from(text))), slice_from(expected));
}

/* Of what is no URL as well: a password must not be seen because something else is wrong. */
START_TEST(user_info_is_found) {
    check_user_info("http://bob:pw@a/x", "bob:pw@");
    check_user_info("http://bob@a", "bob@");
    check_user_info("http://bob:p@w@a/", "bob:p@w@");
    check_user_info("gopher://bob:pw@a b/", "bob:pw@");
    check_user_info("bob:pw@a:443", "bob:pw@");
    check_user_info("/http://bob:pw@a/", "bob:pw@");
    check_user_info("http:/bob:pw@a/", "http:/bob:pw@");
    check_user_info("http:\\\\bob:pw@a/", "http:\\\\bob:pw@");
    check_user_info("http://bob:p/w@a/", "bob:p/w@");
    check_user_info("http://bob:p?w@a/", "bob:p?w@");
    check_user_info("http://bob:p#w@a/", "bob:p#w@");
    check_user_info("http://a/@bob", "");
    check_user_info("http://a:80/?q=@bob", "");
    check_user_info("/@bob", "");
    check_user_info("http://a", "");
    check_user_info("*", "");
    check_user_info("", "");
    ck_assert_uint_eq(url_user_info(slice_make(NULL, 0)).length, 0);
}
END_TEST

static void check_path(const char *text, const char *expected) {
    struct url url;
    ck_assert(parse(&url, text));
    ck_assert_slice_eq(url_path(&url), slice_from(expected));
}

START_TEST(paths) {
    check_path("http://a/b.gif?c=/d.html", "/b.gif");
    check_path("http://a/b", "/b");
    check_path("http://a", "/");
    check_path("http://a?b", "/");
    check_path("http://a/?b?c", "/");
}
END_TEST

/* The canonical form, which must be its own canonical form. */
static void check_normal(const char *text, const char *expected) {
    struct url url;
    char out[512], again[512] = "";
    ck_assert_msg(parse(&url, text), "\"%s\"", text);
    size_t length = url_normalise(&url, out, sizeof out);
    ck_assert_slice_eq(slice_make(out, length), slice_from(expected));
    ck_assert(url_parse(&url, slice_make(out, length)));
    size_t enough = url_room(&url);
    struct slice room = guard_put(slice_make(again, enough));
    ck_assert_uint_eq(url_normalise(&url, (char *)room.base, enough), length);
    ck_assert_slice_eq(slice_make(room.base, length), slice_from(expected));
    ck_assert_uint_eq(url_normalise(&url, again, enough - 1), 0);
    ck_assert_uint_eq(url_normalise(&url, again, 0), 0);
}

START_TEST(canonical_forms) {
    check_normal("HTTP://ExAmPlE.CoM:80/A/b", "http://example.com/A/b");
    check_normal("https://a:443?B", "https://a/?B");
    check_normal("https://a:80", "https://a:80/");
    check_normal("http://a:00080/", "http://a/");
    check_normal("http://a:65535/", "http://a:65535/");
    check_normal("http://a:", "http://a/");
    check_normal("icap://H:1344/x", "icap://h/x");
    check_normal("http://[2001:DB8::1]:81/", "http://[2001:db8::1]:81/");
    check_normal("http://a/%7Eb%2d%2E%5f%41%7a%30", "http://a/~b-._Az0");
    check_normal("http://a/%2f%c3%a4%20%25?%3d%26%3F", "http://a/%2F%C3%A4%20%25?%3D%26%3F");
    check_normal("http://a.org./", "http://a.org/");
    check_normal("http://A..:8080", "http://a:8080/");
    check_normal("http://[0:0:0::0:1]/", "http://[::1]/");
    check_normal("http://[1::2:3:4:5:6:7]", "http://[1:0:2:3:4:5:6:7]/");
    check_normal("http://[::FFFF:10.0.0.1]/", "http://[::ffff:10.0.0.1]/");
    check_normal("http://a/b#c", "http://a/b");
}
END_TEST

/* RFC 3986 §6.2.2.3: "The complete path segments "." and ".." are intended only for use within
 * relative references ... URI normalizers should remove dot-segments". */
START_TEST(dot_segments_go) {
    check_normal("http://a/b/../c/./d", "http://a/c/d");
    check_normal("http://a/a/b/c/./../../g", "http://a/a/g");
    check_normal("http://a/mid/content=5/../6", "http://a/mid/6");
    check_normal("http://a/..", "http://a/");
    check_normal("http://a/../../b", "http://a/b");
    check_normal("http://a/.", "http://a/");
    check_normal("http://a/b/.", "http://a/b/");
    check_normal("http://a/b/..", "http://a/");
    check_normal("http://a/b/c/..", "http://a/b/");
    check_normal("http://a/%2e%2E/x/%2e/.%2e/y", "http://a/y");
    check_normal("http://a/b/../?c/../d", "http://a/?c/../d");
    check_normal("http://a/b//../c", "http://a/b/c");
    check_normal("http://a/b/...", "http://a/b/...");
    check_normal("http://a/.b/b./..b/b../b..b", "http://a/.b/b./..b/b../b..b");
    check_normal("http://a/b/..#/c", "http://a/");
    /* Encoded dots that a stray '%' near by keeps from being decoded. */
    check_normal("http://a/b/%/%2e%2e/c", "http://a/b/c");
    check_normal("http://a/b/%/%2e/c", "http://a/b/%/c");
    /* Those are other characters than separators. */
    check_normal("http://a/b/..%2fc", "http://a/b/..%2Fc");
    check_normal("http://a/b/..;/c", "http://a/b/..;/c");
    check_normal("http://a/b/..\\c", "http://a/b/..\\c");
}
END_TEST

START_TEST(what_servers_may_take_for_dot_segments) {
    static const char *const seen[] = {
        "/..",
        "/a/../b",
        "/.",
        "/a/./b",
        "/..%2fb",
        "/..%2Fb",
        "/..%5cb",
        "/..\\b",
        "/a\\..\\b",
        "/..;/b",
        "/..;x=1/b",
        "/.;/b",
        "/%2e%2e/b",
        "/%2e%2e%2fb",
        "/b%2f..",
        "/b%2f..%2fc",
        "/..%252fb",
        "/%252e%252e/b",
        "/%25252e./b",
        "/..%c0%afb",
        "/%c0%ae./b",
        "/..%c1%9cb",
        "/..%e0%80%afb",
        "/..%25c0%25afb",
        "/%2e;%2fb",
        "/a/..%2f",
        "/a/%2e%2e;a;b",
        "/\\..",
        "/b\xc0\xaf..",
        "/..%%35cb",
        "/%%32e./b",
        "/.%%32%65/b",
        "/..%%32%66b",
        "..",
        ".",
        "a\\.",
        "/a//..",
        "/a/.;b",
        "/abc/def/ghi/..",
    };
    static const char *const unseen[] = {
        "/",       "",         "/a",      "/a.b/c..d", "/...",      "/a../b", "/..a/b",
        "/.a/b",   "/a%2fb",   "/a;..",   "/a;x=..;y", "/;/..a",    "/%2",    "/%",
        "/a%2e",   "/%2ea",    "/%2525",  "/a..;/b",   "/\xc3\xa4", "/%c0",   "/%e0%80",
        "/.%20/b", "/...%2fb", "/%%32/b", "/.%%/b",    "//a",       "a..",    "/a/.../b",
    };
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        ck_assert_msg(dot_segments_may_be_seen(guard_put(slice_from(seen[i]))), "%s", seen[i]);
    for (size_t i = 0; i < COUNT_OF(unseen); i++)
        ck_assert_msg(!dot_segments_may_be_seen(guard_put(slice_from(unseen[i]))), "%s", unseen[i]);
}
END_TEST

static void check_rewritten_authority(const char *text, const char *expected) {
    struct url url;
    char out[100];
    ck_assert(url_parse_authority(&url, guard_put(slice_from(text)), 443));
    size_t length = url_rewrite_authority(&url, out, sizeof out);
    ck_assert_slice_eq(slice_make(out, length), slice_from(expected));
    ck_assert_uint_eq(url_rewrite_authority(&url, out, 3), 0);
}

START_TEST(canonical_authorities) {
    check_rewritten_authority("A.Example.:443", "a.example:443");
    check_rewritten_authority("a", "a:443");
    check_rewritten_authority("[::0:1]:80", "[::1]:80");
}
END_TEST

START_TEST(stray_percent_signs_stay) {
    check_normal("http://a/%", "http://a/%");
    check_normal("http://a/100%/%4", "http://a/100%/%4");
    check_normal("http://a/%zz%G1%1g", "http://a/%zz%G1%1g");
    check_normal("http://a/%%34%31", "http://a/%%341");
    check_normal("http://a/%4%31", "http://a/%4%31");
    check_normal("http://a/%xy%31", "http://a/%xy1");
    check_normal("http://a/%%%41%41", "http://a/%%%41A");
}
END_TEST

Suite *url_suite(void) {
    const TTest *const tests[] = {
        parts_of_urls,
        schemes_of_texts,
        fragments_are_cut_off,
        what_is_not_such_a_url,
        hosts_that_mislead,
        long_hosts,
        bad_ports,
        bad_paths,
        prefixes,
        authorities,
        user_info_is_found,
        paths,
        canonical_forms,
        dot_segments_go,
        what_servers_may_take_for_dot_segments,
        canonical_authorities,
        stray_percent_signs_stay,
    };
    return suite_of("url", tests, COUNT_OF(tests));
}
