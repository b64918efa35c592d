"""to_sync.py [--check]: makes the half for threads of that for tasks, as psycopg does. --check prints what is not current."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
HALVES = {"pg_interlock/_async": "pg_interlock/_sync", "test/_async": "test/_sync"}
BY_HAND = {"io.py", "shop.py"}
WORDS = [
    (r"Awaitable\[((?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*)\]", r"\1"),
    (r"Coroutine\[Any, Any, ((?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*)\]", r"\1"),
    (r"\b(Awaitable|Coroutine), |, (Awaitable|Coroutine)\b(?=.*$)", ""),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\baclosing\b", "closing"),
    (r"\b[aA]sync([cC]ontextmanager)", lambda found: found[1].lower()),
    (r"\bAbstractAsync", "Abstract"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bIsolatedAsyncioTestCase\b", "TestCase"),
    (r"\basync(SetUp|TearDown)\b", lambda found: found[1][0].lower() + found[1][1:]),
    (r"\bAsync([A-Z])", r"\1"),
    (r"\b_async\b", "_sync"),
    (r"\n    import asyncio\n\n    asyncio\.run\((.*)\)", r"\n    \1"),
]


def made(source: str, name: str) -> str:
    for old, new in WORDS:
        source = re.sub(old, new, source)  # type: ignore[call-overload]
    return f"# Made from _async/{name} by to_sync.py.\n{source}"


def formatted(text: str) -> str:
    return subprocess.run(
        ["black", "-q", "-", "--config", HERE / "pyproject.toml"], input=text, text=True, capture_output=True, check=True
    ).stdout


def main() -> None:
    for old, new in HALVES.items():
        for file in sorted((HERE / old).glob("*.py")):
            if file.name in BY_HAND:
                continue
            text, target = formatted(made(file.read_text(), file.name)), HERE / new / file.name
            if target.exists() and target.read_text() == text:
                continue
            if "--check" in sys.argv:
                print(f"{target.relative_to(HERE)} is not current: run to_sync.py")
            else:
                target.write_text(text)


main()
