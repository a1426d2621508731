"""What operators do with objects that are only on disk, and that it is done for good."""

import json
import threading
import time
from urllib.parse import quote

from harness.checks import equal, lacks, same_bytes, true
from harness.disk_bench import Bench, FaultyBench, names
from harness.suite import memcheck


def only_on_disk(lab, **arguments):
    """A bench whose objects are on disk and not in memory."""
    bench = Bench(lab)
    versions = bench.fill(names("o", 6), 2500, **arguments)
    bench.on_disk(6)
    bench.proxy.restart()
    return bench, versions


def test_show_and_get(lab):
    bench, versions = only_on_disk(lab, cc="max-age=600")
    url = bench.own.url("/own/o/1", 2500, cc="max-age=600")
    variants = bench.cache("show", url)["variants"]
    equal((len(variants), variants[0]["url"], variants[0]["state"], variants[0]["status"]), (1, url, "fresh", 200), "show")
    true(500 <= variants[0]["fresh_for"] <= 600, f"fresh for {variants[0]['fresh_for']}")
    message = bench.proxy.admin("GET", "/cache/content?url=" + quote(url, safe="")).body
    body = bench.own.body("/own/o/1", 2500, versions["/own/o/1"])
    same_bytes(message[-2504:], b"\r\n\r\n" + body, "the message's end")
    bench.proxy.ctl("cache", "show", bench.own.url("/own/none", 1), expect=1)


def test_list(lab):
    bench, _ = only_on_disk(lab)
    urls = sorted(bench.own.url(path, 2500) for path in names("o", 6))
    equal(bench.listed(), urls, "all")
    bench.get("/own/o/2", 2500)
    equal(bench.listed(), urls, "all, one of them in memory")
    equal(bench.listed("--prefix", bench.origin.url("/own/o/3")), [bench.own.url("/own/o/3", 2500)], "by prefix")
    equal(bench.listed("--regex", "/o/[45]"), urls[4:], "by regex")
    seen, after = [], "0"
    for _ in range(20):
        page = bench.cache("list", "--limit", "1", "--after", after)
        seen += [entry["url"] for entry in page["objects"]]
        if page["next"] is None:
            break
        after = str(page["next"])
    equal(sorted(set(seen)), urls, "page by page")


def objects(bench, query):
    """An answer of /v1/cache/objects as a program reads it that has no integers beyond 2^53, such as a browser."""
    answer = bench.proxy.admin("GET", "/v1/cache/objects?" + query)
    equal(answer.status, 200, f"{query}: status")
    return json.loads(answer.body, parse_int=lambda text: int(float(text)) if len(text) < 16 else int(f"{float(text):.15e}".replace(".", "")[:16] + "000"))


def test_list_for_programs_without_large_integers(lab):
    bench = Bench(lab)
    bench.fill(names("many", 250), 100)
    bench.on_disk(250)
    bench.proxy.restart()
    seen, after = [], "0"
    for _ in range(100):
        page = objects(bench, f"limit=20&after={after}")
        seen += [one["url"] for one in page["objects"]]
        if page["next"] is None:
            break
        after = str(page["next"])
    equal((len(seen), len(set(seen))), (250, 250), "objects, and different ones")
    equal(len(bench.listed("--limit", "1000")), 250, "with retortctl")


def test_a_search_on_disk_is_bounded(lab):
    """A search that finds nothing reads only so many objects for one answer, and nobody waits for it. retortctl goes on to the end."""
    bench = FaultyBench(lab)
    versions = bench.fill(names("o", 60), 2500)
    bench.on_disk(60)
    bench.proxy.restart()
    bench.faults.set(read_delay=50)
    count, took, after = 0, [], "0"
    while after is not None:
        begun = time.monotonic()
        page = objects(bench, f"host=nothing.example&after={after}")
        took.append(time.monotonic() - begun)
        equal(page["objects"], [], "what is found")
        count, after = count + 1, page["next"]
    true(count > 3, f"answers until the end: {count}")
    true(max(took) < 1.5 * lab.patience, f"the longest answer: {max(took):.1f} s")
    search = threading.Thread(target=lambda: bench.listed("--host", "nothing.example"))
    search.start()
    begun = time.monotonic()
    for _ in range(3):
        bench.proxy.status()
    true(time.monotonic() - begun < 1.5 * lab.patience, "status waits for the search")
    search.join()
    equal(bench.listed("--regex", "/o/59[?]"), [bench.own.url("/own/o/59", 2500)], "with retortctl")
    bench.faults.clear()
    bench.expect_hits(versions, 2500)


def gone_for_good(bench, versions, path, n=2500, **arguments):
    """Not there now, nor after a kill; the others are."""
    kept = {name: version for name, version in versions.items() if name != path}
    bench.proxy.kill()
    bench.proxy.start()
    bench.expect_hits(kept, n, **arguments)
    hit, version = bench.get(path, n, **arguments)
    true(not hit and version > versions[path], f"{path}: hit {hit}, version {version} after {versions[path]}")


def test_delete(lab):
    bench, versions = only_on_disk(lab)
    url = bench.own.url("/own/o/1", 2500)
    equal(bench.cache("delete", url)["purged"], 1, "purged")
    bench.proxy.ctl("cache", "delete", url, expect=1)
    lacks(bench.listed(), url, "objects")
    gone_for_good(bench, versions, "/own/o/1")


def test_delete_several(lab):
    bench, versions = only_on_disk(lab)
    urls = [bench.own.url(f"/own/o/{number}", 2500) for number in (1, 2)]
    equal(sorted(bench.proxy.ctl("cache", "delete", *urls).splitlines()), [f"deleted 1 {url}" for url in urls], "what retortctl says")
    del versions["/own/o/2"]
    gone_for_good(bench, versions, "/own/o/1")


def test_delete_what_is_in_memory_too(lab):
    bench, versions = only_on_disk(lab)
    true(bench.get("/own/o/1", 2500)[0], "a hit")
    equal(bench.cache("delete", bench.own.url("/own/o/1", 2500))["purged"], 1, "purged")
    gone_for_good(bench, versions, "/own/o/1")


def test_purge_by_prefix(lab):
    bench, versions = only_on_disk(lab)
    bench.cache("purge", "--prefix", bench.origin.url("/own/o/3"))
    gone_for_good(bench, versions, "/own/o/3")


def test_purge_by_regex(lab):
    bench, versions = only_on_disk(lab)
    bench.cache("purge", "--regex", "/o/4[?]")
    gone_for_good(bench, versions, "/own/o/4")


def test_purge_by_tag(lab):
    bench = Bench(lab)
    versions = bench.fill(names("o", 2), 2500)
    tagged = {"h": ["Surrogate-Key: shop"]}
    versions["/own/t"] = bench.get("/own/t", 2500, **tagged)[1]
    bench.on_disk(3)
    bench.proxy.restart()
    bench.cache("purge", "--tag", "shop")
    bench.proxy.kill()
    bench.proxy.start()
    true(not bench.get("/own/t", 2500, **tagged)[0], "the tagged one is gone")
    bench.expect_hits({path: versions[path] for path in names("o", 2)}, 2500)


def test_purge_everything(lab):
    bench, _ = only_on_disk(lab)
    bench.cache("purge", "--all")
    equal(bench.listed(), [], "objects")
    bench.proxy.kill()
    bench.proxy.start()
    equal(bench.listed(), [], "objects after a kill")
    for path in names("o", 6):
        true(not bench.get(path, 2500)[0], "a miss")


@memcheck
def test_bans(lab):
    bench, versions = only_on_disk(lab)
    bench.proxy.ctl("cache", "ban", "/o/5[?]")
    gone_for_good(bench, versions, "/own/o/5")
    true(bench.get("/own/o/5", 2500)[0], "what came after the ban is a hit")
    bench.on_disk(6)
    bench.proxy.restart()
    true(bench.get("/own/o/5", 2500)[0], "after a restart, too")


def test_soft_purge(lab):
    bench, versions = only_on_disk(lab)
    url = bench.own.url("/own/o/1", 2500)
    equal(bench.cache("delete", url, "--soft")["purged"], 1, "purged")
    equal(bench.cache("show", url)["variants"][0]["state"], "stale", "state")
    time.sleep(0.3)
    gone_for_good(bench, versions, "/own/o/1")


def test_expire(lab):
    bench, versions = only_on_disk(lab)
    url = bench.own.url("/own/o/2", 2500)
    bench.cache("expire", url, "500")
    true(480 <= bench.cache("show", url)["variants"][0]["fresh_for"] <= 500, "fresh for 500 seconds")
    time.sleep(0.3)
    bench.proxy.kill()
    bench.proxy.start()
    true(480 - 20 * lab.patience <= bench.cache("show", url)["variants"][0]["fresh_for"] <= 500, "after a kill, too")
    bench.expect_hits(versions, 2500)


def test_pin(lab):
    bench, versions = only_on_disk(lab)
    url = bench.own.url("/own/o/2", 2500)
    bench.cache("pin", url)
    equal(bench.cache("show", url)["variants"][0]["pinned"], True, "pinned")
    bench.cache("unpin", url)
    equal(bench.cache("show", url)["variants"][0]["pinned"], False, "pinned")
    bench.expect_hits(versions, 2500)


def test_inject(lab):
    bench = Bench(lab)
    path = lab.write("made.txt", "made by hand\n")
    bench.proxy.ctl("cache", "inject", "http://nowhere.invalid/made", path, "--lifetime", "600")
    bench.on_disk(1)
    bench.proxy.restart()
    equal(bench.proxy.get("http://nowhere.invalid/made").text(), "made by hand\n", "body")
