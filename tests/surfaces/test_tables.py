from __future__ import annotations

import json

import pytest

from outlay.errors import InputError
from outlay.surfaces.tables import load_tables

CELLS = {"00": 0.1, "01": 0.2, "10": 0.3, "11": 0.4}


def test_a_file_of_several_tables_and_a_folder_of_single_ones_agree(tmp_path):
    several = {"b": {"family": "f", "truth": CELLS}, "a__d6": {"family": "f", "truth": CELLS}}
    (tmp_path / "all.json").write_text(json.dumps(several))
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, entry in several.items():
        (folder / f"{name}.json").write_text(json.dumps(entry | {"instance": name}))
    for path in (tmp_path / "all.json", folder):
        tables = load_tables(path)
        assert [table.name for table in tables] == ["a__d6", "b"]
        assert list(tables[0].truth) == [0.1, 0.2, 0.3, 0.4]
        assert tables[0].source == "a"
        assert tables[0].d == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"truth": {"00": 0.1, "00": 0.2}}', "more than once"),
        ('{"truth": {"00": 0.1, "01": NaN, "10": 0, "11": 0}}', "NaN"),
        ('{"truth": {"00": 0.1, "01": true, "10": 0, "11": 0}}', "01"),
        ('{"truth": {"00": 0.1, "01": -1, "10": 0, "11": 0}}', "[0, 1]"),
        ('{"truth": {"00": 0.1, "01": 0.5}}', "all masks"),
        ('{"truth": {}}', "mask to value"),
        ("[1]", "object"),
        ("{", "cannot read"),
        ('{"a": 3}', "truth"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path, text, part):
    file = tmp_path / "t.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"t\.json") as caught:
        load_tables(file)
    assert part in str(caught.value)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no \.json"):
        load_tables(tmp_path)
