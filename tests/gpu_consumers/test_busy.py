"""What counts as busy."""

from gpu_consumers.busy import BusyMeter


def test_the_engine_is_busy_only_while_requests_wait_and_it_works() -> None:
    now_ns = 0
    meter = BusyMeter(lambda: now_ns)
    now_ns += 5_000_000  # nothing waits
    meter.arrived(1)
    now_ns += 1_000_000  # it waits, nothing works
    with meter.working():
        now_ns += 3_000_000
        with meter.working():  # two at once count once
            now_ns += 2_000_000
    meter.served(1)
    with meter.working():
        now_ns += 7_000_000  # works, but nothing waits
    meter.served(1)
    assert meter.totals_us() == (5_000, 6_000)
