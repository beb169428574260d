"""Aligns the overlap of neighbouring segments, blends it, encodes each piece once.

Read in this order: `worker` (the event in, the event out), `join` (what is decided at a seam), then the measurements
`offset`, `shift`, `colour`, `seam`, and the pictures `segment`, `proxy`, `picture`, `encode`.

Positions: `j` counts frames of the timeline from the first frame of the overlap on, so -1 is the last frame before it.
A segment corrected by `offset_frames` shows its own frame `j - offset_frames` at `j`.
"""
