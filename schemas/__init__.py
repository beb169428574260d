"""The contracts of the line: records, topics, Avro, headers, ClickHouse tables."""
