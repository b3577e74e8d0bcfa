"""What a person did on the labeling page, as a sequence of events, and the labels that follow from it.

The sequence only grows: undoing adds an event that names another one. Whoever replays it gets the same
labels, so that a killed server loses nothing that it had confirmed.
"""

from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from ebse._validation import option

Event = dict[str, Any]

KINDS = ("label", "unlabel", "skip", "unsure", "class", "rename", "undo", "restore")
SOURCES = ("suggest", "random", "own", "gallery", "map", "audit")
"""How a row was chosen that got a label."""
LONGEST_NAME, MOST_ROWS = 200, 100_000
"""Letters of the name of a class; rows of one event."""
FIELDS: dict[str, dict[str, type]] = {
    "label": {"rows": list, "class": str, "from": str, "ms": int},
    "unlabel": {"rows": list},
    "skip": {"rows": list},
    "unsure": {"rows": list},
    "class": {"name": str},
    "rename": {"class": str, "name": str},
    "undo": {"event": int},
    "restore": {"event": int},
}
"""Fields of each kind of event, beside its number, its key and its time."""


@final
@dataclass
class Answers:
    """What was said about the rows: the state after a sequence of events."""

    classes: list[str] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)
    """The class of each labeled row; the model learns from these."""
    audited: dict[int, str] = field(default_factory=dict)
    """The class of each row of the audit; the model never learns from these."""
    skipped: set[int] = field(default_factory=set)
    unsure: set[int] = field(default_factory=set)

    def counts(self) -> dict[str, int]:
        """Labels of each class that the model learns from."""
        found = dict.fromkeys(self.classes, 0)
        for name in self.labels.values():
            found[name] += 1
        return found


class Limits(NamedTuple):
    """What events may name."""

    n_rows: int
    audit: Collection[int]
    """Rows of the audit."""


def checked(event: Any, limits: Limits, events: Sequence[Event], start: Answers | None = None) -> Event:
    """The fields of an event after others as a browser sent it; anything else is refused."""
    if not isinstance(event, dict):
        raise ValueError("event must be an object, got something else; send its type and fields")
    kind = str(event.get("type"))
    option("type", kind, KINDS)
    fields = FIELDS[kind]
    given = dict(event)
    if kind == "undo" and "event" not in given:
        given["event"] = last_to_undo(events)
        if given["event"] is None:
            raise ValueError("undo must have an event to undo, got none left; there is nothing to undo")
    if kind == "label":
        given.setdefault("ms", 0)
    for name, of in fields.items():
        if type(given.get(name)) is not of:
            raise ValueError(f"{name} must be of type {of.__name__}, got {given.get(name)!r}; correct it")
    found: Event = {"type": kind} | {name: given[name] for name in fields}
    for name in ("class", "name"):
        # Classes that the data came with are called as they are.
        if name in found and (start is None or found[name] not in start.classes):
            found[name] = _class_name(found[name])
    if "rows" in found:
        found["rows"] = _rows(found["rows"], limits)
        _require_audit(found, limits)
    if kind == "label":
        option("from", found["from"], SOURCES)
        found["ms"] = min(max(found["ms"], 0), 10**9)
    if kind == "undo":
        if not 0 <= found["event"] < len(events) or not can_undo(events, found["event"]):
            raise ValueError(
                f"event must be one that is not undone yet, got {found['event']}; load the page again"
            )
    elif kind == "restore" and not 0 <= found["event"] < len(events):
        raise ValueError(f"event must be from 0 to {len(events) - 1}, got {found['event']}; load again")
    if kind == "rename" and found["class"] not in replay(events, start).classes:
        raise ValueError(f"class must be one of the classes, got {found['class']!r}; load the page again")
    return found


def _class_name(text: str) -> str:
    name = " ".join(text.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(
            f"the name of a class must have 1 to {LONGEST_NAME} printable letters, got {text[:20]!r}; "
            "choose another"
        )
    return name


def _rows(rows: list[Any], limits: Limits) -> list[int]:
    if not rows or len(rows) > MOST_ROWS:
        raise ValueError(f"rows must be 1 to {MOST_ROWS} numbers, got {len(rows)}; choose fewer")
    wrong = [row for row in rows if type(row) is not int or not 0 <= row < limits.n_rows]
    if wrong:
        raise ValueError(
            f"rows must be numbers from 0 to {limits.n_rows - 1}, got {wrong[0]!r}; load the page again"
        )
    return list(dict.fromkeys(rows))


def _require_audit(event: Event, limits: Limits) -> None:
    """Refuse labels for rows of the audit outside of it, and others in it."""
    if event["type"] in ("skip", "unsure"):
        return
    reserved = [row for row in event["rows"] if row in limits.audit]
    if event.get("from") == "audit":
        if len(reserved) < len(event["rows"]):
            raise ValueError("rows must be of the audit, got another one; load the page again")
    elif reserved:
        raise ValueError(
            f"rows must not be of the audit, got row {reserved[0] + 1}, which the model must never learn "
            "from; choose another"
        )


def undone(events: Sequence[Event]) -> set[int]:
    """Numbers of the events that are undone; an undo may be undone as well."""
    found: set[int] = set()
    # From the last: an undo counts unless a later one takes it back.
    for number in range(len(events) - 1, -1, -1):
        if events[number]["type"] == "undo" and number not in found:
            found.add(events[number]["event"])
    return found


def can_undo(events: Sequence[Event], number: int) -> bool:
    """Whether an event can be undone: it is in force, and no undo."""
    return events[number]["type"] != "undo" and number not in undone(events)


def last_to_undo(events: Sequence[Event]) -> int | None:
    """The last event that can be undone."""
    gone = undone(events)
    return next(
        (n for n in range(len(events) - 1, -1, -1) if n not in gone and events[n]["type"] != "undo"), None
    )


def replay(events: Sequence[Event], start: Answers | None = None) -> Answers:
    """The state after events, from ``start`` on, which stays as it is."""
    return _replayed(events, start, {})


def _replayed(events: Sequence[Event], start: Answers | None, known: dict[int, Answers]) -> Answers:
    """The state after events; ``known`` holds states after fewer of them, each of which is replayed once.

    Without it, restores that restore states after restores would double the work each.
    """
    answers = deepcopy(start) if start is not None else Answers()
    gone = undone(events)
    for number, event in enumerate(events):
        if number not in gone:
            if event["type"] == "restore":
                n = event["event"] + 1
                if n not in known:
                    known[n] = _replayed(events[:n], start, known)
                _restore(answers, known[n], renames(events[:number], n, gone))
            else:
                apply(answers, event)
    return answers


def renames(events: Sequence[Event], since: int, gone: Collection[int]) -> list[tuple[str, str]]:
    """Old and new names of the classes that were renamed from event ``since`` on, but for undone events."""
    return [
        (events[number]["class"], events[number]["name"])
        for number in range(since, len(events))
        if events[number]["type"] == "rename" and number not in gone
    ]


def renamed(name: str, by: Iterable[tuple[str, str]]) -> str:
    """The name of a class after renames."""
    for old, new in by:
        name = new if name == old else name
    return name


def apply(answers: Answers, event: Event) -> None:
    """Change answers by an event that neither undoes nor restores."""
    kind, rows = event["type"], event.get("rows", [])
    if kind == "label":
        _add_class(answers, event["class"])
        where = answers.audited if event["from"] == "audit" else answers.labels
        where.update(dict.fromkeys(rows, event["class"]))
        answers.skipped.difference_update(rows)
        answers.unsure.difference_update(rows)
    elif kind == "unlabel":
        for row in rows:
            answers.labels.pop(row, None)
    elif kind == "skip":
        answers.skipped.update(rows)
    elif kind == "unsure":
        answers.unsure.update(rows)
    elif kind == "class":
        _add_class(answers, event["name"])
    elif kind == "rename":
        _rename(answers, event["class"], event["name"])


def _restore(answers: Answers, before: Answers, by: list[tuple[str, str]]) -> None:
    """Labels as they were, by the names of now; classes that came later stay."""
    before = deepcopy(before)
    for old, new in by:
        _rename(before, old, new)
    answers.labels = before.labels
    for name in before.classes:
        _add_class(answers, name)


def _add_class(answers: Answers, name: str) -> None:
    if name not in answers.classes:
        answers.classes.append(name)


def _rename(answers: Answers, old: str, new: str) -> None:
    """Give a class another name; if there is such a class, the two become one."""
    if old == new or old not in answers.classes:
        # The class is gone, for example because the event that made it was undone.
        return
    at = answers.classes.index(old)
    if new in answers.classes:
        del answers.classes[at]
    else:
        answers.classes[at] = new
    for where in (answers.labels, answers.audited):
        where.update({row: new for row, name in where.items() if name == old})
