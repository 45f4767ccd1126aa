"""Text from outside made safe to show, numbers of things, and errors in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_SPELLED = str.maketrans(
    {"≤": "<=", "≥": ">=", "–": "-", "−": "-", "…": "...", "±": "+-", "×": "x", "·": "*", "→": "->", "²": "^2"}
    | {"α": "alpha", "δ": "delta", "ε": "epsilon", "η": "eta", "λ": "lambda", "σ": "sigma", "ω": "omega", "ℓ": "l"}
    | {"√": "sqrt ", "∞": "inf", "’": "'", "ŷ": "y^"}
)


def to_ascii(text: str) -> str:
    """A text in ASCII: signs and letters of our own texts have cousins there, anything else is escaped."""
    return text.translate(_SPELLED).encode("ascii", "backslashreplace").decode()


def printable(text: str) -> str:
    r"""Make everything visible that could move the cursor or change colours."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def capital(sentence: str) -> str:
    """A sentence with a capital at its beginning; the other letters stay as they are."""
    return sentence[:1].upper() + sentence[1:]


def plain_name(name: str) -> str:
    """A name without what tells spellings apart.

    Examples
    --------
    >>> plain_name("Lower Bound"), plain_name("Brier-Score ")
    ('lower_bound', 'brier_score')
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def ends_of_paths(paths: Sequence[str]) -> list[str] | None:
    """What files are called in a table: the shortest ends of their paths that differ; None where there are none.

    Examples
    --------
    >>> ends_of_paths(["runs/a.csv", "b.csv"]), ends_of_paths(["a/run/", "b/run"]), ends_of_paths(["a", "a"])
    (['a.csv', 'b.csv'], ['a/run', 'b/run'], None)
    """
    parts = [path.replace("\\", "/").rstrip("/").split("/") for path in paths]
    for length in range(1, max(map(len, parts), default=0) + 1):
        ends = ["/".join(each[-length:]) for each in parts]
        if all(ends) and len(set(ends)) == len(ends):
            return ends
    return None


def is_number(text: str) -> bool:
    """Whether Python takes a text for a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def counted(n: int, thing: str) -> str:
    """So many of a thing."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def these(n: int, thing: str) -> str:
    """So many of a thing that were named before."""
    return f"this {thing}" if n == 1 else f"these {counted(n, thing)}"


def three_digits(value: float) -> str:
    """An estimate whose further digits mean nothing."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def distance_text(distance: float) -> str:
    """A distance as a person writes it, from which the same number is read: in 255ths where that is shorter."""
    written = [f"{distance:g}", repr(distance)]
    pixels = round(distance * 255) if distance < 1e9 else 0
    exact = [text for text in written if float(text) == distance]
    return min([*exact, *([f"{pixels}/255"] if pixels and pixels / 255 == distance else [])], key=len)


def duration(seconds: float) -> str:
    """A length of time in one or two words.

    Examples
    --------
    >>> duration(0.2), duration(95), duration(7200), duration(400_000)
    ('1 s', '2 min', '2.0 h', '4.6 days')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


# What scikit-learn calls what has another name here.
_ELSEWHERE = {"sigmoid": "platt"}


def did_you_mean(word: object, known: Iterable[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """The known word that was probably meant, as a question; else what is to be said instead."""
    from difflib import get_close_matches

    there = list(known)
    same = _ELSEWHERE.get(str(word))
    near = [same] if same in there else get_close_matches(str(word), there, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else otherwise


def reason(error: BaseException) -> str:
    """The first line of an error, short enough for a sentence, after its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    text = text if len(text) <= 300 else text[:299] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
