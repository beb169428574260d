"""Live: checked pieces as HLS while the job still runs. docs/live.md says what is where and why."""
