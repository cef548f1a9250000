import json
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.bench.designs.panel import panel
from outlay.designs.interfaces import INTERFACES, describe, prompt, revision_prompt
from outlay.designs.parsing import LABELS, LONGEST_ANSWER, final_answer, parse_reply
from outlay.designs.readings import readings
from outlay.designs.wording import missing_words, read_action, remarks
from outlay.errors import InputError

STATE = panel(11)[0].state
COMPLETE = "TARGET: residual\nARMS: residual, dropout\nSEEDS: 8\nCRITERION: a drop of a point"


def test_a_complete_design():
    action, problem = parse_reply("L3", STATE, COMPLETE)
    assert problem == ""
    assert (action.target, action.arms, action.seeds) == (2, (2, 5), 8)
    assert readings(STATE, action) == (((2, 5), 8),)


def test_interface_one_reads_the_name_only():
    action, _ = parse_reply("L1_padded", STATE, f"ACTION: compare\nREASON: because\n{COMPLETE}")
    assert (action.name, action.target, action.arms, action.seeds) == ("compare", None, None, None)


def test_interface_two_reads_the_target_only():
    action, _ = parse_reply("L2", STATE, COMPLETE)
    assert (action.target, action.arms, action.seeds) == (2, None, None)


@pytest.mark.parametrize("interface", ["think_then_act", "plan_and_solve", "self_refine", "L3"])
def test_only_what_follows_the_last_final_line_counts(interface):
    reply = f"SEEDS: 3\nFINAL\nTARGET: x\nthen I thought FINAL again\n**FINAL**\n{COMPLETE}"
    assert parse_reply(interface, STATE, reply).action.seeds == 8


def test_a_word_final_inside_a_line_does_not_split():
    reply = f"{COMPLETE}: the FINAL loss falls"
    assert final_answer(reply) == reply


def test_markdown_around_labels_and_values():
    reply = "- **TARGET:** Residual\n- **ARMS:** `residual`, *dropout*\n"
    reply += "**SEEDS**: 8.\n**CRITERION:** x"
    assert parse_reply("L3", STATE, reply).action.arms == (2, 5)


def test_prediction_is_needed_by_interface_four_only():
    assert "PREDICTION is missing" in parse_reply("L4", STATE, COMPLETE).problem
    assert parse_reply("L4", STATE, f"{COMPLETE}\nPREDICTION: it drops").action.prediction


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("residual\nARMS", "skip\nARMS"), "arm: found 'skip'"),
        (("SEEDS: 8", "SEEDS: 13"), "seeds: found 13, allowed: 2 to 12"),
        (("SEEDS: 8", "SEEDS: eight"), "seeds: found 'eight'"),
        (("SEEDS: 8", "SEEDS: ٨"), "whole number"),
        (("SEEDS: 8", "SEEDS: 8\nSEEDS: 9"), "SEEDS is given twice"),
        (("residual, dropout", "residual, residual"), "each once"),
        (("residual, dropout", ","), "arm: found ''"),
        (("CRITERION: a drop of a point", ""), "CRITERION is missing"),
        ((COMPLETE, ""), "empty"),
    ],
)
def test_what_makes_a_reply_invalid(change, problem):
    parsed = parse_reply("L3", STATE, COMPLETE.replace(*change))
    assert parsed.action is None
    assert problem in parsed.problem


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ('{"target": "dropout", "arms": ["dropout"]}', "seeds is missing"),
        ('{"target": "dropout", "arms": "dropout", "seeds": 3}', "a list of arms"),
        ('{"target": "dropout", "arms": ["dropout"], "seeds": true}', "whole number"),
        ('{"target": "dropout", "arms": ["dropout"], "seeds": 1e3}', "whole number"),
        ('{"target": 4, "arms": ["dropout"], "seeds": 3}', "arm: found int"),
        ("[1]", "one JSON object"),
        ("[" * 50_000, "one JSON object"),
        ('{"seeds": ' + "9" * 5000 + "}", "one JSON object"),
        ('{"target":"dropout","arms":["dropout"],"seeds":' + "9" * 4000 + "}", "very large"),
    ],
)
def test_what_makes_a_json_reply_invalid(reply, problem):
    parsed = parse_reply("json", STATE, reply)
    assert parsed.action is None
    assert problem in parsed.problem


def test_a_json_reply_in_a_fence():
    reply = '```json\n{"target": "dropout", "arms": ["dropout", "attention"], "seeds": 3}\n```'
    assert parse_reply("json", STATE, reply).action.arms == (0, 5)


@pytest.mark.parametrize("interface", ["L1", "plan_and_solve", "json"])
@pytest.mark.parametrize(
    "reply",
    [
        "x" * 10_000_000,
        "FINAL" * 2_000_000,
        "FINAL\n" * 1_700_000,
        "\nSEEDS: 3" * 1_000_000,
        "{" * 10_000_000,
        "\n" * 10_000_000,
        "FINAL\r\n" + COMPLETE + " " * 10_000_000,
    ],
    ids=["x", "final", "final lines", "seeds", "braces", "newlines", "spaces"],
)
def test_ten_megabytes_end_within_five_seconds(interface, reply):
    start = time.monotonic()
    parse_reply(interface, STATE, reply)
    assert time.monotonic() - start < 5


def test_a_long_preamble_does_not_spoil_the_answer():
    reply = "thinking " * 1_000_000 + "\nFINAL\n" + COMPLETE
    assert parse_reply("plan_and_solve", STATE, reply).action.seeds == 8
    long = parse_reply("L3", STATE, COMPLETE + "x" * LONGEST_ANSWER)
    assert "more than" in long.problem


FRAGMENTS = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from([*(f"{label}: " for label in LABELS), "FINAL", "\n", "{", "}", "[", '"']),
        st.sampled_from([*STATE.arms, ",", "8", "12", "ablate", "```json", "null", "\x00", "�"]),
    ),
    max_size=25,
).map("".join)


@settings(max_examples=150, deadline=None)
@given(FRAGMENTS, st.sampled_from(INTERFACES))
def test_no_reply_crashes_a_parser(reply, interface):
    parsed = parse_reply(interface, STATE, reply)
    assert (parsed.action is None) == bool(parsed.problem)
    if parsed.action is not None:
        for design in readings(STATE, parsed.action):
            assert design.arms
            assert 2 <= design.seeds <= 12


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["target", "arms", "seeds", "action"]), inner)
        ),
        max_leaves=8,
    )
)
def test_no_json_crashes_the_parser(data):
    parsed = parse_reply("json", STATE, json.dumps(data))
    assert (parsed.action is None) == bool(parsed.problem)


@given(
    st.sets(st.integers(0, 5), min_size=1), st.integers(0, 5), st.integers(2, 12), st.booleans()
)
def test_what_is_written_is_read(arms, target, seeds, as_json):
    names = [STATE.arms[j] for j in sorted(arms)]
    if as_json:
        text = json.dumps({"target": STATE.arms[target], "arms": names, "seeds": seeds})
    else:
        text = (
            f"TARGET: {STATE.arms[target]}\nARMS: {', '.join(names)}\nSEEDS: {seeds}\nCRITERION: c"
        )
    action = parse_reply("json" if as_json else "L3", STATE, text).action
    assert (action.target, action.arms, action.seeds) == (target, tuple(sorted(arms)), seeds)


@pytest.mark.parametrize("interface", INTERFACES)
def test_prompts_say_what_may_be_chosen(interface):
    text = prompt(interface, STATE)
    assert text.startswith(describe(STATE))
    for needed in ("Budget: 8 units", "0.6 for each arm", "from 2 to 12", *STATE.arms):
        assert needed in text
    assert len({prompt(name, STATE) for name in INTERFACES}) == len(INTERFACES)


def test_the_revision_holds_the_draft():
    assert "<draft>\nmy draft\n</draft>" in revision_prompt(STATE, "my draft")


def test_free_text_names_arms_and_seeds():
    action = read_action(STATE, "Remove dropout and the layer-norm, with 5 seeds each.")
    assert (action.arms, action.seeds) == ((3, 5), 5)
    assert missing_words(STATE, action) == ()


def test_free_text_that_leaves_things_open():
    action = read_action(STATE, "Ablate dropout next.")
    assert (action.arms, action.seeds) == ((5,), None)
    assert [d.seeds for d in readings(STATE, action)] == [2, 8]
    assert "SEEDS" in missing_words(STATE, action)[0]
    nothing = read_action(STATE, "Do something useful")
    assert len(missing_words(STATE, nothing)) == 2
    seeds_only = read_action(STATE, "Use 6 seeds")
    assert {d.seeds for d in readings(STATE, seeds_only)} == {6}


@pytest.mark.parametrize(
    ("text", "arms", "seeds", "left"),
    [
        ("Do not ablate dropout; run residual with two seeds", (2,), 2, "dropout"),
        ("Don't ablate dropout, run residual, n=4", (2,), 4, "dropout"),
        ("Run residual, not dropout, with seeds: 4.", (2,), 4, "dropout"),
        ("Ablate residual with 5 seeds rather than dropout", (2,), 5, "dropout"),
        ("Never remove dropout. Remove residual and dropout, 3 seeds", (2, 5), 3, ""),
        ("Not only dropout but residual with twelve seeds", (2, 5), 12, ""),
        ("Do not run dropout", None, None, "dropout"),
    ],
)
def test_negated_arms_are_left_out_and_said_to_be(text, arms, seeds, left):
    action = read_action(STATE, text)
    assert (action.arms, action.seeds) == (arms, seeds)
    notes = " ".join(remarks(STATE, text, action))
    assert (f"read as negated, so not run: {left}" in notes) == bool(left)
    assert ("no arm or seeds recognised" in notes) == (arms is None)


def test_names_within_names_and_across_clauses():
    state = replace(STATE, arms=("ema", "ema decay", "tune and test", "d", "e", "f"))
    assert read_action(state, "ablate EMA decay with 4 seeds").arms == (1,)
    assert read_action(state, "run tune and test, and ema, 4 seeds").arms == (0, 2)
    assert read_action(state, "\U0001d400 \uff41 with 4 seeds").arms is None


def test_what_was_not_read_is_said():
    for text, expected in [
        ("Do something useful", ["no arm or seeds recognised; read as the component scan"]),
        ("Use 6 seeds", ["no arm recognised"]),
        ('{"arm": "dropout", "seeds": 4}', ["not read: arm (keys are action, ", "no arm rec"]),
        ('{"target": "dropout", "reason": "it may matter"}', []),
        ("REASON: dropout", ["no arm or seeds recognised"]),
        ("TARGET: dropout", []),
        ("[1] ablate dropout with 5 seeds", []),
    ]:
        notes = remarks(STATE, text, read_action(STATE, text))
        assert len(notes) == len(expected)
        assert all(part in note for part, note in zip(expected, notes, strict=True))


def test_a_json_list_is_not_read_as_a_sentence():
    with pytest.raises(InputError, match="found a JSON list"):
        read_action(STATE, '["dropout"]')


def test_a_long_text_is_read_in_linear_time():
    for part in ("and ", ", then ", "dont ", "n" * 50 + " t ", "n = "):
        read_action(STATE, (part * 100_000)[:99_000])


def test_action_text_in_labels_and_json():
    assert read_action(STATE, "TARGET: dropout").target == 5
    assert read_action(STATE, '{"arms": ["dropout"]}').arms == (5,)


@pytest.mark.parametrize(
    "text", ["", "ARMS: wings", "5 seeds or 6 seeds", "use 99 seeds", "{", "x" * 200_000]
)
def test_action_text_that_is_wrong(text):
    with pytest.raises(InputError):
        read_action(STATE, text)


@settings(max_examples=150, deadline=None)
@given(FRAGMENTS)
def test_no_text_crashes_the_reader_of_free_text(text):
    try:
        action = read_action(STATE, text)
    except InputError:
        return
    assert readings(STATE, action)
