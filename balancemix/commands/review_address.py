"""Where the review page is: its port and key, what the terminal says, and the browser."""

from __future__ import annotations

import argparse
import ipaddress
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from balancemix.errors import counted

if TYPE_CHECKING:
    from balancemix.review.desk import Desk
    from balancemix.review.handling import DeskThread
    from balancemix.review.key import Key

LOOPBACK = "127.0.0.1"
REDIRECT = "open.html"


def serve(
    arguments: argparse.Namespace,
    desk: Desk,
    thread: DeskThread,
    announce: Callable[[str], None],
) -> None:
    """Take the port, let browsers in, and answer until Ctrl-C."""
    from balancemix.errors import printable
    from balancemix.review import server
    from balancemix.review.app import make_app
    from balancemix.review.key import write_key
    from balancemix.review.security import Gate, hosts_of

    folder, host = desk.store.file.parent, arguments.host
    key = kept_key(arguments, folder)
    with server.bind(host, key.port) as listener:
        port = listener.getsockname()[1]
        write_key(folder, replace(key, port=port))
        name = socket.gethostname() if is_wildcard(host) else host
        address = f"http://{f'[{name}]' if ':' in name else name}:{port}"
        announce(address)
        gate = Gate(key.key, desk.store_id, hosts_of(port, name), not is_loopback(host))
        if not is_loopback(host):
            say_open(host, port)
        app = make_app(desk, thread, gate)
        redirect = folder / REDIRECT
        try:
            say_address(arguments, desk, f"{address}/#k={key.key}", redirect)
            server.serve(app, listener)
        finally:
            redirect.unlink(missing_ok=True)
    print(f"Ended. Every answer is saved in {printable(f'{folder.name}/{desk.store.file.name}')}")


def kept_key(arguments: argparse.Namespace, folder: Path) -> Key:
    """Find the key and the port of a store, or draw a new key."""
    from balancemix.errors import InputError
    from balancemix.review.key import Key, read_key

    try:
        kept = read_key(folder)
    except InputError:
        if not arguments.new_key:
            raise
        kept = None
    if kept is None or arguments.new_key:
        kept = Key.new(None if kept is None else kept.port)
    return kept if arguments.port is None else replace(kept, port=arguments.port)


def is_loopback(host: str) -> bool:
    """Tell whether an address is reached from this machine alone.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_wildcard(host: str) -> bool:
    """Tell whether an address stands for all addresses of this machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def say_open(host: str, port: int) -> None:
    """Warn that others can read what is sent."""
    print(
        f"warning: --host {host}: what is sent is not encrypted, and everybody on the network can "
        f"read it. Better: ssh -L {port}:{LOOPBACK}:{port} THIS_MACHINE, without --host",
        file=sys.stderr,
    )


def say_address(arguments: argparse.Namespace, desk: Desk, address: str, redirect: Path) -> None:
    """Print where the page is, and open it if a person with a browser is there."""
    from balancemix.errors import printable

    found, answered = counted(len(desk.listed), "finding"), int((desk.status != 0).sum())
    print(
        f"Review of {printable(arguments.data)}: {found}, {answered:,} answered. Open {address} "
        "(Ctrl-C ends; every answer is already saved)",
        flush=True,
    )
    if desk.changed is not None:
        print(f"{desk.changed} {desk.settings.commands['audit']}", file=sys.stderr)
    if not arguments.no_open and is_loopback(arguments.host) and has_browser():
        open_browser(address, redirect)


def has_browser() -> bool:
    """Tell whether a window can open before the person at the terminal."""
    if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ:
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(address: str, redirect: Path) -> None:
    """Open an address by a file that only its owner can read.

    Everybody on this machine can read the arguments of a browser's process, and so its key.
    """
    import webbrowser

    redirect.unlink(missing_ok=True)
    link = escape(address)
    text = f'<meta http-equiv="refresh" content="0; url={link}"><a href="{link}">Open</a>\n'
    with os.fdopen(os.open(redirect, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    webbrowser.open(redirect.resolve().as_uri())
