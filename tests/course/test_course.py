"""The course: every exercise with wrong, empty, misled and two right answers, and the student's progress file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from answers import MISLED, RIGHT
from answers.common import Made, halved, loops
from answers.sixteen import TRITON, doubled
from bilingual import is_chinese, numbers_in_chinese, numbers_in_english

import compile_lens
from compile_lens import UsageError, capture, course
from compile_lens.course import chinese as chinese_texts
from compile_lens.course import chinese_lessons, lessons, state, wording
from compile_lens.course.checking import _holds
from compile_lens.course.exercise import EXACTLY, Need
from compile_lens.course.facts import FACTS
from compile_lens.course.lessons import EXERCISES, QUESTIONS, three
from compile_lens.record.missing import Missing

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store the progress of these tests in their own folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def needs_triton(key: str) -> None:
    if key in TRITON:
        pytest.skip("Triton is not installed: pip install 'compile_lens[triton]'")


def test_every_exercise_is_tried_here() -> None:
    assert set(RIGHT) == set(MISLED) == set(EXERCISES)
    assert all(len(made) >= 2 for made in RIGHT.values())
    for key, exercise in EXERCISES.items():
        texts = {says for _, _, says in MISLED[key]} - {""}
        if not TRITON or not key.startswith("16."):  # a custom kernel needs Triton
            assert all(any(says in slip.says for says in texts) for slip in exercise.slips), key
        assert exercise.key == key and len(exercise.hints) >= 2 and exercise.task.endswith(".")


@pytest.mark.full
@pytest.mark.parametrize(("key", "made"), [(key, made) for key, found in RIGHT.items() for made in found])
@pytest.mark.cases(full=10)
def test_every_program_that_does_what_was_asked_passes(key: str, made: Made) -> None:
    needs_triton(key)
    verdict = course.check(key, made)
    assert verdict, verdict
    assert verdict.right and "right" in repr(verdict) and course.progress().solved(key)


@pytest.mark.full
def test_a_watch_lets_the_courses_own_programs_be_compiled() -> None:
    with compile_lens.watch():
        pass
    assert course.check("3.1", three.counted)


@pytest.mark.parametrize("key", EXERCISES)
@pytest.mark.cases(full=6)
def test_the_solution_passes(key: str) -> None:
    needs_triton(key)
    assert "try it first" in course.solution(key) and "def f" not in course.solution(key)
    assert not course.check(key) and not course.check(key, lambda x: None)
    assert "try it first" in course.solution(key), "what is empty is no attempt"
    assert not course.check(key, halved)
    text = course.solution(key).split("\n\n", 1)[1]
    scope: dict[str, Any] = {"torch": torch, "doubled": doubled}
    exec(text, scope)
    assert course.check(key, scope["f"])


@pytest.mark.parametrize(
    ("key", "made", "seen", "says"), [(key, *row) for key, rows in MISLED.items() for row in rows]
)
@pytest.mark.cases(full=12)
def test_a_mistake_is_named_and_the_answer_is_not(
    key: str, made: Made, seen: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_triton(key)
    verdict = course.check(key, made)
    assert not verdict and not verdict.right
    assert seen in repr(verdict) and says in repr(verdict)
    code = EXERCISES[key].solution.partition(":\n")[2].strip()
    assert code not in repr(verdict) and "def f" not in repr(verdict)
    assert not course.progress().solved(key) and course.progress().attempts(key) == 1


@pytest.mark.parametrize("key", EXERCISES)
@pytest.mark.parametrize(
    ("made", "says"),
    [
        (None, "There is nothing to check yet"),
        (..., "There is nothing to check yet"),
        (3, "of type int. Give the function itself"),
        ("f", "of type str."),
        (lambda *xs: 1 / 0, "It could not be captured: ZeroDivisionError: division by zero"),
        (
            lambda: 1,
            "It could not be captured: it does not take as many inputs as the exercise has",
        ),
        (lambda *xs: 1, "None of it was compiled"),
        (lambda *xs: xs[0], "None of it was compiled"),
        (lambda *xs: None, "There is nothing to check yet: the function is still empty. Write what "),
    ],
    ids=["none", "dots", "number", "text", "raises", "no input", "no tensor", "as it came", "stub"],
)
@pytest.mark.cases(full=100)
def test_what_is_no_program_is_said(key: str, made: Any, says: str) -> None:
    verdict = course.check(key, made)
    if EXERCISES[key].program is not None:  # it receives a graph and not the numbers
        says = says.replace("None of it was compiled", "not yet.")
    assert not verdict and says in repr(verdict) and ".." not in repr(verdict)


def empty_ones() -> list[Any]:
    """Return functions without an answer, as in a lesson or left by a student."""

    def only_words(x: torch.Tensor) -> torch.Tensor:
        """To do."""

    def dots(x: torch.Tensor) -> torch.Tensor: ...

    def none(x: torch.Tensor) -> None:
        return None  # your function

    def raising(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def called(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError()

    return [only_words, dots, none, raising, called]


@pytest.mark.full
def test_a_backend_can_be_checked_more_often_than_dynamo_compiles_one_function() -> None:
    """Dynamo limits the variants of a function, and each backend adds one; other compiled functions stay."""

    def kept(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    compiled = torch.compile(kept, backend="eager")
    compiled(torch.rand(3))
    tries = torch._dynamo.config.recompile_limit + 2
    assert all(course.check("15.3", RIGHT["15.3"][0]) for _ in range(tries))
    assert course.progress().attempts("15.3") == tries
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(torch.rand(3))


@pytest.mark.parametrize("made", empty_ones(), ids=lambda made: made.__name__)
def test_an_untouched_exercise_says_what_to_write_and_counts_as_no_attempt(made: Any) -> None:
    text = repr(course.check("1.1", made))
    assert "There is nothing to check yet" in text and "what 1.1 above asks for" in text
    assert "Dynamo" not in text and course.progress().attempts("1.1") == 0
    course.language("zh")
    try:
        text = repr(course.check("1.1", made))
    finally:
        course.language("en")
    assert "还没有可检查的：函数还是空的" in text and "1.1 的题目" in text and "Dynamo" not in text


def test_what_computes_nothing_is_told_without_the_compilers_words() -> None:
    text = repr(course.check("1.1", lambda x: x))
    assert "None of it was compiled: it contains no PyTorch operator." in text and "Dynamo" not in text


def test_a_shape_that_does_not_fit_is_told_in_the_functions_own_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A compiler's error starts with "when making fake tensor call"; the call in eager names the sizes."""

    def outer(x: torch.Tensor) -> torch.Tensor:
        print("once")
        return x @ x[:3]

    with pytest.raises(RuntimeError) as plain:
        outer(torch.rand(64, 64))
    capsys.readouterr()
    text = repr(course.check("5.1", outer))
    assert f"RuntimeError: {plain.value}" in text and "fake" not in text
    assert capsys.readouterr().out.count("once") <= 1, "what is run again to hear of the error prints nothing"


@pytest.mark.parametrize(
    ("key", "made"),
    [
        ("8.1", lambda x: x.sum() + torch.arange(4096)),
        ("8.2", lambda x: torch.stack((x, torch.ones(64, 64)))),
        ("8.3", lambda x: x.gather(0, torch.zeros(64, 64, dtype=torch.int64))),
        ("12.3", lambda x: x @ torch.eye(512)),
    ],
    ids=["arange", "stack", "index", "product"],
)
def test_a_tensor_made_where_x_is_not_is_said(key: str, made: Made) -> None:
    text = repr(course.check(key, made))
    assert "x is on an NVIDIA H100" in text and "create it with `device=x.device`" in text
    assert "mismatch" not in text and "TorchRuntimeError" not in text


def test_a_mask_is_of_the_number_of_elements_alone() -> None:
    """Triton's own text shows the comparisons of an index; a mask with a size that is not that number is allowed."""

    def chosen(x: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.arange(4096, device=x.device) < 1000, x[0], x[1])

    source = capture(chosen, torch.rand(1000), target="h100").kernels[0].source
    assert " < tmp" in source and not re.search(r"< \w*numel", source)
    assert course.check("8.1", chosen)
    assert "compares no index with the number of elements" in EXERCISES["8.1"].task
    assert not re.search(r"\bpad\b", " ".join(EXERCISES["8.1"].hints))


def test_nothing_is_said_of_what_no_graph_shows() -> None:
    text = repr(course.check("10.2", lambda x: torch.cov(x, correction=0)))
    assert "1 graph break" in text and "uses none of its inputs" not in text
    assert "It uses none of its inputs." in repr(course.check("8.1", lambda x: torch.zeros(4096)))


@pytest.mark.full
def test_the_advice_fits_the_bytes() -> None:
    """Numbers twice as wide move more bytes without a large intermediate result."""

    def wide(x: torch.Tensor) -> torch.Tensor:
        y = x.double()
        return (y @ (y.T @ y)).float()

    assert "An intermediate result is large" not in repr(course.check("10.1", wide))
    assert "An intermediate result is large" in repr(course.check("10.1", lambda x: (x @ x.T) @ x))


def test_an_error_that_is_hostile_stays_on_its_line() -> None:
    def hostile(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("\x1b[31m" + "x" * 10_000 + "\nright")

    text = repr(course.check("1.1", hostile))
    assert "\x1b" not in text and len(text) < 500 and text.count("\n") == 1


def test_a_capture_is_made_again() -> None:
    text = repr(course.check("1.3", capture(lambda x: 3 * x, torch.rand(3, requires_grad=True))))
    assert "of type Capture. Give the function itself" in text


def test_hints_come_in_steps_and_end() -> None:
    hints = EXERCISES["1.2"].hints
    texts = [course.hint("1.2") for _ in range(len(hints) + 1)]
    assert [one.partition("): ")[2] for one in texts] == [*hints, hints[-1]]
    assert "(1 more)" in texts[0] and "(the last one)" in texts[-1] and repr(texts[0]) == texts[0]
    assert course.progress().attempts("1.2") == 0


def test_a_prediction_is_kept_and_shown_beside_the_truth() -> None:
    with pytest.raises(UsageError, match="answer first"):
        course.predict("1.kernels")
    verdict = course.predict("1.kernels", 5, 1)
    assert "Your guess: forward 5, backward 1" in repr(verdict)

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    record = capture(f, torch.rand(1000, requires_grad=True))
    assert course.predict("1.kernels") == verdict
    shown = verdict.reveal(record)
    assert shown.right == (False, True)
    assert "forward: you guessed 5, but the capture has 1 launch in the forward" in repr(shown)
    assert "backward: you guessed 1, and the capture has 1 launch in the backward" in repr(shown)
    for wrong in ((1,), (1, 2, 3), ("1", 2), (True, 1)):
        with pytest.raises(UsageError, match="needs 2 whole numbers: forward, backward"):
            course.predict("1.kernels", *wrong)  # type: ignore[arg-type]


def no_gradient(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


@pytest.mark.parametrize(
    ("key", "answer", "options", "says"),
    [
        (
            "1.kernels",
            (1, 0),
            {},
            "it has no backward; call the function with an input that requires a gradient",
        ),
        ("4.kept", (0, 0), {}, "it has no backward"),
        ("7.single", (16,), {"target": "h100"}, "the question is about .*AVX512.*target='cpu:avx512'"),
        ("8.last", (1,), {}, "the question is about NVIDIA H100 SXM; capture with target='h100'"),
        ("11.sines", (1,), {"target": "h100"}, "it has no kernel in C\\+\\+; capture it for a CPU"),
    ],
)
def test_a_capture_without_the_answer_is_refused(
    key: str, answer: tuple[int, ...], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        course.predict(key, *answer).reveal(capture(no_gradient, torch.rand(1000), **options))


def test_a_stage_that_was_not_seen_is_no_answer_and_no_solution() -> None:
    """Values come from a capture's stages: without the stage they are unknown, not 0."""
    seen = capture(no_gradient, torch.rand(1000))
    (one,) = seen.compilations
    for key, stage, answer in (
        ("9.plain", "inference.code", 0),
        ("5.gelu", "inference", 0),
        ("6.three", "inference.loops", 0),
    ):
        stages = tuple(
            Missing(stage, "its hook was lost") if getattr(s, "key", "") == stage else s for s in one.stages
        )
        lost = replace(seen, compilations=(replace(one, stages=stages),))
        with pytest.raises(UsageError, match="its hook was lost"):
            course.predict(key, *[answer] * len(lessons.question(key).parts)).reveal(lost)
        for fact in ("library_calls", "masks") if stage.endswith("code") else ():
            assert not _holds(lost, Need(fact, EXACTLY, 0)) and _holds(seen, Need(fact, EXACTLY, 0))


def test_a_key_may_be_a_number(folder: Path) -> None:
    assert course.check(1.1, RIGHT["1.1"][0])
    assert course.progress().solved("1.1") and course.hint(1.1) and course.solution(1.1)
    with pytest.raises(UsageError, match=r"lesson 1 has 1\.1, 1\.2, 1\.3"):
        course.check(1.9)


@pytest.mark.parametrize(
    ("key", "program", "has"),
    [
        ("7.3", lambda x: torch.sin(x[:10]), "10 numbers at a time"),
        ("7.3", lambda x: torch.sin(x[:7].exp()), "7 numbers at a time"),
        ("7.3", lambda x: x[:40].view(4, 10).softmax(1), "3 tails"),
        ("7.1", lambda x: x[:20].bfloat16(), "16 numbers at a time"),
        ("7.1", lambda x: x[:7].bfloat16(), "1 number at a time"),
        ("7.2", lambda x: torch.sin(x[:12]), "12 numbers at a time"),
    ],
)
def test_what_is_executed_counts_not_the_step_of_the_loop(key: str, program: Made, has: str) -> None:
    """The numbers are those of ``loadu`` and ``store`` in the code that plain torch generates."""
    verdict = course.check(key, program)
    assert not verdict and has in repr(verdict)


def test_a_count_is_not_negative(folder: Path) -> None:
    with pytest.raises(
        UsageError, match=r"1\.kernels needs a count, which is never below 0; this is \(-1, 12\)"
    ):
        course.predict("1.kernels", -1, 12)
    with pytest.raises(UsageError, match=r"0\.name needs one whole number: kernels; this is \(1, 2\)"):
        course.predict("0.name", 1, 2)
    assert not list(folder.iterdir()), "nothing is kept"


def test_what_a_function_prints_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    for key, noisy in (("1.1", print), ("1.1", lambda x: [print(n) for n in range(1000)])):
        course.check(key, noisy)
        printed = capsys.readouterr().out
        assert len(printed) < 600 and printed.count("what the function prints is cut off here") == 1
        assert printed.startswith(("tensor([", "0\n1\n2\n"))
    course.check("1.1", halved)
    assert capsys.readouterr().out == "so far\n"


def test_progress_is_a_file_that_one_can_read(folder: Path) -> None:
    assert not list(folder.iterdir())
    assert f"0 of {len(EXERCISES)} exercises are right" in repr(course.progress())
    course.check("1.3", lambda x: torch.sin(x))
    course.check("1.3", lambda x: 4 * x)
    course.check("1.3")
    course.hint("1.1")
    course.predict("1.kernels", 2, 2)
    assert [path.name for path in folder.iterdir()] == ["course-progress.json"]
    data = json.loads((folder / "course-progress.json").read_text(encoding="utf-8"))
    assert data == {
        "predictions": {"1.kernels": [2, 2]},
        "exercises": {"1.3": {"attempts": 2, "solved": 1}, "1.1": {"hints": 1}},
    }
    text = repr(course.progress())
    assert f"1 of {len(EXERCISES)} exercises are right" in text and "1.3 right (tries 2, hints 0)" in text
    assert "1.1 not yet (tries 0, hints 1); 1.2 not tried" in text and "1.kernels answered 2, 2;" in text
    assert "2.1" not in text and "not begun: lessons 0, 2, 3, " in text and len(text.split("\n")) == 3
    for _ in EXERCISES["1.1"].hints:
        course.hint("1.1")
    assert f"hints {len(EXERCISES['1.1'].hints)})" in repr(course.progress()), "the last hint counts once"


@pytest.mark.parametrize("given", [None, "record.json", {}, course])
def test_a_reveal_takes_a_capture(folder: Path, given: Any) -> None:
    with pytest.raises(UsageError, match=f"a capture.* not {type(given).__name__}"):
        course.predict("1.kernels", 2, 2).reveal(given)


@pytest.mark.parametrize(
    "text", ["{", "[" * 100_000, "[]", '{"predictions": 3}', '{"predictions": {}, "exercises": {"1.1": 3}}']
)
def test_a_broken_file_is_said_and_kept(folder: Path, text: str) -> None:
    (folder / state.FILE).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="delete it to start again"):
        course.progress()
    with pytest.raises(UsageError, match="delete it to start again"):
        course.hint("1.1")
    assert (folder / state.FILE).read_text(encoding="utf-8") == text


def test_what_there_is_not_is_named() -> None:
    with pytest.raises(UsageError, match=r"there is no exercise '9\.9'; lesson 9 has 9\.1, 9\.2, 9\.3$"):
        course.check("9.9", loops)
    with pytest.raises(UsageError, match=r"no question '9'; lesson 9 has 9\.plain, 9\.wrapped, 9\.ordered$"):
        course.predict("9", 1)
    with pytest.raises(UsageError, match=r"did you mean '1\.kernels'\? lesson 1 has 1\.kernels$"):
        course.predict("1.kernel", 1, 1)
    with pytest.raises(
        UsageError, match=r"no question 'kernels'; did you mean '1\.kernels'\? there are \d+, from '0"
    ):
        course.predict("kernels", 1, 1)
    with pytest.raises(UsageError, match=r"no exercise '1\.9'; lesson 1 has 1\.1, 1\.2, 1\.3$"):
        course.hint(1.9)  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match=f"no exercise 'x'; there are {len(EXERCISES)}, from '0.1' to '16.3'$"
    ):
        course.solution("x")
    assert not Path(state.FILE).exists()


def test_data_of_lessons_is_whole() -> None:
    facts = {need.fact for e in EXERCISES.values() for need in e.needs}
    facts |= {need.fact for e in EXERCISES.values() for slip in e.slips for need in slip.when}
    facts |= {fact for q in QUESTIONS.values() for _, fact in q.parts}
    assert facts <= set(FACTS)
    for exercise in EXERCISES.values():
        assert any(need.relation == EXACTLY for need in exercise.needs) and exercise.inputs
        assert not re.search("solution|def ", " ".join(slip.says for slip in exercise.slips))


def test_it_is_reached_by_name() -> None:
    assert compile_lens.course is course and "course" in dir(compile_lens)
    assert set(course.__all__) <= set(vars(course))
    assert isinstance(course.progress(), course.Progress)


# In Chinese ----------------------------------------------------------------------------------------------------


@pytest.fixture
def chinese() -> Iterator[None]:
    course.language("zh")
    yield
    course.language("en")


def codes(text: str) -> set[str]:
    """Return code and names in a text: Latin letters, except prose."""
    return set(re.findall(r"[A-Za-z_]+\.[A-Za-z_.]+|`[^`]+`|\{\w+(?:[:!]\S+?)?\}", text))


def test_everything_is_said_in_chinese_too() -> None:
    assert list(chinese_texts.QUESTIONS) == list(lessons.QUESTIONS)
    assert set(chinese_lessons.EXERCISES) == set(lessons.EXERCISES)
    assert set(chinese_texts.PARTS) == {name for q in lessons.QUESTIONS.values() for name, _ in q.parts}
    assert set(chinese_texts.FACTS) == set(FACTS)
    assert list(chinese_texts.MESSAGES) == list(wording.ENGLISH)
    pairs = [(q.text, chinese_texts.QUESTIONS[q.key]) for q in lessons.QUESTIONS.values()]
    pairs += [(text, chinese_texts.MESSAGES[key]) for key, text in wording.ENGLISH.items()]
    for exercise in lessons.EXERCISES.values():
        slips, hints = chinese_lessons.EXERCISES[exercise.key]
        pairs += zip([slip.says for slip in exercise.slips], slips, strict=True)
        pairs += zip(exercise.hints, hints, strict=True)
    for one, other in pairs:
        assert is_chinese(other), other
        assert numbers_in_chinese(other) <= numbers_in_english(one), (one, other)
        assert codes(one) == codes(other), (one, other)


def test_in_chinese_no_english_is_said(chinese: None, folder: Path) -> None:
    guess = course.predict("1.kernels", 3, 1)
    shown = [
        str(guess),
        str(
            guess.reveal(
                capture(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, torch.rand(4, requires_grad=True))
            )
        ),
        str(course.check("1.2", None)),
        str(course.check("1.2", lambda x: x.sin())),
        str(course.check("2.2", lambda x: x - 1)),
        course.hint("1.2"),
        course.solution("1.1"),
        str(course.progress()).replace(str(folder), ""),
    ]
    for text in shown:
        assert is_chinese(text)
        assert not re.search(r"\b(the|of|and|is|are|you|it|not)\b", text), text


def test_in_chinese_errors_are_chinese(chinese: None, folder: Path) -> None:
    assert "它的输入个数不是练习的个数（1）" in repr(course.check("1.1", lambda x, y: x))
    assert "造它的时候写上 `device=x.device`" in repr(
        course.check("8.1", lambda x: x.sum() + torch.arange(4096))
    )

    def broken() -> None:
        (folder / state.FILE).write_text("{", encoding="utf-8")
        course.progress()

    def strange() -> None:
        (folder / state.FILE).write_text("[]", encoding="utf-8")
        course.progress()

    for wrong, says in (
        (lambda: course.predict("1.kernels"), "请先回答：predict('1.kernels', 前向, 反向)"),
        (lambda: course.predict("1.kernels", 1), "要 2 个整数：前向, 反向；给的是 (1,)"),
        (lambda: course.predict("2.if", 1, 2), "要一个整数：图；给的是 (1, 2)"),
        (lambda: course.predict("2.if", -1), "不会小于 0"),
        (lambda: course.predict("1.kernel", 1, 1), "你是不是想用 '1.kernels'？第 1 课有 1.kernels"),
        (lambda: course.hint("9.9"), "没有 '9.9' 这道练习；第 9 课有 9.1, 9.2, 9.3"),
        (lambda: course.solution("x"), f"共有 {len(EXERCISES)} 个，从 '0.1' 到 '16.3'"),
        (broken, "无法读取"),
        (strange, "里没有课程的进度"),
    ):
        with pytest.raises(UsageError) as error:
            wrong()
        assert says in str(error.value), error.value
        assert not re.search(
            r"\b(the|there|asks|answer|this|delete)\b", str(error.value).replace(str(folder), "")
        )


def test_a_language_that_there_is_not_is_named() -> None:
    with pytest.raises(UsageError, match=r"language\('fr'\): there is 'en' and 'zh'"):
        course.language("fr")


def test_what_was_required_has_its_gradient() -> None:
    """The numbers are correct, and nothing would be learned from them."""

    def stopped(x: Any) -> Any:
        return torch.sin((x @ x).detach()) + 0 * x

    def doubled(x: Any) -> Any:
        product = x @ x
        return torch.sin(product) + product - product.detach()

    for function in (stopped, doubled):
        assert "its gradient has other values" in str(course.check("4.3", function))
