"""The line's events as OpenTelemetry traces: one trace from prompt to finished video."""
