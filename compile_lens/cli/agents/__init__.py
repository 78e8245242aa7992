"""Answers for coding agents: a server of the Model Context Protocol on standard input and output, and the skill that
says when to ask it what. Code of the user's runs in a job: a process with limits of time and memory, in the folder that
the server was started for."""
