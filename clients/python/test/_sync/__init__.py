# Made from _async/__init__.py by to_sync.py.
