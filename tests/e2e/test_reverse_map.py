"""Headers of the origin that name its own URLs: the client gets URLs that lead back through the proxy."""

from harness.checks import equal
from harness.raw_origin import RawOrigin
from harness.retort import Retort
from harness.suite import memcheck


class Redirects(RawOrigin):
    """Answers with the headers that `fields` holds for the target."""

    def __init__(self, lab):
        self.fields = {}
        super().__init__(lab, self.redirect)

    def redirect(self, connection, seen):
        fields = self.fields.get(seen.target, {})
        status = b"302 Found" if "Location" in fields else b"200 OK"
        head = b"".join(b"%s: %s\r\n" % (name.encode(), value.encode()) for name, value in fields.items())
        connection.send(b"HTTP/1.1 %s\r\nContent-Length: 0\r\nCache-Control: max-age=60\r\n%s\r\n" % (status, head))
        return False


def view(proxy, origin, sent, prefix="/app/", at="/base/x", name="Location"):
    """What the client sees of a header that the origin sends as `sent`."""
    origin.fields[at] = {name: sent}
    answer = proxy.fetch("POST", prefix + at.rsplit("/", 1)[1], host="www.example.com")
    return answer.header(name)


@memcheck
def test_location(lab):
    origin = Redirects(lab)
    proxy = Retort(lab, reverse={"/app/": origin.url("/base/")})
    own = origin.url("")
    cases = [
        (own + "/base/y?q#f", "/app/y?q#f"), (own + "/base/", "/app/"), (own + "/base", "/app/"),
        (own.replace("http:", "HTTP:") + "/base/y", "/app/y"), (own[5:] + "/base/y", "/app/y"), ("/base/y", "/app/y"),
        # Not the origin's, not below the rule, or not to be understood: as they are.
        (own + "/other/y", own + "/other/y"), (own + "/basement", own + "/basement"), ("y", "y"), ("../y", "../y"),
        (own.replace("http:", "https:") + "/base/y", own.replace("http:", "https:") + "/base/y"),
        ("http://elsewhere.example/base/y", "http://elsewhere.example/base/y"), ("/app/y", "/app/y"),
        ("http://www.example.com/base/y", "http://www.example.com/base/y"), ("mailto:a@b", "mailto:a@b"), ("?q", "?q"),
    ]
    for sent, expected in cases:
        equal(view(proxy, origin, sent), expected, f"Location: {sent}")


def test_other_headers(lab):
    origin = Redirects(lab)
    proxy = Retort(lab, reverse={"/app/": origin.url("/base/")})
    own = origin.url("/base/y")
    equal(view(proxy, origin, own, name="Content-Location"), "/app/y", "Content-Location")
    equal(view(proxy, origin, f"5; url={own}", name="Refresh"), "5; url=/app/y", "Refresh")
    equal(view(proxy, origin, f"0;URL='{own}'", name="Refresh"), "0;URL=/app/y", "quoted Refresh")
    for sent in ("5", "5; url=http://elsewhere.example/", "5; url=", "url"):
        equal(view(proxy, origin, sent, name="Refresh"), sent, "other Refresh")


def test_rules_of_equal_and_different_depth(lab):
    origin = Redirects(lab)
    proxy = Retort(lab, reverse={"/": origin.url("/base/"), "/app/": origin.url("/"), "/same/": origin.url("/same/")})
    own = origin.url("")
    for prefix, at, sent, expected in [
            ("/", "/base/x", own + "/base/y", "/y"), ("/", "/base/x", "/base/y", "/y"), ("/", "/base/x", "/y", "/y"),
            ("/app/", "/x", own + "/y", "/app/y"), ("/app/", "/x", "/y", "/app/y"), ("/app/", "/x", "/app/y", "/app/y"),
            ("/app/", "/x", own, "/app/"), ("/same/", "/same/x", own + "/same/y", "/same/y"),
            ("/same/", "/same/x", "/same/y", "/same/y")]:
        equal(view(proxy, origin, sent, prefix, at), expected, f"{prefix}: {sent}")


def test_switched_off_and_aliases(lab):
    origin = Redirects(lab)
    proxy = Retort(lab, reverse={
        "/off/": {"origin": origin.url("/base/"), "rewrite_location": False},
        "/app/": {"origin": origin.url("/base/"), "origin_aliases": ["http://app.internal:8080/srv/", "https://app.internal/"]},
        "/kept/": {"origin": origin.url("/base/"), "preserve_host": True}})
    own = origin.url("/base/y")
    equal(view(proxy, origin, own, "/off/"), own, "switched off")
    equal(view(proxy, origin, "http://app.internal:8080/srv/y"), "/app/y", "an alias")
    equal(view(proxy, origin, "https://app.internal/y"), "/app/y", "an alias with https")
    equal(view(proxy, origin, "http://app.internal:8080/y"), "http://app.internal:8080/y", "not below the alias")
    equal(view(proxy, origin, "http://www.example.com/base/y", "/kept/"), "/kept/y", "the name it was called by")


def test_group(lab):
    origins = [Redirects(lab), Redirects(lab)]
    proxy = Retort(lab, reverse={"/app/": "web/base/"},
                   extra=f'origins web {{ servers = {{ "{origins[0].url("")}", "{origins[1].url("")}" }} }}')
    for place in (origins[0].url("/base/y"), origins[0].url("/base/y")[5:]):
        for origin in origins:
            origin.fields["/base/x"] = {"Location": place}
        seen = [proxy.fetch("POST", "/app/x", host="h").header("Location") for _ in range(2)]
        equal(seen, ["/app/y", "/app/y"], f"any member's URL, here {place}")


def test_stored_redirects_and_forward_mode(lab):
    origin = Redirects(lab)
    proxy = Retort(lab, reverse={"/app/": origin.url("/base/")})
    origin.fields["/base/x"] = {"Location": origin.url("/base/y")}
    for _ in range(2):
        equal(proxy.get("/app/x", host="h").header("Location"), "/app/y", "Location")
    equal(proxy.get(origin.url("/base/x")).header("Location"), origin.url("/base/y"), "in forward mode")


@memcheck
def test_invalidation_follows_the_rewritten_urls(lab):
    """RFC 9111 §4.4: what Location and Content-Location name on the same origin goes."""
    origin = Redirects(lab)
    proxy = Retort(lab, reverse={"/app/": origin.url("/base/")})
    for name in ("Location", "Content-Location"):
        proxy.get("/app/kept", host="h")
        proxy.get("/app/y", host="h")
        before = len(origin.requests)
        proxy.get("/app/y", host="h")
        equal(len(origin.requests), before, "it is stored")
        origin.fields["/base/form"] = {name: origin.url("/base/y")}
        proxy.fetch("POST", "/app/form", host="h")
        proxy.get("/app/y", host="h")
        equal(len(origin.requests), before + 2, f"requests: the POST, and the page that {name} named")
        proxy.get("/app/kept", host="h")
        equal(len(origin.requests), before + 2, "the others stay")
