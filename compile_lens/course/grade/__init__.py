"""The grader: ``python -m compile_lens.course.grade FOLDER --lesson 3`` marks the notebooks of a class.

Each student's code runs in its own process (``marking.py``) with limits on time and memory. If it crashes, hangs or
exits, the student's row says so and the next student gets a new process.
"""
