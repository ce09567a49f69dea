"""A person at a terminal: runs a command with a pseudo-terminal as its standard input and output."""

from __future__ import annotations

import os
import pty
import sys

from tests.faces.conftest import Person


def typed(person: Person, *words: str) -> tuple[int, str]:
    """(exit code, what was printed) of `memoranda <words>` run at a terminal."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(person.work)
        os.execve(sys.executable, [sys.executable, "-m", "memoranda", *words], person.env)
    said = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        said += piece
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode().replace("\r\n", "\n")
