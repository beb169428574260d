"""What can go wrong on the bus. Three outcomes: dead letter (`schemas.errors.BadInputError`), aborted, or the process ends."""


class AbortedError(Exception):
    """The transaction was aborted: nothing of it happened. Rewind and do it again."""


class BusError(Exception):
    """This process cannot go on; its restart in the same slot takes up where it stopped."""


class LaterError(Exception):
    """This record cannot be worked at now; others can."""


class LostWorkerError(Exception):
    """The worker cannot go on, whatever it has in hand: no record is to blame."""


class FatalClientError(BusError):
    """A client is dead for good: fenced by another process in the same slot, or away from the broker for too long."""


class TransactionError(BusError):
    """A transaction neither committed nor aborted in time; the restart's `init_transactions` settles it."""


class TopicsError(BusError):
    """Topics are missing or their partition counts differ: records of one job would part ways."""


class TooManyDeadLettersError(BusError):
    """Nothing but dead letters in a row: the program is wrong, not the records. The last of them stays unread."""
