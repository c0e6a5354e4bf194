"""Let a browser in, and say who sits before it."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.data.decisions.names import LONGEST, person
from balancemix.errors import InputError
from balancemix.review.bodies import maybe, read_body, record, text
from balancemix.review.refused import Refused
from balancemix.review.security import NO_KEY, Gate

_BODY = record({"key": maybe(text(200)), "name": maybe(text(LONGEST))}, {"key": None, "name": None})


async def post_key(request: Request) -> Response:
    """Compare the key, or the cookie, and keep it and the name in the cookie."""
    gate: Gate = request.app.state.gate
    body = await read_body(request, _BODY)
    known, name = gate.person(request)
    if not (gate.has_key(body["key"]) if body["key"] is not None else known):
        raise Refused(401, "key", NO_KEY)
    if body["name"] is not None:
        try:
            name = person(body["name"])
        except InputError as error:
            raise Refused(400, "name", f"{error}.") from None
    response = Response(status_code=204)
    gate.admit(response, name if known or body["name"] is not None else None)
    return response


routes = [Route("/api/key", post_key, methods=["POST"])]
