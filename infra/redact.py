"""Text that leaves the process without the secrets in it: logs, error messages, reasons in events.

Secrets are kept out of such text to begin with (`SecretStr`, and no credentials in URLs); this is for the libraries that quote a
request, an address or an environment in an error.
"""

import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

HIDDEN = "***"
_SECRET = re.compile(r".*(_SECRET|_TOKEN|_KEY|APIKEY|_SAS|PASSWORD|PASSWD|_CONNECTION_STRING)", re.IGNORECASE)
_PATHS = frozenset({"LONGTAKE_KAFKA_KEY"})
"""They name a file with a secret."""
_PASSWORD_FILE = re.compile(r"LONGTAKE_.*_PASSWORD_FILE")
_WEBHOOKS = re.compile(r'"(?:url|secret)"\s*:\s*"([^"]*)"')
_HEADERS = frozenset({"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"})
"""`Authorization=Bearer%20...,other=...`: what comes last in each is the secret."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SHORTEST = 6
"""Shorter values are words: hiding them would garble everything."""
_USERINFO = re.compile(r"(?<=://)([^/\s:@]*):[^/\s]+@")
_SIGNED = re.compile(
    r"([?&](?:(?:X-(?:Amz|Goog)-)?(?:Signature|Security-Token)|sig|key|api_key|password|(?:access_)?token)=)[^&\s'\"]+",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """`text` with every secret of this process's environment hidden, and passwords and signatures in URLs."""
    written = {form for secret in _known() for form in _forms(secret)}
    for secret in sorted(written, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _SIGNED.sub(rf"\1{HIDDEN}", _USERINFO.sub(rf"\1:{HIDDEN}@", text))


def visible(text: str) -> str:
    """`text` with control characters written out, but for tabs and line ends: what a producer wrote must not steer a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class Redacting(logging.Formatter):
    """A formatter whose lines and tracebacks have no secrets in them."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def _forms(secret: str) -> Iterator[str]:
    """As it is, and as URLs, `repr` and JSON write it."""
    yield secret
    yield quote(secret, safe="")
    yield quote(secret)
    yield quote_plus(secret)
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]


def _known() -> Iterator[str]:
    for name, value in os.environ.items():
        if _PASSWORD_FILE.fullmatch(name):
            try:
                value = Path(value).read_text(encoding="utf-8").strip()  # noqa: PLW2901
            except (OSError, UnicodeDecodeError):
                continue
        elif name == "LONGTAKE_WEBHOOKS":
            yield from (secret for secret in _WEBHOOKS.findall(value) if len(secret) >= _SHORTEST)
            continue
        elif name in _HEADERS:
            values = (unquote(pair.partition("=")[2]).split() for pair in value.split(","))
            yield from (words[-1] for words in values if words and len(words[-1]) >= _SHORTEST)
            continue
        elif not _SECRET.fullmatch(name) or name in _PATHS:
            continue
        if len(value) >= _SHORTEST:
            yield value
