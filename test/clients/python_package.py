# clients/python, as a shop installs it: a wheel, built without a network, in an environment of its own, and its own tests run on
# that. Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE).
#
# needs: python3-build python3-setuptools python3-wheel python3-venv python3-psycopg python3-psycopg-pool
# needs: python3-fastapi python3-starlette python3-django python3-psycopg2 python3-sqlalchemy python3-greenlet python3-asyncpg

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(os.environ["ROOT"])
BUILD, SHOP = pathlib.Path("build").absolute(), pathlib.Path("shop").absolute()
tests = failed = 0


def report(name, ok, why=""):
    global tests, failed
    tests, failed = tests + 1, failed + (not ok)
    print(f"{'ok' if ok else 'not ok'} {tests} - {name}")
    if not ok and why:
        print("# " + why.rstrip().replace("\n", "\n# "))
    sys.stdout.flush()


def command(name, *arguments, **options):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    report(name, done.returncode == 0, done.stdout)
    return done.returncode == 0


def run_tests(python, name):
    database = "shop_" + re.sub(r"\W+", "_", name)
    subprocess.run(["createdb", database], check=True)
    subprocess.run(["psql", "-qXd", database, "-c", "CREATE EXTENSION pg_interlock"], check=True)
    done = subprocess.run([python, "-m", "test.tap", name], cwd=SHOP, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PGDATABASE": database, "PYTHONPATH": ""})
    before = tests
    for ok, title, why in re.findall(r"^(ok|not ok) \d+ - (.*)\n((?:# .*\n)*)", done.stdout, re.M):
        report(f"{name.removeprefix('test.')}: {title}", ok == "ok", re.sub("^# ", "", why, flags=re.M))
    planned = re.search(r"^1\.\.(\d+)$", done.stdout, re.M)
    if planned is None or int(planned[1]) != tests - before or tests == before:
        report(f"{name} runs to its end", False, done.stdout)
    subprocess.run(["dropdb", "--force", database], check=True)


shutil.copytree(ROOT / "clients/python", BUILD, ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache", "dist"))
if command("its wheel is built without a network", "/usr/bin/python3", "-m", "build", "--wheel", "--no-isolation", cwd=BUILD):
    wheel = next((BUILD / "dist").glob("*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    wanted = {str(file.relative_to(BUILD)) for file in (BUILD / "pg_interlock").glob("**/*") if file.is_file()}
    others = [name for name in set(names) - wanted if not re.search(r"\.dist-info/(METADATA|WHEEL|RECORD|LICENSE|top_level\.txt)$", name)]
    report("it has the package and its types, and nothing else", "pg_interlock/py.typed" in names and not others and wanted <= set(names), str(others))
    python = str(SHOP / "venv/bin/python")
    if command("an environment", "/usr/bin/python3", "-m", "venv", "--system-site-packages", SHOP / "venv") and \
       command("it is installed without an index", python, "-m", "pip", "install", "--no-index", "--quiet", wheel):
        shutil.copytree(BUILD / "test", SHOP / "test")
        for page in (BUILD / "README.md", ROOT / "docs/guide/leases.md"):
            shutil.copy(page, SHOP)
        for file in sorted(SHOP.glob("test/**/test_*.py")):
            run_tests(python, str(file.relative_to(SHOP))[:-3].replace("/", "."))
print(f"1..{tests}")
sys.exit(failed > 0)
