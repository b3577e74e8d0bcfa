"""A command that is loaded when it is called."""

from cyclopts import App, Parameter


def command(name: str, *examples: str) -> App:
    """A command, with examples at the end of its help."""
    return App(
        name=name,
        help_epilogue="Examples:\n\n" + "\n".join(f"    ebse {example}" for example in examples),
        suppress_keyboard_interrupt=False,
        default_parameter=Parameter(consume_multiple=True, negative_iterable=()),
    )
