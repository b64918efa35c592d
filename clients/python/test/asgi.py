"""An ASGI application, without a server."""

import asyncio


async def asked(app, method, path, query="", body=b"", **headers):
    """Status, headers and body of its answer."""
    sent = [
        (name.replace("_", "-").encode(), each.encode()) for name, each in {"content_type": "application/json", **headers}.items()
    ]
    scope = {"type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "root_path": ""}
    scope |= {"query_string": query.encode(), "headers": sent, "client": None, "server": ("shop", 80), "scheme": "http"}
    messages, answer = [{"type": "http.request", "body": body, "more_body": False}], []

    async def receive():
        return messages.pop() if messages else await asyncio.sleep(600)

    async def send(message):
        answer.append(message)

    await app(scope, receive, send)
    content = b"".join(message.get("body", b"") for message in answer[1:])
    return answer[0]["status"], {name.decode().lower(): each.decode() for name, each in answer[0]["headers"]}, content
