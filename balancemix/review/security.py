"""Who may ask: the right host, the same origin, the key; and the headers of every answer.

The page is reached by any program on this machine and by any page in the same browser. A page of
another site must neither read nor write, also if its name is made to point to this machine.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote, unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from balancemix.errors import printable
from balancemix.files import to_json
from balancemix.review.refused import Refused

POLICY = (
    "default-src 'none'; img-src 'self'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
SAFE = ("GET", "HEAD")
OPEN_PATHS = ("/", "/favicon.ico", "/api/key")  # need no key, as does /static/
NO_KEY = "Open the address that `balancemix review` printed: it carries the key to this page."
BUG = "This is a bug in balancemix; the terminal says more. Your answer is not saved."
YEAR = 365 * 24 * 3600


@dataclass(frozen=True)
class Gate:
    """What a request must carry to be let in.

    `hosts` are the values of the header Host that are expected; `any_address` also takes every
    address that is a number, which no name can be made to point to.
    """

    key: str
    store: str
    hosts: Collection[str]
    any_address: bool = False

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies ignore ports, so it names the store."""
        return f"balancemix-{self.store}"

    def has_key(self, key: str | None) -> bool:
        """Compare a key, in the same time whatever it is."""
        return key is not None and hmac.compare_digest(key.encode(), self.key.encode())

    def person(self, request: Request) -> tuple[bool, str | None]:
        """Read the cookie: whether its key is right, and the name in it."""
        raw = _cookies(request.headers.get("cookie", "")).get(self.cookie)
        if raw is None:
            return False, None
        key, _, name = raw.partition(".")
        return self.has_key(key), unquote(name, errors="replace") or None

    def admit(self, response: Response, name: str | None) -> None:
        """Give a browser the cookie."""
        value = f"{self.key}.{quote(name or '', safe='')}"
        response.set_cookie(
            self.cookie, value, max_age=YEAR, path="/", httponly=True, samesite="strict"
        )

    def check_origin(self, scope: Scope, headers: Headers) -> None:
        """Refuse a request for another host, or from another page than ours."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._knows(hosts[0]):
            raise Refused(403, "host", "This address is not the one that the server was given.")
        site = headers.get("sec-fetch-site")
        path = scope["path"]
        private = scope["method"] not in SAFE or path.startswith(("/api/", "/image/"))
        if private and site not in (None, "same-origin", "none"):
            raise Refused(403, "origin", "Another page may not ask this server.")
        if scope["method"] in SAFE:
            return
        if headers.getlist("origin") != [f"http://{hosts[0]}"]:
            raise Refused(403, "origin", "Another page may not ask this server.")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(403, "type", "Only application/json is taken.")

    def check_key(self, request: Request) -> None:
        """Refuse a request without the key, or about other data."""
        path = request.url.path
        if path in OPEN_PATHS or path.startswith("/static/"):
            return
        if not self.person(request)[0]:
            raise Refused(401, "key", NO_KEY)
        store = request.headers.get("store")
        if store is not None and store != self.store:
            raise Refused(409, "store", "This page is of other data; open the new address.")

    def _knows(self, host: str) -> bool:
        if host in self.hosts:
            return True
        return self.any_address and _is_address(host)


class Guard:
    """Checks every request before anything else sees it, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self.app, self.gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then pass on."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            check_path(scope["path"])
            self.gate.check_origin(scope, Headers(scope=scope))
            self.gate.check_key(Request(scope))
        except Refused as refused:
            await refusal(refused)(scope, receive, send_with_headers)
            return
        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            if not started:
                await refusal(Refused(500, "bug", BUG))(scope, receive, send_with_headers)
            raise  # for the terminal; the server goes on


def check_path(path: str) -> None:
    """Refuse a line break in an address: Starlette overlooks one at the end."""
    if "\n" in path:
        raise Refused(404, "address", "There is nothing at this address.")


def refusal(refused: Refused) -> Response:
    """Answer with the reason why a request is refused, on one line whatever it names."""
    content = {"error": refused.code, "message": printable(refused.sentence)}
    return Response(to_json(content), refused.status, media_type="application/json")


def hosts_of(port: int, *others: str) -> set[str]:
    """List the values of Host for a server: the names of this machine, and others it is given.

    >>> sorted(hosts_of(8742))
    ['127.0.0.1:8742', '[::1]:8742', 'localhost:8742']
    """
    names = ("127.0.0.1", "localhost", "::1", *others)
    return {f"{f'[{name}]' if ':' in name else name}:{port}" for name in names}


def _is_address(host: str) -> bool:
    """Tell whether a host, perhaps with a port, is a number."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _cookies(header: str) -> dict[str, str]:
    """Read cookies; those of other servers on this machine may look like anything.

    >>> _cookies('odd={"a": 1}; mine=k.Ana; {')
    {'odd': '{"a": 1}', 'mine': 'k.Ana', '{': ''}
    """
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, _, value in pairs}
