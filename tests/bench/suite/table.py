"""Results as text: tables of Markdown that also read well in a terminal."""

from .peers import LABELS

NOTHING = "–"


def number(value, digits=None):
    """Three digits or so; thousands as k."""
    if value is None:
        return NOTHING
    if digits is not None:
        return f"{value:.{digits}f}"
    if value >= 10_000:
        return f"{value / 1000:.0f}k"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value):
    return number(value, 2)


def markdown(heads, rows, texts=1):
    """heads: titles; so many columns from the left are text, the others are figures."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]

    def line(cells):
        return "| " + " | ".join(cell.ljust(width) if i < texts else cell.rjust(width)
                                 for i, (cell, width) in enumerate(zip(cells, widths))) + " |"
    rule = "|" + "|".join("-" * (width + 2) if i < texts else "-" * (width + 1) + ":" for i, width in enumerate(widths)) + "|"
    return "\n".join([line(heads), rule, *map(line, rows)]) + "\n"


def matrix(figures, first="case"):
    """A row for each row, a column for each server: requests a second; CPU time of each."""
    servers = figures.servers()

    def cell(row, server):
        if not figures.there(row, server):
            return "failed" if (row, server) in figures.failures() else ""
        text = f"{number(figures.median(row, server, 'rate'))}; {number(figures.median(row, server, 'cpu_us'))}"
        waits = " w" if figures.is_waiting(row, server) else ""
        errors = f" ({figures.errors(row, server)} errors)" if figures.errors(row, server) else ""
        return text + waits + errors
    return markdown([first, *(LABELS.get(server, server) for server in servers)],
                    [[row, *(cell(row, server) for server in servers)] for row in figures.rows()])


def latencies(figures, first="case"):
    """Median latency and that which 99 % do not exceed, in milliseconds."""
    servers = figures.servers()

    def cell(row, server):
        if not figures.there(row, server):
            return ""
        return f"{number(figures.median(row, server, 'p50_ms'), 2)}; {number(figures.median(row, server, 'p99_ms'), 2)}"
    return markdown([first, *(LABELS.get(server, server) for server in servers)],
                    [[row, *(cell(row, server) for server in servers)] for row in figures.rows()])


def usual(figures, about, first="case"):
    """What most cases show: the matrix and the latencies, behind what there is to say."""
    return (f"{about} Requests a second; microseconds of CPU time for each.\n\n" + matrix(figures, first)
            + "\nLatency in milliseconds: median; 99 %.\n\n" + latencies(figures, first))


def medians(figures, row, server, columns):
    """columns: {title: (name of the figure, digits)}"""
    return [number(figures.median(row, server, name), digits) for name, digits in columns.values()]


def by_server(figures, columns):
    """A line for each server, where there is one row."""
    rows = [[LABELS.get(server, server), *medians(figures, row, server, columns)] for row, server in figures.known()]
    return markdown(["", *columns], rows)


def by_row(figures, columns, server, first=""):
    """A line for each row, of one server."""
    rows = [[row, *medians(figures, row, server, columns)] for row in figures.rows() if figures.there(row, server)]
    return markdown([first, *columns], rows)


def standing(figures, peers, limit="limit", own="retort"):
    """Retort against the limit and against the best of the peers, each figure by its own best."""
    rows = []
    for row in figures.rows():
        if not figures.there(row, own):
            continue
        most = figures.best(row, "rate", peers, least=False)
        least = figures.best(row, "cpu_us", peers, least=True)
        soonest = figures.best(row, "p99_ms", peers, least=True)
        waits = figures.is_waiting(row, own)
        rows.append([row, ratio(figures.ratio(row, own, limit, "rate")), ratio(figures.ratio(row, own, limit, "cpu_us")),
                     against(figures, row, own, most, "rate"), against(figures, row, least, own, "cpu_us"),
                     against(figures, row, own, soonest, "p99_ms"), "CPU time" if waits else "either"])
    return markdown(["Retort", "of the limit's requests/s", "times the limit's CPU", "times the best peer's requests/s",
                     "best peer's CPU by Retort's", "99 % latency by the best peer's", "what decides"], rows)


def against(figures, row, server, other, name):
    """A ratio, and which of the two is the peer."""
    if not server or not other:
        return NOTHING
    peer = other if server.startswith("retort") else server
    return f"{ratio(figures.ratio(row, server, other, name))} {LABELS.get(peer, peer)}"


def failures(figures):
    return [f"{row}, {LABELS.get(server, server)}: {reason}" for (row, server), reason in figures.failures().items()]
