"""Formatting of counts."""


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, such as "1 rule", "2 rules", "3 passes"."""
    hisses = noun.endswith(("s", "x", "ch", "sh"))
    return f"{number} {noun}" + ("" if number == 1 else "es" if hisses else "s")
