"""Services that know who asks: nobody gets what they made, or had the origin make, for another user."""

import subprocess

from harness.checks import contains, equal
from harness.icap import IcapServer
from harness.retort import Retort, Service
from test_disclosure import BOSS, GUEST, Pages, ask, ask_from
from test_identity import sha, users_file

FRESH = "Cache-Control: max-age=60"


def mark_request(_icap, transaction):
    """Writes who asks into the request; the URL says what it does else."""
    user = transaction.request.header("X-Client-Username") or transaction.request.header("X-Access-Rule") or "boss"
    head = transaction.request_head
    if "moved" in transaction.http_request.start:
        transaction.send_head(head(start=transaction.http_request.start.replace("moved", user)), body=False)
    elif "idle" in transaction.http_request.start:
        transaction.send_head(head(), body=False)
    elif "remove" in transaction.http_request.start:
        transaction.send_head(head(drop=("x-own", "transfer-encoding")), body=False)
    else:
        transaction.send_head(head(add=[("X-User", user)]), body=False)


def mark_response(_icap, transaction):
    body = transaction.finish_body()
    if "idle" in transaction.http_request.start:
        transaction.send_204()
    else:
        transaction.send_200(transaction.response_head(), body + f" for {transaction.request.header('X-Client-Username')}".encode())


RULES = r'''
    authenticator staff {{ type = basic  file = "{users}"  realm = "Staff" }}
    url_class open {{ path_regex = "^/(class|open)" }}
    access open {{ action = allow }}
    url_class bosses {{ user = "anna" }}
    {rule}
    access all {{ action = authenticate  with = staff }}
    url_class before {{ path_regex = "^/before" }}
    adapt before {{ services = before }}
    url_class behind {{ path_regex = "^/behind" }}
    adapt behind {{ services = behind }}
    url_class untold {{ path_regex = "^/untold" }}
    adapt untold {{ services = untold }}
    url_class made {{ path_regex = "^/made" }}
    adapt made {{ services = made }}
    url_class again {{ path_regex = "^/(again|open/again)" }}
    adapt again {{ services = again }}
    url_class boss {{ path_regex = "^/class/(before|both)"  client = "{boss}" }}
    adapt boss {{ services = untold }}
    url_class boss_behind {{ path_regex = "^/class/behind"  client = "{boss}" }}
    adapt boss_behind {{ services = untold_behind }}
    url_class boss_made {{ path_regex = "^/class/made"  client = "{boss}" }}
    adapt boss_made {{ services = untold_made }}
'''


def start(lab, names=("X-User", "X-Own"), told="X-Client-Username", rule=""):
    requests = IcapServer(lab, mark_request, methods="REQMOD", preview=0)
    responses = IcapServer(lab, mark_response)
    services = [
        Service("before", requests.uri(), point="reqmod_precache", include=[told]),
        Service("behind", requests.uri(), point="reqmod_postcache", include=[told]),
        Service("untold", requests.uri(), point="reqmod_precache"),
        Service("untold_behind", requests.uri(), point="reqmod_postcache"),
        Service("made", responses.uri(), point="respmod_precache", include=[told]),
        Service("untold_made", responses.uri(), point="respmod_precache"),
        Service("again", responses.uri(), point="respmod_postcache", include=[told], remember=True),
    ]
    rules = RULES.format(users=users_file(lab, sha("anna"), sha("ben")), boss=BOSS, rule=rule)
    return Pages(lab, names=names), Retort(lab, services=services, adapt={}, extra=rules)


def test_what_services_tell_of_users_is_for_one_user(lab):
    """RFC 9111, 3: a shared cache stores the response to a request with Authorization only if a directive "explicitly
    allows shared caching". A field that a service writes in place of it counts like it."""
    pages, proxy = start(lab)
    rows = [
        ("/before/a", [FRESH], "anna None", "ben None", "MISS"),
        ("/before/idle", [FRESH], "None None", "None None", "HIT"),
        ("/before/vary", [FRESH, "Vary: X-User"], "anna None", "ben None", "MISS"),
        ("/before/public", ["Cache-Control: public, max-age=60"], "anna None", "anna None", "HIT"),
        ("/before/other", [FRESH, "Vary: X-Other"], "anna None", "ben None", "MISS"),
        ("/behind/a", [FRESH], "anna None", "ben None", "MISS"),
        ("/behind/moved", [FRESH], "None None", "None None", "MISS"),
        ("/behind/idle", [FRESH], "None None", "None None", "HIT"),
        ("/behind/public", ["Cache-Control: public, max-age=60"], "anna None", "anna None", "HIT"),
        ("/untold/a", [FRESH], "boss None", "boss None", "HIT"),
        ("/made/a", [FRESH], "None None for anna", "None None for ben", "MISS"),
        ("/made/idle", [FRESH], "None None", "None None", "HIT"),
        ("/made/public", ["Cache-Control: public, max-age=60"], "None None for anna", "None None for anna", "HIT"),
    ]
    for path, fields, anna, ben, result in rows:
        url = pages.url(path, *fields)
        equal((ask(proxy, url, "anna"), ask(proxy, url, "ben")), (anna, ben), f"pages at {path} with {fields}")
        equal(proxy.results(path + "?", 2), ["MISS", result], f"results of {path}")
    ask(proxy, pages.url("/before/vary", FRESH, "Vary: X-User"), "anna")
    equal(proxy.results("/before/vary?", 3)[-1], "HIT", "anna's own page")


def test_what_is_made_for_users_is_not_remembered(lab):
    """Nor is a user served what the service made while nobody was known."""
    pages, proxy = start(lab)
    for user in ("anna", "ben"):
        equal(ask(proxy, pages.url("/again/a", FRESH), user), f"None None for {user}", "the page")
    made = pages.url("/open/again", FRESH)
    for user, said in ((None, "None"), (None, "None"), ("anna", "anna"), (None, "None")):
        headers = {"Proxy-Authorization": "Basic eDp5"} if user else {}
        contains(ask_from(proxy, GUEST, made, headers), "None None for ", "an open page")
    equal(proxy.counter("adapted_made"), 1, "made for those whom nobody knows")


def test_services_of_a_class_tell_of_it(lab):
    """Which service is asked tells the origin as much as what the service is told."""
    pages, proxy = start(lab)
    for path, fields, boss in (("/class/before", [FRESH], "boss None"), ("/class/behind", [FRESH], "boss None"),
                               ("/class/behind/vary", [FRESH, "Vary: X-User"], "boss None"),
                               ("/class/made", [FRESH], "None None for None")):
        url = pages.url(path, *fields)
        equal([ask_from(proxy, source, url) for source in (BOSS, GUEST)], [boss, "None None"], f"pages at {path}")
    own = {"X-Own": "1"}
    url = pages.url("/class/before/remove", FRESH)
    equal([ask_from(proxy, source, url, own) for source in (BOSS, GUEST)], ["None None", "None 1"], "a field that is removed")


def test_a_policy_that_overrides_for_some_is_warned_of(lab):
    for condition, policy, warns in ((f'client = "{BOSS}"', "cache = always  override = true", True), ('path_regex = "^/a"', "cache = always  override = true", False),
                                     (f'client = "{BOSS}"', "cache = always", False)):
        path = lab.write("policy.conf", f"listen \"127.0.0.1:3128\" {{ mode = forward }}\nurl_class some {{ {condition} }}\npolicy some {{ {policy} }}\n")
        said = subprocess.run([lab.built("proxy/retort"), "-t", "-f", path], capture_output=True, text=True, env=lab.environment(), check=False)
        equal((said.returncode, "given to all others" in said.stdout + said.stderr), (0, warns), f"{condition} {policy}: {said.stderr}")


def test_the_name_of_the_access_rule_tells_of_users(lab):
    pages, proxy = start(lab, told="X-Access-Rule", rule="access bosses { action = authenticate  with = staff }")
    for path, anna, ben in (("/before/a", "bosses None", "all None"), ("/behind/a", "bosses None", "all None")):
        url = pages.url(path, FRESH)
        equal((ask(proxy, url, "anna"), ask(proxy, url, "ben")), (anna, ben), f"pages at {path}")
    proxy = Retort(lab, extra=f'''
        authenticator staff {{ type = basic  file = "{users_file(lab, sha("anna"), sha("ben"))}"  realm = "Staff" }}
        url_class bosses {{ user = "anna" }}
        access bosses {{ action = authenticate  with = staff }}
        access all {{ action = authenticate  with = staff }}
        request_headers all {{ set = "X-User: %{{rule}}" }}''')
    url = pages.url("/rule", FRESH)
    equal((ask(proxy, url, "anna"), ask(proxy, url, "ben")), ("bosses None", "all None"), "pages by %{rule}")
    proxy = Retort(lab, extra='access all { action = allow }\nrequest_headers all { set = "X-User: %{rule}" }')
    for _ in range(2):
        equal(ask(proxy, pages.url("/same", FRESH)), "all None", "the page")
    equal(proxy.results("/same", 2), ["MISS", "HIT"], "no rule asks who")
