"""Spans and a counter of OpenTelemetry, if opentelemetry-api is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import metrics, trace
except ImportError:
    metrics = trace = None

_counted: tuple[Any, Any] | None = None
"""A provider and its counter: that of another provider than the current one counts nothing."""


def _count(call: str, error: str | None) -> None:
    global _counted
    provider = metrics.get_meter_provider()
    if _counted is None or _counted[0] is not provider:
        about = "Calls of pg_interlock, by name and error"
        _counted = provider, metrics.get_meter("pg_interlock").create_counter("interlock.calls", description=about)
    _counted[1].add(1, {"interlock.call": call} | ({} if error is None else {"error.type": error}))


class _NoSpan:
    def set_attribute(self, name: str, value: object) -> None:
        """Nothing."""


@contextmanager
def traced(name: str, **attributes: str) -> Iterator[Any]:
    """A span around the block. Outcomes that are no failure, such as a lease that another client holds, have status unset."""
    if trace is None:
        yield _NoSpan()
        return
    named = {f"interlock.{attribute}": value for attribute, value in attributes.items()}
    options = {"attributes": {"db.system.name": "postgresql", **named}, "record_exception": False, "set_status_on_exception": False}
    failure: str | None = None
    with trace.get_tracer("pg_interlock").start_as_current_span(name, **options) as span:
        try:
            yield span
        except BaseException as error:
            failure = type(error).__name__
            span.set_attribute("error.type", getattr(error, "sqlstate", None) or failure)
            if getattr(error, "status", 500) >= 500:
                span.record_exception(error)
                span.set_status(trace.Status(trace.StatusCode.ERROR, str(error)))
            raise
        finally:
            _count(name, failure)
