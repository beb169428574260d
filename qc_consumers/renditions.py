"""The gates of renditions: that they decode, frame by frame, on the clock, in closed GOPs, as announced.

Their pictures are those of the piece, which is scored; they are not scored again, as another size has no reference.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import xxhash

from infra.objects import BlobError
from qc_consumers.check import Bench, Measured, unreadable
from qc_consumers.gates import Claim, Facts, Seen, file_evidence, worst
from qc_consumers.metrics.container import scan_container
from qc_consumers.metrics.packets import PacketScan, UnreadableError, scan_packets
from qc_consumers.metrics.pictures import watch
from qc_consumers.profile import Evidence, Profile, profile_for
from qc_consumers.proof import proof_of_piece, proofs_of_video
from qc_consumers.video_gates import container_evidence, timeline_evidence
from schemas.records import Finding, PieceStitched, RenditionPiece, RenditionVideo, Verdict, VideoAssembled, VideoFormat

_STEP = 8
"""Every n-th pixel of every n-th row is looked at: that they come out of the decoder is what matters."""


def with_piece_renditions(measured: Measured, event: PieceStitched, bench: Bench, folder: Path) -> Measured:
    """With what is to be said of the renditions of a piece. Those without fault leave a proof that their packets decode."""
    found = (finding for each in event.renditions for finding in _piece(event, each, bench, folder))
    return replace(measured, findings=(*measured.findings, *found))


def with_video_renditions(measured: Measured, event: VideoAssembled, bench: Bench, folder: Path) -> Measured:
    """With what is to be said of the renditions of a video. What is made of proven pieces is not decoded again."""
    found = (finding for each in event.renditions for finding in _video(event, each, bench, folder))
    return replace(measured, findings=(*measured.findings, *found))


def _piece(event: PieceStitched, rendition: RenditionPiece, bench: Bench, folder: Path) -> Iterable[Finding]:
    try:
        path = bench.objects.get_file(rendition.video, folder)
        scan = scan_packets(path)
    except (BlobError, UnreadableError) as error:
        return _said(rendition.name, [unreadable(error)], profile_for(bench.profiles, 0))
    profile = profile_for(bench.profiles, scan.transfer)
    claim = Claim(start_frame=event.start_frame, frames=event.frames, format=_format(event.format, rendition))
    facts = _decoded(path, scan, claim, bench.threads)
    findings = _said(rendition.name, [*file_evidence(facts, profile), *_as_announced(rendition, scan)], profile)
    if worst(findings) is Verdict.PASS:
        bench.objects.put_manifest(proof_of_piece(event, scan), b"decodes")
    return findings


def _video(event: VideoAssembled, rendition: RenditionVideo, bench: Bench, folder: Path) -> Iterable[Finding]:
    try:
        path = bench.objects.get_file(rendition.video, folder)
        scan, container = scan_packets(path), scan_container(path)
    except (BlobError, UnreadableError) as error:
        return _said(rendition.name, [unreadable(error)], profile_for(bench.profiles, 0))
    profile = profile_for(bench.profiles, scan.transfer)
    tracks = tuple(track for track in event.tracks if track.kind == "video")
    said = replace(event, format=_format(event.format, rendition), tracks=tracks, video=rendition.video)
    claim = Claim(start_frame=0, frames=event.frames, format=said.format)
    if all(bench.objects.get_manifest(proof) for proof in proofs_of_video(said, scan)):
        facts = Facts(claim=claim, scan=scan, pictures=None, seen=Seen())
    else:
        facts = _decoded(path, scan, claim, bench.threads)
    evidence = (
        *container_evidence(said, container),
        *timeline_evidence(said, facts, container),
        *file_evidence(facts, profile),
    )
    return _said(rendition.name, evidence, profile)


def _decoded(path: Path, scan: PacketScan, claim: Claim, threads: int) -> Facts:
    return Facts(claim=claim, scan=scan, pictures=watch(path, (), step=_STEP, threads=threads), seen=Seen())


def _as_announced(rendition: RenditionPiece, scan: PacketScan) -> Iterator[Evidence]:
    """The decoder configuration is what the assembler compares."""
    found = f"xxh3:{xxhash.xxh3_128_hexdigest(scan.config)}"
    if found != rendition.decoder_config:
        detail = f"decoder configuration {found}, announced {rendition.decoder_config}"
        yield Evidence(gate="tags", frame=-1, value=1, detail=detail)


def _format(main: VideoFormat, rendition: RenditionPiece | RenditionVideo) -> VideoFormat:
    return replace(main, width=rendition.width, height=rendition.height)


def _said(name: str, evidence: Iterable[Evidence], profile: Profile) -> list[Finding]:
    named = (replace(each, detail=f"rendition {name}: {each.detail}") for each in evidence)
    return list(profile.judged(named))
