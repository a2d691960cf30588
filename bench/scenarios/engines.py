"""The processes that are timed: each takes a command a line and answers with a line of JSON
(apps/bench_commands.h says which). They stay, so that two engines can take turns pass by pass.
"""

import json
import subprocess
import time

# llama.cpp's ways to hold and read KV. (A quantised V without flash attention it refuses.)
PEER_KINDS = [("f16", "on"), ("f16", "off"), ("q8_0", "on")]
REST_S = 0.005  # lets the threads of the engine before stop spinning


class EngineError(Exception):
    """One sentence: what an engine could not do."""


class Engine:
    """One process. Its first line says what it is."""

    def __init__(self, name, command, log):
        self.name = name
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=log, text=True)
        self.facts = self._answer("starting")
        self.room = None

    def ask(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise EngineError(f"{self.name} ended before '{command}'") from error
        return self._answer(command)

    def _answer(self, command):
        line = self.process.stdout.readline()
        if not line:
            raise EngineError(f"{self.name} ended during '{command}', exit code "
                              f"{self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(f"{self.name}, '{command}': {answer['error']}")
        return answer

    def open(self, n_sequences, n_tokens, depth):
        """Sequences of that depth; what has the right room already stays."""
        if self.room != (n_sequences, n_tokens):
            self.ask(f"open {n_sequences} {n_tokens}")
            self.room = (n_sequences, n_tokens)
        self.ask(f"depth {depth}")

    def run_pass(self, n_rows, logits):
        time.sleep(REST_S)
        return self.ask(f"pass {n_rows} {logits}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start_vericache(binary, model, threads, log):
    return Engine("vericache", [binary, "bench", "--commands", "-m", model, "-t", threads], log)


def start_peers(program, model, threads, log):
    """One process for each kind."""
    return [Engine(f"llama.cpp kv={kv} fa={flash}", [program, model, kv, flash, threads], log)
            for kv, flash in PEER_KINDS]
