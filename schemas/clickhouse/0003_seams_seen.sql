-- What the check of a piece sees at its seam, in the pictures: beside what the stitcher measured.

ALTER TABLE seam_log
    ADD COLUMN IF NOT EXISTS flow_error_ratio Nullable(Float32) COMMENT 'What optical flow does not explain at the seam, over the most it leaves around it; null if not seen',
    ADD COLUMN IF NOT EXISTS likeness Nullable(Float32) COMMENT 'Of the embeddings of the frames on both sides of the seam, 1 for the same picture; null if not seen';

CREATE OR REPLACE VIEW seams AS
SELECT * FROM seam_log
WHERE (job_id, piece, attempt) NOT IN
    (SELECT job_id, piece, arrayJoin(range(attempt)) FROM piece_log WHERE attempt > 1);
