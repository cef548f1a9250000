"""From a model's answer to proposed plans. Whatever the text, it gives plans and complaints."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from outlay.agents.plans import Edit, apply_edits
from outlay.agents.reflections.shape import EDITS, LINES, SLUG
from outlay.agents.reflections.texts import LONGEST_PLAN, root_plan, same_plan
from outlay.errors import InputError, OutlayError
from outlay.events import Child, Design, Rejected

if TYPE_CHECKING:
    from outlay.agents.reflections.asking import Ask

LONGEST_ANSWER = 1_000_000
"""Characters of an answer that are read; a longer one is refused."""

LONGEST_TEXT = 2_000
"""Characters of one text in it. The schema allows less; not every server holds on to that."""

Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TEXT)]
Slug = Annotated[str, msgspec.Meta(pattern=SLUG)]


class Parsed(NamedTuple):
    """What an answer came to.

    Attributes:
        children: Plans that may be added to the tree, numbered on from `Ask.first`.
        rejected: What is wrong with the rest, one line each, for whoever wrote it.
    """

    children: tuple[Child, ...]
    rejected: tuple[Rejected, ...]


class _GateError(InputError):
    """Raised for a child whose design does not pass the gate."""

    def __init__(self, reason: str, design: Design, saved: float) -> None:
        super().__init__(reason)
        self.design, self.saved = design, saved


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class _Edit(_Strict, frozen=True):
    search: Words
    replace: Text


class _Design(_Strict, frozen=True):
    arms: Annotated[list[Text], msgspec.Meta(min_length=1)]
    seeds: int


class _Child(_Strict, frozen=True):
    hypothesis: Words
    edits: Annotated[list[_Edit], msgspec.Meta(min_length=1, max_length=EDITS)]
    changes: Words
    axis: Slug | None
    direction: Slug | None
    chance: Annotated[int, msgspec.Meta(ge=1, le=99)]
    rationale: Text
    risks: Text
    design: _Design | None = None


class _Children(_Strict, frozen=True):
    children: list[msgspec.Raw]


class _Root(_Strict, frozen=True):
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    hypothesis: Words
    approach: Annotated[list[Text], msgspec.Meta(min_length=1, max_length=LINES)]


def parse(text: str, ask: Ask) -> Parsed:
    """Return the plans that an answer proposes, and what is wrong with it; never raises.

    Args:
        text: The answer: one JSON object, a code fence around it allowed.
        ask: What was asked for.
    """
    if len(text) > LONGEST_ANSWER:
        reason = f"the answer has more than {LONGEST_ANSWER:,} characters"
        return Parsed((), (Rejected(reason=reason),))
    if not text.strip():
        return Parsed((), (Rejected(reason="the answer is empty"),))
    try:
        body = _unfenced(text).encode()
        if not ask.plan:
            return Parsed((_root(body, ask),), ())
        found = msgspec.json.decode(body, type=_Children).children
    except (ValueError, RecursionError, OutlayError) as error:
        return Parsed((), (_complaint("the answer", error),))
    return _parsed(found, ask)


def _parsed(found: list[msgspec.Raw], ask: Ask) -> Parsed:
    children: list[Child] = []
    rejected: list[Rejected] = []
    known = {same_plan(ask.plan): "has the plan that it was made from", **_known(ask)}
    for number, raw in enumerate(found[: ask.asked], 1):
        try:
            child, plan = _child(bytes(raw), ask, known)
        except (ValueError, RecursionError, OutlayError) as error:
            rejected.append(_complaint(f"child {number}", error))
        else:
            known[plan] = f"has the same plan as child {number}"
            children.append(msgspec.structs.replace(child, node=ask.first + len(children)))
            ask = _after(ask, child.design)
    if len(found) > ask.asked:
        reason = f"found {len(found)} children, allowed: up to {ask.asked}"
        rejected.append(Rejected(reason=reason))
    return Parsed(tuple(children), tuple(rejected))


def _known(ask: Ask) -> dict[str, str]:
    return dict.fromkeys(ask.known - {same_plan(ask.plan)}, "has a plan that is in the tree")


def _child(body: bytes, ask: Ask, known: dict[str, str]) -> tuple[Child, str]:
    """Return the child and its plan as `same_plan` gives it; raises what `parse` catches."""
    told = msgspec.json.decode(body, type=_Child)
    edits = [Edit(edit.search, edit.replace) for edit in told.edits]
    _check_characters(told.hypothesis, told.changes, told.rationale, told.risks)
    _check_characters(*(text for edit in edits for text in edit))
    plan = _sized(apply_edits(ask.plan, edits))
    if same_plan(plan) in known:
        raise InputError(f"{known[same_plan(plan)]}, allowed: one that is not there yet")
    if (told.axis, told.direction) in ask.retired:
        raise InputError(f"{told.axis}: {told.direction} was given up, allowed: another way")
    design = _checked_design(told.design, ask)
    words = f"Design: {', '.join(design.arms)}, with {design.seeds} seeds." if design else ""
    child = Child(
        node=ask.first,
        edits=tuple((edit.search, edit.replace) for edit in edits),
        summary="\n\n".join(part for part in (told.changes.strip(), words) if part) + "\n",
        axis=told.axis if told.direction else None,
        direction=told.direction if told.axis else None,
        prior=told.chance / 100,
        hypothesis=told.hypothesis,
        rationale=told.rationale,
        risks=told.risks,
        design=design,
    )
    return child, same_plan(plan)


def _root(body: bytes, ask: Ask) -> Child:
    told = msgspec.json.decode(body, type=_Root)
    _check_characters(told.title, told.hypothesis, *told.approach)
    if not "".join(told.approach).strip():
        raise InputError("approach: found blank lines only, allowed: what is to be done")
    plan = _sized(root_plan(" ".join(told.title.split()), told.hypothesis, told.approach))
    if same_plan(plan) in ask.known:
        raise InputError("the plan is in the tree, allowed: another one")
    return Child(node=ask.first, plan=plan, hypothesis=told.hypothesis)


def _checked_design(told: _Design | None, ask: Ask) -> Design | None:
    """Return the design, if there is one; raises `OutlayError` if it does not pass."""
    if told is None or ask.hypotheses is None:
        return None
    from outlay.designs.gate import gate  # loads numpy, which takes a while
    from outlay.designs.states import design_of

    found = design_of(ask.hypotheses, told.arms, told.seeds)
    design = Design(arms=tuple(ask.hypotheses.arms[arm] for arm in found.arms), seeds=found.seeds)
    verdict = gate(ask.hypotheses, found)
    if not verdict.passed:
        reason = f"its design is {verdict.kind}: {verdict.reason}"
        raise _GateError(reason, design, verdict.saved)
    return design


def _after(ask: Ask, design: Design | None) -> Ask:
    """Return the ask with the design paid, so that the plans of one answer share a budget."""
    if design is None or ask.hypotheses is None:
        return ask
    from outlay.designs.catalogue import paid  # loads numpy, which takes a while
    from outlay.designs.states import design_of

    found = design_of(ask.hypotheses, design.arms, design.seeds)
    return ask._replace(hypotheses=paid(ask.hypotheses, found))


def _sized(plan: str) -> str:
    if len(plan) > LONGEST_PLAN:
        raise InputError(f"the plan has {len(plan)} characters, allowed: {LONGEST_PLAN}")
    return plan


def _check_characters(*texts: str) -> None:
    for text in texts:
        for character in text:
            if character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cs"):
                raise InputError(f"found the character {character!a}, allowed: plain text")


def _unfenced(text: str) -> str:
    """Return what stands between the first and the last code fence, else all of it."""
    stripped = text.strip()
    first, last = stripped.find("```"), stripped.rfind("```")
    if stripped.startswith("{") or first == last:
        return stripped
    return re.sub(r"^[a-zA-Z]*\s", "", stripped[first + 3 : last])


def _complaint(what: str, error: Exception) -> Rejected:
    reason = " ".join(f"{what}: {error}".split())[:400]
    if isinstance(error, _GateError):
        return Rejected(reason=reason, design=error.design, saved=error.saved)
    return Rejected(reason=reason)
