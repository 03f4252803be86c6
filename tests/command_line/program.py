"""The program as a person runs it, for the suites beside this file.

    python3 SUITE_test.py PROGRAM [CASES]

Needs nothing but the standard library. Runs see no fit of whoever runs them.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import json_schema
import pseudo_terminal

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else ""

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# What counts as now: the age of shipped prices is the same on every day.
NOW = "1795392000"  # 2026-11-23

GOOD = """\
name: a job
model: bert-base-uncased
task: sequence-classification
dataset: { train: 1000 }
epochs: 1
batch: 8
padding: { static: 32 }
precision: fp32
optimizer: { name: adamw, implementation: fused }
stack: eager
"""

# A model's config.json.
CONFIG = """\
{"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64,
 "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
 "max_position_embeddings": 640}
"""

TABLE_HEADER = (
    "source,source_file,system_name,device,n_devices,nodes,model,hidden,layers,"
    "heads,intermediate,vocab,seq_len,batch_per_device,grad_accum,precision,"
    "framework,stack_notes,task,metric,value,notes\n"
)


def table_row(device="t4", batch=8, length=128, precision="fp16", step_ms=100):
    return (
        f"test,file,system,{device},1,1,bert-base,768,12,12,3072,30522,{length},"
        f"{batch},1,{precision},PyTorch,,finetune,step_ms,{step_ms},\n"
    )


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name

    def tearDown(self):
        self._folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME")}
        return {**kept, "TRAINFARE_FITS": self.path("fits"),
                "XDG_CONFIG_HOME": self.path("config"),
                "SOURCE_DATE_EPOCH": NOW, **more}

    def run_it(self, *arguments, environment=None, **options):
        return subprocess.run(
            [PROGRAM, *arguments],
            capture_output=True,
            text=True,
            env=self.environment(**(environment or {})),
            timeout=60,
            check=False,
            **options,
        )

    def good(self, *arguments, **options):
        result = self.run_it(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, code, message, *arguments, **options):
        """One line on standard error, nothing on standard output."""
        result = self.run_it(*arguments, **options)
        said = result.stderr.replace(self.folder + os.sep, "")
        self.assertEqual(said, f"trainfare: {message}\n")
        self.assertEqual(result.returncode, code)
        self.assertEqual(result.stdout, "")

    def begins(self, code, message, *arguments, **options):
        """The same line as far as it goes, paths and all."""
        result = self.run_it(*arguments, **options)
        self.assertTrue(result.stderr.startswith(f"trainfare: {message}"),
                        result.stderr)
        self.assertEqual((result.returncode, result.stdout), (code, ""))
        self.assertEqual(result.stderr.count("\n"), 1)
        return result.stderr

    def on_a_terminal(self, *arguments, **environment):
        text, code = pseudo_terminal.shown(
            [PROGRAM, *arguments], columns=200, errors=subprocess.DEVNULL,
            environment=self.environment(TERM="xterm", **environment))  # fmt: skip
        self.assertEqual(code, 0)
        return text

    def json_of(self, *arguments, code=0):
        result = self.run_it(*arguments, "--format", "json")
        self.assertEqual(result.returncode, code, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(json_schema.errors_of(answer), [], arguments)
        return answer


COMMANDS = (
    ("predict", "emotion_bert_base", "--device", "a100_sxm4_80gb"),
    ("predict", "imdb_bert_base", "--instance", "aws/p3.2xlarge"),
    ("recommend", "emotion_bert_base"),
    ("recommend", "squad_bert_large", "--spot"),
    ("list", "devices"),
    ("list", "instances"),
    ("list", "models"),
    ("list", "fits"),
    ("list", "scenarios"),
    ("list", "prices"),
    ("list", "keys"),
    ("list", "parameters"),
)


def main():
    """Runs the suites of the file that was called."""
    if not PROGRAM or not os.access(PROGRAM, os.X_OK):
        sys.exit(f"usage: {sys.argv[0]} PROGRAM [SUITE]")
    unittest.main()
