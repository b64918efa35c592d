"""An ASGI application, without a server."""

import asyncio


async def asked(app, method, path, query="", body=b"", **headers):
    """Status, headers by their names in lower case, and body of its answer."""
    status, sent, content = await answer_of(app, method, path, query, body, {"content_type": "application/json", **headers})
    return status, {name.lower(): each for name, each in sent.items()}, content


async def answer_of(app, method, path, query, body, headers):
    """Status, headers by their names as they were sent, and body."""
    sent = [(name.replace("_", "-").encode(), each.encode()) for name, each in headers.items()]
    scope = {"type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "root_path": ""}
    scope |= {"query_string": query.encode(), "headers": sent, "client": None, "server": ("shop", 80), "scheme": "http"}
    messages, answer = [{"type": "http.request", "body": body, "more_body": False}], []

    async def receive():
        return messages.pop() if messages else await asyncio.sleep(600)

    async def send(message):
        answer.append(message)

    await app(scope, receive, send)
    content = b"".join(message.get("body", b"") for message in answer[1:])
    return answer[0]["status"], {name.decode(): each.decode() for name, each in answer[0]["headers"]}, content
