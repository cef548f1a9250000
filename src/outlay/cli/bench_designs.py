"""`outlay bench designs`: how well a model turns intent into an affordable experiment."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from outlay.errors import InputError, OutlayError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from outlay.bench.designs.gathering import Chain
    from outlay.bench.designs.report import Manifest, Report

F = TypeVar("F", bound="Callable[..., Any]")

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_seed = click.option("--seed", default=11, show_default=True, help="Seed of the panel.")
_folder = click.argument("folder", type=click.Path(path_type=Path))


def _endpoint_options(function: F) -> F:
    """Add the options that say which model is asked, where and how."""
    for option in reversed(
        [
            click.option("--url", required=True, help="Such as http://127.0.0.1:8000/v1."),
            click.option("--model", required=True, help="Model, as the endpoint calls it."),
            click.option("--name", required=True, help="Short name of this setting."),
            click.option("--family", help="Model family; the name by default."),
            click.option("--parameter", multiple=True, metavar="KEY=VALUE", help="Sent along."),
            click.option("--key-env", metavar="NAME", help="Variable that holds the key."),
            click.option(
                "--prices",
                default="0,0,0",
                metavar="IN,CACHED,OUT",
                help="USD per million tokens.",
            ),
            click.option("--workers", default=8, show_default=True, type=click.IntRange(1, 256)),
            click.option("--timeout", default=600.0, show_default=True, help="Seconds, no byte."),
        ]
    ):
        function = option(function)
    return function


@click.group(invoke_without_command=True)
@_seed
@_json
@click.pass_context
def command(context: click.Context, seed: int, as_json: bool) -> None:
    """Score the policies that need no model on the panel of 30 states, in percent.

    Subcommands collect replies of a model, score them again, and test the gate.
    """
    if context.invoked_subcommand is not None:
        return
    from outlay.bench.designs.policies import affordable_counts, panel_means

    means = panel_means(seed)
    counts = affordable_counts(seed)
    if as_json:
        panel = {"seed": seed, **means}
        affordable = {str(budget): count for budget, count in counts.items()}
        sys.stdout.write(json.dumps({"panel": panel, "affordable": affordable}) + "\n")
        return
    for name, mean in means.items():
        sys.stdout.write(f"{name:<14} {mean:7.2f} %\n")
    for budget, count in counts.items():
        sys.stdout.write(f"budget {budget:<7} {count:4d} of 693 designs affordable\n")


@command.command()
@_folder
@_endpoint_options
@click.option("--interfaces", default="L1,L2,L3,L4", show_default=True, metavar="A,B")
@click.option("--repetitions", default=3, show_default=True, type=click.IntRange(1, 100))
@click.option("--states", default=30, show_default=True, type=click.IntRange(1, 30))
@_seed
@_json
def collect(folder: Path, as_json: bool, **options: Any) -> int:
    """Collect replies of a model into FOLDER; running it again asks for what is missing."""
    from outlay.bench.designs.collection import chain
    from outlay.bench.designs.panel import panel

    manifest = _manifest(options)
    setting, states = manifest.setting, [drawn.state for drawn in panel(manifest.seed)]
    chains = [chain(setting, item, states) for item in manifest.plan]
    return _gather(folder, manifest, manifest.name, chains, options, as_json)


def _gather(
    folder: Path,
    plan: Any,
    name: str,
    chains: Sequence[Chain],
    options: dict[str, Any],
    as_json: bool,
) -> int:
    """Collect into FOLDER/NAME.jsonl beside its plan; exit code 1 if something is missing."""
    from outlay.bench.designs.archive import Prices
    from outlay.bench.designs.endpoint import Endpoint
    from outlay.bench.designs.gathering import gather

    endpoint = Endpoint(url=options["url"], key=_key(options), timeout=options["timeout"])
    prices = Prices(*_three(options["prices"]))
    _keep(folder / f"{name}.json", plan)
    path = folder / f"{name}.jsonl"
    done = gather(path, chains, endpoint, workers=options["workers"], prices=prices)
    for problem in done.unanswered:
        sys.stderr.write(f"unanswered: {problem}\n")
    if as_json:
        sys.stdout.write(json.dumps(done._asdict()) + "\n")
    else:
        sys.stdout.write(f"{done.answered} of {done.wanted} requests answered\n")
    return 0 if done.answered == done.wanted else OutlayError.exit_code


def _manifest(options: dict[str, Any]) -> Manifest:
    from outlay.bench.designs.report import Manifest

    return Manifest(
        name=options["name"],
        family=options["family"] or options["name"],
        model=options["model"],
        parameters=_parameters(options),
        interfaces=tuple(options["interfaces"].split(",")),
        repetitions=options["repetitions"],
        seed=options["seed"],
        states=options["states"],
    )


def _parameters(options: dict[str, Any]) -> dict[str, Any]:
    parameters = {}
    for text in options["parameter"]:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"--parameter: found {text!r}, allowed: KEY=VALUE")
        try:
            parameters[key] = json.loads(value)
        except ValueError:
            parameters[key] = value
    return parameters


def _key(options: dict[str, Any]) -> str:
    variable = options["key_env"]
    if not variable:
        return ""
    if not os.environ.get(variable):
        raise InputError(f"--key-env: the variable {variable} is not set")
    return os.environ[variable]


def _three(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not all(number >= 0 for number in numbers):
        raise InputError(f"--prices: found {text!r}, allowed: three numbers, 0 or more")
    return numbers


def _keep(path: Path, plan: Any) -> None:
    """Write the plan beside the archive, or check that it is the one of before."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(plan)) + b"\n"
    if path.exists() and path.read_bytes() != text:
        raise InputError(f"{path}: holds another plan; use another --name or folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


@command.command()
@_folder
@click.option("--out", type=click.Path(path_type=Path), help="Write tables.md and the figures.")
@_json
def report(folder: Path, out: Path | None, as_json: bool) -> None:
    """Score the replies in FOLDER again, without a call, and print every table."""
    from outlay.bench.designs.panel import panel
    from outlay.bench.designs.policies import catalogues
    from outlay.bench.designs.report import read_manifests
    from outlay.bench.designs.report import report as compute
    from outlay.bench.designs.tables import markdown

    first = read_manifests(folder)[0]
    found = compute(folder, catalogues(panel(first.seed)[: first.states]))
    text = markdown(found)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "tables.md").write_text(text, encoding="utf-8")
        _draw(found, out)
    sys.stdout.write(json.dumps(_finite(_data(found))) + "\n" if as_json else text + "\n")


def _finite(data: Any) -> Any:
    """Return JSON data with `null` for what is infinite or undefined."""
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _draw(found: Report, out: Path) -> None:
    from outlay.bench.designs.figures import controls_figure, levels_figure

    levels_figure(found).savefig(out / "levels.png", dpi=150)
    controls = controls_figure(found)
    if controls is not None:
        controls.savefig(out / "controls.png", dpi=150)


def _data(found: Report) -> dict[str, Any]:
    import msgspec

    rows = [
        {**row._asdict(), "efficiency": row.efficiency._asdict(), "means": row.means.tolist()}
        for row in found.rows
    ]
    return {
        "rows": rows,
        "contrasts": [contrast._asdict() for contrast in found.contrasts],
        "strategies": [contrast._asdict() for contrast in found.strategies],
        "increases": {name: x._asdict() for name, x in found.increases.items()},
        "retained": {name: x._asdict() for name, x in found.retained.items()},
        "policies": found.policies,
        "charges": msgspec.to_builtins(found.charges),
        "problems": list(found.problems),
    }


@command.command()
@click.option("--pairs", default=200, show_default=True, type=click.IntRange(min=2))
@click.option("--seed", default=0, show_default=True, help="First world.")
@_json
def gate(pairs: int, seed: int, as_json: bool) -> None:
    """Compare simulated searches with and without the gate, on the same proposals."""
    from outlay.bench.designs.gated_search import compare

    found = {
        "mixed": compare(pairs, seed),
        "all_good": compare(pairs, seed, shares=(1.0, 0.0, 0.0)),
    }
    if as_json:
        sys.stdout.write(json.dumps({name: x._asdict() for name, x in found.items()}) + "\n")
        return
    for name, x in found.items():
        sys.stdout.write(
            f"{name:<9} {x.difference:+.1f} tokens ({x.low:+.1f} to {x.high:+.1f}) of "
            f"{x.tokens_open:.1f}; right {100 * x.right_gated:.1f} % against "
            f"{100 * x.right_open:.1f} % over {x.pairs} pairs\n"
        )


@command.command()
@_folder
@_endpoint_options
@_json
def rank(folder: Path, as_json: bool, **options: Any) -> int:
    """Let a model rank the candidate actions of every scenario, in four positions each."""
    from outlay.bench.designs.agreement_report import RankingPlan
    from outlay.bench.designs.candidates import with_candidates
    from outlay.bench.designs.ranking import ranking_chains
    from outlay.bench.designs.scenarios import scenarios

    plan = RankingPlan(
        name=options["name"],
        family=options["family"] or options["name"],
        model=options["model"],
        parameters=_parameters(options),
    )
    chains = ranking_chains(plan.setting, with_candidates(scenarios()))
    return _gather(folder, plan, plan.name, chains, options, as_json)


@command.command()
@_folder
@click.option("--figure", type=click.Path(path_type=Path), help="Write a picture (.png, .svg).")
@_json
def agreement(folder: Path, figure: Path | None, as_json: bool) -> None:
    """Say how far the rankings in FOLDER agree with information per cost."""
    from outlay.bench.designs.agreement_report import agreement_report

    found = agreement_report(folder)
    if figure is not None:
        from outlay.bench.designs.figures import agreement_figure

        agreement_figure(found).savefig(figure, dpi=150)
    if as_json:
        data = {
            name: {
                "pooled": x.pooled._asdict(),
                "within": x.within._asdict(),
                "defined": x.defined,
                "scenarios": x.scenarios,
            }
            for name, x in found.items()
        }
        sys.stdout.write(json.dumps(_finite(data)) + "\n")
        return
    for name, x in found.items():
        sys.stdout.write(
            f"{name:<20} pooled {x.pooled.value:+.3f} ({x.pooled.low:+.3f} to "
            f"{x.pooled.high:+.3f})  within {x.within.value:+.3f} ({x.within.low:+.3f} to "
            f"{x.within.high:+.3f}) over {x.defined} of {x.scenarios} scenarios\n"
        )
