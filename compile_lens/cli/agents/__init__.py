"""Answers for coding agents: a Model Context Protocol server on standard input and output, and the skill that tells an
agent when to use it. User code runs in a job: a process with time and memory limits, in the server's folder."""
