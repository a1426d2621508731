"""What is measured, one file each: a Case with points to measure, and how its figures are shown."""

from . import adaptation, disk, growth, hits, icap, idle, large, misses, mixes, stalls, starts, workers

CASES = {case.name: case for case in (
    hits.Hits, misses.Misses, disk.Disk, large.Large, large.Huge, stalls.Stalls, adaptation.Adaptation, icap.Icap, idle.Idle,
    starts.Starts, workers.Workers, mixes.Ab, mixes.Closed, growth.Connections, growth.Rules, growth.Objects)}
