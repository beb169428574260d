-- What pieces compare with, and what is usual of them: the same as longtake.baselines.v1 says, from the same pieces.

ALTER TABLE piece_log
    ADD COLUMN IF NOT EXISTS population LowCardinality(String) COMMENT 'What its scores compare with: profile/engine/version/size/codec-crf; empty: nothing';

CREATE OR REPLACE VIEW pieces AS
SELECT * FROM piece_log
WHERE (job_id, piece, attempt) NOT IN
    (SELECT job_id, piece, arrayJoin(range(attempt)) FROM piece_log WHERE attempt > 1);

CREATE VIEW IF NOT EXISTS quality_baselines
(
    population String COMMENT 'Pieces whose scores compare',
    score String COMMENT 'psnr_y, ssim, vmaf or vmaf_worst_second',
    pieces UInt64 COMMENT 'That have passed their gates',
    reference_pieces UInt64 COMMENT 'The first of them, at most 200',
    reference_median Float64 COMMENT 'Of the reference',
    mad Float64 COMMENT 'Of the reference: median of the absolute deviations from its median',
    recent_median Float64 COMMENT 'Of the last 200 pieces',
    recent_mad Float64 COMMENT 'Of the last 200 pieces',
    median Float64 COMMENT 'What a piece is held against: recent_median, no farther from reference_median than mad'
)
AS WITH
    passed AS
    (
        SELECT population, psnr_y_mean, ssim_mean, vmaf_mean, vmaf_worst_second,
            row_number() OVER (PARTITION BY population ORDER BY checked_us, job_id, piece, attempt) AS number,
            count() OVER (PARTITION BY population) AS of_all
        FROM piece_log
        WHERE outcome = 'checked' AND verdict = 'pass' AND population != '' AND vmaf_mean IS NOT NULL
    ),
    scored AS
    (
        SELECT population, score, of_all,
            groupArrayIf(value, number <= 200) AS first, groupArrayIf(value, number + 200 > of_all) AS last
        FROM passed
        ARRAY JOIN
            ['psnr_y', 'ssim', 'vmaf', 'vmaf_worst_second'] AS score,
            arrayMap(v -> toFloat64(assumeNotNull(v)), [psnr_y_mean, ssim_mean, vmaf_mean, vmaf_worst_second]) AS value
        GROUP BY population, score, of_all
        HAVING of_all >= 50
    )
SELECT
    population,
    score,
    of_all AS pieces,
    length(first) AS reference_pieces,
    arrayReduce('quantileExactInclusive(0.5)', first) AS reference_median,
    arrayReduce('quantileExactInclusive(0.5)', arrayMap(v -> abs(v - reference_median), first)) AS mad,
    arrayReduce('quantileExactInclusive(0.5)', last) AS recent_median,
    arrayReduce('quantileExactInclusive(0.5)', arrayMap(v -> abs(v - recent_median), last)) AS recent_mad,
    greatest(reference_median - mad, least(reference_median + mad, recent_median)) AS median
FROM scored;
