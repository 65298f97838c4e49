"""Which web pages may talk to the viewer: the one that it served itself, and no other.

The server listens on the loopback address, which keeps other machines out but not web pages: a
page of any site may open a websocket to ``127.0.0.1`` in the user's browser. Browsers do say where
a request comes from, so each request is checked before viser sees it:

    Host     names this machine (127.0.0.1, localhost or [::1]): a hostile name that resolves to
             this machine (DNS rebinding) is refused
    Origin   if there is one, is ``http://`` and that same host and port: the page came from here

Ports are compared with each other and not with ours, so that a forwarded port works (ssh -L).
viser has no option for this, so the listener that it starts is wrapped while it starts, and then
asked once with a foreign Host: a viewer that would answer is closed and refused.
"""

from __future__ import annotations

import contextlib
import http
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from linkwise.errors import BackendUnavailable

THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
FOREIGN = "foreign.invalid"  # a host that no viewer has
TIMEOUT = 10.0  # seconds that the viewer may take to refuse it
_patching = threading.Lock()  # one listener is wrapped at a time


def is_allowed(headers: Any) -> bool:
    """Return whether a request comes from a page of this viewer, or from no web page at all.

    Args:
        headers: The headers of the request, with a ``get_all(name)`` that lists their values.
    """
    hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
    if len(hosts) != 1 or len(origins) > 1:
        return False
    host = _address(f"http://{hosts[0]}")
    return host is not None and all(_address(origin) == host for origin in origins)


def _address(url: str) -> tuple[str, int] | None:
    """Host and port of an address on this machine; None for any other text."""
    try:
        parts = urlsplit(url)
        port = 80 if parts.port is None else parts.port
    except ValueError:
        return None
    plain = parts.scheme == "http" and not parts.path and "@" not in parts.netloc
    known = plain and not parts.query and not parts.fragment and parts.hostname in THIS_MACHINE
    return (str(parts.hostname), port) if known else None


@contextlib.contextmanager
def checked_listener() -> Iterator[None]:
    """Within the block, servers that viser starts refuse requests that `is_allowed` refuses."""
    import websockets.asyncio.server as server
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    serve = server.serve

    def checked(*args: Any, process_request: Any = None, **options: Any) -> Any:
        def check(connection: Any, request: Any) -> Any:
            if not is_allowed(request.headers):
                return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", Headers(), b"")
            return process_request(connection, request) if process_request else None

        return serve(*args, process_request=check, **options)

    with _patching:
        vars(server)["serve"] = checked
        try:
            yield
        finally:
            vars(server)["serve"] = serve


def refuses_foreign_hosts(host: str, port: int) -> bool:
    """Return whether the server answers a request for a foreign host with 403."""
    request = f"GET / HTTP/1.1\r\nHost: {FOREIGN}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((host, port), timeout=TIMEOUT) as connection:
        connection.sendall(request.encode("ascii"))
        return b" 403 " in connection.recv(64).split(b"\r\n")[0]


def require_checks(server: Any, host: str) -> None:
    """Stop a server that answers foreign pages.

    Raises:
        BackendUnavailable: The installed viser starts its listener in another way.
    """
    if not refuses_foreign_hosts(host, server.get_port()):
        server.stop()
        raise BackendUnavailable(
            "robot.show: this version of viser answers web pages of other sites; expected one of "
            "1.1: pip install 'viser>=1.1,<1.2', or robot.save_html(path), which needs no server"
        )
