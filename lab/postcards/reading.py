"""Check the claims of a caption against a reading of a postcard's pixels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ssd_core.backbones.postcard.scenery import Scenery

from .claims import COUNTS, Claim


@dataclass(frozen=True)
class Reading(Scenery):
    """The scenery, and `things`: the kind and colour found at each place that has one."""

    things: dict[str, tuple[str, str]]


def _holds_of_thing(reading: Reading, claim: Claim, about: dict[str, str]) -> bool:
    """Whether a claim on a thing holds. about: all that the caption says of it, by attribute.

    If the caption states a place, the thing there is checked, otherwise all things; a colour is
    then checked on things of the stated kind, if there are any.
    """
    shown = reading.things
    if "place" in about:
        candidates = [shown[about["place"]]] if about["place"] in shown else []
    else:
        candidates = list(shown.values())
    same = [thing for thing in candidates if thing[0] == about.get("kind", thing[0])]
    if claim.attribute == "colour":
        pool = candidates if "place" in about else same or candidates
        return any(thing[1] == claim.value for thing in pool)
    return bool(same)


def _holds_of_scene(reading: Reading, claim: Claim) -> bool:
    if claim.attribute == "count":
        return COUNTS[: len(reading.things)][-1:] == (claim.value,)
    return getattr(reading, claim.attribute) == claim.value


def which_hold(reading: Reading, claims: Iterable[Claim]) -> tuple[bool, ...]:
    """Whether each claim holds in a picture's reading, in order."""
    listed = tuple(claims)
    about: dict[int, dict[str, str]] = {}
    for claim in listed:
        if claim.thing is not None:
            about.setdefault(claim.thing, {})[claim.attribute] = claim.value
    return tuple(
        _holds_of_scene(reading, claim)
        if claim.thing is None
        else _holds_of_thing(reading, claim, about[claim.thing])
        for claim in listed
    )
