-- Written by `python -m infra.clickhouse_users`. For an administrator, once; it can be run again.
-- Put the SHA-256 of a long random password in the place of each WRITER_SHA256 and READER_SHA256, and the database's name
-- in the place of `longtake` if it has another one. HOST ANY is right behind a network policy; narrow it where you can.
-- access.xml beside this file belongs into the server's config.d: without it, every user can read most system tables.

CREATE SETTINGS PROFILE OR REPLACE longtake_reader SETTINGS
    readonly = 2 CONST,
    allow_ddl = 0 CONST,
    allow_introspection_functions = 0 CONST,
    max_execution_time = 30 MIN 1 MAX 300,
    max_memory_usage = 1073741824 MIN 1 MAX 2147483648,
    max_rows_to_read = 1000000000 MIN 1 MAX 10000000000,
    max_result_rows = 1000000 MIN 1 MAX 10000000,
    max_result_bytes = 268435456 MIN 1 MAX 1073741824,
    max_threads = 4 MIN 1 MAX 8,
    max_concurrent_queries_for_user = 4 CONST,
    max_bytes_before_external_group_by = 0 CONST,
    max_bytes_before_external_sort = 0 CONST;

CREATE USER IF NOT EXISTS longtake_writer IDENTIFIED WITH sha256_hash BY 'WRITER_SHA256' HOST ANY;
CREATE USER IF NOT EXISTS longtake_reader IDENTIFIED WITH sha256_hash BY 'READER_SHA256' HOST ANY SETTINGS PROFILE 'longtake_reader';

GRANT SELECT, INSERT, ALTER, CREATE DATABASE, CREATE TABLE, CREATE VIEW, DROP VIEW ON longtake.* TO longtake_writer;
GRANT DROP TABLE ON longtake._tmp_replace_* TO longtake_writer;
GRANT TABLE ENGINE ON MergeTree TO longtake_writer;
GRANT TABLE ENGINE ON ReplacingMergeTree TO longtake_writer;
GRANT SELECT ON longtake.* TO longtake_reader;
