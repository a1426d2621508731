"""What no two runs have in common, and the word that stands for it in the files of expected/.

A mask is (expression, replacement); they apply in this order, each to the whole text. A masked value keeps its type: in JSON a whole
number stays one, a text stays a text. Names of ports have five letters, as ports here have five digits, so that columns of tables stay
as they are.
"""

import re

# Members of JSON that are times or durations, counts of bytes that nobody fixes, or numbers by which something is found.
CHANGING = ("uptime|seconds|seconds_left|age|age_ms|fresh_for|mean|p50|p90|p95|p99|p95_ms|since|now|at|ms|time|expires_in|stale_for|days|retry_in|"
            "asked_in|memory|requests_back|download_back|upload_back|ended|begun|took|waited|total_ms|queue_ms|last_byte_ms|verdict_ms|cpu_ms|mean_ms|"
            "milliseconds|restarts|icap_options|bytes|client_bytes_out|client_connections|ms_for_a_million|verdict_microseconds|total_microseconds|\\w+_us|started|client_port|pid|recording|inspection|requests_per_second")


def number(match):
    return match[1] + ("1.5" if re.search("[.e]", match[2]) else "1")


def as_wide(word):
    return lambda match: word.ljust(len(match[0])) if len(word) <= len(match[0]) else word


MASKS = [(re.compile(expression, re.M), replacement) for expression, replacement in (
    (r'("(?:%s)": ?)(-?\d+(?:\.\d+)?(?:e-?\d+)?)' % CHANGING, number),
    (r"^(client_bytes_out|client_connections|icap_options) +\d+", lambda match: match[1].ljust(len(match[0]) - 1) + "1"),
    (r'"samples":\[.*\]', '"samples":[]'),
    (r'("left": )8\d{4}', r"\g<1>86399"),
    # Which process of a pool took a job; a pool that may not renice its processes starts new ones.
    (r'("state": ?"\w+", ?"served": ?)\d+', r"\g<1>1"),
    (r'"counts": ?\[[\d,\s]*\]', '"counts": [1]'),
    (r'"awaited": ?(null|".*")', '"awaited": "SOMEBODY"'),
    (r'("next": ?|more: --after )"?\d+"?', r'\g<1>"PLACE"'),
    # Heads have Age; bodies that a service made have Content-Length if they were whole when the head was sent.
    (r"/(\d\d\d) [1-9]\d* (GET http://)", r"/\1 1 \2"),
    (r'(html HTTP/1.0" \d\d\d) \d+', r"\1 1"),
    (r'(\.html\S*) \d+ (text/html ")', r"\1 1 \2"),
    (r" +\d+\.\d KB ", "     1.5 KB "),
    # A share of the machine's memory.
    (r'"\d{6,9}KB"', '"1111111KB"'),
    (r"\b\d{6,9}KB +", as_wide("1111111KB")),
    # Addresses of clients, whose ports the kernel chooses; ours have names by now (place.py).
    (r"(127\.0\.0\.1|\[::1\]):(3[2-9]|[456])\d{3}\b", r"\1:CPORT"),
    (r"\b(libcurl|OpenSSL|c-ares|libmicrohttpd|GnuTLS|jansson|PCRE2|zlib|brotli|zstd|libjpeg\S*|ngtcp2|nghttp3|liburing|libconfuse|netpbm) \d[\w.+-]*", r"\1 V"),
    (r"retort(ctl|-helperd)? \d+\.\d+\.\d+", r"retort\1 V"),
    (r'("version": )"[\d.]+"', r'\1"V"'),
    (r"Server: nginx/[\d.]+", "Server: nginx/V"),
    # Identities: of transactions, traces, certificates, processes.
    (r"\b[0-9a-f]{64}\b", "F" * 64),
    (r"\b([0-9A-F]{2}:){31}[0-9A-F]{2}\b", "F" * 64),
    (r"\b[0-9a-f]{32}\b", "I" * 32),
    (r"\b[0-9a-f]{16}\b", "I" * 16),
    (r"\buid \d+", "uid U"),
    (r"\bpid \d+", "pid P"),
    (r"\bprocess \d+: ", "process P: "),
    (r"^  \d{3,7} +(?=-?\d+ +(idle|busy|starting))", as_wide("  PID")),
    (r"^(  PID +-?\d+ +(?:idle|busy|starting)) +\d+$", r"\1         N"),
    # Points in time.
    (r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?", "DATE-DATE TIME-OF"),
    (r"\b20\d\d-\d\d-\d\d\b", "DATE-OF-IT"),
    (r"\[\d\d/[A-Z][a-z][a-z]/20\d\d:\d\d:\d\d:\d\d [+-]\d{4}\]", "[DATE:TIME]"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z][a-z] 20\d\d \d\d:\d\d:\d\d GMT", "DATE OF HTTP"),
    (r"\b\d\d:\d\d:\d\d\.\d{3}\b", "TI:ME:OF.DAY"),
    (r"\b1[789]\d{17}\b", "1" * 19),
    (r"\b1[789]\d{11}\b", "1" * 13),
    (r"^1[789]\d{8}\.\d{3} +\d+ ", "1111111111.111      1 "),
    (r"\b1[789]\d{8}\b", "1" * 10),
    # Durations.
    (r"\bup \d+[dhms]( \d+[hms])?", "up T"),
    (r" *\b\d+\.\d+ ms\b", " T ms"),
    (r" *\b\d+\.\d+ requests/s\b", " T requests/s"),
    (r"\b\d+\.\d s\b(?=  )", as_wide("T s")),
    (r"\b\d+\.\d s\b", "T s"),
    (r"^((?:gray|text) .* \d+/16 +)\d+\.\d( +)\d+\.\d", r"\1T.T\g<2>T.T"),
    (r"\bin \d+ s\b", "in T s"),
    (r"^((?:fresh|stale) +\d+ +\d+) +-?\d+ +-?\d+ ", r"\1        A         F "),
    (r"^((?:gray|text) +(?:\S+ +){7})\d+ +\d+$", r"\1R       T"),
    (r" (29|30)  (none|/DIR)", r" 30  \2"),
    (r"\b\d+ more messages passed unadapted \(\d+ in \d+ seconds\)", "N more messages passed unadapted (N in T seconds)"),
    (r"\bafter \d+ ms\b", "after T ms"),
    (r"\brecovered in \d+ ms\b", "recovered in T ms"),
    (r"(:[A-Z]+:)\d+(ms)?\b", r"\1T\2"),
)]


def renamed(text, names):
    """`names`: (what stands in the text, what stands for it), as paths and ports."""
    for found, word in names:
        text = re.sub(rf"(?<![0-9a-f.]){found}(?![0-9a-f])", word, text) if found.isdigit() else text.replace(found, word)
    return text


def masked(text, names):
    text = renamed(text, names)
    for expression, replacement in MASKS:
        text = expression.sub(replacement, text)
    return text
