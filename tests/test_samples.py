from __future__ import annotations

from typing import get_args

import msgspec

from outlay import events
from outlay.samples import one_of_each


def test_there_is_one_of_every_kind() -> None:
    assert [type(event) for event in one_of_each()] == list(get_args(events.AnyEvent))


def test_every_field_of_every_record_is_filled_in_one() -> None:
    found: dict[type, set[str]] = {}

    def look(value: object) -> None:
        if isinstance(value, tuple):
            for part in value:
                look(part)
        if isinstance(value, msgspec.Struct):
            fields = msgspec.structs.fields(value)
            filled = {f.name for f in fields if getattr(value, f.name) != f.default}
            found.setdefault(type(value), set()).update(filled)
            for name in value.__struct_fields__:
                look(getattr(value, name))

    look(tuple(one_of_each()))
    assert {events.Child, events.Evaluation, events.AgentUse, events.Rejected} <= found.keys()
    for kind, filled in found.items():
        assert filled == set(kind.__struct_fields__), kind  # type: ignore[attr-defined]
