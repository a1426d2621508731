"""What is measured, one file each: a Case with points to measure, and how its figures are shown."""

from . import (adaptation, connections, disk, hits, http2, https, icap, idle, inside, interception, large, latency, misses, mixes, objects, rules, sections,
               stalls, starts, table5, table6, workers)

CASES = {case.name: case for case in (
    hits.Hits, https.Https, http2.Http2, interception.Interception, latency.Latency, misses.Misses, disk.Disk, large.Large, large.Huge, stalls.Stalls,
    adaptation.Adaptation, inside.Inside, table5.Table5, table6.Table6, table6.Inside, icap.Icap, idle.Idle, starts.Starts, workers.Workers, mixes.Ab, mixes.Closed, connections.Connections,
    rules.Rules, sections.Sections, objects.Objects)}
