"""The native engine: a causal video diffusion transformer (Wan 2.1 architecture), block by block with a KV cache."""
