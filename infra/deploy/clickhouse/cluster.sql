-- The tables of schemas/clickhouse for a cluster of shards and replicas. Written by `python -m infra.deploy.render`; do not edit.
-- Run it before `longtake setup`, which finds the tables there and adds the views. Each node needs the macros `cluster`,
-- `shard` and `replica`; the writer's profile needs `distributed_foreground_insert = 1`.
-- All rows of a job are on one shard. An insert is of one job, so its deduplication token is remembered where its rows are:
-- the same insert again, through whichever node, adds nothing.

CREATE DATABASE IF NOT EXISTS longtake ON CLUSTER '{cluster}';
CREATE DATABASE IF NOT EXISTS longtake_shard ON CLUSTER '{cluster}';

CREATE TABLE IF NOT EXISTS longtake_shard.job_log ON CLUSTER '{cluster}'
(
    job_id String COMMENT 'Key of every topic' CODEC(ZSTD(1)),
    tenant LowCardinality(String) COMMENT 'Whose job it is',
    content_hash String COMMENT 'XXH3-128 of the prompt: equal for equal wishes',
    trace_id String COMMENT 'W3C trace id, the same in every event, log line and row of the job',
    stage LowCardinality(String) COMMENT 'generating, assembling, checking, finished, failed or cancelled',
    reason String COMMENT 'Why, if it failed or was cancelled',
    title String COMMENT 'Text of the prompt or title of the storyboard',
    engine LowCardinality(String) COMMENT 'Engine that was asked for',
    width UInt32 COMMENT 'Pixels',
    height UInt32 COMMENT 'Pixels',
    fps Float64 COMMENT 'Frames per second, rounded from the exact ratio',
    frames UInt32 COMMENT 'Frames of the whole video',
    segments UInt32 COMMENT 'Segments planned',
    segments_generated UInt32 COMMENT 'Segments there',
    pieces_stitched UInt32 COMMENT 'Pieces encoded',
    pieces_checked UInt32 COMMENT 'Pieces that passed their gates',
    attempts UInt32 COMMENT 'Requests of segments beyond the first of each',
    lint_codes Array(String) COMMENT 'Remarks on the prompt, as codes',
    lint_messages Array(String) COMMENT 'The same remarks for people',
    video_uri String COMMENT 'Finished video in the object store, empty before that',
    submitted_us Int64 COMMENT 'When the prompt was submitted',
    changed_us Int64 COMMENT 'When the job changed to this state'
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/longtake_shard/job_log', '{replica}', changed_us)
ORDER BY job_id
SETTINGS replicated_deduplication_window = 100000
COMMENT 'Last state of each job (read it through the view jobs)';

CREATE TABLE IF NOT EXISTS longtake.job_log ON CLUSTER '{cluster}' AS longtake_shard.job_log
ENGINE = Distributed('{cluster}', longtake_shard, job_log, cityHash64(job_id));

CREATE TABLE IF NOT EXISTS longtake_shard.segment_log ON CLUSTER '{cluster}'
(
    job_id String COMMENT 'Key of every topic' CODEC(ZSTD(1)),
    segment UInt32 COMMENT 'Index of what the engine generates in one go',
    attempt UInt16 COMMENT 'Counts the requests of this segment, never goes back',
    request_hash String COMMENT 'Names the work that was asked for',
    trace_id String COMMENT 'W3C trace id of the job',
    outcome LowCardinality(String) COMMENT 'generated or failed',
    start_frame Int32 COMMENT 'First frame on the timeline of the video, -1 if it failed',
    frames UInt32 COMMENT 'Frames generated, with both overlaps',
    engine LowCardinality(String) COMMENT 'Engine that generated it',
    engine_version LowCardinality(String) COMMENT 'Version of the engine',
    restored Bool COMMENT 'The engine state came from the stored latents, not from the memory of the worker',
    started_us Int64 COMMENT 'When the engine began, 0 if it failed',
    finished_us Int64 COMMENT 'When it was in the store, or when it failed',
    denoise_us Int64 COMMENT 'Time spent denoising',
    decode_us Int64 COMMENT 'Time spent decoding latents to frames',
    store_us Int64 COMMENT 'Time spent storing',
    latents_uri String COMMENT 'Latents in the object store',
    latents_bytes UInt64 COMMENT 'Size of the latents',
    frames_uri String COMMENT 'Frames in the object store',
    frames_bytes UInt64 COMMENT 'Size of the frames, as stored',
    failure LowCardinality(String) COMMENT 'Kind of failure, empty if generated',
    reason String COMMENT 'The failure in words',
    retryable Bool COMMENT 'Whether trying again can help',
    worker String COMMENT 'Who did it'
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/longtake_shard/segment_log', '{replica}')
PARTITION BY attempt > 1
ORDER BY (job_id, segment, attempt)
SETTINGS replicated_deduplication_window = 100000
COMMENT 'Every attempt at a segment';

CREATE TABLE IF NOT EXISTS longtake.segment_log ON CLUSTER '{cluster}' AS longtake_shard.segment_log
ENGINE = Distributed('{cluster}', longtake_shard, segment_log, cityHash64(job_id));

CREATE TABLE IF NOT EXISTS longtake_shard.piece_log ON CLUSTER '{cluster}'
(
    job_id String COMMENT 'Key of every topic' CODEC(ZSTD(1)),
    piece UInt32 COMMENT 'Index of what is encoded: segment of the same index without its tail overlap',
    attempt UInt16 COMMENT 'Counts the requests of this piece' CODEC(T64, ZSTD(1)),
    request_hash String COMMENT 'Names the work that was asked for',
    trace_id String COMMENT 'W3C trace id of the job',
    outcome LowCardinality(String) COMMENT 'checked, or rejected by the stitcher because of its seam',
    verdict LowCardinality(String) COMMENT 'pass, reencode, regenerate or quarantine',
    reason String COMMENT 'Why the seam was rejected',
    start_frame Int32 COMMENT 'First frame on the timeline of the video, -1 if rejected',
    frames UInt32 COMMENT 'Number of frames',
    width UInt32 COMMENT 'Pixels',
    height UInt32 COMMENT 'Pixels',
    fps Float64 COMMENT 'Frames per second, rounded from the exact ratio',
    codec LowCardinality(String) COMMENT 'Video codec asked for',
    crf Float32 COMMENT 'Constant rate factor asked for',
    preset LowCardinality(String) COMMENT 'Encoder preset asked for',
    decoder_config String COMMENT 'XXH3 of the avcC or hvcC bytes: equal for all pieces of a video',
    video_uri String COMMENT 'The encoded piece in the object store',
    video_digest String COMMENT 'Digest of its bytes',
    video_bytes UInt64 COMMENT 'Size of the file',
    psnr_y_mean Nullable(Float32) COMMENT 'dB on luma against the lossless reference, at most 100; null if not measured',
    psnr_y_p1 Nullable(Float32) COMMENT 'First percentile over the frames of the piece',
    psnr_y_min Nullable(Float32) COMMENT 'Worst frame',
    ssim_mean Nullable(Float32) COMMENT 'SSIM on luma, 0 to 1',
    vmaf_mean Nullable(Float32) COMMENT '0 to 100',
    vmaf_p1 Nullable(Float32) COMMENT 'First percentile over the frames of the piece, exact',
    vmaf_p5 Nullable(Float32) COMMENT 'Fifth percentile, exact',
    vmaf_p50 Nullable(Float32) COMMENT 'Median, exact',
    vmaf_p95 Nullable(Float32) COMMENT '95th percentile, exact',
    vmaf_min Nullable(Float32) COMMENT 'Worst frame',
    vmaf_worst_second Nullable(Float32) COMMENT 'Lowest mean of any second',
    vmaf_model LowCardinality(String) COMMENT 'Scores of different models do not compare',
    libvmaf_version LowCardinality(String) COMMENT 'As libvmaf names itself',
    finding_gates Array(LowCardinality(String)) COMMENT 'What gates said, one element per finding in all finding_ columns',
    finding_verdicts Array(LowCardinality(String)) COMMENT 'What the gate asks for; pass is a warning',
    finding_frames Array(Int32) COMMENT 'Frame on the timeline, -1 for the whole piece',
    finding_values Array(Float64) COMMENT 'What was measured',
    finding_limits Array(Float64) COMMENT 'What is allowed',
    finding_details Array(String) COMMENT 'In words',
    started_us Int64 COMMENT 'When stitching began',
    stitched_us Int64 COMMENT 'When the encoded piece was in the store, or its seam was rejected',
    checked_us Int64 COMMENT 'When the check ended, 0 if rejected',
    check_us Int64 COMMENT 'How long the check took',
    stitcher String COMMENT 'Worker that encoded it',
    checker String COMMENT 'Worker that checked it'
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/longtake_shard/piece_log', '{replica}')
PARTITION BY attempt > 1
ORDER BY (job_id, piece, attempt)
SETTINGS replicated_deduplication_window = 100000
COMMENT 'Every attempt at a piece, with its verdict';

CREATE TABLE IF NOT EXISTS longtake.piece_log ON CLUSTER '{cluster}' AS longtake_shard.piece_log
ENGINE = Distributed('{cluster}', longtake_shard, piece_log, cityHash64(job_id));

CREATE TABLE IF NOT EXISTS longtake_shard.seam_log ON CLUSTER '{cluster}'
(
    job_id String COMMENT 'Key of every topic' CODEC(ZSTD(1)),
    piece UInt32 COMMENT 'Piece that begins at the seam',
    attempt UInt16 COMMENT 'Of the piece',
    trace_id String COMMENT 'W3C trace id of the job',
    frame Int32 COMMENT 'First frame of the piece on the timeline, -1 if rejected',
    kind LowCardinality(String) COMMENT 'first, continuous, cut or dissolve',
    accepted Bool COMMENT 'false: the segment has to be generated again',
    reason String COMMENT 'Why it was rejected',
    overlap_frames UInt32 COMMENT 'Frames that both segments show',
    offset_frames Int32 COMMENT 'Temporal offset found and undone',
    offset_margin_db Float32 COMMENT 'PSNR of the best offset above the second best',
    shift_x_px Float32 COMMENT 'Sub-pixel shift found and undone',
    shift_y_px Float32 COMMENT 'Sub-pixel shift found and undone',
    gain Float32 COMMENT 'Brightness of the new segment against the one before, mean over RGB',
    psnr_before_db Float32 COMMENT 'Overlap against overlap, before the correction',
    psnr_after_db Float32 COMMENT 'Overlap against overlap, after the correction',
    sharpness_ratio Float32 COMMENT 'Laplacian variance of the blended frames over that of their neighbours',
    luma_jump_ratio Float32 COMMENT '|second difference of mean luma| over the median of the neighbourhood',
    warp_error_ratio Float32 COMMENT 'Warping error over that of the neighbourhood',
    score Float32 COMMENT '1 is invisible, 0 is at the limit of rejection',
    blend LowCardinality(String) COMMENT 'fade, cut or none',
    measured_us Int64 COMMENT 'When the stitcher measured it'
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/longtake_shard/seam_log', '{replica}')
ORDER BY (job_id, piece, attempt)
SETTINGS replicated_deduplication_window = 100000
COMMENT 'Every seam that was tried';

CREATE TABLE IF NOT EXISTS longtake.seam_log ON CLUSTER '{cluster}' AS longtake_shard.seam_log
ENGINE = Distributed('{cluster}', longtake_shard, seam_log, cityHash64(job_id));

CREATE TABLE IF NOT EXISTS longtake_shard.frame_log ON CLUSTER '{cluster}'
(
    job_id String COMMENT 'Key of every topic' CODEC(ZSTD(1)),
    piece UInt32 COMMENT 'Index of what is encoded in one go' CODEC(T64, ZSTD(1)),
    frame UInt32 COMMENT 'On the timeline of the video, from 0' CODEC(DoubleDelta, ZSTD(1)),
    attempt UInt16 COMMENT 'Of the piece' CODEC(T64, ZSTD(1)),
    segment UInt32 COMMENT 'Segment the frame was generated in' CODEC(T64, ZSTD(1)),
    blended Bool COMMENT 'Cross-faded with the end of the segment before',
    pts_us Int64 COMMENT 'Presentation time on the timeline of the video' CODEC(DoubleDelta, ZSTD(1)),
    dts_us Int64 COMMENT 'Decoding time on the timeline of the video' CODEC(DoubleDelta, ZSTD(1)),
    generated_us Int64 COMMENT 'When the engine had its latents' CODEC(DoubleDelta, ZSTD(1)),
    decoded_us Int64 COMMENT 'When the engine had its pixels' CODEC(DoubleDelta, ZSTD(1)),
    encoded_us Int64 COMMENT 'When the encoder had taken it' CODEC(DoubleDelta, ZSTD(1)),
    checked_us Int64 COMMENT 'When its piece was checked' CODEC(DoubleDelta, ZSTD(1)),
    psnr_y Nullable(Float32) COMMENT 'dB on luma against the lossless reference, at most 100; null if not measured' CODEC(ZSTD(1)),
    ssim Nullable(Float32) COMMENT 'SSIM on luma, 0 to 1' CODEC(ZSTD(1)),
    vmaf Nullable(Float32) COMMENT '0 to 100' CODEC(ZSTD(1)),
    luma Nullable(Float32) COMMENT 'Mean luma, 0 to 255' CODEC(ZSTD(1)),
    luma_diff Nullable(Float32) COMMENT 'Mean absolute change of luma since the frame before; null for the first of a piece' CODEC(ZSTD(1)),
    packet_bytes UInt32 COMMENT 'Size of its packet' CODEC(T64, ZSTD(1)),
    keyframe Bool COMMENT 'IDR: decoding can start here',
    picture_type LowCardinality(String) COMMENT 'I, P or B; empty if it did not decode',
    black Bool COMMENT 'At least 98 % of the pixels are black',
    frozen Bool COMMENT 'Part of a still of at least 0.12 s',
    duplicate Bool COMMENT 'Hardly differs from the frame before',
    flash Bool COMMENT 'Much brighter or darker than both neighbours',
    trace_id String COMMENT 'W3C trace id of the job' CODEC(ZSTD(1)),
    day Date COMMENT 'UTC day on which the piece was stitched',
    piece_key UInt64 MATERIALIZED cityHash64(job_id, piece, attempt) COMMENT 'Names the attempt at the piece' CODEC(ZSTD(1)),
    INDEX encoded encoded_us TYPE minmax
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/longtake_shard/frame_log', '{replica}')
PARTITION BY toYYYYMM(day)
ORDER BY (job_id, piece, frame)
SETTINGS replicated_deduplication_window = 100000
COMMENT 'Every frame of every attempt at a piece';

CREATE TABLE IF NOT EXISTS longtake.frame_log ON CLUSTER '{cluster}' AS longtake_shard.frame_log
ENGINE = Distributed('{cluster}', longtake_shard, frame_log, cityHash64(job_id));

CREATE TABLE IF NOT EXISTS longtake_shard.video_log ON CLUSTER '{cluster}'
(
    job_id String COMMENT 'Key of every topic' CODEC(ZSTD(1)),
    attempt UInt16 COMMENT 'Counts the assemblies of the job',
    request_hash String COMMENT 'Names the assembly that was asked for',
    trace_id String COMMENT 'W3C trace id of the job',
    verdict LowCardinality(String) COMMENT 'pass, reencode, regenerate or quarantine',
    frames UInt32 COMMENT 'Number of frames',
    duration_us Int64 COMMENT 'Length of the video',
    width UInt32 COMMENT 'Pixels',
    height UInt32 COMMENT 'Pixels',
    fps Float64 COMMENT 'Frames per second, rounded from the exact ratio',
    pieces UInt32 COMMENT 'Pieces joined',
    video_uri String COMMENT 'In the object store',
    video_digest String COMMENT 'sha256 of the file',
    video_bytes UInt64 COMMENT 'Size of the file',
    brand LowCardinality(String) COMMENT 'Major brand of the MP4',
    faststart Bool COMMENT 'The index lies before the media data',
    timescale UInt32 COMMENT 'Ticks per second of the video track',
    tracks Array(String) COMMENT 'Codec of each track',
    decoded_frames UInt32 COMMENT 'Frames that this check decoded; 0: all had been, in their pieces',
    corrupt_frames UInt32 COMMENT 'Of those, frames with errors',
    longest_gop_frames UInt32 COMMENT 'Longest distance from one IDR to the next',
    worst_step_error_us Float64 COMMENT 'Largest deviation of a frame step from its exact length',
    finding_gates Array(LowCardinality(String)) COMMENT 'What gates said, one element per finding in all finding_ columns',
    finding_verdicts Array(LowCardinality(String)) COMMENT 'What the gate asks for; pass is a warning',
    finding_frames Array(Int32) COMMENT 'Frame on the timeline, -1 for the whole video',
    finding_values Array(Float64) COMMENT 'What was measured',
    finding_limits Array(Float64) COMMENT 'What is allowed',
    finding_details Array(String) COMMENT 'In words',
    started_us Int64 COMMENT 'When the assembly began',
    assembled_us Int64 COMMENT 'When the file was in the store',
    checked_us Int64 COMMENT 'When the check ended',
    check_us Int64 COMMENT 'How long the check took',
    assembler String COMMENT 'Worker that joined it',
    checker String COMMENT 'Worker that checked it'
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/longtake_shard/video_log', '{replica}')
PARTITION BY attempt > 1
ORDER BY (job_id, attempt)
SETTINGS replicated_deduplication_window = 100000
COMMENT 'Every assembled video with its verdict';

CREATE TABLE IF NOT EXISTS longtake.video_log ON CLUSTER '{cluster}' AS longtake_shard.video_log
ENGINE = Distributed('{cluster}', longtake_shard, video_log, cityHash64(job_id));

CREATE TABLE IF NOT EXISTS longtake_shard.finish_log ON CLUSTER '{cluster}'
(
    job_id String COMMENT 'Key of every topic' CODEC(ZSTD(1)),
    tenant LowCardinality(String) COMMENT 'Whose job it is',
    content_hash String COMMENT 'XXH3-128 of the prompt',
    trace_id String COMMENT 'W3C trace id of the job',
    verdict LowCardinality(String) COMMENT 'pass',
    warnings Array(String) COMMENT 'Gates that warned',
    engine LowCardinality(String) COMMENT 'Engine that generated it',
    engine_version LowCardinality(String) COMMENT 'Version of the engine',
    attempts UInt32 COMMENT 'Requests of segments beyond the first of each',
    psnr_y_mean Float32 COMMENT 'dB on luma over all frames, at most 100',
    psnr_y_min Float32 COMMENT 'Worst frame',
    ssim_mean Float32 COMMENT 'SSIM on luma, 0 to 1',
    vmaf_mean Float32 COMMENT '0 to 100',
    vmaf_min Float32 COMMENT 'Worst frame',
    vmaf_model LowCardinality(String) COMMENT 'Scores of different models do not compare',
    seam_score_min Float32 COMMENT 'Worst seam: 1 is invisible, 0 is at the limit of rejection',
    submitted_us Int64 COMMENT 'When the prompt was submitted',
    finished_us Int64 COMMENT 'When the video was announced'
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/longtake_shard/finish_log', '{replica}')
ORDER BY job_id
SETTINGS replicated_deduplication_window = 100000
COMMENT 'One row per video announced as finished';

CREATE TABLE IF NOT EXISTS longtake.finish_log ON CLUSTER '{cluster}' AS longtake_shard.finish_log
ENGINE = Distributed('{cluster}', longtake_shard, finish_log, cityHash64(job_id));

CREATE TABLE IF NOT EXISTS longtake_shard.qoe_log ON CLUSTER '{cluster}'
(
    job_id String COMMENT 'Key of every topic' CODEC(ZSTD(1)),
    play String COMMENT 'Names the play, by its player',
    first_frame_ms Int32 COMMENT 'From the wish to play to the first picture; -1: none was shown',
    played_ms Int64 COMMENT 'Time that it played',
    stalls UInt32 COMMENT 'Times it stood still for want of data, after the first picture',
    stalled_ms Int64 COMMENT 'Time that it stood still',
    decode_errors UInt32 COMMENT 'As the player counts them',
    dropped_frames UInt32 COMMENT 'As the player counts them',
    player LowCardinality(String) COMMENT 'Its name',
    reported_us Int64 COMMENT 'When the door took the report'
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/longtake_shard/qoe_log', '{replica}', reported_us)
ORDER BY (job_id, play)
SETTINGS replicated_deduplication_window = 100000
COMMENT 'Last report of each play (read it through the view plays)';

CREATE TABLE IF NOT EXISTS longtake.qoe_log ON CLUSTER '{cluster}' AS longtake_shard.qoe_log
ENGINE = Distributed('{cluster}', longtake_shard, qoe_log, cityHash64(job_id));
