"""A process of Node.js over clients/node: node.mjs. NODE_SHOP is a directory in which the package is installed."""

import os
import pathlib

KINDS = ["hold"]
SETUP = "SELECT interlock.define_idempotency_scope('node once');"
DIRECTORY = os.environ.get("NODE_SHOP", "/")
COMMAND = ["node", pathlib.Path(DIRECTORY) / "node.mjs"]
