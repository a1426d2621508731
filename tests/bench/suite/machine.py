"""The machine: which core does what, what CPU time a process took, and what to say of it all."""

import os
import platform
import re
import resource
import subprocess
import time

CORES = [str(core) for core in sorted(os.sched_getaffinity(0))]  # that we may use
LOAD_CORE, SERVER_CORE = CORES[0], CORES[min(1, len(CORES) - 1)]
PACKAGES = ["haproxy", "nginx-light", "trafficserver", "varnish", "squid-openssl", "libmicrohttpd12", "c-icap", "wrk",
            "apache2-utils"]
CPUCLOCK_SCHED = 2


def pinned(core, command):
    return ["taskset", "-c", core, *command]


def cpu_seconds(pid):
    """User and system time of a process, its ended threads included, to the nanosecond."""
    try:
        return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)  # <linux/posix-timers.h>: MAKE_PROCESS_CPUCLOCK
    except OSError:
        return 0.0


def memory_kb(pid):
    """What a process has in memory, a page shared by n processes counted as one n-th."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
            return int(re.search(r"^Pss:\s+(\d+)", rollup.read(), re.M).group(1))
    except OSError:
        return 0


def free_mb():
    with open("/proc/meminfo", encoding="ascii") as info:
        return int(re.search(r"^MemAvailable:\s+(\d+)", info.read(), re.M).group(1)) >> 10


def raise_limits():
    """As many descriptors as we may have; children inherit it: 10,000 connections need them on either side."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptors():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def version_of(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return re.sub(r"^\d+:|[-+].*", "", done.stdout) if done.returncode == 0 else None


def processor():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        names = re.findall(r"^model name\s*: (.*)", info.read(), re.M)
    return names[0] if names else platform.machine()


def description():
    return {"processor": processor(), "cores": len(CORES), "kernel": platform.release(), "memory_mb": free_mb(),
            "load": os.getloadavg()[0], "taken": time.strftime("%Y-%m-%d %H:%M"),
            "versions": {package: version for package in PACKAGES if (version := version_of(package))}}
