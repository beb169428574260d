"""The line measured with more workers, what a minute of video costs it, and what follows for many GPUs."""
