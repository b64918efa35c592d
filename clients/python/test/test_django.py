"""Django: models with versions, forms, admin pages, idempotent views, leases in its transactions."""

import contextlib
import json
import os
import threading

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["PGDATABASE"],
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
            "USER": "app",
            "OPTIONS": {"application_name": "shop"},
        }
    },
    USE_TZ=True,
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="x",
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.admin.apps.SimpleAdminConfig"],
    MIDDLEWARE=["pg_interlock.django.ConflictMiddleware"],
)
django.setup()

import asyncio
import unittest

from asgiref.sync import sync_to_async
from django.contrib.admin import AdminSite
from django.db import DatabaseError, InternalError, connection, connections, models, transaction
from django.db.transaction import TransactionManagementError
from django.http import Http404, HttpResponse, JsonResponse, StreamingHttpResponse
from django.test import AsyncClient, Client, RequestFactory
from django.urls import path

from pg_interlock import Held, LeaseLost, NotFound, StaleVersion
from pg_interlock.django import ConflictMiddleware, Versioned, VersionedAdmin, VersionedForm, any_version, idempotent, interlock

from .shared import fresh, held, rows, run, value, wait_until

run(
    "CREATE TABLE note (id serial PRIMARY KEY, body text NOT NULL, hits int NOT NULL DEFAULT 0)",
    "SELECT interlock.enable_versioning('note', blind_updates => 'reject')",
    "CREATE TABLE django_content_type (id serial PRIMARY KEY, app_label text, model text)",
    "CREATE TABLE payment (id serial PRIMARY KEY, customer text, amount int CHECK (amount > 0))",
    "SELECT interlock.define_idempotency_scope('pay', max_response_bytes => 20000)",
    "SELECT interlock.grant_idempotency_scope('pay', 'app')",
)


class Note(Versioned):
    body = models.TextField()
    hits = models.IntegerField(default=0)

    class Meta:
        db_table, app_label = "note", "notes"


class Payment(models.Model):
    customer = models.TextField()
    amount = models.IntegerField()

    class Meta:
        db_table, app_label, managed = "payment", "notes", False


class NoteForm(VersionedForm):
    class Meta:
        model, fields = Note, ["body"]


class NoteAdmin(VersionedAdmin):
    before_save = None

    def save_model(self, *values):
        if NoteAdmin.before_save:
            NoteAdmin.before_save()
        super().save_model(*values)

    def log_change(self, *values):
        pass

    def message_user(self, request, text, *more):
        told.append(text)


class Superuser:
    is_active = is_staff = is_authenticated = True
    pk = 1

    def has_perm(self, *values):
        return True

    def has_module_perms(self, *values):
        return False


told = []
site = AdminSite()
site.register(Note, NoteAdmin)
gate, arrived = threading.Event(), threading.Event()


@idempotent("pay", user=lambda request: request.headers.get("X-User"))
def pay(request, place="payments"):
    if request.content_type == "application/octet-stream":
        return HttpResponse(request.body, content_type="application/octet-stream")
    order = json.loads(request.body)
    payment = Payment.objects.create(customer=request.headers["X-User"], amount=order["amount"])
    status = order.get("status", 201)
    if status == "gate":
        arrived.set()
        gate.wait()
        status = 201
    if status == "raise":
        raise Http404
    if status == "stream":
        return StreamingHttpResponse(["one ", "two ", "three"], content_type="text/plain", status=201)
    response = JsonResponse({"id": payment.id}, status=status)
    response["Location"] = f"/payments/{payment.id}"
    response.set_cookie("session", "secret")
    return response


def stale(request):
    Note.objects.get(pk=request.GET["id"]).save()
    raise StaleVersion("stale", sqlstate="IL001")


@idempotent("pay", user=lambda request: request.headers.get("X-User"))
async def pay_async(request):
    order = json.loads(request.body)
    create = getattr(Payment.objects, "acreate", None) or sync_to_async(Payment.objects.create)  # Django 3.2 has none
    payment = await create(customer="async", amount=order["amount"])
    await asyncio.sleep(0)
    if await sync_to_async(Payment.objects.count)() != await sync_to_async(lambda: value("SELECT count(*) FROM payment") + 1)():
        raise AssertionError("the payment is not in a transaction")
    if order.get("status") == "raise":
        raise Http404
    return JsonResponse({"id": payment.id}, status=order.get("status", 201))


async def under_a_lease(request):
    def work():
        with interlock().lease(fresh("async"), 600) as lease, lease.transaction():
            Payment.objects.create(customer="lease", amount=1)
            return held()

    return JsonResponse({"held": await sync_to_async(work)()})


async def stale_async(request):
    raise StaleVersion("stale", sqlstate="IL001")


urlpatterns = [path("payments", pay), path("other", pay), path("stale", stale), path("admin/", site.urls)]
urlpatterns += [path("async/payments", pay_async), path("async/lease", under_a_lease), path("async/stale", stale_async)]


def tearDownModule():
    interlock().close()
    connections.close_all()


class ModelTest(unittest.TestCase):
    def setUp(self):
        run("DELETE FROM note WHERE interlock.any_version(version)")
        self.note = Note.objects.create(body="old")

    def test_a_new_object_has_its_version_and_a_save_moves_it(self):
        first = self.note.version
        self.note.body = "new"
        self.note.save()
        self.assertGreater(self.note.version, first)
        self.assertEqual(rows("SELECT body, version FROM note"), [("new", self.note.version)])

    def test_the_second_of_two_saves_is_StaleVersion(self):
        first, second = Note.objects.get(), Note.objects.get()
        first.body = "first"
        first.save()
        second.body = "second"
        for change in (second.save, second.delete):
            with self.assertRaises(StaleVersion) as block:
                change()
            self.assertEqual(block.exception.version, first.version)
        self.assertEqual(value("SELECT body FROM note"), "first")
        first.delete()
        self.assertRaises(NotFound, second.save)

    def test_an_object_without_its_version_is_not_saved(self):
        self.assertRaises(TypeError, Note.objects.defer("version").get().save)

    def test_an_update_that_is_right_for_any_version(self):
        self.assertEqual(Note.objects.filter(any_version).update(hits=models.F("hits") + 1), 1)
        with self.assertRaises(Exception):
            Note.objects.update(hits=0)

    def test_a_form_from_before_another_change_is_invalid(self):
        sent = {"body": "by a form", "version": self.note.version}
        self.assertEqual(NoteForm(instance=self.note)["version"].value(), self.note.version)
        self.assertTrue(NoteForm({**sent}, instance=Note.objects.get()).is_valid())
        Note.objects.get().save()
        for version in (self.note.version, "", None, "x"):
            form = NoteForm({**sent, "version": version}, instance=Note.objects.get())
            self.assertFalse(form.is_valid(), version)
        self.assertEqual(form.instance.version, Note.objects.get().version)

    def test_a_form_saves_and_creates(self):
        NoteForm({"body": "by a form", "version": self.note.version}, instance=Note.objects.get()).save()
        NoteForm({"body": "new"}).save()
        self.assertEqual(rows("SELECT body FROM note ORDER BY id"), [("by a form",), ("new",)])

    def test_a_change_between_the_check_of_a_form_and_its_save(self):
        form = NoteForm({"body": "late", "version": self.note.version}, instance=Note.objects.get())
        self.assertTrue(form.is_valid())
        Note.objects.get().save()
        self.assertRaises(StaleVersion, form.save)

    def admin_page(self, sent=None):
        request = RequestFactory().post("/", sent) if sent else RequestFactory().get("/")
        request.user, request._dont_enforce_csrf_checks = Superuser(), True
        return site._registry[Note].changeform_view(request, str(self.note.pk))

    def test_an_admin_page_from_before_another_change_is_not_saved(self):
        form = self.admin_page().context_data["adminform"].form
        self.assertEqual(form["version"].value(), self.note.version)
        self.assertIn('type="hidden"', str(form["version"]))
        sent = {"body": "by an administrator", "hits": 0, "version": self.note.version}
        self.assertEqual(self.admin_page(sent).status_code, 302)
        page = self.admin_page({**sent, "body": "late"})
        self.assertIn("since you opened it", str(page.context_data["errors"]))
        self.assertEqual(value("SELECT body FROM note"), "by an administrator")

    def test_a_change_at_the_same_time_as_an_admin_page(self):
        NoteAdmin.before_save = lambda: Note.objects.get().save()
        page = self.admin_page({"body": "late", "hits": 0, "version": self.note.version})
        NoteAdmin.before_save = None
        self.assertEqual(
            (page.status_code, page["Location"], told[-1]), (302, "/", "This was changed at the same time. Repeat your change.")
        )
        self.assertEqual(value("SELECT body FROM note"), "old")

    def test_the_calls_of_interlock_in_its_transactions(self):
        il = interlock()
        with il.lease(fresh("note"), 600) as lease:
            with lease.transaction():
                Note.objects.create(body="under a lease")
            with self.assertRaises(LeaseLost):
                value("SELECT interlock.break_lease(%s, 'test')", lease.key)
                with lease.transaction():
                    Note.objects.create(body="lost")
            self.assertIs(type(il.lookup(lease.key)), type(None))
            with self.assertRaises(LeaseLost):
                lease.check()
            with self.assertRaises(Held), il.lease(fresh("other"), 600) as other:
                il.acquire(other.key)
            lease._reason = None  # it was lost for this test
        self.assertEqual(Note.objects.count(), 2)
        found = il.read("note", self.note.pk)
        self.assertEqual(found.version, self.note.version)
        il.update("note", self.note.pk, lambda row: {"hits": row["hits"] + 1})
        with transaction.atomic():
            once = il.once("pay", fresh("key"), None, lambda tx: Note.objects.count())
            transaction.set_rollback(True)
        self.assertEqual((once.value, value("SELECT count(*) FROM interlock.idempotency WHERE key LIKE 'key %'")), (2, 0))

    def test_a_transaction_whose_error_was_swallowed_is_an_error(self):
        def divide():
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1/0")

        def violate():
            Payment.objects.create(customer="anna", amount=-1)

        def roll_back_the_savepoint():
            with transaction.atomic():
                divide()

        il = interlock()
        with il.lease(fresh("swallowed"), 600) as lease:
            for begin in (il.transaction, lease.transaction):
                for outer in (contextlib.nullcontext, transaction.atomic):
                    for fail in (divide, violate):
                        with self.subTest(begin=begin, outer=outer, fail=fail), outer():
                            with self.assertRaises(Exception) as block, begin():
                                Note.objects.create(body="lost")
                                with contextlib.suppress(DatabaseError):
                                    fail()
                            self.assertIsInstance(block.exception, (InternalError, TransactionManagementError))
                with begin():
                    Note.objects.create(body="kept")
                    with contextlib.suppress(DatabaseError):
                        roll_back_the_savepoint()
        self.assertEqual(rows("SELECT body FROM note ORDER BY id"), [("old",), ("kept",), ("kept",)])


class ViewTest(unittest.TestCase):
    def setUp(self):
        run("TRUNCATE payment RESTART IDENTITY")
        self.client = Client(raise_request_exception=False)

    def post(self, key, sent, user="anna", path="/payments", client=None):
        kind = "application/octet-stream" if isinstance(sent, bytes) else "application/json"
        headers = {} if key is None else {"HTTP_IDEMPOTENCY_KEY": key}
        headers |= {"HTTP_X_USER": user} if user else {}
        return (client or self.client).post(path, sent if isinstance(sent, bytes) else json.dumps(sent), kind, **headers)

    def key(self):
        return fresh("key").replace(" ", "-")

    def payments(self):
        return value("SELECT count(*) FROM payment")

    def test_no_key_or_one_that_is_none_is_400(self):
        for key in (None, "", '""', "with a blank", "a,b", "a, b", '"a", "b"', "x" * 10_000, "kü", '"open'):
            response = self.post(key, {"amount": 1})
            self.assertEqual((response.status_code, response["Content-Type"]), (400, "application/problem+json"), key)
        self.assertEqual(self.payments(), 0)

    def test_the_second_request_gets_the_status_headers_and_bytes_of_the_first(self):
        key = self.key()
        first = self.post(f'"{key}"', {"amount": 10})
        self.assertEqual((first.status_code, first["Location"], first.cookies["session"].value), (201, "/payments/1", "secret"))
        second = self.post(key, {"amount": 10})
        self.assertEqual((second.status_code, second.content, second["Idempotent-Replayed"]), (201, first.content, "true"))
        self.assertEqual((second["Location"], second["Content-Type"]), (first["Location"], first["Content-Type"]))
        self.assertFalse(second.cookies)
        self.assertEqual(self.post(key, {"amount": 11}).status_code, 422)
        self.assertEqual(self.post(key, {"amount": 11}, user="bert").status_code, 201)
        self.assertEqual(self.post(key, {"amount": 11}, path="/other").status_code, 201)
        self.assertEqual(self.post(key, {"amount": 10}, user=None).status_code, 401)
        self.assertEqual(self.payments(), 3)

    def test_a_repeated_click_is_409_while_the_first_one_works(self):
        key, answers = self.key(), []
        gate.clear()
        arrived.clear()

        def first():
            answers.append(self.post(key, {"amount": 10, "status": "gate"}, client=Client()).status_code)
            connection.close()

        working = threading.Thread(target=first)
        working.start()
        wait_until(arrived.is_set)
        again = self.post(key, {"amount": 10, "status": "gate"})
        self.assertEqual((again.status_code, again["Retry-After"]), (409, "1"))
        gate.set()
        working.join()
        self.assertEqual((answers, self.payments()), ([201], 1))

    def test_a_view_that_raises_or_answers_with_500_leaves_nothing(self):
        key = self.key()
        for status, answer in (("raise", 404), (502, 502)):
            self.assertEqual(self.post(key, {"amount": 10, "status": status}).status_code, answer)
        self.assertEqual(self.post(key, {"amount": -1}).status_code, 500)
        self.assertEqual(self.payments(), 0)
        for replayed in (None, "true"):
            response = self.post(key, {"amount": 10, "status": 402})
            self.assertEqual((response.status_code, response.headers.get("Idempotent-Replayed")), (402, replayed))
        self.assertEqual(self.payments(), 1)

    def test_streams_and_bytes_are_kept(self):
        for sent, body in (({"amount": 10, "status": "stream"}, b"one two three"), (b"\0\xff", b"\0\xff")):
            key = self.key()
            for replayed in (None, "true"):
                response = self.post(key, sent)
                self.assertEqual((response.content, response.headers.get("Idempotent-Replayed")), (body, replayed))

    def test_an_answer_that_is_too_large_is_repeated_without_its_body(self):
        key, large = self.key(), b"\7" * 30_000
        self.assertEqual(len(self.post(key, large).content), 30_000)
        self.assertEqual((self.post(key, large).content, self.payments()), (b"", 0))

    def test_a_conflict_is_an_answer(self):
        note = Note.objects.create(body="x")
        response = self.client.get(f"/stale?id={note.pk}")
        self.assertEqual((response.status_code, json.loads(response.content)["type"]), (409, "StaleVersion"))


class AsyncViewTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        run("TRUNCATE payment RESTART IDENTITY")
        self.client = AsyncClient(raise_request_exception=False)

    async def asyncTearDown(self):
        await sync_to_async(connections.close_all)()

    async def post(self, key, sent):
        headers = {"idempotency-key": key, "x-user": "anna"}
        return await self.client.post("/async/payments", json.dumps(sent), "application/json", **headers)

    async def test_an_async_view_runs_once_and_in_the_transaction_of_its_key(self):
        first, second = await self.post("key-a", {"amount": 10}), await self.post("key-a", {"amount": 10})
        self.assertEqual((first.status_code, second.status_code, second.content), (201, 201, first.content))
        self.assertEqual((second["Idempotent-Replayed"], value("SELECT count(*) FROM payment")), ("true", 1))
        self.assertEqual((await self.post("key-a", {"amount": 11})).status_code, 422)

    async def test_an_async_view_that_raises_or_answers_with_500_leaves_nothing(self):
        for status, answer in (("raise", 404), (502, 502)):
            self.assertEqual((await self.post("key-b", {"amount": 10, "status": status})).status_code, answer)
        self.assertEqual((await self.post("key-b", {"amount": -1})).status_code, 500)
        self.assertEqual(value("SELECT count(*) FROM payment"), 0)
        self.assertEqual((await self.post("key-b", {"amount": 10})).status_code, 201)

    async def test_ten_requests_at_once_are_one_payment(self):
        answers = await asyncio.gather(*[self.post("key-c", {"amount": 10}) for _ in range(10)])
        self.assertLessEqual({answer.status_code for answer in answers}, {201, 409})
        self.assertEqual(value("SELECT count(*) FROM payment"), 1)

    async def test_a_lease_in_an_async_view(self):
        answer = await self.client.get("/async/lease")
        self.assertEqual((json.loads(answer.content), value("SELECT customer FROM payment"), held()), ({"held": 1}, "lease", 0))

    async def test_a_conflict_of_an_async_view_is_an_answer(self):
        response = await self.client.get("/async/stale")
        self.assertEqual((response.status_code, json.loads(response.content)["type"]), (409, "StaleVersion"))

    def test_the_middleware_needs_no_thread_for_an_async_view(self):
        async def view(request):
            pass

        self.assertTrue(asyncio.iscoroutinefunction(ConflictMiddleware(view)))
        self.assertFalse(asyncio.iscoroutinefunction(ConflictMiddleware(lambda request: None)))
