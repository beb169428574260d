"""Signed URLs: made as the reference implementations make them, good for one object and one hour, and without the secret.

The S3-compatible server is moto's, which stores and serves but does not verify; whether a server would accept a URL is decided
by botocore, AWS's own implementation of the signature.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import botocore.auth
import pytest
import requests
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from moto.server import ThreadedMotoServer

from infra.objects import BlobError, Objects
from infra.settings import Settings
from schemas.records import Blob, Stage
from tests.cli import events
from tests.cli.conftest import Longtake

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI-canary-K7MDENG"
HOUR_S = 3600
VIDEO = b"a finished video"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Objects:
    """A bucket; the credentials are in the environment and nowhere else."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT": endpoint,
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    assert requests.put(f"{endpoint}/films", timeout=10).ok
    return Objects("s3://films/line")


def signature(url: str, secret: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What botocore would have signed this URL with, at its date."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    date = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda **_: date.replace(tzinfo=None))
    request = AWSRequest("GET", urlsplit(url)._replace(query="").geturl())
    region = query["X-Amz-Credential"].split("/")[2]
    S3SigV4QueryAuth(Credentials(KEY, secret), "s3", region, int(query["X-Amz-Expires"])).add_auth(request)
    (signed,) = parse_qs(urlsplit(str(request.url)).query)["X-Amz-Signature"]
    return signed


def given(url: str) -> str:
    (signed,) = parse_qs(urlsplit(url).query)["X-Amz-Signature"]
    return signed


def test_a_link_gives_the_bytes_and_is_signed_as_aws_signs(s3: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = s3.put_bytes("jobs/harbour/videos/1-ab=c.mp4", VIDEO, "video/mp4")
    assert blob.uri.startswith("s3://films/line/jobs/harbour/")
    url = s3.link(blob, HOUR_S)
    assert requests.get(url, timeout=10).content == VIDEO
    assert SECRET not in url
    assert parse_qs(urlsplit(url).query)["X-Amz-Expires"] == [str(HOUR_S)]
    assert given(url) == signature(url, SECRET, monkeypatch)


def test_a_link_is_good_for_nothing_else(s3: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    url = s3.link(s3.put_bytes("jobs/harbour/videos/1.mp4", VIDEO, "video/mp4"), HOUR_S)
    longer, other = url.replace(f"Expires={HOUR_S}", "Expires=604800"), url.replace("1.mp4", "2.mp4")
    assert url not in (longer, other)
    for changed in (longer, other):
        assert given(changed) != signature(changed, SECRET, monkeypatch)
    assert given(url) != signature(url, "another key", monkeypatch)


def test_longtake_link_prints_one_of_a_finished_video(s3: Objects, bus_settings: Settings, longtake: Longtake) -> None:
    settings = bus_settings.model_copy(update={"objects": s3.url})
    blob = s3.put_bytes("jobs/film/videos/1.mp4", VIDEO, "video/mp4")
    events.say(settings, events.job(stage=Stage.FINISHED), events.finished(video=blob))
    ran = longtake(settings, "link", "film", "--hours", "2")
    assert parse_qs(urlsplit(ran.out.strip()).query)["X-Amz-Expires"] == ["7200"]
    assert requests.get(ran.out.strip(), timeout=10).content == VIDEO
    assert SECRET not in ran.out + ran.err
    assert longtake(settings, "link", "film", "--hours", "1000").code == 2
    assert longtake(settings, "link", "nobody").code == 4


def test_google_links_are_signed_by_the_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    account = {"client_email": "line@films.iam.gserviceaccount.com", "private_key": pem, "private_key_id": "1"}
    file = tmp_path / "account.json"
    file.write_text(json.dumps({"type": "service_account"} | account))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(file))
    store = Objects("gs://films/line")
    url = urlsplit(store.link(_blob(store, "jobs/j/1.mp4"), HOUR_S))
    head, _, signed = url.query.partition("&X-Goog-Signature=")
    canonical = f"GET\n{url.path}\n{head}\nhost:{url.netloc}\n\nhost\nUNSIGNED-PAYLOAD"
    query = parse_qs(url.query)
    date, scope = query["X-Goog-Date"][0], query["X-Goog-Credential"][0].partition("/")[2]
    text = f"GOOG4-RSA-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key.public_key().verify(bytes.fromhex(signed), text.encode(), padding.PKCS1v15(), hashes.SHA256())
    assert query["X-Goog-Expires"] == [str(HOUR_S)]


def test_azure_links_read_one_blob_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = base64.b64encode(b"canary" * 8).decode()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "films")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", secret)
    store = Objects("az://line")
    query = {n: v[0] for n, v in parse_qs(urlsplit(store.link(_blob(store, "jobs/j/1.mp4"), HOUR_S)).query).items()}
    begins, ends = (datetime.fromisoformat(query[name]) for name in ("st", "se"))
    assert (query["sp"], query["sr"], (ends - begins).total_seconds()) == ("r", "b", HOUR_S)
    parts = ["r", query["st"], query["se"], "/blob/films/line/jobs/j/1.mp4", "", "", "", query["sv"], "b", *[""] * 7]
    wanted = hmac.new(base64.b64decode(secret), "\n".join(parts).encode(), hashlib.sha256).digest()
    assert base64.b64decode(query["sig"]) == wanted


def test_a_folder_has_no_links_and_nothing_outside_the_store_has(tmp_path: Path, s3: Objects) -> None:
    folder = Objects(tmp_path.as_uri())
    with pytest.raises(BlobError, match="only S3, GCS and Azure"):
        folder.link(folder.put_bytes("a", b"", ""), HOUR_S)
    for uri in ("s3://films/other/a", "s3://others/line/a", "s3://films/line/../a"):
        with pytest.raises(BlobError, match="outside"):
            s3.link(Blob(uri=uri, digest="", size_bytes=0, media_type=""), HOUR_S)


@pytest.mark.parametrize(
    "url", ["s3://key:secret@films/line", "https://a.example/films?sig=secret", "az://films#secret"]
)
def test_a_store_url_holds_no_credentials(url: str) -> None:
    with pytest.raises(ValueError, match="credentials belong in the environment") as refused:
        Objects(url)
    assert "secret" not in str(refused.value)


def _blob(store: Objects, key: str) -> Blob:
    return Blob(uri=f"{store.url}/{key}", digest="xxh3:0", size_bytes=0, media_type="video/mp4")
