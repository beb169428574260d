"""What a shot should look like: an Instruction in terms the renderer draws. Terms are those of `streams/prompts/vocabulary.yaml`.

Everything has a default, so that any text gives a picture: a place is guessed from the subject, an unknown subject becomes a
labelled token, and without any place the shot plays on a studio stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.records import Instruction

PLACES = (
    *("city", "village", "forest", "mountains", "sea", "beach", "lake", "desert", "field", "ice", "sky", "space"),
    *("underwater", "interior", "studio"),
)
WEATHER = ("rain", "snow", "fog", "storm")
TIMES = ("day", "golden hour", "blue hour", "night")
AMBIENCES = ("overcast", "neon", "candlelit")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "black", "brown", "grey")
FRAMINGS = {"wide shot": 0.62, "medium shot": 1.5, "close-up": 2.3, "aerial": 0.45}
"""Size of the subject against that of a shot without such a term."""
PACES = {"slow": 0.5, "": 1.0, "fast": 2.0}
_PLACE_OF_SUBJECT = {
    **dict.fromkeys(("boat", "ship", "lighthouse"), "sea"),
    **dict.fromkeys(("whale", "fish", "jellyfish"), "underwater"),
    **dict.fromkeys(
        ("car", "truck", "motorcycle", "bicycle", "cow", "horse", "windmill", "kite", "tree", "house"), "field"
    ),
    **dict.fromkeys(("train", "castle", "bear"), "mountains"),
    **dict.fromkeys(("plane", "bird", "dragon", "balloon", "helicopter"), "sky"),
    **dict.fromkeys(("rocket", "spaceship", "astronaut"), "space"),
    **dict.fromkeys(("deer", "fox", "butterfly"), "forest"),
    "snowman": "ice",
    "candle": "interior",
}
_ROAD_SUBJECTS = ("car", "truck", "motorcycle", "bicycle")
ROOTED = ("lighthouse", "castle", "house", "windmill", "tree", "flower", "candle", "snowman")
"""Subjects that stay where they are."""
MAX_TOKENS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A subject: `kind` is a term of the vocabulary, or empty for a labelled marker."""

    kind: str
    colour: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backdrop:
    """What the world of a shot is built from: equal backdrops with equal seeds are the same world."""

    place: str
    road: bool
    rails: bool
    weather: frozenset[str]
    time: str
    ambience: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A shot, ready to draw."""

    backdrop: Backdrop
    tokens: tuple[Token, ...]
    """What moves comes first: it leads the camera."""
    action: str
    moves: frozenset[str]
    framing: str
    pace: float
    """Of subject and camera; 1 is neither slow nor fast."""


def look_of(instruction: Instruction, negative: Sequence[str]) -> Look:
    """The look an instruction asks for, without what is in `negative`."""
    unwanted = {term.strip().lower() for term in negative}

    def terms(text: str) -> list[str]:
        return [term for term in (part.strip() for part in text.split(",")) if term and term not in unwanted]

    named = [_token(term) for term in terms(instruction.subject)][:MAX_TOKENS]
    tokens = tuple(sorted(named, key=lambda token: token.kind in ROOTED))
    setting, light, camera = terms(instruction.setting), terms(instruction.light), terms(instruction.camera)
    place = next((term for term in setting if term in PLACES), "") or _place_of(tokens, setting)
    time = next((term for term in light if term in TIMES), "night" if "neon" in light else "day")
    framing = next((term for term in camera if term in FRAMINGS), "")
    return Look(
        backdrop=Backdrop(
            place=place,
            road="road" in setting or (place in ("field", "desert") and any(t.kind in _ROAD_SUBJECTS for t in tokens)),
            rails=any(token.kind == "train" for token in tokens),
            weather=frozenset(term for term in setting if term in WEATHER),
            time=time,
            ambience=frozenset(term for term in light if term in AMBIENCES),
        ),
        tokens=tokens,
        action=next(iter(terms(instruction.action)), ""),
        moves=frozenset(term for term in camera if term not in FRAMINGS),
        framing=framing,
        pace=PACES.get(instruction.pace, 1.0),
    )


def _token(term: str) -> Token:
    colour, _, rest = term.partition(" ")
    if colour in COLOURS and rest:
        return Token(kind=rest, colour=colour, label=term)
    return Token(kind=term, colour="", label=term)


def _place_of(tokens: Sequence[Token], setting: Sequence[str]) -> str:
    if "road" in setting:
        return "field"
    return next((_PLACE_OF_SUBJECT[token.kind] for token in tokens if token.kind in _PLACE_OF_SUBJECT), "studio")
