"""The one error that means: the input is wrong, not the program."""


class BadInputError(Exception):
    """A record that will never be processed: it goes to the dead-letter topic with its original bytes.

    `field` names what is wrong (`shots[2].seconds`, `key`, `value`), `rule` the rule it breaks (`range`, `type`,
    `unknown_engine`), `message` says it to a person. `job_id` is there if the record could be read that far.
    """

    def __init__(self, *, field: str, rule: str, message: str, job_id: str = "") -> None:
        super().__init__(f"{field}: {message} [{rule}]")
        self.field = field
        self.rule = rule
        self.message = message
        self.job_id = job_id
