"""Runs a command in a sandbox without network, and joins a port in there to a Unix socket outside.

Run as source text inside the sandbox, `python -I -S -c SOURCE PORT SOCKET -- COMMAND…`, so it
imports nothing of ours. It stands in for the command: it listens before that starts, passes
signals on to its process group, ends as it ended, and not before every connection had the time to
say what it still has to say.

It uses the modules in C: the ones in Python above them take longer to load than all else here.
"""
# ruff: noqa: SIM105 - contextlib is one of those

import _signal  # type: ignore[import-not-found]
import _socket
import _thread
import os
import sys
import time

LINGER = 5.0
"""Seconds that connections get after the command ended; a program it left behind may hold one."""

_PASSED = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1)
_WAITED = (*_PASSED, _signal.SIGCHLD)
_PIECE = 1 << 16
_LOOK = 0.005


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
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    folder = os.open(os.path.dirname(place), os.O_PATH | os.O_DIRECTORY)
    # The kernel takes no socket path over 107 bytes, and folders of runs can be deep.
    short = f"/proc/self/fd/{folder}/{os.path.basename(place)}"
    # Blocked, signals wait for us to take them, so that none falls between two looks.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _WAITED)
    child = start(command)
    pouring: list[int] = []  # one entry for each thread that passes bytes on
    _thread.start_new_thread(accept, (listener, short, pouring))
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        pass_on(child, _signal.sigwait(_WAITED))
    until = time.monotonic() + LINGER
    while pouring and time.monotonic() < until:
        time.sleep(_LOOK)
    leave(ended[1])


def start(command: list[str]) -> int:
    """Start the command at the head of a process group of its own."""
    child = os.fork()
    try:
        os.setpgid(child, child)  # both of us do it, since either may be first
    except OSError:
        pass  # it was the other, and the command runs already
    if child:
        return child
    try:
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them for itself
            _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _WAITED)
        os.execvp(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as fault:
        os.write(2, f"bridge: {command[0]!r} cannot be started: {fault.strerror}\n".encode())
    finally:
        os._exit(127)


def pass_on(child: int, number: int) -> None:
    """Send a signal, but the news of the command's end, to everything in its group."""
    try:
        if number != _signal.SIGCHLD:
            os.killpg(child, number)
    except ProcessLookupError:
        pass


def accept(listener: _socket.socket, place: str, pouring: list[int]) -> None:
    """Join every connection to one of its own outside."""
    while True:
        handle, _ = listener._accept()  # type: ignore[attr-defined]
        join(_socket.socket(fileno=handle), place, pouring)


def join(inside: _socket.socket, place: str, pouring: list[int]) -> None:
    """Pass bytes on in both directions; both ends close with their last reference."""
    outside = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        outside.connect(place)
    except OSError:
        return
    inside.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    for source, sink in ((inside, outside), (outside, inside)):
        pouring.append(source.fileno())
        _thread.start_new_thread(pour, (source, sink, pouring))


def pour(source: _socket.socket, sink: _socket.socket, pouring: list[int]) -> None:
    """Pass bytes on until either side ends, and tell the other."""
    try:
        while data := source.recv(_PIECE):
            sink.sendall(data)
    except OSError:
        pass
    for end, how in ((sink, _socket.SHUT_WR), (source, _socket.SHUT_RD)):
        try:
            end.shutdown(how)
        except OSError:
            pass
    pouring.pop()


def leave(status: int) -> None:
    """End as the command ended, by the same signal if it was one."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code not in (_signal.SIGKILL, _signal.SIGSTOP):
            _signal.signal(-code, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _WAITED)
        os.kill(os.getpid(), -code)
    os._exit(code % 256)


if __name__ == "__main__":
    main()
