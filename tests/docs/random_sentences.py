#!/usr/bin/python3
"""Prints random sentences of each folder, for reading: of its pages, and of the comments and docstrings of its code.

    random_sentences.py [--seed N] [--count 20] [FOLDER]...

The same seed and tree give the same sentences. A folder below tests/ counts as one of its own.
"""
import argparse
import random
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from prose_test import ROOT, TEXT, comments_of, files, folder_of, prose_of, spoken  # noqa: E402


def place_of(path):
    return "/".join(path.parts[:2]) if path.parts[0] == "tests" and len(path.parts) > 2 else folder_of(path)


def sentences_by_folder():
    found = {}
    for path in files():
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        prose = prose_of(path, text, quoted=True) if path.suffix in TEXT else comments_of(path, re.sub(r"} *// namespace.*", "", text))
        found.setdefault(place_of(path), []).extend((path, sentence) for sentence in spoken(prose))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="*")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=20)
    given = parser.parse_args()
    for folder, sentences in sorted(sentences_by_folder().items()):
        if given.folder and folder not in given.folder:
            continue
        chosen = random.Random(f"{given.seed} {folder}").sample(sentences, min(given.count, len(sentences)))
        print(f"\n{folder}: {len(chosen)} of {len(sentences)} sentences, seed {given.seed}")
        for path, sentence in chosen:
            print(f"  {path}: {sentence}")


if __name__ == "__main__":
    sys.exit(main())
