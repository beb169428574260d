"""An alert as bytes and headers for one address: generic JSON, Slack or WeCom, signed as Standard Webhooks says.

Signature: `webhook-signature: v1,BASE64(HMAC-SHA256(key, "ID.TIME.BODY"))` with `webhook-id` and `webhook-timestamp` (seconds)
(github.com/standard-webhooks/standard-webhooks). A receiver refuses times that are minutes off and ids it has seen.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from infra.alerts.alert import Alert
from infra.alerts.hooks import Format, Hook

_SLACK_CHARACTERS = 3000
_WECOM_BYTES = 2048
"""Of the text of a WeCom group robot."""


def body_of(alert: Alert, form: Format) -> bytes:
    """What is sent, the same every time. Text of producers cannot mention anybody or become markup in a chat."""
    match form:
        case Format.JSON:
            moment = datetime.fromtimestamp(alert.at_us / 1e6, UTC)
            content: dict[str, Any] = {"id": alert.id, "kind": alert.kind, "at": moment, "job_id": alert.job_id}
            return msgspec.json.encode(content | {"summary": alert.summary, "event": alert.event})
        case Format.SLACK:
            text = alert.summary[:_SLACK_CHARACTERS].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            return msgspec.json.encode({"text": text, "mrkdwn": False})
        case Format.WECOM:
            text = alert.summary.encode()[:_WECOM_BYTES].decode(errors="ignore")
            return msgspec.json.encode({"msgtype": "text", "text": {"content": text}})


def headers_of(alert: Alert, hook: Hook, body: bytes, time_s: int) -> Mapping[str, str]:
    """With a signature if the hook has a key."""
    headers = {"content-type": "application/json", "webhook-id": alert.id, "webhook-timestamp": str(time_s)}
    key = base64.b64decode(hook.key.get_secret_value())
    return headers | {"webhook-signature": signature(key, alert.id, time_s, body)} if key else headers


def signature(key: bytes, alert_id: str, time_s: int, body: bytes) -> str:
    """Version 1: what a receiver computes as well, and compares in constant time."""
    content = f"{alert_id}.{time_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
