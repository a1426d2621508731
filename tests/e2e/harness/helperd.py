"""retort-helperd and its pools of helper processes."""

import os

from . import checks
from .process import Process, children_of, command_of


class Helperd:
    """`config` is the text of its configuration, with {socket} for where it listens."""

    def __init__(self, lab, config, name="helperd"):
        self.lab = lab
        self.name = lab.unique(name)
        self.socket = lab.path(f"{self.name}.sock")
        self.config_text = config
        self.config = lab.write(f"{self.name}.conf", config.replace("{socket}", self.socket))
        self.process = None
        lab.opens(self)
        self.start()

    def start(self, before_start=None):
        """Also for starting it again after it was killed. `before_start`: what the process does before it becomes retort-helperd."""
        self.process = Process(self.lab, self.name,
                               [self.lab.built("icap-services/retort-helperd"), "-f", self.config],
                               environment=self.lab.environment(), memcheck=True, before_start=before_start)
        self.process.wait_ready(lambda: os.path.exists(self.socket) and self.helpers())

    def helpers(self, part="helper"):
        """The pids of running helpers whose command line contains `part`."""
        if not self.process.running():
            return []
        return [pid for pid in children_of(self.process.pid) if part in command_of(pid)]

    def wait_helpers(self, part, count, seconds=10, without=()):
        """Waits until there are `count` helpers that are none of `without`."""
        return checks.until(
            lambda: (lambda now: now if len(now) >= count else None)(
                [pid for pid in self.helpers(part) if pid not in without]),
            seconds * self.lab.patience, f"{count} processes of {part}")

    def kill(self):
        self.process.kill()

    def stop(self):
        if self.process:
            self.process.stop()

    def findings(self):
        return self.process.findings() if self.process else []
