"""The gates of QC against planted faults."""
