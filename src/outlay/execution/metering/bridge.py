"""Runs a command in a sandbox without network, and joins a port in there to a Unix socket outside.

Run as source text inside the sandbox, `python -I -S -c SOURCE PORT SOCKET -- COMMAND…`, so it
imports nothing of ours and little else. It stands in for the command: it listens before that
starts, passes signals on to its process group, ends as it ended, and not before every connection
had the time to say what it still has to say.
"""

import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress

LINGER = 5.0
"""Seconds that connections get after the command ended; a program it left behind may hold one."""

_PASSED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
_PIECE = 1 << 16


def bridged(command: tuple[str, ...], port: int, place: str) -> tuple[str, ...]:
    """Return the command line that runs a command behind a bridge.

    Args:
        command: Program and arguments.
        port: Port of the loopback inside.
        place: Absolute path of the Unix socket.
    """
    with open(__file__, encoding="utf-8") as file:
        source = file.read()
    return (sys.executable, "-I", "-S", "-c", source, str(port), place, "--", *command)


def main() -> None:
    """Listen, run the command, pass bytes on, and end as the command ended."""
    port, place, command = int(sys.argv[1]), sys.argv[2], sys.argv[4:]
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    folder = os.open(os.path.dirname(place), os.O_PATH | os.O_DIRECTORY)
    # The kernel takes no socket path over 107 bytes, and folders of runs can be deep.
    short = f"/proc/self/fd/{folder}/{os.path.basename(place)}"
    child = start(command)
    for number in _PASSED:
        signal.signal(number, lambda found, _: pass_on(child, found))
    pumps: list[threading.Thread] = []
    threading.Thread(target=accept, args=(listener, short, pumps), daemon=True).start()
    _, status = os.waitpid(child, 0)
    until = time.monotonic() + LINGER
    while (left := until - time.monotonic()) > 0 and (pump := alive(pumps)):
        pump.join(left)
    leave(status)


def start(command: list[str]) -> int:
    """Start the command at the head of a process group of its own."""
    child = os.fork()
    with suppress(OSError):  # both of us do it, since either may be first
        os.setpgid(child, child)
    if child:
        return child
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them for itself
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as fault:
        os.write(2, f"bridge: {command[0]!r} cannot be started: {fault.strerror}\n".encode())
    finally:
        os._exit(127)


def pass_on(child: int, number: int) -> None:
    """Send a signal to everything in the command's group."""
    with suppress(ProcessLookupError):
        os.killpg(child, number)


def accept(listener: socket.socket, place: str, pumps: list[threading.Thread]) -> None:
    """Join every connection to one of its own outside."""
    while True:
        inside, _ = listener.accept()
        outside = socket.socket(socket.AF_UNIX)
        try:
            outside.connect(place)
        except OSError:
            inside.close()
            outside.close()
            continue
        inside.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pumps[:] = [pump for pump in pumps if pump.is_alive()]
        for source, sink in ((inside, outside), (outside, inside)):
            pump = threading.Thread(target=pour, args=(source, sink), daemon=True)
            pumps.append(pump)
            pump.start()


def alive(pumps: list[threading.Thread]) -> "threading.Thread | None":
    """Return one that still runs."""
    return next((pump for pump in list(pumps) if pump.is_alive()), None)


def pour(source: socket.socket, sink: socket.socket) -> None:
    """Pass bytes on until either side ends, and tell the other."""
    with suppress(OSError):
        while data := source.recv(_PIECE):
            sink.sendall(data)
    for end, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with suppress(OSError):
            end.shutdown(how)


def leave(status: int) -> None:
    """End as the command ended, by the same signal if it was one."""
    code = os.waitstatus_to_exitcode(status)
    sys.stdout.flush()
    if code >= 0:
        os._exit(code)
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    os._exit(128 - code)


if __name__ == "__main__":
    main()
