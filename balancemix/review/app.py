"""The application: the page's files, the pictures, and the API, behind the guard."""

from __future__ import annotations

import importlib
import pkgutil

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review import api
from balancemix.review.desk import Desk
from balancemix.review.handling import DeskThread
from balancemix.review.measuring import Measuring
from balancemix.review.page import find_file, page_files
from balancemix.review.refused import Refused
from balancemix.review.security import Gate, Guard, refusal
from balancemix.review.settling import Settling


def make_app(desk: Desk, thread: DeskThread, gate: Gate) -> Starlette:
    """Put the routes together; `desk` was made in `thread` and is used there alone."""
    app = Starlette(
        routes=[
            Route("/", get_page, methods=["GET"]),
            Route("/static/{name}", get_static, methods=["GET"]),
            *api_routes(),
        ],
        middleware=[Middleware(Guard, gate=gate)],
        exception_handlers={Refused: _refuse, HTTPException: _refuse_address},
    )
    app.router.redirect_slashes = False  # an address with a slash too many is refused, like others
    app.state.desk, app.state.thread, app.state.gate = desk, thread, gate
    app.state.files = page_files()
    app.state.settling, app.state.measuring = Settling(desk), Measuring(desk)
    return app


def api_routes() -> list[Route]:
    """Collect the routes of every module in `api`."""
    routes: list[Route] = []
    for module in sorted(each.name for each in pkgutil.iter_modules(api.__path__)):
        routes += importlib.import_module(f"{api.__name__}.{module}").routes
    return routes


async def get_page(request: Request) -> Response:
    """Send the page, which holds no data."""
    return find_file(request.app.state.files, "").answer(request)


async def get_static(request: Request) -> Response:
    """Send one of the page's files, by a name that is known."""
    return find_file(request.app.state.files, request.path_params["name"]).answer(request)


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal(error)


async def _refuse_address(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = "There is nothing at this address, or not in this way."
    return refusal(Refused(error.status_code, "address", sentence))
