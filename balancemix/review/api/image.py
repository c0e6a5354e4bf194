"""Pictures by their number; decoded beside the desk, which is never held up."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review.refused import Refused

FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
# More threads than pictures are decoded at a time: kept ones need not wait for slow ones.
_POOL = ThreadPoolExecutor(8, "pictures")


async def get_image(request: Request) -> Response:
    """Send a picture, at most so wide; its address names its version, so it may be kept."""
    parts = request.path_params["row"], request.path_params["width"]
    if not all(re.fullmatch(r"[0-9]{1,12}", part) for part in parts):
        raise Refused(404, "address", "There is nothing at this address.")
    row, width = map(int, parts)
    pictures = request.app.state.desk.pictures
    if pictures is None:
        raise Refused(404, "picture", f"There is no picture {row}.")
    loop = asyncio.get_running_loop()
    content = await loop.run_in_executor(_POOL, pictures.jpeg, row, width)
    return Response(content, media_type="image/jpeg", headers=FOR_EVER)


routes = [Route("/image/{row}/{width}", get_image, methods=["GET"])]
