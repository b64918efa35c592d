"""Django: models with versions, their forms and admin pages, views that run once for their Idempotency-Key, conflicts as answers, and
the calls of Interlock in the transactions of Django, with psycopg 2 or 3. Django has transactions in threads alone: what is async here
calls a thread for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import ValidationError
from django.db import connections, migrations, models, router, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.deprecation import MiddlewareMixin
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from ._sync.driver import Query, connect
from ._sync.interlock import Interlock
from ._sync.once import claimed
from .errors import InterlockError, StaleVersion, as_interlock_error, interlock_errors
from .http import Answer, Endpoint, NotKept, answer_of, key_of, problem_of, stored_of
from .results import Stored
from .values import Duration, Row, version_text

# --- Interlock ---


class DjangoDriver:
    """Transactions of Django. Their `tx` is Django's own connection: models and cursors write within it."""

    def __init__(self, using: str) -> None:
        self._using = using

    @contextmanager
    def transaction(self, isolation: str | None = None) -> Iterator[Any]:
        with transaction.atomic(using=self._using):
            if isolation is not None:
                self.within(connections[self._using])("SELECT set_config('transaction_isolation', %s, true)", (isolation,))
            yield connections[self._using]
            # Raises an error if a statement has failed and the block has swallowed its error. Otherwise nobody would notice the rollback.
            self.within(connections[self._using])("SELECT 1", ())

    def within(self, tx: Any) -> Query:
        def query(sql: str, values: Sequence[Any]) -> list[Row]:
            with tx.cursor() as cursor:
                cursor.execute(sql, list(values))
                names = [column[0] for column in cursor.description or ()]
                return [dict(zip(names, row)) for row in cursor.fetchall()] if names else []

        return query

    def query(self, sql: str, values: Sequence[Any]) -> list[Row]:
        return self.within(connections[self._using])(sql, values)

    def connect(self) -> psycopg.Connection[Any]:
        settings = connections[self._using].settings_dict
        known = {option.keyword.decode() for option in Conninfo.get_defaults()}
        options = {name: value for name, value in (settings.get("OPTIONS") or {}).items() if name in known}
        named = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
        options.update({name: settings[key] for name, key in named.items() if settings.get(key)})
        return connect(make_conninfo(**options), {})


@functools.lru_cache(maxsize=None)
def interlock(using: str = "default") -> Interlock[Any]:
    """The Interlock of a database of Django: leases, once(), update(), edit() and the others. It opens up to three connections of its
    own, with psycopg 3. `with lease.transaction():` is an atomic block."""
    return Interlock(DjangoDriver(using))


# --- Requests ---


def user_of(request: HttpRequest) -> Any:
    user = getattr(request, "user", None)
    return user.pk if user is not None and user.is_authenticated else None


def idempotent(
    scope: str,
    *,
    user: Callable[[HttpRequest], Any] = user_of,
    using: str = "default",
    wait: Duration = 0,
    ttl: Duration | None = None,
    header: str = "Idempotency-Key",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A view that runs once for each Idempotency-Key: claim, effect and answer are one transaction.

    user: the user who sends the request, by default the user of the Django session. Keys of different users are different keys. A
    request without a user gets 401. After an exception, or a response of 500 or more, nothing is stored. wait: how long a repeated
    request waits for the first one; without it the repeated request gets 409 at once. ttl: how long the response is stored.

    A view may be async. Its request occupies a thread, which has the transaction: models of the view, such as `aget()` and what is
    called by sync_to_async(), write within it.
    """

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        if iscoroutinefunction(view):
            # Within async_to_sync, calls of sync_to_async run in the thread that it has left: that of the transaction.
            in_thread = decorate(async_to_sync(view))

            @functools.wraps(view)
            async def answer_async(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
                return await sync_to_async(in_thread)(request, *args, **kwargs)

            return answer_async

        @functools.wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            query, content_type = request.META.get("QUERY_STRING", ""), request.META.get("CONTENT_TYPE", "")
            endpoint = Endpoint(request.method, request.path, query, content_type, request.body)
            sent = request.headers.get(header)
            # Servers of WSGI join several headers by a comma.
            several = sent is not None and "," in sent and not sent.startswith('"')
            key = key_of(endpoint, [] if sent is None or several else [sent], user(request))
            if isinstance(key, Answer):
                return _response(key)
            cookies: Any = None

            def work(tx: Any) -> tuple[Answer, Stored]:
                nonlocal cookies
                response = view(request, *args, **kwargs)
                if callable(getattr(response, "render", None)):
                    response = response.render()
                cookies, made = response.cookies, Answer(response.status_code, list(response.items()), b"".join(response))
                if made.status >= 500:
                    raise NotKept(made)
                return made, stored_of(made)

            try:
                made = answer_of(*claimed(DjangoDriver(using), scope, key, endpoint.hash, wait, ttl, work))
            except NotKept as error:
                made = error.answer
            return _response(made, cookies)

        return answer

    return decorate


class ConflictMiddleware(MiddlewareMixin):
    """Conflicts as answers, 409, 412, 423 and others: a line of MIDDLEWARE, 'pg_interlock.django.ConflictMiddleware'. It is for views
    of both kinds."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        known = as_interlock_error(error)
        return _response(problem_of(known)) if isinstance(known, InterlockError) else None


def _response(answer: Answer, cookies: Any = None) -> HttpResponse:
    response = HttpResponse(answer.body, status=answer.status)
    del response["Content-Type"]
    for name, value in answer.headers:
        response[name] = value
    if cookies:
        response.cookies.update(cookies)
    return response


# --- Models ---


class VersionField(models.BigIntegerField):
    """The server gives a new row its first version, and INSERT returns it."""

    db_returning = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"editable": False, "blank": True, **options})

    def pre_save(self, instance: Any, add: bool) -> Any:
        return models.Func(template="DEFAULT") if add else super().pre_save(instance, add)


class Versioned(models.Model):
    """A model whose save() and delete() raise StaleVersion if another writer has moved the row since it was loaded."""

    version = VersionField()

    class Meta:
        abstract = True

    def save(self, *args: Any, using: str | None = None, **options: Any) -> None:
        using = using or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using):
            adding = self._state.adding
            if not adding:
                self.assert_version(using)
            super().save(*args, using=using, **options)
            if not adding:
                self.refresh_from_db(using, fields=["version"])

    def delete(self, using: str | None = None, **options: Any) -> Any:
        using = using or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using):
            self.assert_version(using)
            return super().delete(using=using, **options)

    def assert_version(self, using: str | None = None) -> None:
        """Locks the row if it is of the version that this object was loaded with. Raises StaleVersion, NotFound."""
        using = using or router.db_for_write(type(self), instance=self)
        model = self._meta.get_field("version").model  # the parent, where models inherit tables
        table = connections[using].ops.quote_name(model._meta.db_table)
        expected = version_text(self.__dict__.get("version"))  # type: ignore[arg-type]
        with interlock_errors():
            DjangoDriver(using).query(
                "SELECT interlock.assert_version(%s::text::regclass, %s::text, %s::text)::text", (table, str(self.pk), expected)
            )


any_version = models.Func("version", function="interlock.any_version", output_field=models.BooleanField())
"""For filter(): declares that an update is right for any version, such as `update(hits=F("hits") + 1)`."""


def enable_versioning(table: str, *, blind_updates: str = "reject") -> Any:
    """An operation of a migration: makes each update of the table change its column `version`. Give its RunSQL the state
    operations, such as AddField, that the migration needs."""
    return migrations.RunSQL(
        [("SELECT interlock.enable_versioning(%s::text::regclass, blind_updates => %s)", [table, blind_updates])],
        [("SELECT interlock.disable_versioning(%s::text::regclass)", [table])],
    )


# --- Forms ---


class VersionedForm(forms.ModelForm):
    """A form that sends back the version that its user saw. A form from before another change is invalid, code 'stale'."""

    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._found = self.instance.version if self.instance.pk else None
        self.initial["version"] = self._found

    def clean(self) -> Any:
        cleaned = super().clean()
        if self.instance.pk and self.cleaned_data.get("version") != self._found:
            raise ValidationError("This was changed since you opened it. Open it again, and repeat your change.", code="stale")
        return cleaned


class VersionedAdmin(ModelAdmin):
    """Admin pages of a Versioned model: a page from before another change is not saved."""

    form = VersionedForm

    def get_form(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        if options.get("fields"):  # it is a field of the form, and not one of the model that a form may change
            options["fields"] = [name for name in options["fields"] if name != "version"]
        return super().get_form(request, obj, **options)

    def changeform_view(self, request: HttpRequest, object_id: str | None = None, *args: Any, **options: Any) -> Any:
        try:
            return super().changeform_view(request, object_id, *args, **options)
        except StaleVersion:  # between the check of the form and the save
            self.message_user(request, "This was changed at the same time. Repeat your change.", messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())
