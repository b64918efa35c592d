"""Prints what a YAML file of docker/ says, as words for a shell.

settings.py FILE PATH   the value at PATH, such as services.db.ports, or 1.kind in the second of several documents: the items of a
                        list one a line, the entries of a mapping as NAME=VALUE; ${NAME:-DEFAULT} is DEFAULT unless NAME
                        is in the environment. A PATH that is not there is an error.
"""
import os
import re
import sys

import yaml


def expand(value):
    return re.sub(r"\$\{(\w+):[-?]([^}]*)\}", lambda found: os.environ.get(found[1], found[2]), str(value))


with open(sys.argv[1]) as file:
    documents = list(yaml.safe_load_all(file))
value = documents if len(documents) > 1 else documents[0]
for step in sys.argv[2].split("."):
    value = value[int(step)] if isinstance(value, list) else value[step]
if isinstance(value, dict):
    value = [f"{name}={item}" for name, item in value.items()]
for item in value if isinstance(value, list) else [value]:
    print(expand(item))
