"""What is measured of a file: packets, container, pictures, and its distance from the lossless reference."""
