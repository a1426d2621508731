"""What tests/bench/run.sh measures with; ../bench.py is its command line.

    machine     cores, clocks, what stands in the document about where the figures come from
    server      one process under test: started, pinned, its CPU time and memory
    peers/      Retort and those it is compared with: how each is configured
    origin      where all of them fetch from, and how often they did
    load        what asks: wrk, ab and our own reader, and what came of it
    cases/      what is measured, one file each
    rounds      measures the points of a case, interleaved; collects samples
    results     samples as JSON, medians and ratios
    table       results as text
    plots       results as PNG
    document    the generated part of docs/PERFORMANCE.md
"""
