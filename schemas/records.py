"""Every record of the line, frozen. The `.avsc` files in `schemas/avro/` are the contract; a test holds the two together.

Ids: `job_id` is the key of every topic. A *segment* is what an engine generates in one go, a *piece* is what is encoded
from it. `attempt` counts up for every new request of the same segment, piece or assembly and never goes back, so
`(job_id, segment, attempt)` names one try for ever.

Units: `*_us` are microseconds; as points in time, since the Unix epoch (UTC). `frame` and `start_frame` are indices on the
timeline of the finished video, from 0. Colour gains multiply 8-bit RGB, biases add to it.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar


class Transition(StrEnum):
    """How a shot begins."""

    CUT = "cut"
    CONTINUOUS = "continuous"
    DISSOLVE = "dissolve"
    WIPE = "wipe"
    """An edge goes from left to right."""
    FADE = "fade"
    """The old shot goes to black, the new one comes from there."""
    DIP = "dip"
    """Like a fade, through white and in half the time."""


class SeamKind(StrEnum):
    """How a piece meets the one before it."""

    FIRST = "first"
    """Nothing before it."""
    CONTINUOUS = "continuous"
    """Both segments show the same frames in the overlap: align, then cross-fade."""
    CUT = "cut"
    """A new shot without overlap."""
    DISSOLVE = "dissolve"
    """The two segments show different shots in the overlap: cross-fade without aligning."""
    WIPE = "wipe"
    """Likewise, but an edge goes over the picture."""


class Stage(StrEnum):
    """Where a job is. Finished, failed and cancelled are final."""

    GENERATING = "generating"
    ASSEMBLING = "assembling"
    CHECKING = "checking"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    QUEUED = "queued"
    """Accepted or retried: it waits for its turn."""


class Verdict(StrEnum):
    """What a gate asks for, from mildest to worst."""

    PASS = "pass"  # noqa: S105 (a verdict, not a password)
    REENCODE = "reencode"
    REGENERATE = "regenerate"
    QUARANTINE = "quarantine"


class FailureKind(StrEnum):
    """Why a segment failed."""

    DEVICE_LOST = "device_lost"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    NAN = "nan"
    BLACK = "black"
    FROZEN = "frozen"
    WRONG_FRAME_COUNT = "wrong_frame_count"
    STATE_MISSING = "state_missing"
    ENGINE = "engine"
    SYNC = "sync"
    """Devices, streams or ranks that wait for each other in vain."""
    KERNEL = "kernel"
    """A kernel went wrong and took the device's context with it."""
    IO = "io"
    SINK_COLLAPSE = "sink_collapse"
    """The picture snapped back to the take's first frames."""


class ReleaseStage(StrEnum):
    """Where a release is. Rolled back and stopped ones change no job any more."""

    RUNNING = "running"
    """At the share it began with."""
    WIDENED = "widened"
    """At a larger share."""
    ROLLED_BACK = "rolled_back"
    STOPPED = "stopped"
    ACCEPTED = "accepted"
    """All jobs get it: as many were compared as were planned, and no gate said that it is worse."""


# --- values inside records -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A pointer to an object in the store: pixels and tensors never enter Kafka."""

    uri: str
    """Absolute, inside the store: `file:///.../objects/jobs/J/...` or `s3://bucket/...`."""
    digest: str
    """`xxh3:<32 hex>` (XXH3-128) or `sha256:<64 hex>` of the bytes."""
    size_bytes: int
    media_type: str
    shape: tuple[int, ...] = ()
    """Of the main tensor, where there is one."""
    dtype: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFormat:
    """Picture size and exact frame rate."""

    width: int
    height: int
    fps_num: int
    fps_den: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One shot of a storyboard as its producer wrote it."""

    prompt: str
    seconds: float | None = None
    """None: an equal share of the job's duration."""
    camera: str | None = None
    transition: str = "cut"
    """How this shot begins: `cut`, `continuous`, `dissolve`, `wipe`, `fade` or `dip`."""
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A shot's text, parsed. Empty fields were not found in the text; `parsed` is False if the deadline passed."""

    text: str
    subject: str = ""
    action: str = ""
    setting: str = ""
    camera: str = ""
    light: str = ""
    pace: str = ""
    parsed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """A remark on a prompt: the job runs all the same."""

    shot: int
    """-1: the whole prompt."""
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedShot:
    """A shot placed on the timeline: it is seen from `start_frame` on."""

    shot: int
    start_frame: int
    frames: int
    transition: Transition
    seed: int
    instruction: Instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPlan:
    """Segment i covers [start_frame, start_frame + frames); its piece leaves out the last `tail_overlap` frames.

    The first `head_overlap` frames are also the tail overlap of segment i - 1.
    """

    start_frame: int
    frames: int
    head_overlap: int
    tail_overlap: int
    seam: SeamKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Encode:
    """How pieces are encoded: one set of parameters for all pieces of a job, or they do not join by copying."""

    codec: str = "h264"
    crf: float = 18.0
    preset: str = "veryfast"
    gop_frames: int = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendition:
    """The same pictures encoded once more, for a kind of device: all that the encoder is told, fixed when the job is accepted."""

    name: str
    """Of the device in the table of presets."""
    codec: str
    """`h264`, `hevc` or `av1`."""
    bits: int
    """Of a sample."""
    profile: str
    level: str
    width: int
    height: int
    rate_control: str
    """`crf`, `capped_crf`, `vbr` or `cbr`."""
    crf: float
    """0: the bit rate decides."""
    bitrate_kbps: int
    """Mean; 0: the CRF decides."""
    peak_kbps: int
    """0: none."""
    speed: str
    """The encoder's own preset."""
    gop_frames: int
    tile_columns: int
    nvenc: bool
    """Use NVENC where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenditionPiece:
    """A piece of a rendition: the same frames as the piece beside it."""

    name: str
    codec: str
    width: int
    height: int
    video: Blob
    decoder_config: str
    """xxh3 of the avcC, hvcC or av1C bytes: all pieces of a rendition have the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenditionVideo:
    """A whole video as a rendition. It has the frames and the frame rate of the main one, and no sound."""

    name: str
    codec: str
    """As in RFC 6381, what players are asked: `avc1.64001f`, `hvc1.2.4.L123.b0`, `av01.0.08M.10`."""
    width: int
    height: int
    video: Blob
    """`digest` is the sha256 of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What was done to a segment so that it matches the first segment of its shot.

    `corrected = gain * pixel + bias` per RGB channel, then moved by (shift_x_px, shift_y_px), `offset_frames` later.
    """

    gain: tuple[float, ...] = (1.0, 1.0, 1.0)
    bias: tuple[float, ...] = (0.0, 0.0, 0.0)
    shift_x_px: float = 0.0
    shift_y_px: float = 0.0
    offset_frames: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """What was measured where two pieces meet. Offset, shift and gain are those of the new segment against the corrected one before it."""

    kind: SeamKind
    overlap_frames: int
    offset_frames: int = 0
    offset_margin_db: float = 0.0
    """PSNR of the best temporal offset above the second best."""
    shift_x_px: float = 0.0
    shift_y_px: float = 0.0
    gain: float = 1.0
    """Mean over the channels."""
    psnr_before_db: float = 0.0
    psnr_after_db: float = 0.0
    sharpness_ratio: float = 1.0
    """Laplacian variance of the blended frames over that of their neighbours."""
    luma_jump_ratio: float = 0.0
    """|second difference of mean luma| at the seam over the median of its neighbourhood."""
    warp_error_ratio: float = 0.0
    score: float = 1.0
    """1 is invisible, 0 is at the limit of rejection."""
    blend: str = "none"
    """`fade`, `cut`, `wipe` or `none`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One measured fact that a gate has an opinion on."""

    gate: str
    verdict: Verdict
    """PASS: a warning only."""
    frame: int
    """On the job's timeline; -1: the whole."""
    value: float
    limit: float
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rework:
    """What a gate had made again."""

    verdict: Verdict
    """REENCODE: a piece from the same frames; REGENERATE: a segment, and all that continued from it."""
    index: int
    """Of the piece and its segment; -1: the pieces were joined again."""
    attempt: int
    """Of the piece or video that was sent back."""
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Per-frame scores, summed up. PSNR in dB on luma, infinite values capped at 100."""

    frames: int
    psnr_y_mean: float
    psnr_y_p1: float
    psnr_y_min: float
    ssim_mean: float
    vmaf_mean: float
    vmaf_p1: float
    vmaf_min: float
    vmaf_worst_second: float
    vmaf_model: str
    """Scores of different models do not compare."""
    libvmaf_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What is usual of one score. MAD: median of the absolute deviations from the median, not scaled."""

    score: str
    """By the name of its gate: `psnr_y`, `ssim`, `vmaf`, `vmaf_worst_second`."""
    median: float
    """What a piece is held against: the last pieces' median, no farther from the reference's than its MAD allows."""
    mad: float
    """Of the reference: the first pieces of the population."""
    reference_median: float
    recent_median: float
    """Of the last pieces, however far they have drifted."""
    recent_mad: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One track of a finished file."""

    kind: str
    codec: str
    duration_us: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceRef:
    """A checked piece, as the assembler needs it."""

    piece: int
    start_frame: int
    frames: int
    video: Blob
    decoder_config: str
    """xxh3 of the avcC or hvcC bytes: all pieces of a video have the same."""
    renditions: tuple[RenditionPiece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetRef:
    """A named file that videos are made with: music, effects, narration, subtitles, pictures. Name and version mean the same bytes for ever."""

    name: str
    version: str
    region: str
    """Where it is at home: the nodes there keep it. Empty: everywhere."""
    content: Blob
    """`digest` is the sha256 of the file; its type was found by reading it."""
    duration_us: int = 0
    """Of sound, or to the end of the last subtitle; 0: it has none."""
    width: int = 0
    """Of a picture, like `height`."""
    height: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Music:
    """Music under the whole video."""

    asset: str
    """`name`, `name@version` or `sha256:HEX`, as everywhere."""
    gain_db: float = 0.0
    """Against the other sounds: the mix as a whole is brought to its loudness."""
    fade_in_s: float = 0.0
    fade_out_s: float = 0.0
    loop: bool = True
    """Begin anew where it is shorter than the video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A sound at a time of the finished video."""

    asset: str
    at_s: float
    gain_db: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Narration:
    """Words at a time of the finished video: a text that is spoken, or a file."""

    at_s: float
    text: str = ""
    asset: str = ""
    voice: str = "en"
    """Of eSpeak NG: a language, with a variant: `en-gb+f3`."""
    words_per_minute: int = 160
    gain_db: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A sound placed on the timeline: a file, or a text to be spoken."""

    start_us: int
    gain_db: float
    asset: AssetRef | None = None
    text: str = ""
    voice: str = ""
    words_per_minute: int = 0
    fade_in_us: int = 0
    fade_out_us: int = 0
    loop: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtitle:
    """A subtitle, in seconds of the finished video."""

    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A picture that stands still before the first shot or behind the last, with a text on it."""

    seconds: float
    text: str = ""
    asset: str = ""
    """A picture, shown as large as fits in."""
    colour: str = "#000000"
    text_colour: str = "#ffffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """A subtitle on the timeline."""

    start_us: int
    end_us: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Captions:
    """The subtitles of a video: as they were written, or a file of them."""

    shown: str
    """`track`: in the file, to be switched on. `file`: as WebVTT beside it. `burnt`: in the pictures."""
    lines: tuple[Caption, ...] = ()
    asset: AssetRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCard:
    """A card on the timeline."""

    start_frame: int
    frames: int
    text: str
    colour: str
    text_colour: str
    asset: AssetRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curtain:
    """Pictures go to a colour over `frames` frames, until `frame`, and come from it in as many."""

    frame: int
    frames: int
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLook:
    """What one gate of a release saw when it was looked at last. Counts are of jobs."""

    gate: str
    candidate_bad: int
    candidate: int
    control_bad: int
    control: int
    difference: float
    """Rate of the candidate's bad jobs minus that of the control's, over the shares so far."""
    z: float
    progress: float
    """Of the jobs that were planned, those that were compared: 0 to 1."""
    level: float
    """z * sqrt(progress); the release is rolled back where it reaches `limit`."""
    limit: float
    detectable: float
    """The smallest difference that would be found with the planned power if no more jobs came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """Something that a release's bad jobs have in common: `seen` counts jobs that have it."""

    kind: str
    """`gate`, `failure`, `worker`, `stitcher` or `segment`."""
    name: str
    bad_seen: int
    bad: int
    """The candidate's bad jobs."""
    others_seen: int
    others: int
    """All its other jobs, and the control's."""
    z: float


# --- events ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSubmitted:
    """A producer's wish. Only `job_id` and `text` or `shots` are required; JSON on the topic is as good as Avro."""

    topic: ClassVar[str] = "longtake.prompts.v1"
    job_id: str
    text: str = ""
    shots: tuple[Shot, ...] = ()
    """A storyboard; then `text` is its title."""
    negative: tuple[str, ...] = ()
    """What must not be seen."""
    engine: str = "animatic"
    engine_options: dict[str, str] = field(default_factory=dict)
    width: int = 640
    height: int = 360
    fps: float = 24.0
    """23.976, 29.97 and 59.94 mean 24000/1001, 30000/1001 and 60000/1001."""
    duration_s: float | None = None
    """None: the sum of the shots, or 12 s."""
    seed: int = 0
    tenant: str = "default"
    submitted_us: int = 0
    renditions: tuple[str, ...] = ()
    """Devices to encode for besides, by their names in the table of presets."""
    music: Music | None = None
    effects: tuple[Effect, ...] = ()
    narration: tuple[Narration, ...] = ()
    subtitles: tuple[Subtitle, ...] = ()
    subtitles_asset: str = ""
    """A file with them, SubRip or WebVTT, instead."""
    subtitles_as: str = "track"
    """`track`, `file` or `burnt`."""
    title_card: Card | None = None
    """Its time comes on top of that of the shots, like the end card's."""
    end_card: Card | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRefused:
    """A prompt that will not run. The original bytes are on the dead-letter topic."""

    topic: ClassVar[str] = "longtake.prompts.refused.v1"
    job_id: str
    field: str
    rule: str
    message: str
    content_hash: str
    refused_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """Stop a job. Without effect on a finished one."""

    topic: ClassVar[str] = "longtake.control.v1"
    job_id: str
    reason: str = ""
    requested_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequested:
    """Run a failed or cancelled job again from a segment on (0: from the start)."""

    topic: ClassVar[str] = "longtake.control.v1"
    job_id: str
    from_segment: int = 0
    """Beyond what is there: from the first missing one."""
    requested_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRequested:
    """Generate frames [start_frame, start_frame + frames) from the latents of the segments before."""

    topic: ClassVar[str] = "longtake.segments.requested.v1"
    job_id: str
    segment: int
    attempt: int
    request_hash: str
    variation: int
    """Counts rejections by seam or gate: part of the seed, so that a rejected segment comes out different.
    A retry after a crash has the same variation and gives the same bits."""
    engine: str
    engine_options: dict[str, str]
    format: VideoFormat
    start_frame: int
    frames: int
    head_overlap: int
    tail_overlap: int
    shots: tuple[PlannedShot, ...]
    """Frame f shows the last of these with `start_frame <= f`. A continuous one comes with the shot it grows out of before it."""
    negative: tuple[str, ...]
    seed: int
    latent_ref: tuple[Blob, ...]
    """Latents of the segments before this one, in order, as many as the engine needs; empty for segment 0."""
    requested_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentGenerated:
    """A segment is in the store. `frames` holds `frames` [T, H, W, 3] uint8 RGB, `generated_us` [T] and `decoded_us` [T] int64."""

    topic: ClassVar[str] = "longtake.segments.v1"
    job_id: str
    segment: int
    attempt: int
    request_hash: str
    start_frame: int
    engine: str
    engine_version: str
    latents: Blob
    frames: Blob
    restored: bool
    """The engine state came from the references, not from the memory of the worker."""
    started_us: int
    finished_us: int
    denoise_us: int
    decode_us: int
    store_us: int
    worker: str
    notes: dict[str, str] = field(default_factory=dict)
    """What the engine says of it besides: `embedding of shot 2` is the text whose embedding the shot follows, where that is not its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFailed:
    """A segment that was tried and did not come out."""

    topic: ClassVar[str] = "longtake.segments.v1"
    job_id: str
    segment: int
    attempt: int
    request_hash: str
    kind: FailureKind
    reason: str
    retryable: bool
    engine: str
    engine_version: str
    failed_us: int
    worker: str
    lost: tuple[Blob, ...] = ()
    """Of `latent_ref`: gone, damaged or not what they are said to be. Their segments have to be generated again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceRequested:
    """Stitch and encode a piece: frames [start_frame, start_frame + frames) of the timeline."""

    topic: ClassVar[str] = "longtake.pieces.requested.v1"
    job_id: str
    piece: int
    attempt: int
    request_hash: str
    format: VideoFormat
    start_frame: int
    frames: int
    head_overlap: int
    tail_overlap: int
    seam: SeamKind
    segment_frames: Blob
    """Of segment i: `head_overlap` frames, the body, `tail_overlap` frames."""
    previous_frames: Blob | None
    """Of segment i - 1, whose last `head_overlap` frames are the overlap."""
    previous_correction: Correction
    """What piece i - 1 was corrected by."""
    encode: Encode
    requested_us: int
    engine: str = ""
    """Who made the segment."""
    engine_version: str = ""
    renditions: tuple[Rendition, ...] = ()
    """To be made from the same pictures."""
    cards: tuple[PlannedCard, ...] = ()
    """Before and behind the segment's own frames."""
    curtains: tuple[Curtain, ...] = ()
    captions: Captions | None = None
    """To be drawn into the pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceStitched:
    """An encoded piece and its lossless reference, frame by frame the same pictures."""

    topic: ClassVar[str] = "longtake.pieces.v1"
    job_id: str
    piece: int
    attempt: int
    request_hash: str
    format: VideoFormat
    start_frame: int
    frames: int
    video: Blob
    reference: Blob
    """`reference_head_context` frames, the piece's frames, `reference_tail_context` frames: context for VMAF's motion."""
    reference_head_context: int
    reference_tail_context: int
    decoder_config: str
    seam: Seam
    correction: Correction
    encode: Encode
    generated_us: tuple[int, ...]
    decoded_us: tuple[int, ...]
    encoded_us: tuple[int, ...]
    started_us: int
    finished_us: int
    worker: str
    engine: str = ""
    """Who made the segment."""
    engine_version: str = ""
    renditions: tuple[RenditionPiece, ...] = ()
    designed_frames: tuple[int, ...] = ()
    """First frame and end of each run of frames that look as they do by design: cards, fades. They are no faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeamRejected:
    """The segment cannot be joined to the one before: it has to be generated again."""

    topic: ClassVar[str] = "longtake.pieces.v1"
    job_id: str
    piece: int
    attempt: int
    request_hash: str
    reason: str
    seam: Seam
    rejected_us: int
    worker: str
    lost: tuple[Blob, ...] = ()
    """Frames that are gone, damaged or not what they are said to be. Then nothing was measured: their segments are made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceChecked:
    """The verdict on a piece; its rows are in ClickHouse."""

    topic: ClassVar[str] = "longtake.pieces.checked.v1"
    job_id: str
    piece: int
    attempt: int
    request_hash: str
    """Of the piece's request."""
    verdict: Verdict
    findings: tuple[Finding, ...]
    scores: Scores
    checked_us: int
    worker: str
    population: str = ""
    """What its scores compare with: `profile/engine/version/size/codec-crf`; empty: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyRequested:
    """Join pieces by copying."""

    topic: ClassVar[str] = "longtake.assemblies.requested.v1"
    job_id: str
    attempt: int
    request_hash: str
    format: VideoFormat
    frames: int
    pieces: tuple[PieceRef, ...]
    requested_us: int
    sounds: tuple[Sound, ...] = ()
    """None: the video has no track of sound."""
    captions: Captions | None = None
    """To be put into the file, or beside it."""
    designed_frames: tuple[int, ...] = ()
    """As in PieceStitched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoAssembled:
    """The whole video is in the store, not yet checked."""

    topic: ClassVar[str] = "longtake.videos.v1"
    job_id: str
    attempt: int
    request_hash: str
    format: VideoFormat
    frames: int
    duration_us: int
    video: Blob
    """`digest` is the sha256 of the file."""
    tracks: tuple[Track, ...]
    piece_starts: tuple[int, ...]
    """First frame of every piece."""
    gop_frames: int
    started_us: int
    finished_us: int
    worker: str
    renditions: tuple[RenditionVideo, ...] = ()
    loudness_lufs: float = 0.0
    """Of the mix before it was encoded; 0: there is none, or it is too short to be measured."""
    sounds_us: tuple[int, ...] = ()
    """Start and end of each stretch in which something is meant to be heard."""
    subtitles: Blob | None = None
    """WebVTT beside the video."""
    designed_frames: tuple[int, ...] = ()
    """As in PieceStitched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyFailed:
    """Pieces that do not join, or are not what they are said to be: they have to be stitched again."""

    topic: ClassVar[str] = "longtake.videos.v1"
    job_id: str
    attempt: int
    request_hash: str
    pieces: tuple[int, ...]
    """Numbers of the pieces at fault; none: something else is, and the job fails."""
    reason: str
    failed_us: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoChecked:
    """The verdict on a whole video."""

    topic: ClassVar[str] = "longtake.videos.checked.v1"
    job_id: str
    attempt: int
    request_hash: str
    """Of the assembly's request."""
    verdict: Verdict
    findings: tuple[Finding, ...]
    checked_us: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFinished:
    """A finished, gated video: what downstream services subscribe to. Exactly one per job."""

    topic: ClassVar[str] = "longtake.videos.finished.v1"
    job_id: str
    content_hash: str
    tenant: str
    verdict: Verdict
    warnings: tuple[Finding, ...]
    video: Blob
    format: VideoFormat
    frames: int
    duration_us: int
    tracks: tuple[Track, ...]
    scores: Scores
    seams: tuple[Seam, ...]
    """One per piece."""
    engine: str
    engine_version: str
    attempts: int
    """Requests of segments beyond the first of each."""
    submitted_us: int
    finished_us: int
    renditions: tuple[RenditionVideo, ...] = ()
    arm: str = ""
    """Of a release, `NAME.STEP/candidate` or `NAME.STEP/control`; empty: no release concerned the job."""
    subtitles: Blob | None = None
    """WebVTT beside the video."""
    reworked: tuple[Rework, ...] = ()
    """What gates sent back on the way here, in its order: the last hundred."""
    live: str = ""
    """The master playlist of its HLS, beside the video in the store. The role `publish` writes it: it grows since the first piece
    passed, and ends as VOD soon after this event. Empty: an older line, which did not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanged:
    """The last state of a job, for consoles and joins. Absolute values: a missed one is corrected by the next."""

    topic: ClassVar[str] = "longtake.jobs.v1"
    job_id: str
    tenant: str
    content_hash: str
    stage: Stage
    reason: str
    title: str
    engine: str
    format: VideoFormat
    frames: int
    segments: int
    segments_generated: int
    pieces_stitched: int
    pieces_checked: int
    attempts: int
    """Requests of segments beyond the first of each."""
    lint: tuple[Lint, ...]
    video: Blob | None
    submitted_us: int
    changed_us: int
    arm: str = ""
    """As in VideoFinished."""
    assets: tuple[AssetRef, ...] = ()
    """What it is made with, each once, in the order of use, as its names meant it when it was accepted. None when it is finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChanged:
    """The last state of a release: a change of how some jobs are made, given to a share of them and compared with the others."""

    topic: ClassVar[str] = "longtake.releases.v1"
    name: str
    engine: str
    """Jobs that ask for it are concerned."""
    new_engine: str
    """Made by this one instead; empty: by the same."""
    engine_options: dict[str, str]
    """Laid over the job's own."""
    crf: float
    """Of the encoder; 0: as before."""
    preset: str
    """Of the encoder; empty: as before."""
    share: float
    """Of the jobs concerned, by a hash of their ids."""
    step: int
    """Counts the shares: jobs of different ones are compared apart."""
    stage: ReleaseStage
    reason: str
    base_rate: float
    """Of bad jobs, as it was expected."""
    effect: float
    """The difference that is to be found."""
    planned_jobs: int
    """Effective ones, n_candidate * n_control / (n_candidate + n_control): when so many were compared, the release is accepted."""
    clear_looks: int
    """In a row, at this share, without a gate near its limit."""
    looked_jobs: int
    """Of the candidate, that had ended at the last look."""
    looks: tuple[GateLook, ...]
    """One per gate."""
    started_us: int
    changed_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCause:
    """Why a release was rolled back, as far as rows tell: where to look first."""

    topic: ClassVar[str] = "longtake.releases.v1"
    name: str
    gate: str
    suspects: tuple[Suspect, ...]
    """The most telling first."""
    examples: tuple[str, ...]
    """Job ids, the newest first."""
    found_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetChanged:
    """The last state of an asset. What was removed can be named by no new job; jobs that name it already keep it."""

    topic: ClassVar[str] = "longtake.assets.v1"
    asset: AssetRef
    added_us: int
    """Of the versions of a name, the one added last is meant where none is said."""
    removed_us: int = 0
    """0: it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayReported:
    """How a video played, as its player says. Absolute values of one play: a later report replaces an earlier one."""

    topic: ClassVar[str] = "longtake.qoe.v1"
    job_id: str
    play: str
    """Names the play, by its player."""
    first_frame_ms: int
    """From the wish to play to the first picture; -1: none was shown."""
    played_ms: int
    stalls: int
    """Times it stood still for want of data, after the first picture."""
    stalled_ms: int
    decode_errors: int
    dropped_frames: int
    player: str
    reported_us: int
    """By the clock of the door."""


# --- the director's table --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a job was cut into, fixed when it is accepted."""

    title: str
    format: VideoFormat
    frames: int
    engine: str
    engine_options: dict[str, str]
    state_segments: int
    """How many earlier segments' latents the engine resumes from; 0: all."""
    seed: int
    negative: tuple[str, ...]
    shots: tuple[PlannedShot, ...]
    segments: tuple[SegmentPlan, ...]
    encode: Encode
    lint: tuple[Lint, ...]
    renditions: tuple[Rendition, ...] = ()
    assets: tuple[AssetRef, ...] = ()
    """What it is made with, each once, in the order of use. Not kept when the job is finished."""
    sounds: tuple[Sound, ...] = ()
    """Likewise, as the following."""
    cards: tuple[PlannedCard, ...] = ()
    curtains: tuple[Curtain, ...] = ()
    captions: Captions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentState:
    """One segment of a job: what was asked and what came back."""

    attempt: int = 0
    """Of the newest request; 0: none yet."""
    failures: int = 0
    """Times it failed or its seam was rejected, since the job was submitted or retried."""
    variation: int = 0
    latents: Blob | None = None
    frames: Blob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceState:
    """One piece of a job."""

    attempt: int = 0
    reencodes: int = 0
    video: Blob | None = None
    decoder_config: str = ""
    correction: Correction = Correction()
    seam: Seam | None = None
    checked: bool = False
    scores: Scores | None = None
    warnings: tuple[Finding, ...] = ()
    renditions: tuple[RenditionPiece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyState:
    """The assembly of a job."""

    attempt: int = 0
    video: Blob | None = None
    tracks: tuple[Track, ...] = ()
    duration_us: int = 0
    checked: bool = False
    """The verdict may be read before the video it is about: they come from different topics."""
    warnings: tuple[Finding, ...] = ()
    renditions: tuple[RenditionVideo, ...] = ()
    subtitles: Blob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """A row of the director's table.

    A finished job keeps no segments, pieces or shots. A failed or cancelled one keeps all, so that it can be retried.
    """

    topic: ClassVar[str] = "longtake.jobs.state.v1"
    job_id: str
    tenant: str
    content_hash: str
    traceparent: str
    stage: Stage
    reason: str
    plan: Plan | None
    segments: tuple[SegmentState, ...]
    pieces: tuple[PieceState, ...]
    assembly: AssemblyState
    engine_version: str
    reworks: int
    """Times a gate has sent the job back, since it was submitted or retried."""
    attempts: int
    submitted_us: int
    changed_us: int
    """Time of the last progress: the scan looks for old ones."""
    rescanned_us: int
    """When the scan last sent the outstanding requests again."""
    arm: str = ""
    """Chosen when the job was accepted, and never again."""
    reworked: tuple[Rework, ...] = ()
    """As in VideoFinished."""


# --- derived streams -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """How far a job is, with an estimate. Derived: may be late, never decides anything."""

    topic: ClassVar[str] = "longtake.progress.v1"
    job_id: str
    stage: Stage
    frames: int
    frames_generated: int
    frames_checked: int
    generate_fps: float
    """Over the job's generated segments."""
    remaining_s: float | None
    updated_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineBaseline:
    """Speed and failures of one engine version, over all that the stream has seen."""

    topic: ClassVar[str] = "longtake.baselines.v1"
    engine: str
    engine_version: str
    segments: int
    failures: int
    failure_rate: float
    frames: int
    busy_us: int
    fps: float
    updated_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineThroughput:
    """What the line made in one minute."""

    topic: ClassVar[str] = "longtake.baselines.v1"
    minute_us: int
    frames: int
    segments: int
    videos: int
    updated_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityBaseline:
    """What is usual of the scores of pieces that compare with each other, once enough of them have passed their gates."""

    topic: ClassVar[str] = "longtake.baselines.v1"
    population: str
    """As in PieceChecked."""
    pieces: int
    """That have passed, all together."""
    reference_pieces: int
    """The first of them, which do not change once there are 200."""
    usual: tuple[Usual, ...]
    """One of each score."""
    updated_us: int
