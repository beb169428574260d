"""Signed links to objects of a local store, good for a while: what S3's presigned URLs are, for a folder."""

import hashlib
import hmac
import time
from urllib.parse import quote


class Links:
    """Signs keys with a secret of this door. `base` is the path that serves them."""

    def __init__(self, secret: bytes, base: str) -> None:
        self._secret = secret
        self._base = base

    def make(self, key: str, expires_s: int) -> str:
        """The link of a key that is good until then."""
        until = int(time.time()) + expires_s
        return f"{self._base}/{quote(key)}?until={until}&signature={self._sign(key, until)}"

    def good(self, key: str, until: int, signature: str) -> bool:
        """Whether the link was made here and is not over."""
        return until >= time.time() and hmac.compare_digest(self._sign(key, until).encode(), signature.encode())

    def _sign(self, key: str, until: int) -> str:
        return hmac.new(self._secret, f"{key}\n{until}".encode(), hashlib.sha256).hexdigest()
