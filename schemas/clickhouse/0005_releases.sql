-- Arms of releases: which jobs a candidate made, how good they came out, and how they played. The gates of a release are columns
-- of `arms`; a job counts once in each, however often it was played, because jobs are what a release draws by lot.

ALTER TABLE job_log
    ADD COLUMN IF NOT EXISTS arm LowCardinality(String) COMMENT 'Of a release, NAME.STEP/candidate or NAME.STEP/control; empty: none';

CREATE OR REPLACE VIEW jobs AS
SELECT * FROM job_log FINAL;

CREATE TABLE IF NOT EXISTS qoe_log
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
ENGINE = ReplacingMergeTree(reported_us)
ORDER BY (job_id, play)
SETTINGS non_replicated_deduplication_window = 100000
COMMENT 'Last report of each play (read it through the view plays)';

CREATE VIEW IF NOT EXISTS plays AS
SELECT * FROM qoe_log FINAL;

CREATE VIEW IF NOT EXISTS arms
(
    release String COMMENT 'Name of the release',
    step UInt32 COMMENT 'Counts its shares: compare arms of the same step',
    side String COMMENT 'candidate or control',
    jobs UInt64 COMMENT 'That were accepted',
    ended UInt64 COMMENT 'Of those, finished or failed',
    finished UInt64 COMMENT 'Of those, finished',
    played UInt64 COMMENT 'Of those, with a report of a player',
    failed UInt64 COMMENT 'Gate, of ended: failed',
    warned UInt64 COMMENT 'Gate, of finished: with a warning',
    stalled UInt64 COMMENT 'Gate, of played: a play stood still',
    slow_start UInt64 COMMENT 'Gate, of played: a play had no picture within 2 s',
    decode_errors UInt64 COMMENT 'Gate, of played: a play had decode errors',
    vmaf_mean Float64 COMMENT 'Of finished videos; NaN without one',
    psnr_y_mean Float64 COMMENT 'dB, of finished videos; NaN without one',
    seam_score_min Float64 COMMENT 'Worst seam of any finished video',
    again Float64 COMMENT 'Requests of segments beyond the first of each, per ended job'
)
AS SELECT
    splitByChar('.', j.arm)[1] AS release,
    toUInt32OrZero(extract(j.arm, '\\.([0-9]+)/')) AS step,
    splitByChar('/', j.arm)[2] AS side,
    count() AS jobs,
    countIf(j.stage IN ('finished', 'failed')) AS ended,
    countIf(j.stage = 'finished' AND f.finished_us > 0) AS finished,
    countIf(j.stage = 'finished' AND p.plays > 0) AS played,
    countIf(j.stage = 'failed') AS failed,
    countIf(j.stage = 'finished' AND f.warnings != 0) AS warned,
    countIf(j.stage = 'finished' AND p.stalled) AS stalled,
    countIf(j.stage = 'finished' AND p.slow_start) AS slow_start,
    countIf(j.stage = 'finished' AND p.errors) AS decode_errors,
    avgIf(f.vmaf, f.finished_us > 0) AS vmaf_mean,
    avgIf(f.psnr_y, f.finished_us > 0) AS psnr_y_mean,
    minIf(f.seam, f.finished_us > 0) AS seam_score_min,
    avgIf(j.attempts, j.stage IN ('finished', 'failed')) AS again
FROM (SELECT job_id, arm, stage, attempts FROM job_log FINAL WHERE arm != '') AS j
LEFT JOIN
(
    SELECT job_id, finished_us, length(warnings) AS warnings, vmaf_mean AS vmaf, psnr_y_mean AS psnr_y, seam_score_min AS seam
    FROM finish_log
) AS f ON f.job_id = j.job_id
LEFT JOIN
(
    SELECT job_id, count() AS plays, max(stalls) > 0 AS stalled, max(decode_errors) > 0 AS errors,
        max(first_frame_ms < 0 OR first_frame_ms > 2000) AS slow_start
    FROM qoe_log FINAL
    GROUP BY job_id
) AS p ON p.job_id = j.job_id
GROUP BY release, step, side;
