"""The grader: ``python -m compile_lens.course.grade FOLDER --lesson 3`` marks what a class handed in.

Each student's code runs in a process of its own (``marking.py``), with limits of time and memory. It may crash, hang or
end that process: the row says so, and the next student has another one.
"""
