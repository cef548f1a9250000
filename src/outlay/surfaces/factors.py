"""Named factors with their levels, and configurations of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from outlay.errors import InputError, bad_value
from outlay.surfaces.equalities import Gate, Gates
from outlay.surfaces.space import Space

if TYPE_CHECKING:
    from outlay.surfaces.cube import IntArray

Level = bool | int | float | str
Config = dict[str, Level]
LARGEST_SPACE = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A switchable component; the first level is its default."""

    name: str
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inactive:
    """Declares that `factor` changes nothing while factor `when` is at level `at`.

    With `when=None` it never changes anything.
    """

    factor: str
    when: str | None = None
    at: Level = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """All factors of an ablation, in order."""

    all: tuple[Factor, ...]

    @property
    def space(self) -> Space:
        """The configurations by number."""
        return Space(levels=tuple(len(factor.levels) for factor in self.all))

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(factor.name for factor in self.all)

    def row(self, config: Mapping[str, Level]) -> IntArray:
        """Return the level numbers of a configuration; a factor not named is at its default.

        Raises:
            InputError: If it is none, or a factor or level is unknown.
        """
        if not isinstance(config, Mapping):
            raise bad_value("configuration", "configuration", config, "factors with their levels")
        unknown = [name for name in config if name not in self.names]
        if unknown:
            raise bad_value("configuration", "factor", unknown[0], ", ".join(self.names))
        return np.array(
            [_position(factor, config.get(factor.name, factor.levels[0])) for factor in self.all]
        )

    def cell(self, config: Mapping[str, Level]) -> int:
        """Return the number of a configuration."""
        return int(self.space.cells(self.row(config)[None])[0])

    def config(self, cell: int) -> Config:
        """Return the configuration of a number."""
        row = self.space.rows(np.array([cell]))[0]
        return {
            factor.name: factor.levels[level] for factor, level in zip(self.all, row, strict=True)
        }

    def part(self, levels: Iterable[tuple[int, int]]) -> Config:
        """Return levels, by index of factor and level, as part of a configuration."""
        return {self.names[i]: self.all[i].levels[level] for i, level in levels}

    def columns(self, other: Iterable[str]) -> dict[str, str]:
        """Return what each factor's column is called in a table that has other columns, too.

        That is its name, after `config_` where another column bears it.
        """
        taken, found = {*self.names, *other}, {}
        for name in self.names:
            column = name
            while column in other or (column != name and column in taken):
                column = f"config_{column}"
            taken.add(column)
            found[name] = column
        return found

    def gates(self, declared: Iterable[Inactive]) -> Gates:
        """Return declared equalities by index."""
        return tuple(self._gate(entry) for entry in declared)

    def inactive(self, gate: Gate) -> Inactive:
        """Return an equality by name."""
        name = self.names[gate.inactive]
        if gate.guard < 0:
            return Inactive(factor=name)
        guard = self.all[gate.guard]
        return Inactive(factor=name, when=guard.name, at=guard.levels[gate.level])

    def _gate(self, entry: Inactive) -> Gate:
        if not isinstance(entry, Inactive):
            raise bad_value("equalities", "entry", entry, "Inactive(factor=..., when=..., at=...)")
        if entry.factor == entry.when:
            raise bad_value(
                "equalities", "when", entry.when, "another factor than the inactive one"
            )
        for name in (entry.factor, entry.when):
            if name is not None and name not in self.names:
                raise bad_value("equalities", "factor", name, ", ".join(self.names))
        inactive = self.names.index(entry.factor)
        if entry.when is None:
            return Gate(-1, 0, inactive)
        guard = self.names.index(entry.when)
        return Gate(guard, _position(self.all[guard], entry.at), inactive)


def read_factors(given: Sequence[str] | Mapping[str, Sequence[Level]]) -> Factors:
    """Return factors from names (switches, off and on) or from names with their levels.

    Raises:
        InputError: If there is no factor, a name repeats, or a factor has fewer than two levels.
    """
    if isinstance(given, str) or not isinstance(given, Sequence | Mapping):
        raise bad_value("factors", "factors", given, "a list of names, or names with levels")
    pairs = (
        list(given.items())
        if isinstance(given, Mapping)
        else [(name, (False, True)) for name in given]
    )
    names = [name for name, _ in pairs]
    if not names:
        raise InputError("factors: found none, allowed: at least one name")
    for name, levels in pairs:
        if not isinstance(name, str) or not name:
            raise bad_value("factors", "name", name, "a non-empty text")
        if names.count(name) > 1:
            raise bad_value("factors", "name", name, "every name once")
        if isinstance(levels, str) or not isinstance(levels, Sequence) or len(levels) < 2:
            raise bad_value("factors", name, levels, "at least two levels")
        for level in levels:
            if not isinstance(level, bool | int | float | str) or level != level:
                raise bad_value("factors", name, level, "levels that are numbers, texts or bools")
        if len({_key(level) for level in levels}) < len(levels):
            raise bad_value("factors", name, levels, "every level once")
    found = Factors(all=tuple(Factor(name=n, levels=tuple(levels)) for n, levels in pairs))
    if found.space.size > LARGEST_SPACE:
        allowed = "at most 2^40, such as 40 switches; leave out factors or levels"
        raise bad_value("factors", "configurations", found.space.size, allowed)
    return found


def _position(factor: Factor, level: Level) -> int:
    keys = [_key(known) for known in factor.levels]
    if _key(level) not in keys:
        allowed = ", ".join(map(repr, factor.levels))
        raise bad_value("configuration", factor.name, level, allowed)
    return keys.index(_key(level))


def _key(level: Level) -> tuple[bool, Level]:
    """Return a key that keeps True and 1 apart, which are equal in Python."""
    return isinstance(level, bool), level
