/* Files that must be refused, each with the message: where the mistake is and what to do. */
#include "suites.h"

static const struct refused {
    const char *text;    /* behind a first line that is good */
    const char *message; /* behind the file's name */
} refused_files[] = {
    /* Grammar. */
    {"workers = \"abc\n", ":2: a quote (\") is opened here"},
    {"\n\nname = 'abc", ":4: a quote (') is opened here"},
    {"cache {\n memory = 1MB\n", ":2: the '{' of this line is never closed"},
    {"cache { memory =", ":2: the '{' of this line is never closed"},
    {"}", ":2: there is a '}' without a '{'"},
    {"/* abc\n\n", ":2: a comment is opened here with /* and never closed"},
    {"workers 1", ":2: a '=' is missing after workers"},
    {"log_level =\n", ":3: the file ends where a value was expected"},
    {"workers = {1}", ":2: '{' is unexpected here"},
    {"cache memory = 1MB", ":2: a '{' is missing to open section cache, which has no title"},
    {"url_class { host = x }", ":2: url_class needs a title, as in: url_class NAME { ... }"},
    {"listen \":2\" mode = forward", ":2: a '{' is missing to open section listen"},
    {"name = \"a\001b\"", ":2: there is a control character (0x01)"},
    {"name = \"a\xff\"", ":2: there is a byte (0xff) here that is not UTF-8"},
    {"name = \"\xed\xa0\x80\"", ":2: there is a byte (0xed) here that is not UTF-8"},
    {"url_class x {\n host = *.example.com }", ":3: a value with '*' must be in quotes"},
    {"url_class x { path_regex = a+b }", ":2: a value with '+' must be in quotes"},
    {"url_class x { path_regex = \"\\.jpg\" }", ":2: a lone backslash in \"double quotes\""},
    {"map / { origin = \"http://h/\" }", ":2: a lone '/' must be in quotes"},
    {"a { a { a { a { a { a { a { a { a {", ":2: there is one '{' too many"},
    {"name = \"${RETORT_NOT_SET}\"", ":2: the environment variable RETORT_NOT_SET is not set"},
    {"name = \"${HOME\"\nlog_level = \"}\"", ":2: a ${ has no }"},
    {"name = ${HOME}", ":2: a value with '$' must be in quotes"},
    {"\n\"\" = 1", ":3: the name of an option is missing"},
    /* Tracing. */
    {"tracing { service_name = \""
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "x"
     "\" }",
     ":2: service_name: \"xxxxxxxxxxxx"},
    /* Names. */
    {"\ncache {\n memroy = 1MB }",
     ":4: unknown option \"memroy\" in section cache; did you mean \"memory\"?"},
    {"cahce { }", ":2: unknown option \"cahce\"; did you mean \"cache\"?"},
    {"wrokers = 1", ":2: unknown option \"wrokers\"; did you mean \"workers\"?"},
    {"frobnicate_all = 1", ":2: unknown option \"frobnicate_all\"; retort.conf(5) lists them all"},
    {"workers = 1\nworkers = 2", ":3: workers is set twice; the first one is in line 2"},
    {"connect_ports = 1\nconnect_ports = 2", ":3: connect_ports is set twice"},
    {"cache {\n}\ncache { }", ":4: the section cache is defined twice; the first one is in line 2"},
    {"url_class a { host = x }\nurl_class a { host = y }",
     ":3: url_class \"a\" is defined twice; the first one is in line 2"},
    {"connect_ports = {}", ":2: the list of connect_ports is empty"},
    {"\nurl_class x\n{ host = {} }", ":4: the list of host is empty"},
    /* Values. */
    {"workers = -1", ":2: workers: \"-1\" is not a whole number"},
    {"workers = 1025", ":2: workers: \"1025\" is out of range: from 0 to 1024"},
    {"cache { memory = 1K }", ":2: memory: \"1K\" is out of range: from 1MB to 4096GB"},
    {"cache { memory = lots }", ":2: memory: \"lots\" is not a size"},
    {"cache { memory = 99999999999999999999GB }", ":2: memory: "},
    {"cache { memory = 18446744073709551615K }", ":2: memory: "},
    {"cache { heuristic_fraction = 1.5 }", ":2: heuristic_fraction: \"1.5\" is out of range"},
    {"cache { heuristic_fraction = nan }", ":2: heuristic_fraction: \"nan\" is not a number"},
    {"cache { memory = 2MB\n max_object = 3MB }", ":3: max_object is larger than cache.memory"},
    {"client { idle_timeout = 10 }", ":2: idle_timeout: \"10\" is not a time: write a number with"},
    {"client { idle_timeout = 0 }", ":2: idle_timeout: \"0\" is out of range: from 1ms to 1d"},
    {"origin { dns_ipv6 = maybe }", ":2: dns_ipv6: \"maybe\" is not true or false"},
    {"log_level = loud", ":2: log_level: \"loud\" is not one of error, warn, info, debug"},
    {"connect_ports = { 443, 70000 }", ":2: connect_ports: \"70000\" is not a port"},
    {"name = \"a b\"", ":2: name: \"a b\" is not a name"},
    {"error_log = \"\"", ":2: error_log: \"\" is empty"},
    /* Disks. */
    {"disk \"/a\" { size = 1GB }", ":2: disk is in the wrong place: write it in section cache, as "
                                   "in: cache { disk PATH { ... } }"},
    {"cache {\n client { } }", ":3: client is in the wrong place: it is a section of its own"},
    {"cache { dsik \"/a\" { } }",
     ":2: unknown option \"dsik\" in section cache; did you mean \"disk\"?"},
    {"cache { disk \"/a\" {\n sise = 1GB } }",
     ":3: unknown option \"sise\" in section disk; did you mean \"size\"?"},
    {"cache { disk { } }", ":2: disk needs a title, as in: disk PATH { ... }"},
    {"cache { disk \"/a\" { disk \"/b\" { } } }", ":2: disk is in the wrong place: write it in"},
    {"cache { disk \"/a\" {\n size = 1KB } }",
     ":3: size: \"1KB\" is out of range: from 16MB to 2000GB"},
    {"cache { disk \"/a\" { threads = 0 } }", ":2: threads: \"0\" is out of range: from 1 to 64"},
    {"cache { disk \"/a\" { admission = some } }",
     ":2: admission: \"some\" is not one of all, second"},
    {"cache { disk \"/a\" { size = 1GB\nsize = 2GB } }", ":3: size is set twice"},
    {"cache { disk \"/a\" { }\ndisk \"/a\" { } }",
     ":3: disk \"/a\" is defined twice; the first one is in line 2"},
    {"cache { disk \"/a\" { }\ndisk \"/a/\" { } }",
     ":3: disk: \"/a/\" is already used by another disk section"},
    {"cache { disk \"a\" { } }", ":2: disk: \"a\" is not an absolute path; write the path of"},
    {"cache { disk \"\" { } }", ":2: disk: \"\" is not an absolute path"},
    {"cache { disk \"/a\" { }\n targeted = {} }", ":3: the list of targeted is empty"},
    /* Listeners and maps. */
    {"listen \":2\" {\n}", ":2: listen \":2\" has no mode; write: mode = forward"},
    {"listen \":2\" { mode = forwrd }", ":2: mode: \"forwrd\" is not one of forward, reverse"},
    {"listen \"localhost:2\" { mode = forward }", ":2: listen: \"localhost:2\" is not an address"},
    {"listen \"127.0.0.1\" { mode = forward }", ":2: listen: \"127.0.0.1\" is not an address"},
    {"listen \"/tmp/x\" { mode = forward }", ":2: listen: \"/tmp/x\" is not an address"},
    {"listen \"*:1\" { mode = forward }",
     ":2: listen: \"*:1\" is already used by another listen section"},
    {"listen \":2\" { mode = forward\n allow = { \"10.0.0.0/8\",\n\"10.0.0.0/40\" } }",
     ":4: allow: \"10.0.0.0/40\" is not an address or a network"},
    {"listen \":2\" { mode = forward\n allow = { \"10.1.2.3/8\" } }",
     ":3: allow: \"10.1.2.3/8\" has bits behind its prefix: write \"10.0.0.0/8\""},
    {"listen \":2\" { mode = forward\n proxy_protocol = \"10.1.2.3/8\" }",
     ":3: proxy_protocol: \"10.1.2.3/8\" has bits behind its prefix: write \"10.0.0.0/8\""},
    {"url_class a { client = \"2001:db8::1/64\" }",
     ":2: client: \"2001:db8::1/64\" has bits behind its prefix: write \"2001:db8::/64\""},
    {"map \"/\" { }", ":2: map \"/\" has no origin; write: origin = \"http://127.0.0.1:9000/\""},
    {"map \"x/\" { origin = \"http://h/\" }", ":2: map: \"x/\" is not a prefix"},
    {"map \"https://x/\" { origin = \"http://h/\" }", ":2: map: \"https://x/\" is not a prefix"},
    {"map \"http://x/?a\" { origin = \"http://h/\" }",
     ":2: map: \"http://x/?a\" has a query or fragment; only"},
    {"map \"/\" {\n origin = \"h:80\" }", ":3: origin: \"h:80\" is not a URL"},
    {"map \"/\" { origin = \"icap://h/\" }",
     ":2: origin: \"icap://h/\" is not an http or https URL"},
    {"map \"/\" { origin = \"http://h/?q\" }", ":2: origin: \"http://h/?q\" has a query"},
    {"map \"http://X.org\" { origin = \"http://h/\" }\n"
     "map \"http://x.org:80/\" { origin = \"http://h/\" }",
     ":3: map: \"http://x.org:80/\" means the same as the prefix of another map"},
    /* The admin plane. */
    {"admin {\n listen = \"0.0.0.0:1\" }", ":3: listen: \"0.0.0.0:1\" is not a loopback address"},
    {"admin { listen = \"127.0.0.1:81\" }",
     ":2: listen: every user of this machine can connect to \"127.0.0.1:81\": set token_file"},
    {"admin { listen = \"/tmp/s\" token_file = \"/nowhere/tokens\" }",
     ":2: token_file: /nowhere/tokens: No such file"},
    {"admin { listen = \":81\" }", ":2: listen: \":81\" is not a loopback address"},
    {"admin {\n listen = \"/s\"\n certificates = \"/x.pem\" }",
     ":4: certificates: a Unix socket carries no TLS"},
    {"admin {\n listen = \"127.0.0.1:81\"\n client_ca = \"/x\" }",
     ":4: client_ca: the admin plane has no certificates"},
    {"admin {\n listen = \"127.0.0.1:81\"\n min_version = tls1.3 }",
     ":4: min_version: the admin plane has no certificates"},
    {"admin { certificates = \"/x\"\n certificate_roles = \"/x\" }",
     ":3: certificate_roles: clients are not asked for certificates"},
    {"admin { certificates = \"/x\"\n client_certificate = required }",
     ":3: client_certificate: set client_ca"},
    {"admin { certificates = \"/nowhere.pem\" }", ":2: certificates: /nowhere.pem can't be read"},
    {"admin { listen = \"retort.sock\" }", ":2: listen: \"retort.sock\" is neither an absolute"},
    {"admin { listen = \"/"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxx\" }",
     ":2: listen: the path is too long for a Unix socket: 110 bytes, at most 107"},
    /* Services, classes, chains. */
    {"icap_service a { point = reqmod_precache }", ":2: icap_service \"a\" has no uri"},
    {"icap_service a {\n uri = \"http://h/a\"\n point = reqmod_precache }",
     ":3: uri: \"http://h/a\" is not the address of an ICAP service"},
    {"icap_service a { uri = \"icap://h/\" point = reqmod_precache }",
     ":2: uri: \"icap://h/\" is not the address of an ICAP service"},
    {"icap_service a { uri = \"icaps://h/\" point = reqmod_precache }",
     ":2: uri: \"icaps://h/\" is not the address of an ICAP service"},
    {"icap_service a { uri = \"icaps://h/a\" point = reqmod_precache certificate = /c.pem }",
     ":2: icap_service: certificate and certificate_key need each other"},
    {"icap_service a { uri = \"icaps://h/a\" point = reqmod_precache\n ca_file = /none.pem }",
     ":3: ca_file: /none.pem: No such file"},
    {"icap_service \"a b\" { uri = \"icap://h/a\" point = reqmod_precache }",
     ":2: icap_service: \"a b\" is not a name"},
    {"icap_service a { uri = \"icap://h/a\" point = reqmod_precache\n keep = 1KB }",
     ":3: keep is smaller than preview"},
    {"icap_service a { uri = \"icap://h/a\" point = reqmod_precache\n include = X-Me }",
     ":3: include: \"X-Me\" is not known; write X-Client-IP, X-Client-Port, X-Server-IP, "
     "X-Client-Username, X-Authenticated-User, X-Authenticated-Groups, X-Access-Rule, X-TLS-SNI, "
     "X-TLS-Version, "
     "X-TLS-Cipher, X-TLS-Issuer, X-TLS-Verification, "
     "X-TLS-Client-Subject, X-TLS-Client-Issuer, X-TLS-Client-Serial or none"},
    {"icap_service a { uri = \"icap://h/a\" point = respmod_precache\n verdict_by = Accept }",
     ":3: verdict_by works only for services at reqmod_precache and reqmod_postcache; remove it"},
    {"icap_service a { uri = \"icap://h/a\" point = reqmod_precache\n down_min = 1h }",
     ":3: down_min is larger than down_max"},
    {"url_class all { host = x }", ":2: url_class: \"all\" is built in; choose another name"},
    {"url_class x { }", ":2: url_class \"x\" has no condition"},
    {"url_class x { path_regex = { a,\n\"b(\" } }",
     ":3: path_regex: \"b(\" is not a regular expression: missing closing parenthesis at offset 2"},
    {"url_class x { host = \"http://x/\" }", ":2: host: \"http://x/\" is not a host"},
    {"url_class x { domain = \"*.x\" }", ":2: domain: \"*.x\" is not a domain"},
    {"url_class x { content_type = text }", ":2: content_type: \"text\" is not a media type"},
    {"url_class x { method = \"G ET\" }", ":2: method: \"G ET\" is not a request method"},
    {"url_class x { client = \"10.0.0\" }", ":2: client: \"10.0.0\" is not an address"},
    {"url_class x { port = 0 }", ":2: port: \"0\" is not a port from 1 to 65535"},
    {"url_class x { port = \"9-8\" }", ":2: port: \"9-8\" is not a port from 1 to 65535"},
    {"url_class x { scheme = ftp }", ":2: scheme: \"ftp\" is not a scheme of requests"},
    {"url_class x { destination = h }", ":2: destination: \"h\" is not an address"},
    {"url_class x { user = \"\" }", ":2: user: \"\" is empty"},
    {"url_class x { request_header = curl }", ":2: request_header: \"curl\" is not a condition on"},
    {"url_class x { request_header = 'A: (' }", ":2: request_header: \"A: (\" is not a regular"},
    {"url_class x { time = \"8:00-9:00\" }", ":2: time: \"8:00-9:00\" is not a time"},
    {"url_class x { time = \"09:00-09:00\" }", ":2: time: \"09:00-09:00\" is a time that never"},
    {"url_class x { host_file = list }", ":2: host_file: \"list\" is not the path of a list"},
    {"url_class x { host_file = \"/no/such\" }", ":2: /no/such: No such file or directory"},
    {"url_class x { host_file = \"/tmp\" }", ":2: /tmp: is not a file"},
    {"url_class x { any_of = y }", ":2: url_class \"x\": any_of: there is no url_class \"y\""},
    {"url_class x { not = x }",
     ":2: url_class \"x\": not and any_of lead back to the class: x -> x"},
    {"url_class x { any_of = y }\nurl_class y { not = z }\nurl_class z { any_of = { all, x } }",
     ":2: url_class \"x\": not and any_of lead back to the class: x -> y -> z -> x"},
    {"url_class x { not = t }\nurl_class t { content_type = \"image/*\" }",
     ":2: url_class \"x\": class t has a content_type, which not and any_of can not compare"},
    {"policy y { ttl = 1m }", ":2: policy: there is no url_class \"y\""},
    {"policy all { }", ":2: policy \"all\" sets no option"},
    {"policy { ttl = 1m }", ":2: policy needs a title, as in: policy CLASS { ... }"},
    {"policy all { ttl = 1m }\npolicy all { ttl = 2m }", ":3: policy \"all\" is defined twice"},
    {"policy all {\n cache = perhaps }",
     ":3: cache: \"perhaps\" is not one of normal, never, always"},
    {"policy all {\n ttl = 10 }", ":3: ttl: \"10\" is not a time"},
    {"policy all {\n required_headers = 3 }", ":3: required_headers: \"3\" is out of range"},
    {"policy all { ttl_max = 1m\n ttl_min = 2m }", ":3: ttl_min is larger than ttl_max"},
    {"policy all {\n query_drop = { a,\n\"utm*x\" } }",
     ":4: query_drop: \"utm*x\" is not the name of a parameter"},
    {"policy all { query_keep = \"a=b\" }", ":2: query_keep: \"a=b\" is not the name"},
    {"policy all { max_variants = 0 }", ":2: max_variants: \"0\" is out of range"},
    {"policy all { qeury_sort = true }",
     ":2: unknown option \"qeury_sort\" in section policy; did you mean \"query_sort\"?"},
    {"url_class t { content_type = \"image/*\" }\npolicy t { ttl = 1m\n query_sort = true }",
     ":4: query_sort can not be set for class t: its content_type is known only"},
    {"adapt y { services = a }", ":2: adapt: there is no url_class \"y\""},
    {"adapt all {\n services = { a } }", ":3: services: there is no icap_service \"a\""},
    {"adapt all { }", ":2: adapt \"all\" has no services"},
    {"icap_service a { uri = \"icap://h/a\" point = reqmod_precache }\n"
     "adapt all { services = { a, a } }",
     ":3: services: \"a\" is listed twice; remove"},
    {"origins a { }", ":2: origins \"a\" has no servers; write: servers = {"},
    {"origins \"a b\" { servers = \"http://h\" }", ":2: origins: \"a b\" is not a name"},
    {"origins a {\n servers = \"h:80\" }", ":3: servers: \"h:80\" is not a server: write"},
    {"origins a {\n servers = \"http://h/x\" }", ":3: servers: \"http://h/x\" is not a server"},
    {"origins a {\n servers = \"http://h weigth=2\" }",
     ":3: servers: \"http://h weigth=2\" has \"weigth=2\" after the URL; only weight=N, "
     "backup and drain"},
    {"origins a {\n servers = \"http://h weight=0\" }",
     ":3: servers: \"http://h weight=0\" has a weight that is not a number from 1 to 256"},
    {"origins a { servers = { \"http://h\",\n\"http://H:80\" } }",
     ":3: servers: \"http://H:80\" is listed twice"},
    {"origins a { servers = \"http://h\"\n balance = random }",
     ":3: balance: \"random\" is not one of round_robin, least_connections, consistent_hash"},
    {"origins a { servers = \"http://h\"\n failure_status = 404 }",
     ":3: failure_status: \"404\" is not a status from 500 to 599"},
    {"origins a { servers = \"http://h\"\n health_check = up }",
     ":3: health_check: \"up\" is not a path"},
    {"origins a { servers = \"http://h\"\n credentials = seekrit }",
     ":3: credentials: the value is not \"USER:PASSWORD\""},
    {"origins a { servers = \"http://h\"\n down_min = 1h }",
     ":3: down_min is larger than down_max"},
    {"map \"/\" {\n origin = web }",
     ":3: origin: \"web\" is neither a URL nor the name of an origins section"},
    {"origins a { servers = \"http://h\" }\nmap \"/\" {\n origin = \"a/x?y\" }",
     ":4: origin: \"a/x?y\" has a query or fragment"},
    {"map \"/\" { origin = \"http://h/\"\n parent = up }",
     ":3: parent: there is no origins section \"up\""},
    {"origins a { servers = \"http://h\" }\nmap \"/\" { origin = a\n parent = a }",
     ":4: parent: the origin is a group of servers"},
    {"map \"/\" { origin = \"http://h/\"\n origin_aliases = h }",
     ":3: origin_aliases: \"h\" is not the beginning of a URL"},
    {"parent x { direct = always }", ":2: parent: there is no url_class \"x\""},
    {"parent all { }", ":2: parent \"all\" has no origins"},
    {"parent all {\n origins = up }", ":3: origins: there is no origins section \"up\""},
};

static void check_refused(const char *path, const char *message) {
    char error[SETTINGS_ERROR] = "", expected[SETTINGS_ERROR];
    struct settings *settings = settings_load(path, error);
    ck_assert_msg(settings == NULL, "taken, although: %s", message);
    snprintf(expected, sizeof expected, "%s%s", path, message);
    ck_assert_msg(strncmp(error, expected, strlen(expected)) == 0, "\"%s\" instead of \"%s\"",
                  error, expected);
}

START_TEST(bad_files_are_refused_with_their_line) {
    char text[1024];
    for (size_t i = 0; i < COUNT_OF(refused_files); i++) {
        snprintf(text, sizeof text, "listen \":1\" { mode = reverse }\n%s", refused_files[i].text);
        char *path = scratch_file("refused.conf", text);
        check_refused(path, refused_files[i].message);
        free(path);
    }
}
END_TEST

START_TEST(a_file_without_listeners_is_refused) {
    char *path = scratch_file("refused.conf", "");
    check_refused(path, ": there is no listen section");
    free(path);
    path = scratch_file("refused.conf", "workers = 1\n");
    check_refused(path, ": there is no listen section");
    free(path);
}
END_TEST

START_TEST(what_is_no_file_is_refused) {
    check_refused("/nonexistent/retort.conf",
                  ": the file can not be opened: No such file or directory");
    check_refused(scratch(), ": the file can not be read: Is a directory");
}
END_TEST

START_TEST(a_zero_byte_is_refused) {
    char *path = scratch_file("refused.conf", "");
    FILE *file = fopen(path, "w");
    fwrite("workers = 1\n\0x", 1, 14, file);
    fclose(file);
    check_refused(path, ":2: there is a control character (0x00)");
    free(path);
}
END_TEST

/* Every prefix of a good file: refused or taken, but nothing worse. */
START_TEST(cut_files_do_no_harm) {
    char error[SETTINGS_ERROR], *good = source_path("conf/retort.conf");
    char *text = read_text(good);
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i += 1 + i % 7) {
        char kept = text[i];
        text[i] = '\0';
        char *path = scratch_file("cut.conf", text);
        struct settings *settings = settings_load(path, error);
        settings_release(&settings);
        free(path);
        text[i] = kept;
    }
    free(text);
    free(good);
}
END_TEST

Suite *settings_errors_suite(void) {
    const TTest *const tests[] = {
        a_file_without_listeners_is_refused,
        what_is_no_file_is_refused,
        a_zero_byte_is_refused,
        cut_files_do_no_harm,
    };
    const TTest *const with_all[] = {bad_files_are_refused_with_their_line};
    Suite *suite = suite_of("settings errors", tests, COUNT_OF(tests));
    suite_add_with(suite, "all", with_all, COUNT_OF(with_all));
    return suite;
}
