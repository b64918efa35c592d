# An application on Django with the code of docs/clients/django.md. Prints TAP.
# needs: python3-django python3-psycopg2 python3-psycopg
# only with --all

import io
import json
import os
import re
import threading
import types
import uuid

import django
from django import forms
from django.apps import AppConfig, apps
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, close_old_connections, connection, migrations, models, transaction
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.state import ModelState, ProjectState

settings.configure(DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "HOST": os.environ["PGHOST"],
    "PORT": os.environ["PGPORT"], "USER": os.environ["PGUSER"]}}, USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.admin.apps.SimpleAdminConfig"])
django.setup()

from django.contrib.admin import AdminSite, ModelAdmin
from calls import call_all
from client import check_page, fresh_notes, one, sql, stored
from page import OWNER, ROOT, check, equal, finish, load, refused

page = load("django", sql)
Note, StaleObjectError, F = page.Note, page.StaleObjectError, models.F
page.StaleError = StaleObjectError

# The models of the page as those of an installed application, whose deletes cascade.
notes = AppConfig("notes", page)
notes.apps, notes.models = apps, apps.all_models["notes"]
apps.app_configs["notes"] = notes


def state_of(model, *left_out):
    """What the migrations before have made of a model."""
    state = ModelState.from_model(model)
    fields = [field for field in state.fields.items() if field[0] not in left_out]
    return ModelState(state.app_label, state.name, fields, state.options, (models.Model,), state.managers)


def connect_as(user):
    """From now on the connections of all threads."""
    connection.close()
    connection.settings_dict["USER"] = user


before = ProjectState()
before.add_model(state_of(Note, "version"))
with connection.schema_editor() as editor:
    after = page.Migration("guard", "notes").apply(before, editor)
connect_as(os.environ["PGUSER"])


class PlainNote(models.Model):
    body = models.TextField(default="")
    hits = models.IntegerField()

    class Meta:
        db_table, app_label = "plain_note", "notes"


def rows(query, *values):
    try:
        with connection.cursor() as cursor:
            cursor.execute(re.sub(r"\$\d+", "%s", query.replace("%", "%%")), values)
            return cursor.fetchall() if cursor.description else []
    except Exception:
        close_old_connections()     # as Django does at the end of a request
        raise


def under_lease(key, ttl, work):
    with page.lease(page.connect, key, ttl) as held:
        return work(held) if held else None


def read(id):
    local.note = PlainNote.objects.get(pk=id)
    return local.note.hits


def write(id, hits):
    local.note.hits = hits
    local.note.save()


local = threading.local()
def repeat(query, attempts):
    page.retry(lambda: page.connection.cursor().execute(query), attempts)


check_page(types.SimpleNamespace(
    page=page, rows=rows, repeat=repeat, json=json.dumps, under_lease=under_lease, sqlstate=page.sqlstate, read=read, write=write))


@check("what the page does under a lease")
def _():
    fresh_notes()
    sql("UPDATE note SET body = '' WHERE id = 1 AND version = 1")
    page.tidy()
    equal((stored(1), stored(2)), (None, ("old", 0, 1)))


def script(id=1):
    sql("UPDATE note SET body = 'of a script' WHERE id = %s AND interlock.any_version(version)", (id,))


def stale(change, notes=Note.objects):
    """The error of an object that was loaded before a script changed its row."""
    fresh_notes()
    note = notes.get(pk=1)
    script()
    note.body = "mine"
    error = refused(DatabaseError, change, note)
    equal(stored()[0], "of a script")
    return error


def add_and_save(note):
    note.hits = F("hits") + 1
    note.save()


for name, change in {
    "save()": lambda note: note.save(),
    "save() of some fields": lambda note: note.save(update_fields=["body"]),
    "save() with F()": add_and_save,
    "delete()": lambda note: note.delete(),
    "a function": lambda note: page.row("SELECT interlock.versioned_update('note', 1, 1, '{}')"),
}.items():
    @check(f"{name} of a stale object is a StaleObjectError")
    def _():
        assert isinstance(stale(change), StaleObjectError)


@check("an object without its version is refused")
def _():
    equal(page.sqlstate(stale(lambda note: note.save(), Note.objects.only("body"))), "22004")
    equal(page.sqlstate(stale(lambda note: note.save(), Note.objects.defer("version"))), "22004")


blind = {
    "update()": lambda note: Note.objects.filter(pk=1).update(body="mine"),
    "QuerySet.delete()": lambda note: Note.objects.filter(pk=1).delete(),
    "bulk_update()": lambda note: Note.objects.bulk_update([note], ["body"]),
}
if django.VERSION >= (4, 1):
    blind["bulk_create() with update_conflicts"] = lambda note: Note.objects.bulk_create(
        [Note(id=1, body="mine")], update_conflicts=True, unique_fields=["id"], update_fields=["body"])
for name, change in blind.items():
    @check(f"{name} is IL011")
    def _():
        equal(page.sqlstate(stale(change)), "IL011")


@check("what reads under the lock is safe")
def _():
    fresh_notes()
    script()
    with transaction.atomic():
        note = Note.objects.select_for_update().get(pk=1)
        note.hits = 7
        note.save()
    Note.objects.update_or_create(pk=1, defaults={"hits": 8})
    equal(stored(), ("of a script", 8, 4))


@check("update() that compares the version counts no row; that of any version is right")
def _():
    fresh_notes()
    script()
    equal(Note.objects.filter(pk=1, version=1).update(hits=1), 0)
    equal(Note.objects.filter(page.any_version, pk=1).update(hits=F("hits") + 1), 1)
    equal(stored(), ("of a script", 1, 3))


def in_memory(note):
    equal(note.__dict__["version"], page.row("SELECT version FROM note WHERE id = %s", note.id)["version"])


@check("the version in memory is the stored one after an insert, a batch, and each save")
def _():
    fresh_notes()
    sql("SELECT setval('note_id_seq', 100)")
    notes = [Note.objects.create(body="new"), *Note.objects.bulk_create([Note(body="one"), Note(body="two"), Note(id=9, body="x")])]
    with transaction.atomic():
        for _ in range(2):
            for note in notes:
                in_memory(note)
                note.hits += 1
                note.save()
    for note in notes:
        in_memory(note)


@check("a savepoint that is rolled back leaves it too high, which refresh_from_db() cures")
def _():
    fresh_notes()
    note = Note.objects.get(pk=1)
    with transaction.atomic():
        try:
            with transaction.atomic():
                note.body = "undone"
                note.save()
                raise KeyError
        except KeyError:
            pass
        equal((note.version, stored()[2]), (2, 1))
        note.refresh_from_db()
        in_memory(note)
        note.body = "mine"
        note.save()
        in_memory(note)


class NoteForm(page.VersionedForm):
    class Meta:
        model, fields = Note, ["body"]


class NoteAdmin(ModelAdmin):
    form = page.VersionedForm


@check("of two forms of one version the second is refused, in the admin, too; without the version both are")
def _():
    fresh_notes()
    sent = {"version": NoteForm(instance=Note.objects.get(pk=1)).initial["version"], "body": "mine", "hits": 0}
    equal(NoteForm(sent, instance=Note.objects.get(pk=1)).save().version, 2)
    refused(StaleObjectError, NoteForm({**sent, "body": "second"}, instance=Note.objects.get(pk=1)).save)
    admin = NoteAdmin(Note, AdminSite())
    form = admin.get_form(None, change=True, fields=None)({**sent, "body": "third"}, instance=Note.objects.get(pk=1))
    assert form.is_valid(), form.errors
    refused(StaleObjectError, admin.save_model, None, admin.save_form(None, form, True), form, True)
    equal(page.sqlstate(refused(DatabaseError, NoteForm({"body": "blind"}, instance=Note.objects.get(pk=1)).save)), "22004")
    equal(stored(), ("mine", 0, 2))
    sql("SELECT setval('note_id_seq', 200)")
    in_memory(NoteForm({"body": "new"}).save())


@check("a form that does not carry the version loses the other change")
def _():
    form = forms.modelform_factory(Note, fields=["body"])
    fresh_notes()
    form(data={"body": "first"}, instance=Note.objects.get(pk=1)).save()
    form(data={"body": "second"}, instance=Note.objects.get(pk=1)).save()
    equal(stored()[0], "second")


@check("select_for_update().update() is IL011")
def _():
    fresh_notes()
    with transaction.atomic():
        equal(page.sqlstate(refused(DatabaseError, lambda: Note.objects.select_for_update().filter(pk=1).update(body="x"))), "IL011")


@check("save(True) is Django's force_insert")
def _():
    sql("SELECT setval('note_id_seq', 300)")
    note = Note(body="new")
    note.save(True)
    in_memory(note)


class Remark(page.Versioned):
    note = models.ForeignKey(Note, models.CASCADE)

    class Meta:
        db_table, app_label = "remark", "notes"


class Mark(page.Versioned):
    note = models.ForeignKey(Note, models.SET_NULL, null=True)

    class Meta:
        db_table, app_label = "mark", "notes"


class Reply(page.Versioned):
    note = models.ForeignKey(Note, models.DO_NOTHING)

    class Meta:
        db_table, app_label = "reply", "notes"


@check("a new model is guarded by its own migration")
def _():
    connect_as(OWNER)

    class New(migrations.Migration):
        operations = [
            migrations.CreateModel(model.__name__, [("id", models.AutoField(primary_key=True)), ("version", page.VersionField()),
                ("note", models.IntegerField(db_column="note_id"))], {"db_table": model._meta.db_table})
            for model in (Remark, Mark, Reply)]
    with connection.schema_editor() as editor:
        New("new", "notes").apply(ProjectState(), editor)
    found = "SELECT count(DISTINCT rel) FROM interlock.advise() WHERE rel IN ('remark'::regclass, 'mark'::regclass, 'reply'::regclass)"
    equal(one(found), 3)
    guard = re.search(r"migrations\.RunSQL\(\"SELECT[^\n]*noop\)", (ROOT / "docs/clients/django.md").read_text()).group(0)
    with connection.schema_editor() as editor:
        for name in ("remark", "mark", "reply"):
            eval(guard.replace("'page'", f"'{name}'")).database_forwards("notes", editor, ProjectState(), ProjectState())
    equal(one(found), 0)
    sql("ALTER TABLE reply ADD FOREIGN KEY (note_id) REFERENCES note ON DELETE CASCADE")
    connect_as("app")


@check("Django's own cascade is IL011, that of the database is allowed")
def _():
    fresh_notes()
    first, second = Note.objects.order_by("id")
    for model in (Remark, Mark):
        model.objects.create(note=first)
        equal(page.sqlstate(refused(DatabaseError, first.delete)), "IL011")
        model.objects.filter(page.any_version).delete()
    Reply.objects.create(note=second)
    second.delete()
    equal((Reply.objects.count(), stored(2)), (0, None))


@check("models that inherit tables compare the version of the parent")
def _():
    class Special(Note):
        text = models.TextField()

        class Meta:
            db_table, app_label = "special", "notes"
    sql("CREATE TABLE special (note_ptr_id int PRIMARY KEY REFERENCES note, text text)")
    sql("SELECT setval('note_id_seq', 400)")
    special = Special.objects.create(body="new", text="a")
    in_memory(special)
    special.text = "b"
    special.save()
    in_memory(special)
    script(special.pk)
    special.text = "c"
    refused(StaleObjectError, special.save)
    equal(one("SELECT text FROM special"), "b")
    sql("DROP TABLE special")


@check("without the mixin the second save of an object is a false conflict")
def _():
    class BareNote(models.Model):
        body = models.TextField()
        version = models.BigIntegerField()

        class Meta:
            db_table, app_label = "bare_note", "notes"
    sql("CREATE TABLE bare_note (id int PRIMARY KEY, body text)")
    sql("SELECT interlock.enable_versioning('bare_note')")
    sql("INSERT INTO bare_note VALUES (1, 'old')")
    note = BareNote.objects.get(pk=1)
    note.save()
    refused(StaleObjectError, note.save)


@check("a key that is used again does not meet old versions, and a uuid is one")
def _():
    fresh_notes()
    note = Note.objects.get(pk=1)
    sql("DELETE FROM note WHERE id = 1 AND version = 1")
    Note.objects.create(id=1, body="another")
    note.body = "mine"
    refused(StaleObjectError, note.save)
    equal(stored()[0], "another")

    class Card(page.Versioned):
        id = models.UUIDField(primary_key=True, default=uuid.uuid4)
        body = models.TextField()

        class Meta:
            db_table, app_label = "Card", "notes"
    sql('CREATE TABLE "Card" (id uuid PRIMARY KEY, body text)')
    sql("""SELECT interlock.enable_versioning('"Card"', blind_updates => 'reject')""")
    card = Card.objects.create(body="new")
    card.body = "mine"
    card.save()
    equal((card.version, one('SELECT body FROM "Card"')), (2, "mine"))


@check("a marker of another holder is an error of its own, with DETAIL")
def _():
    sql("CREATE TABLE doc (id int PRIMARY KEY, body text)")
    sql("SELECT interlock.enable_marker('doc'), interlock.enable_versioning('doc'), interlock.enable_history('doc')")
    sql("INSERT INTO doc VALUES (1, 'old')")
    sql("SELECT interlock.lock_row('doc', 1, 'anna')")
    error = refused(page.HeldError, rows, "UPDATE doc SET body = 'new'")
    equal(json.loads(error.__cause__.diag.message_detail)["holder"], "anna")


@check("makemigrations finds nothing to do after the migration of the page")
def _():
    now = ProjectState()
    now.add_model(state_of(Note))
    equal(MigrationAutodetector(after, now)._detect_changes(), {})


@check("inspectdb knows the columns, and not what they are")
def _():
    printed = io.StringIO()
    call_command("inspectdb", "note", stdout=printed)
    assert re.search(r"version = models.BigIntegerField\(\)", printed.getvalue()), printed.getvalue()


@check("what the page has made holds, and the migration can be undone")
def _():
    connect_as(OWNER)
    equal(sql("SELECT finding FROM interlock.advise() WHERE rel = 'note'::regclass").fetchall(), [])
    with connection.schema_editor() as editor:
        page.Migration("guard", "notes").unapply(before, editor)
    equal(one("SELECT count(*) FROM pg_attribute WHERE attrelid = 'note'::regclass AND attname = 'version'"), 0)


call_all("django", rows, json.dumps)
finish()
