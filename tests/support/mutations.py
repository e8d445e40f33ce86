"""Files as damage and malice leave them: cut, flipped, grown, nested, with other values inside."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from random import Random
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo

MOST_PLACES = 500  # of values in a JSON text
VALUES = (None, True, -1, 0, 1, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308, float("nan"),
          float("inf"), "", "x", "\ud800", "\0", "../../x", "9" * 5000, "a" * 100_000, [], {}, [[]],
          [-1], ["x"], {"": {}}, {"x": [1]}, [10**12] * 3)


def mutated(content: bytes, random: Random) -> bytes:
    """The content changed once or more; half of the time within its own format."""
    within = [change for is_kind, change in KINDS if is_kind(content)]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if within and random.random() < 0.5:
            with suppress(Exception):  # it is damaged already
                content = within[0](content, random)
                continue
        content = random.choice(CHANGES)(content, random)
    return content


# Of bytes


def cut(content: bytes, random: Random) -> bytes:
    return content[: place_in(content, random)]


def flipped(content: bytes, random: Random) -> bytes:
    if not content:
        return b"\0"
    at = place_in(content, random)
    return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]


def grown(content: bytes, random: Random) -> bytes:
    """Something put in, or a piece of it again."""
    at, start = place_in(content, random), place_in(content, random)
    more = random.choice((b"\0" * 1000, b"\xff" * 8, b"[" * 200_000, b'{"a":' * 50_000, b"(" * 99,
                          b"\n", b" \r\n" * 500, b"9" * 5000, content[start : start + 4096] * 3))
    return content[:at] + more + content[at:]


def replaced(content: bytes, random: Random) -> bytes:
    at = place_in(content, random)
    size = random.choice((1, 2, 4, 8, 100))
    return content[:at] + random.randbytes(size) + content[at + size :]


def nested(content: bytes, random: Random) -> bytes:
    deep = random.choice((1, 10, 100, 5000))
    return b"[" * deep + content + b"]" * deep


def place_in(content: bytes, random: Random) -> int:
    """A place in the content; often near its begin, where formats say what follows."""
    most = max(1, len(content) - 1)
    return random.randrange(min(most, random.choice((8, 64, 512, most))))


CHANGES = (cut, flipped, flipped, grown, replaced, nested)

# Of formats


def is_json(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict | list)
    except (ValueError, RecursionError):
        return False


def other_json(content: bytes, random: Random) -> bytes:
    """One value in it becomes another, disappears, or wraps itself."""
    whole = [json.loads(content)]
    parent, key = random.choice(places(whole))
    change = random.randrange(4)
    if change == 0 and isinstance(parent, dict):
        del parent[key]
    elif change == 1:
        value = parent[key]
        for _ in range(random.choice((1, 60, 300))):
            value = [value] if random.random() < 0.5 else {"model": value}
        parent[key] = value
    elif change == 2:
        parent[key] = random.choice([parent[other] for parent, other in places(whole)])
        json.dumps(whole)  # ValueError if it now holds itself
    else:
        parent[key] = random.choice(VALUES)
    return json.dumps(whole[0]).encode()


def places(value: Any) -> list[tuple[Any, Any]]:
    """(object or list, key) of values within a value: of a few of each."""
    found, waiting = [], [value]
    while waiting and len(found) < MOST_PLACES:
        value = waiting.pop()
        pairs = list(value.items() if isinstance(value, dict) else enumerate(value)
                     if isinstance(value, list) else ())
        pairs = pairs if len(pairs) < 24 else pairs[:20] + pairs[-3:]
        found += [(value, key) for key, _ in pairs]
        waiting += [inner for _, inner in pairs]
    return found


def is_safetensors(content: bytes) -> bool:
    length = int.from_bytes(content[:8], "little")
    return 2 < length < len(content) and is_json(content[8 : 8 + length])


def other_header(content: bytes, random: Random) -> bytes:
    length = int.from_bytes(content[:8], "little")
    header = other_json(content[8 : 8 + length], random)
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def is_zip(content: bytes) -> bool:
    return zipfile.is_zipfile(io.BytesIO(content))


def other_member(content: bytes, random: Random) -> bytes:
    """A member changed, often the description, or packed, or there twice."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(file, "w") as changed:
        names = archive.namelist()
        chosen = next((name for name in names if name.endswith("data.pkl")), names[0])
        if random.random() < 0.3:
            chosen = random.choice(names)
        for name in names:
            data = archive.read(name)
            if name == chosen:
                data = random.choice(CHANGES)(data, random)
            packed = zipfile.ZIP_DEFLATED if random.random() < 0.05 else zipfile.ZIP_STORED
            if random.random() > 0.02:
                changed.writestr(name, data, packed)
    return file.getvalue()


def is_png(content: bytes) -> bool:
    return content.startswith(b"\x89PNG")


def other_text(content: bytes, random: Random) -> bytes:
    """A PNG whose texts, JSON or not, are changed."""
    file, info = io.BytesIO(), PngInfo()
    with Image.open(io.BytesIO(content)) as image:
        for name, text in image.info.items():
            if isinstance(text, str):
                data = text.encode("utf-8", "surrogatepass")
                change = other_json if is_json(data) else random.choice(CHANGES)
                text = change(data, random).decode("utf-8", "replace").replace("\0", "")
                info.add_text(name, text)
        image.save(file, "PNG", pnginfo=info)
    return file.getvalue()


KINDS = ((is_json, other_json), (is_safetensors, other_header), (is_zip, other_member),
         (is_png, other_text))
