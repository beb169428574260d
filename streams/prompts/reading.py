"""Text to the vocabulary's terms, word by word, in linear time."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from streams.prompts.vocabulary import Phrase, Vocabulary, vocabulary

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?|[.,;:!?\n()]")
_TICK_TOKENS = 64
_GUESS_WORDS = 3
_LONGEST_GUESS = 30
_COLOUR_REACH = 2
"""Words between a colour and its subject: `red sports car`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was found in a text, each list in order and without repeats."""

    terms: Mapping[str, tuple[str, ...]]
    """Kind -> canonical terms. A subject carries the colour before it: `red car`."""
    negated: tuple[str, ...]
    """Terms the text says are not there."""
    vague: tuple[str, ...]
    guessed_subject: str
    """A noun phrase the vocabulary does not know, when there is no known subject."""
    guessed_action: str
    """Likewise a verb."""

    def of(self, kind: str) -> tuple[str, ...]:
        """The terms of a kind."""
        return self.terms.get(kind, ())


def read(text: str, tick: Callable[[], None]) -> Reading:
    """The reading of `text`. `tick` is called every few words; what it raises passes through."""
    known = vocabulary()
    words = _Words(known)
    for count, match in enumerate(_TOKEN.finditer(text.lower())):
        if count % _TICK_TOKENS == 0:
            tick()
        words.push(match[0].replace("\u2019", "'"))
    words.push(".")
    return words.reading()


class _Words:
    """The state of a reading: a clause is collected up to its stop, then matched."""

    def __init__(self, known: Vocabulary) -> None:
        self._known = known
        self._clause: list[str] = []
        self._terms: dict[str, dict[str, None]] = {}
        self._negated: dict[str, None] = {}
        self._vague: dict[str, None] = {}
        self._subject = ""
        self._action = ""

    def push(self, token: str) -> None:
        if token[0].isalnum() and len(self._clause) < _TICK_TOKENS:
            self._clause.append(token)
            return
        if self._clause:
            self._match_clause()
        self._clause = [token] if token[0].isalnum() else []

    def reading(self) -> Reading:
        subject = "" if "subject" in self._terms else self._subject
        return Reading(
            terms={kind: tuple(found) for kind, found in self._terms.items()},
            negated=tuple(self._negated),
            vague=tuple(self._vague),
            guessed_subject=subject,
            guessed_action="" if "action" in self._terms else self._action,
        )

    def _match_clause(self) -> None:
        known = self._known
        self._vague.update(dict.fromkeys(word for word in self._clause if word in known.vague))
        negated = False
        colour, colour_age = "", 0
        for word, phrases in self._phrases():
            negated = negated or word in known.negation
            colour_age += 1
            if not phrases and not negated:
                self._guess_action(word)
            for phrase in phrases:
                if negated:
                    self._negated[phrase.term] = None
                elif phrase.kind == "colour":
                    colour, colour_age = phrase.term, 0
                else:
                    tinted = phrase.kind == "subject" and colour and colour_age <= _COLOUR_REACH
                    term = f"{colour} {phrase.term}" if tinted else phrase.term
                    self._terms.setdefault(phrase.kind, {})[term] = None
        if not self._subject:
            self._guess_subject()

    def _phrases(self) -> Iterator[tuple[str, tuple[Phrase, ...]]]:
        """The clause without fill, phrase by phrase. Pace stands apart: `pans slowly left` is `pan left`, slow."""
        known = self._known
        words = [known.forms.get(word, word) for word in self._clause if word not in known.fill]
        pace = {word for word in words if (found := _alone(known, word)) and found[0].kind == "pace"}
        for word in (word for word in dict.fromkeys(words) if word in pace):
            yield word, _alone(known, word)
        words = [word for word in words if word not in pace]
        at = 0
        while at < len(words):
            phrases = _longest(known.phrases.get(words[at], ()), words, at)
            yield words[at], phrases
            at += len(phrases[0].words) if phrases else 1

    def _guess_action(self, word: str) -> None:
        if word.endswith("ing") and 5 < len(word) <= _LONGEST_GUESS and word not in self._known.not_actions:
            self._action = self._action or word

    def _guess_subject(self) -> None:
        """`a teapot whistles on the stove`: the words after the first article, up to a verb, a preposition or the end."""
        known = self._known
        start = next((at for at, word in enumerate(self._clause) if word in _ARTICLES), len(self._clause))
        run: list[str] = []
        for word in self._clause[start + 1 :]:
            kinds = {phrase.kind for phrase in _alone(known, known.forms.get(word, word))}
            if (
                word in _ENDS
                or word in known.fill
                or word in known.not_subjects
                or word.endswith("ing")
                or "action" in kinds
            ):
                break
            if kinds:
                return
            if word not in known.vague:
                run.append(word[:_LONGEST_GUESS])
        if len(run) > 1 and run[-1].endswith("s") and not run[-1].endswith("ss"):
            self._action = self._action or run.pop()
        self._subject = " ".join(run[-_GUESS_WORDS:])


_ARTICLES = frozenset(("a", "an", "the"))
_ENDS = frozenset(
    (
        *("in", "into", "onto", "over", "under", "through", "across", "along", "by", "from", "for", "near", "behind"),
        *("before", "after", "inside", "outside", "above", "below", "between", "beside", "around", "against", "toward"),
        *("towards", "up", "down", "off", "out", "past", "that", "which", "who", "while", "as", "when", "where"),
        *("no", "not", "without"),
    )
)


def _alone(known: Vocabulary, word: str) -> tuple[Phrase, ...]:
    """What the word means by itself."""
    return tuple(phrase for phrase in known.phrases.get(word, ()) if len(phrase.words) == 1)


def _longest(phrases: tuple[Phrase, ...], words: list[str], at: int) -> tuple[Phrase, ...]:
    """The longest phrases that start here: several if the same words stand under several kinds."""
    matching = [phrase for phrase in phrases if tuple(words[at : at + len(phrase.words)]) == phrase.words]
    return tuple(phrase for phrase in matching if len(phrase.words) == len(matching[0].words))
