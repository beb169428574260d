"""The words the parser knows, from `vocabulary.yaml`: canonical terms by kind, and the phrases that mean them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

import yaml

KINDS = ("subject", "action", "setting", "light", "camera", "pace", "colour")
WEATHER = ("rain", "snow", "fog", "storm")
"""Terms of `setting` that are not places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """Words, normalised, that mean `term`."""

    words: tuple[str, ...]
    kind: str
    term: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Everything the parser looks up, each in constant time."""

    phrases: Mapping[str, tuple[Phrase, ...]]
    """By first word, longest first."""
    forms: Mapping[str, str]
    """Inflected word -> the form used in `phrases`."""
    terms: Mapping[str, tuple[str, ...]]
    """Canonical terms by kind."""
    vague: frozenset[str]
    fill: frozenset[str]
    negation: frozenset[str]
    not_actions: frozenset[str]
    not_subjects: frozenset[str]


@cache
def vocabulary() -> Vocabulary:
    """The vocabulary of this version, read once."""
    text = files("streams.prompts").joinpath("vocabulary.yaml").read_text(encoding="utf-8")
    raw = cast(dict[str, Any], yaml.safe_load(text))
    terms = {kind: cast(dict[str, list[str]], raw[kind]) for kind in KINDS}
    fill = frozenset(cast(list[str], raw["fill"]))
    forms = _forms(terms)
    phrases: dict[str, list[Phrase]] = {}
    for kind, by_term in terms.items():
        for term, variants in by_term.items():
            for variant in variants:
                words = tuple(forms.get(word, word) for word in variant.split() if word not in fill)
                phrases.setdefault(words[0], []).append(Phrase(words=words, kind=kind, term=term))
    return Vocabulary(
        phrases={first: tuple(sorted(found, key=lambda p: -len(p.words))) for first, found in phrases.items()},
        forms=forms,
        terms={kind: tuple(by_term) for kind, by_term in terms.items()},
        vague=frozenset(cast(list[str], raw["vague"])),
        fill=fill,
        negation=frozenset(cast(list[str], raw["negation"])),
        not_actions=frozenset(cast(list[str], raw["not_actions"])),
        not_subjects=frozenset(cast(list[str], raw["not_subjects"])),
    )


def _forms(terms: Mapping[str, Mapping[str, Iterable[str]]]) -> dict[str, str]:
    """Inflections by rule. A word that is itself listed stays what it is: `waves` is not the verb `wave`."""
    explicit = {v for by_term in terms.values() for variants in by_term.values() for v in variants if " " not in v}
    forms: dict[str, str] = {}
    for kind in ("action", "camera", "subject", "setting"):
        verb = kind in ("action", "camera")
        for variants in terms[kind].values():
            for words in (variant.split() for variant in variants):
                word = words[0] if verb and words[0] != "camera" else words[-1]
                for form in _verb_forms(word) if verb else _plurals(word):
                    if form not in explicit:
                        forms.setdefault(form, word)
    return forms


def _plurals(noun: str) -> Iterator[str]:
    yield noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")
    if noun.endswith("y"):
        yield noun[:-1] + "ies"


def _verb_forms(verb: str) -> Iterator[str]:
    yield from _plurals(verb)
    if verb.endswith("e"):
        yield from (verb[:-1] + "ing", verb + "d")
    elif _doubles(verb):
        yield from (verb + verb[-1] + "ing", verb + verb[-1] + "ed")
    else:
        yield from (verb + "ing", verb + "ed")
    if verb.endswith("y"):
        yield verb[:-1] + "ied"


def _doubles(verb: str) -> bool:
    """`run` -> `running`: one vowel, then one consonant other than w, x, y."""
    vowels = [letter in "aeiou" for letter in verb]
    return len(verb) > 2 and vowels[-3:] == [False, True, False] and sum(vowels) == 1 and verb[-1] not in "wxy"
