"""Subtitles: as they were written or from a file; drawn into the pictures, as a track, or as WebVTT beside the video."""
