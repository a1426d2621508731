#!/usr/bin/python3
"""A helper in Python: gives the job's body back in reverse. docs/SERVICES.md has the protocol.
     pool reverse { command = {"/usr/bin/python3", "/path/to/reverse.py"} }"""
import fcntl
import os
import socket
import struct

HEAD = struct.Struct("=IHHQQIIII24s")  # magic, version, kind, id, body length, status, ms, inline length, body?, pool
MAGIC, VERSION, JOB, RESULT = 0x52744A31, 1, 1, 2
DONE, FAILED = 0, 3
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE

jobs = socket.socket(fileno=0)
while True:  # jobs come one at a time, until retort-helperd hangs up
    packet, descriptors, _, _ = socket.recv_fds(jobs, HEAD.size + 16384, 1)
    if not packet:
        break
    magic, version, kind, number, length, _, _, _, has_body, pool = HEAD.unpack_from(packet)
    assert (magic, version, kind) == (MAGIC, VERSION, JOB)
    if not has_body:
        why = b"this helper wants a body"
        jobs.send(HEAD.pack(MAGIC, VERSION, RESULT, number, 0, FAILED, 0, len(why), 0, pool) + why)
        continue
    with open(descriptors[0], "rb") as body, os.fdopen(os.memfd_create("result", os.MFD_ALLOW_SEALING), "w+b") as result:
        result.write(os.pread(body.fileno(), length, 0)[::-1])
        result.flush()
        fcntl.fcntl(result, fcntl.F_ADD_SEALS, SEALS)
        socket.send_fds(jobs, [HEAD.pack(MAGIC, VERSION, RESULT, number, length, DONE, 0, 0, 1, pool)], [result.fileno()])
