"""Renditions: the same pictures encoded once more for other devices, piece by piece, so that they join by copying too.

Read in this order: `presets.toml` (the device table), `presets` (what is in it), `renditions` (which of it a job can have), `levels`
(what cannot work), `coding` (what the encoders are told), `bitstream` (what came out).
"""
