"""Serve a review: on the port that its tabs know, until Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Generator
from typing import Any

import uvicorn
from starlette.applications import Starlette

from balancemix.errors import InputError

LOOPBACK = "127.0.0.1"
FIRST, LAST = 8742, 8791  # ports to try where none is kept


def bind(host: str, port: int | None) -> socket.socket:
    """Take a port, or the first free one; refuse one that another program has."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = range(FIRST, LAST + 1) if port is None else [port]
    for each in ports:
        # Of a socket without its protocol, asyncio lets small answers wait 40 ms (TCP_NODELAY).
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            # A port of a server that was killed is free at once; on Windows it would be shared.
            if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            else:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, each))
            listener.listen(128)
            return listener
        except OverflowError:
            listener.close()
            raise InputError(f"--port {each}: must be from 0 to 65535") from None
        except OSError as error:
            listener.close()
            if port is not None:
                raise _taken(host, port, error) from error
    raise InputError(f"ports {FIRST} to {LAST} are all taken; name another one with --port")


def _taken(host: str, port: int, error: OSError) -> InputError:
    import errno

    if error.errno in (errno.EADDRINUSE, errno.EACCES):
        why = "is taken by another program" if error.errno == errno.EADDRINUSE else "is not allowed"
        return InputError(
            f"port {port} {why}, and answers that wait in a browser are sent there alone; end that "
            "program, or choose another port with --port and lose nothing but what waits"
        )
    return InputError(f"--host {host}: cannot be listened on ({error.strerror})")


def serve(app: Starlette, listener: socket.socket) -> None:
    """Answer requests until Ctrl-C or SIGTERM; both are a normal end."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    _Server(config).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that a signal ends, and does not end twice."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop at the first signal; uvicorn would raise it again afterwards."""
        main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM) if main else ()
        before: dict[int, Any] = {n: signal.signal(n, self.handle_exit) for n in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
