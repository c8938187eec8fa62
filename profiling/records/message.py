"""The base of all records and commands, and the version of what is stored.

Fields may be added with a default; any other change raises `SCHEMA_VERSION`.
"""

import msgspec

SCHEMA_VERSION = 1


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=_snake):
    """Base of all records and commands."""
