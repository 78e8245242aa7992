"""Makes what a lecturer shows and hands out: ``python tutorials/lecture.py FOLDER``.

``FOLDER/slides`` gets an HTML file for each lesson, made of its own cells and of what they give when they run;
``FOLDER/handouts`` and ``FOLDER/quizzes`` a printed page for each; ``FOLDER/answers`` the quizzes with their answers,
also as GIFT, which learning platforms import. A browser shows them without a network, and prints them as PDF. ``--lang
zh`` takes the lessons in Chinese. Outputs are kept where the site keeps them, so that a lesson runs once for both.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

LESSONS = Path(__file__).resolve().parent
sys.path[:0] = [str(LESSONS), str(LESSONS.parent / "docs")]

if TYPE_CHECKING:
    from kit.lesson import Lesson


def main() -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write the files")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="the language of the lessons")
    parser.add_argument(
        "--lessons", default="*", metavar="PATTERN", help="the lessons, such as '01*'; all if not given"
    )
    given = parser.parse_args()
    try:
        import jupyter_cache  # noqa: F401
    except ImportError:
        print("what runs the lessons is not installed: pip install '.[docs]'", file=sys.stderr)
        return 3
    files = sorted((LESSONS / "zh" if given.lang == "zh" else LESSONS).glob("[0-9]*.ipynb"))
    chosen = [path for path in files if fnmatch.fnmatch(path.stem, given.lessons)]
    if not chosen:
        print(f"no lesson matches {given.lessons!r}", file=sys.stderr)
        return 2
    for path in chosen:
        print(
            f"{path.stem}: {', '.join(map(str, write(executed(path, given.lang), given.folder)))}", flush=True
        )
    return 0


def executed(path: Path, language: str = "en", cache: Path | None = None) -> Lesson:
    """Return a lesson with its outputs: those kept since it was last run, or new ones."""
    import nbclient
    import nbformat
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn
    from kit.lesson import Lesson
    from make_site import kept_outputs

    outputs = get_cache(cache or kept_outputs())
    book = nbformat.read(path, as_version=4)
    try:
        outputs.match_cache_notebook(book)
    except KeyError:
        metadata = dict(book.metadata)
        with tempfile.TemporaryDirectory() as folder:
            place = {"metadata": {"path": folder}}
            nbclient.NotebookClient(book, timeout=600, record_timing=False, resources=place).execute()
        book.metadata = nbformat.from_dict(metadata)  # it is a part of what the outputs are kept by
        outputs.cache_notebook_bundle(CacheBundleIn(book, str(path)), check_validity=False, overwrite=True)
    _, book = outputs.merge_match_into_notebook(book)
    return Lesson(path.stem, book.cells, language)


def write(lesson: Lesson, folder: Path) -> list[Path]:
    """Write the slides, the hand-out and the quiz of a lesson; return the files."""
    from kit import quiz
    from kit.handout import handout
    from kit.slides import slides

    texts = {
        f"slides/{lesson.name}.html": slides(lesson),
        f"handouts/{lesson.name}.html": handout(lesson),
        f"quizzes/{lesson.name}.html": quiz.sheet(lesson, False),
        f"answers/{lesson.name}.html": quiz.sheet(lesson, True),
        f"answers/{lesson.name}.gift": quiz.part(lesson),
    }
    written = []
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        written.append(file)
    return written


if __name__ == "__main__":
    sys.exit(main())
