"""Program that runs Graphviz' ``dot`` from the libraries inside the pygraphviz wheel.

It is started by file path, in isolated mode, with pygraphviz's folder and a time limit in seconds as arguments; it
imports nothing of compile_lens. Each line of standard input is a DOT text in JSON; each reply is one line of JSON,
``{"plain": …}`` or ``{"error": …}``. It is a separate process because a layout that takes too long cannot be
interrupted in the caller's process.
"""

from __future__ import annotations

import json
import math
import signal
import sys


def main() -> None:
    sys.path.append(sys.argv[1])
    seconds = math.ceil(float(sys.argv[2])) + 5
    from pygraphviz import AGraph

    for line in sys.stdin:
        # The caller kills this process when the time is up. If the caller itself died, the alarm does, whose
        # default action ends the process even inside a native loop. Windows has no alarm.
        if hasattr(signal, "alarm"):
            signal.alarm(seconds)
        try:
            graph = AGraph(string=json.loads(line))
            plain = graph.draw(format="plain", prog="dot").decode("utf-8")
            graph.close()
            answer = {"plain": plain}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
