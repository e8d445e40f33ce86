"""One graph of `workflows/`: its nodes, widgets and links, and the steps that graphs share."""

from __future__ import annotations

from dataclasses import dataclass, field

PROMPT = "a red house by a river"
# The page's own widget behind a seed: what it does with the seed after a run.
SEED_STAYS = {"control_after_generate": "fixed"}
SEED_CHANGES = {"control_after_generate": "randomize"}
LONG_NOTE = (340, 500)  # Nodes 2.0 shows more of a long text, and would cover the node below


@dataclass
class Graph:
    """nodes: name -> (type, column, widgets, title); links: (name, output) -> (name, input).

    columns: the titles of the boxes around the nodes of each column, from left to right; a box
    spans the columns that have the same title. texts: the Chinese of notes, titles and boxes by
    the English. form: widgets that app mode shows, as (name, widget), besides those of the nodes in
    `shown`. opens_as_app: whether the graph opens in app mode. models: by node, the files of its
    weights. sizes: by node, its smallest (width, height) in px, if not the usual one of its type.
    muted: nodes that do not run until somebody wakes them. tried: by node, values that only the run
    for the thumbnail has.
    """

    thumbnail: list[str]  # nodes whose pictures make it, in order
    columns: list[str] = field(default_factory=list)
    nodes: dict[str, tuple] = field(default_factory=dict)
    links: list[tuple[str, int, str, str]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    form: list[tuple[str, str]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    opens_as_app: bool = False
    models: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    muted: list[str] = field(default_factory=list)
    tried: dict[str, dict] = field(default_factory=dict)

    def add(self, name: str, kind: str, column: int, title: str | None = None, **widgets) -> str:
        self.nodes[name] = (kind, column, widgets, title)
        return name

    def change(self, name: str, **widgets) -> None:
        self.nodes[name][2].update(widgets)

    def link(self, source: str, output: int, target: str, name: str) -> None:
        self.links.append((source, output, target, name))

    def note(self, text: str, chinese: str, long: bool = False) -> None:
        self.add("note", "MarkdownNote", 0, "Read me", text=text)
        self.texts[text] = chinese
        if long:
            self.sizes["note"] = LONG_NOTE

    def shared_words(self, column: int) -> None:
        """A prompt and a seed for several samplers; `take_words` connects each."""
        self.add("prompt", "PrimitiveStringMultiline", column, "Prompt for all", value=PROMPT)
        self.add("seed", "PrimitiveInt", column, "Seed for all", value=2)

    def take_words(self, sampler: str) -> None:
        for shared in ("prompt", "seed"):
            self.link(shared, 0, sampler, shared)

    def model(self, name: str = "postcard", column: int = 0) -> None:
        self.add("model", "SSD_LoadModel", column, model=name)

    def sampler(self, name: str, column: int, title: str | None = None,
                kind: str = "SSD_Sampler", **widgets) -> str:
        self.add(name, kind, column, title, **{**SEED_STAYS, **widgets})
        self.link("model", 0, name, "model")
        return name

    def show(self, name: str, source: str, output: int, column: int, title: str) -> None:
        self.add(name, "PreviewImage", column, title)
        self.link(source, output, name, "images")

    def save(self, source: str, column: int, prefix: str) -> None:
        """Save the pictures of a sampler with their recipes."""
        self.add("save", "SSD_SaveImage", column, filename_prefix=prefix)
        for output, name in enumerate(("images", "run")):
            self.link(source, output, "save", name)

    def app(self, shown: list[str], **widgets: str) -> None:
        """The content of app mode: widget names by node, and the nodes of the results."""
        self.shown = shown
        self.form = [(node, name) for node, names in widgets.items() for name in names.split()]
