"""One person edits a document: it is saved while it stays open, a colleague can take over, and all see who edits."""
import json
from fastapi import APIRouter, WebSocket
from fastapi.responses import StreamingResponse
from pg_interlock import InterlockError
from db import il

documents = APIRouter(prefix="/documents")

@documents.websocket("/{id}/edit")                     # open as long as the editor is
async def edit(socket: WebSocket, id: int, tab: str, why: str | None = None):
    await socket.accept()
    try:
        async with il.edit("document", id, f"{socket.headers['x-user']}/{tab}", take_over=why) as document:
            await socket.send_json({"open": document.row})
            async for body in socket.iter_text():      # at each pause of typing
                await socket.send_json({"saved": await document.save({"body": body}, keep=True)})
    except InterlockError as error:                    # another has it, or has taken it over
        await socket.send_json({"refused": str(error), "status": error.status})
        await socket.close()

@documents.get("/editors")
async def editors():
    async def events():
        async for rows in il.watch("document"):
            yield f"data: {json.dumps([[row.key['id'], row.holder] for row in rows])}\n\n"
    return StreamingResponse(events(), media_type="text/event-stream")
