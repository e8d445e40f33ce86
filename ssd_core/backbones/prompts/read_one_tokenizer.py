"""A script: read one tokenizer.json, and a few texts by it, as `tried` asks, and tell the outcome.

It runs in a process of its own, with limits of time and memory where the system has them, and
imports nothing of this program.
"""

import json
import sys
from contextlib import suppress

MEMORY, SECONDS = 4 << 30, 60  # bytes of addresses, seconds of the processor
TEXTS = ("", "a red house on the left, a lake, at sunset " * 20, "\t\n  \r\n" * 50,
         "".join(map(chr, range(32, 1024))), "湖边的红色房子，日落时分。" * 20,
         "été 🏠\u200d🌅 \u2581\u0120 ２０x３０ <s></s>")


def limit() -> None:
    with suppress(ImportError):  # Windows has none
        import resource

        for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS),
                           (resource.RLIMIT_CORE, 0)):
            with suppress(ValueError, OSError):  # a lower limit holds already
                resource.setrlimit(kind, (most, most))


def outcome(path: str) -> str:
    """"sound", or one line on what is wrong with the file; first it tells that it has begun."""
    from tokenizers import Tokenizer

    sys.stdout.write("begun\n")
    sys.stdout.flush()
    try:
        with open(path, "rb") as file:
            raw = file.read()
        tokenizer = Tokenizer.from_str(raw.decode(json.detect_encoding(raw)))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.get_vocab(with_added_tokens=True)
        for text in TEXTS:
            with suppress(Exception):  # a text may be beyond its vocabulary
                tokenizer.encode(text, add_special_tokens=False)
    except BaseException as error:  # noqa: BLE001 - Rust's panics are no Exception
        return " ".join(str(error).split())[:200] or type(error).__name__
    return "sound"


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules have names of others
    limit()
    sys.stdout.buffer.write(outcome(sys.argv[1]).encode())
