"""The events' JSON: what the preview reads, key by key; it may grow, never change."""

import json

import pytest
from support.mock_backbone import MockBackbone, events, random_heads

from ssd_core import FinalRows, Finished, Grid, Pass, Started, generate, methods

SCHEMA = {
    "started": {"kind": str, "plan": dict},
    "pass": {"kind": str, "index": int, "stage": str, "round": int, "cells": list, "tokens": list,
             "accepted": (list, type(None))},
    "rows": {"kind": str, "first": int, "last": int, "tokens": list},
    "finished": {"kind": str, "tokens": list, "stats": dict},
}
KINDS = {Started: "started", Pass: "pass", FinalRows: "rows", Finished: "finished"}
STATS = {"passes", "ar_passes", "step_acceleration", "seconds", "tokens_per_second", "acceptance",
         "converged_rows"}


@pytest.fixture(scope="module", params=[methods.AR(), methods.MTP(), methods.SSD(k_v=2),
                                        methods.Strict(), methods.Rows(), methods.Exact()],
                ids=lambda m: m.name)
def told(request):
    backbone = MockBackbone(Grid(3, 4, True))
    return events(backbone, request.param, ["sun", "a boat"], heads=random_heads(backbone))


def test_schema(told):
    for event in told:
        message = json.loads(json.dumps(event.to_json(), allow_nan=False))
        assert message["kind"] == KINDS[type(event)]
        for key, kind in SCHEMA[message["kind"]].items():
            assert isinstance(message[key], kind), (message["kind"], key)


def test_shapes_in_json(told):
    for message in (event.to_json() for event in told if isinstance(event, Pass)):
        if message["stage"] == "prefill":
            continue
        for cells, tokens in zip(message["cells"], message["tokens"], strict=True):
            assert len(cells) == len(tokens) and all(len(cell) == 2 for cell in cells)
        accepted = message["accepted"]
        assert accepted is None or {type(a) for row in accepted for a in row} == {bool}
    for message in (event.to_json() for event in told if isinstance(event, FinalRows)):
        assert all(len(rows) == message["last"] - message["first"] for rows in message["tokens"])


def test_finished_json_holds_the_picture_and_the_statistics(told):
    message = json.loads(json.dumps(told[-1].to_json()))
    assert message["tokens"] == told[-1].tokens.tolist()
    assert set(message["stats"]) >= STATS
    assert len(message["stats"]["converged_rows"]) == len(message["tokens"])
    assert set(message["stats"]["seconds"]) == {"total", "prefill", "draft", "verify", "commit"}


@pytest.mark.parametrize("method", [methods.AR(), methods.SSD(k_v=2, rounds=3), methods.Exact(),
                                    methods.Strict()], ids=lambda m: m.name)
def test_events_do_not_change_after_they_were_told(method):
    """A consumer may keep them: the run goes on in memory of its own."""
    backbone = MockBackbone(Grid(3, 4, True))
    run = generate(backbone, ["sun"], method, heads=random_heads(backbone))
    kept = [(event, event.to_json()) for event in run]
    assert all(event.to_json() == message for event, message in kept)
