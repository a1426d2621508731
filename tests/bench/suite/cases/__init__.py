"""What is measured, one file each: a Case with points to measure, and how its figures are shown."""

from . import hits, misses

CASES = {case.name: case for case in (hits.Hits, misses.Misses)}
