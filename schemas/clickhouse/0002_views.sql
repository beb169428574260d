-- What analysts read: one row per job, segment, piece, seam, frame and video, always of the newest attempt.
-- A log row is superseded if a newer attempt at the same thing is in the log. Newer attempts are rare, so the sets are small.

CREATE VIEW IF NOT EXISTS jobs AS
SELECT * FROM job_log FINAL;

CREATE VIEW IF NOT EXISTS segments AS
SELECT * FROM segment_log
WHERE (job_id, segment, attempt) NOT IN
    (SELECT job_id, segment, arrayJoin(range(attempt)) FROM segment_log WHERE attempt > 1);

CREATE VIEW IF NOT EXISTS pieces AS
SELECT * FROM piece_log
WHERE (job_id, piece, attempt) NOT IN
    (SELECT job_id, piece, arrayJoin(range(attempt)) FROM piece_log WHERE attempt > 1);

CREATE VIEW IF NOT EXISTS seams AS
SELECT * FROM seam_log
WHERE (job_id, piece, attempt) NOT IN
    (SELECT job_id, piece, arrayJoin(range(attempt)) FROM piece_log WHERE attempt > 1);

CREATE VIEW IF NOT EXISTS frames AS
SELECT * FROM frame_log
WHERE piece_key NOT IN
    (SELECT cityHash64(job_id, piece, arrayJoin(range(attempt))) FROM piece_log WHERE attempt > 1);

CREATE VIEW IF NOT EXISTS videos AS
SELECT
    checked.*,
    nullIf(finished.finished_us, 0) AS finished_us,
    finished.submitted_us AS submitted_us,
    finished.tenant AS tenant,
    finished.engine AS engine,
    finished.engine_version AS engine_version,
    finished.attempts AS attempts,
    finished.warnings AS warnings,
    finished.psnr_y_mean AS psnr_y_mean,
    finished.psnr_y_min AS psnr_y_min,
    finished.ssim_mean AS ssim_mean,
    finished.vmaf_mean AS vmaf_mean,
    finished.vmaf_min AS vmaf_min,
    finished.vmaf_model AS vmaf_model,
    finished.seam_score_min AS seam_score_min
FROM video_log AS checked
LEFT JOIN finish_log AS finished ON finished.job_id = checked.job_id
WHERE (checked.job_id, checked.attempt) NOT IN
    (SELECT job_id, arrayJoin(range(attempt)) FROM video_log WHERE attempt > 1);
