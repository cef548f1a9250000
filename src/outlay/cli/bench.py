"""`outlay bench`: benchmarks of the methods themselves, one module `bench_NAME` each."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import click

import outlay.cli

_PREFIX = "bench_"


class Benchmarks(click.Group):
    """A group whose commands are the modules of this package that begin with `bench_`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the benchmarks, sorted."""
        modules = (module.name for module in pkgutil.iter_modules(outlay.cli.__path__))
        return sorted(name.removeprefix(_PREFIX) for name in modules if name.startswith(_PREFIX))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the benchmark's command, importing its module."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"outlay.cli.{_PREFIX}{cmd_name}").command
        return command


@click.command(cls=Benchmarks)
def command() -> None:
    """Benchmark the methods themselves."""
