"""What a model is asked for: ten interfaces from an action's name to a complete design."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from outlay.designs.costs import LinearCost

if TYPE_CHECKING:
    from outlay.designs.costs import Limit
    from outlay.designs.states import ResearchState

Interface = Literal[
    "L1",
    "L2",
    "L3",
    "L4",
    "L1_padded",
    "L3_short",
    "json",
    "think_then_act",
    "plan_and_solve",
    "self_refine",
]
INTERFACES: tuple[Interface, ...] = (
    "L1",
    "L2",
    "L3",
    "L4",
    "L1_padded",
    "L3_short",
    "json",
    "think_then_act",
    "plan_and_solve",
    "self_refine",
)
ACTION_NAMES = ("ablate", "compare", "replicate")

_NAME = f"""ACTION: one of {", ".join(ACTION_NAMES)}
REASON: """
_DESIGN = """TARGET: the arm that matters most
ARMS: the arms to run, separated by commas
SEEDS: how many seeds each condition gets, as a whole number
CRITERION: what result would settle the question"""

_FORMS: dict[Interface, str] = {
    "L1": _NAME + "one sentence",
    "L1_padded": _NAME
    + "a full paragraph that discusses which arms to run and with how many seeds",
    "L2": "TARGET: the arm to focus on\nREASON: why this arm, in one or two sentences",
    "L3": _DESIGN,
    "L3_short": _DESIGN.replace("what result would settle the question", "at most eight words"),
    "L4": _DESIGN + "\nPREDICTION: what you expect to observe",
    "json": '{"target": "an arm", "arms": ["an arm", "another arm"], "seeds": 5}',
    "think_then_act": _DESIGN,
    "plan_and_solve": _DESIGN,
    "self_refine": _DESIGN,
}

_LEADS: dict[Interface, str] = {
    "L1": "Choose the next action.",
    "L1_padded": "Choose the next action, and explain the choice at length.",
    "L2": "Choose the arm that the next experiment should focus on.",
    "L3": "Design the next experiment completely.",
    "L3_short": "Design the next experiment completely. Keep it to four short lines.",
    "L4": "Design the next experiment completely, and predict its result.",
    "json": "Design the next experiment completely. Answer with one JSON object and nothing else.",
    "think_then_act": (
        "Think about what you need to learn and what you can pay for, then decide once. You may "
        "write your thoughts first."
    ),
    "plan_and_solve": (
        "First write a numbered plan: which explanations compete, which arms separate them, what "
        "the candidates cost. Then follow the plan and decide."
    ),
    "self_refine": "Write a first version of the next experiment. You will revise it afterwards.",
}
_THINKING = ("think_then_act", "plan_and_solve", "self_refine")


def describe(state: ResearchState) -> str:
    """Return the state as text: question, observations, beliefs, arms, costs and budget."""
    lines = [f"Question: {state.question}"] if state.question else []
    lines += [f"Observed: {observation}" for observation in state.observations]
    lines.append("Competing explanations, with the belief in each:")
    pairs = zip(state.hypotheses, state.prior, strict=True)
    lines += [f"- {name}: {probability:.3f}" for name, probability in pairs]
    lines.append(f"Arms that can be run: {', '.join(state.arms)}")
    low, high = state.seeds
    lines.append(f"Seeds for each condition: a whole number from {low} to {high}.")
    lines += [_rule(limit) for limit in state.limits]
    lines.append("A design that costs more than its budget is worth nothing.")
    return "\n".join(lines)


def _rule(limit: Limit) -> str:
    if not isinstance(limit.cost, LinearCost):
        return f"Budget: {limit.budget:g} {limit.unit}; designs are priced one by one."
    cost = limit.cost
    arms = cost.per_arm
    each = ", ".join(f"{x:g}" for x in arms) if isinstance(arms, tuple) else f"{arms:g}"
    terms = [f"{cost.setup:g}", f"{each} for each arm", f"{cost.per_seed:g} for each seed"]
    if cost.per_run:
        terms.append(f"{cost.per_run:g} for each condition and seed, the baseline included")
    return f"Budget: {limit.budget:g} {limit.unit}. Cost of a design: {' + '.join(terms)}."


def prompt(interface: Interface, state: ResearchState) -> str:
    """Return the request for one interface; a `self_refine` request asks for the draft."""
    if interface == "json":
        form = f"Use these keys:\n{_FORMS[interface]}"
    elif interface in _THINKING:
        form = (
            "End with a line that holds only the word FINAL and, below it, these lines and "
            f"nothing else:\n{_FORMS[interface]}"
        )
    else:
        form = f"Answer with these lines and nothing else:\n{_FORMS[interface]}"
    return f"{describe(state)}\n\n{_LEADS[interface]}\n{form}"


def revision_prompt(state: ResearchState, draft: str) -> str:
    """Return the second request of `self_refine`, which holds the draft."""
    return (
        f"{describe(state)}\n\nA first version of the next experiment:\n<draft>\n{draft}\n</draft>"
        "\n\nSay what is weak in it: does it fit the budget, does it separate the likeliest "
        "explanations, would another split between arms and seeds tell more for its cost? Then "
        "write the better version.\nEnd with a line that holds only the word FINAL and, below it, "
        f"these lines and nothing else:\n{_FORMS['self_refine']}"
    )
