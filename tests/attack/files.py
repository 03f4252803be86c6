"""Mutated files through every reader, by the real programs.

    files.py TRAINFARE [TRAINER] [--count N] [--seconds S] [--seed N]

Each ends by itself with the exit code of an answer or a refusal; a refusal is
one line, an answer has no number that is not finite, and no byte of a file
reaches the terminal that is not text.
"""

import json
import math
import os
import re
import subprocess
import tempfile
import types
from pathlib import Path

import counting
from counting import Finding

CORPUS = Path(__file__).resolve().parents[1] / "fuzz" / "corpus"
LONGEST_SECONDS = 60
LONGEST_LINE = 4096
CONTROLS = "\0-\x08\x0b-\x1f\x7f-\x9f"
BIDI = "\u202a-\u202e"
# 0 ok, 1 input, 2 usage, 3 nothing fits, 4 --fail-if.
ENDS = (0, 1, 2, 3, 4)
STRANGE = [b"-1", b"0", b"1e308", b"-1e308", b"1e-308", b"nan", b".inf", b"1e999",
           b"null", b"~", b"9223372036854775807", b"-9223372036854775808",
           b"18446744073709551615", b"1e18", b"1000000000000", b"[" * 5000,
           b'{"a":' * 2000, b"'", b'"', b"\n", b"\r\n", b",", b": ", b"\xc3",
           b"\xed\xa0\x80", b"\xff\xfe", b"\0", b"\x1b[2J", "\u202e".encode(),
           b"\\u001b", b"=1+1", b"\t", b"&a [*a, *a]", b"!!binary a", b"<<: *a"]
JOB = ["--samples", "1000", "--length", "128", "--device", "a100_sxm4_80gb"]
SCENARIO = """\
name: a job
model: {model}
task: sequence-classification
dataset: {{ train: 1000, lengths: {lengths} }}
epochs: 1
batch: {batch}
padding: {padding}
precision: {precision}
optimizer: {{ name: adamw, implementation: fused }}
stack: eager
"""
# Beside every file that is attacked.
BESIDE = {
    "lengths.yaml": (CORPUS / "lengths" / "counts.yaml").read_text("utf-8"),
    "lengths_job.yaml": SCENARIO.format(
        model="bert-base-uncased", batch=8, precision="fp32",
        lengths="input.yaml", padding="dynamic"),
    "mlperf_job.yaml": SCENARIO.format(
        model="bert-large-uncased", batch=448, precision="fp16",
        lengths="lengths.yaml", padding="{ static: 128 }"),
}

# What reads each folder of the corpus; {} is the file, OUT a path beside it.
READERS = {
    "answer": [["diff", "{}", "{}"], ["replay", "{}"]],
    "csv": [["validate", "{}"]],
    "fit": [["predict", "emotion_bert_base", "--device", "sambanova_sn30",
             "--fit", "{}", "--format", "json"]],
    "lengths": [["predict", "lengths_job.yaml", "--device", "t4", "--format",
                 "json"]],
    "mlperf": [["calibrate", "--from", "{}", "--scenario", "mlperf_job.yaml",
                "--device", "h100_sxm", "--output", "OUT"]],
    "model_config": [["predict", "--model", "{}", *JOB, "--format", "json"]],
    "nccl_tests": [["import", "{}"]],
    "prices": [["prices", "import", "{}", "--cloud", "aws", "--date",
                "2026-05-20", "--output", "OUT"]],
    "records": [["validate", "{}", "--format", "json"],
                ["calibrate", "--from", "{}", "--output", "OUT"]],
    "scenario": [["predict", "{}", "--device", "a100_sxm4_80gb", "--format",
                  "json"],
                 ["show", "{}"], ["recommend", "{}", "--format", "json"]],
    "table": [["validate", "{}", "--format", "json"],
              ["calibrate", "--from", "{}", "--device", "t4", "--output",
               "OUT"]],
    "trainer_state": [["calibrate", "--from", "{}", "--scenario",
                       "emotion_bert_base", "--batch", "64", "--device",
                       "l4", "--output", "OUT"]],
    "yaml": [["predict", "{}", "--device", "t4"], ["validate", "{}"]],
}
OF_NO_USE_ALONE = ("csv", "yaml")  # formats, and no file of ours
SUFFIX = {"model_config": ".json", "answer": ".json"}

# Files of the trainer, by their name in a folder; DIR is the folder.
TRAIN = ["train", "--model", "MODEL", "--steps", "1", "--batch", "1",
         "--length", "8", "--threads", "1"]
TRAINER_READERS = {
    "examples": [[*TRAIN, "--data", "{}"]],
    "histogram": [[*TRAIN, "--lengths", "{}"]],
    "plan": [["measure", "--plan", "{}", "--threads", "1"]],
    "tokenizer": [[*TRAIN, "--data", "TEXTS", "--tokenizer", "DIR"]],
    "vocabulary": [[*TRAIN, "--data", "TEXTS", "--tokenizer", "DIR"]],
    "config": [["train", "--model", "DIR", "--steps", "1", "--batch", "1",
                "--length", "8", "--threads", "1", "--lengths", "LENGTHS"]],
    "weights": [["train", "--model", "DIR", "--steps", "1", "--batch", "1",
                 "--length", "8", "--threads", "1", "--lengths", "LENGTHS"]],
    "checkpoint": [[*TRAIN, "--lengths", "LENGTHS", "--checkpoint", "{}"]],
}
TRAINER_NAME = {"tokenizer": "tokenizer.json", "vocabulary": "vocab.txt",
                "config": "config.json", "weights": "model.safetensors"}
SMALL = {"model_type": "bert", "vocab_size": 64, "hidden_size": 8,
         "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 16, "max_position_embeddings": 16}


def mutated(random, data):
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if not data:
            break
        # Most of what is worth changing stands in front (safetensors).
        at = random.randrange(min(len(data), random.choice((64, 2048, 1 << 30))))
        length = min(len(data) - at, 1 << random.randrange(8))
        kind = random.choice((0, 1, 2, 3, 4, 5, 6, 6, 6, 6))
        if kind == 0:
            data[at] = random.randrange(256)
        elif kind == 1:
            del data[at:at + length]
        elif kind == 2:
            data[at:at] = data[at:at + length] * random.choice((1, 2, 300))
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at:at] = random.choice(STRANGE)
        elif kind == 5:
            data[at:at + length] = random.choice(STRANGE)
        else:  # a number for a number
            numbers = list(re.finditer(rb"-?\d[\d.e+]*", bytes(data[:65536])))
            if numbers:
                one = random.choice(numbers)
                data[one.start():one.end()] = random.choice(STRANGE)
    return bytes(data)


def refuse_constant(name):
    raise Finding(f"{name} in JSON")


def check(result, command, program):
    """What a person sees is an answer or one line."""
    if result.returncode not in ENDS:
        raise Finding(f"exit code {result.returncode} of {command}: "
                      f"{result.stderr[-300:]!r}")
    out, error = (text.decode("utf-8") for text in
                  (result.stdout, result.stderr))
    is_json = "json" in command or "measure" in command
    # Of JSON, which is data, the order of writing is its reader's business.
    for text, strange in ((out, CONTROLS if is_json else CONTROLS + BIDI),
                          (error, CONTROLS + BIDI)):
        found = re.search(f"[{strange}]", text)
        if found:
            raise Finding(f"{found[0]!r} is printed by {command}")
    lines = [line for line in error.splitlines() if not re.match(
        r"(trainfare: )?(warning|note): |calibrate: ", line)]
    if result.returncode in (1, 2, 3) and program == "trainfare":
        if len(lines) != 1 or not lines[0].startswith("trainfare: "):
            raise Finding(f"no single line but {error[:600]!r} of {command}")
    elif result.returncode and len(lines) != 1:
        raise Finding(f"no single line but {error[:600]!r} of {command}")
    longest = max(map(len, error.splitlines()), default=0)
    if longest > LONGEST_LINE:
        raise Finding(f"a line of {longest} characters of {command}")
    if result.returncode == 0 and "json" in command and out:
        json.loads(out, parse_constant=refuse_constant)


def run(program, command, folder):
    environment = {"PATH": os.environ["PATH"], "OMP_WAIT_POLICY": "passive",
                   "HOME": str(folder), "TRAINFARE_FITS": str(folder / "fits")}
    try:
        return subprocess.run([program, *command], cwd=folder,
                              stdin=subprocess.DEVNULL, env=environment,
                              capture_output=True, timeout=LONGEST_SECONDS,
                              check=False)
    except subprocess.TimeoutExpired as error:
        raise Finding(f"more than {LONGEST_SECONDS} s: {command}") from error


def small_model(trainer, folder, config):
    """A folder with a model of that configuration, all of it zero: the names
    are those of bert-tiny, which has two layers, of which one may be left."""
    made = folder / "made"
    done = run(trainer, ["train", "--model", "bert-tiny", "--lengths",
                         str(lengths_file(folder)), "--steps", "1", "--batch",
                         "1", "--save", str(made)], folder)
    if done.returncode:
        raise RuntimeError(done.stderr)
    extents = {30522: config["vocab_size"], 128: config["hidden_size"],
               512: config["intermediate_size"], 2: 2}
    positions = config["max_position_embeddings"]
    data = (made / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, entry in json.loads(data[8:8 + size]).items():
        layer = re.search(r"\.layer\.(\d+)\.", name)
        if name == "__metadata__" or (
                layer and int(layer[1]) >= config["num_hidden_layers"]):
            continue
        shape = [extents[extent] for extent in entry["shape"]]
        if "position_embeddings" in name:
            shape[0] = positions
        end = at + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (made / "model.safetensors").write_bytes(
        len(text).to_bytes(8, "little") + text + bytes(at))
    (made / "config.json").write_text(json.dumps(config))
    return made


def lengths_file(folder):
    path = folder / "lengths.csv"
    path.write_text("length,count\n4,3\n8,1\n")
    return path


class Core:
    """One reader of `trainfare`, with what its corpus holds."""

    def __init__(self, program, kind):
        self.program, self.kind = program, kind
        self.files = sorted((CORPUS / kind).iterdir())

    def run(self, random, folder, source, change):
        # Of the corpus' own ending, which decides how a file is read.
        path = folder / ("input" + SUFFIX.get(self.kind, source.suffix))
        for name, text in BESIDE.items():
            (folder / name).write_text(text, "utf-8")
        path.write_bytes(change(source.read_bytes()))
        command = [word.replace("{}", str(path)).replace(
            "OUT", str(folder / "out.yaml"))
            for word in random.choice(READERS[self.kind])]
        result = run(self.program, command, folder)
        check(result, command, "trainfare")
        return f"exit {result.returncode}"

    def once(self, random, folder):
        return self.run(random, folder, random.choice(self.files),
                        lambda data: mutated(random, data))

    def expect_something_is_taken(self, folder):
        """Else the attack would not get behind the first line."""
        for command in range(len(READERS[self.kind])):
            always = types.SimpleNamespace(choice=lambda of, n=command: of[n])
            if not any(self.run(always, folder, source, bytes) == "exit 0"
                       for source in self.files):
                raise Finding(f"{READERS[self.kind][command]} takes nothing")


class Trainer:
    """One reader of `trainfare-trainer`, with files that it takes."""

    def __init__(self, program, kind, folder):
        self.program, self.kind = program, kind
        self.model = folder / "model"
        self.lengths = lengths_file(folder)
        self.texts = folder / "texts.jsonl"
        self.checkpoint = folder / "checkpoint.safetensors"
        if not self.model.exists():
            self.prepare(folder)
        source = {"plan": folder / "plan.jsonl",
                  "config": self.model / "config.json",
                  "weights": self.model / "model.safetensors",
                  "checkpoint": self.checkpoint}.get(kind)
        self.files = [source] if source else sorted((CORPUS / kind).iterdir())

    def prepare(self, folder):
        small_model(self.program, folder, SMALL).rename(self.model)
        self.texts.write_text('{"text": "un cafe, unaffable", "label": 1}\n')
        (folder / "plan.jsonl").write_text(json.dumps(
            {"model": {"family": "decoder", "layers": 1, "hidden": 8,
                       "heads": 2, "vocabulary": 50}, "batch": 2,
             "sequence_length": 8, "steps": 1, "warmup": 0,
             "max_seconds": 2}) + "\n")
        done = run(self.program, self.words(
            [*TRAIN, "--lengths", "LENGTHS", "--checkpoint",
             str(self.checkpoint)], folder, None), folder)
        if done.returncode:
            raise RuntimeError(done.stderr)

    def words(self, command, folder, path):
        return [word.replace("{}", str(path)).replace("DIR", str(folder))
                .replace("MODEL", str(self.model))
                .replace("LENGTHS", str(self.lengths))
                .replace("TEXTS", str(self.texts)) for word in command]

    def once(self, random, folder):
        source = random.choice(self.files)
        if self.kind in ("config", "weights"):
            for name in ("config.json", "model.safetensors"):
                (folder / name).write_bytes((self.model / name).read_bytes())
        path = folder / TRAINER_NAME.get(self.kind, "input" + source.suffix)
        path.write_bytes(mutated(random, source.read_bytes()))
        command = self.words(random.choice(TRAINER_READERS[self.kind]), folder,
                             path)
        result = run(self.program, command, folder)
        check(result, command, "trainfare-trainer")
        return f"exit {result.returncode}"


def main():
    parser = counting.options_of(__doc__)
    parser.add_argument("trainfare", type=counting.program)
    parser.add_argument("trainer", type=counting.program, nargs="?")
    options = parser.parse_args()
    kinds = {}
    for kind in READERS:
        core = Core(options.trainfare, kind)
        kinds[kind] = (core.once, 6)
        with tempfile.TemporaryDirectory() as folder:
            if kind not in OF_NO_USE_ALONE:
                core.expect_something_is_taken(Path(folder))
    if not options.trainer:
        counting.run_all(kinds, options)
    with tempfile.TemporaryDirectory() as folder:
        kinds |= {f"trainer-{kind}": (
            Trainer(options.trainer, kind, Path(folder)).once, 1)
            for kind in TRAINER_READERS}
        counting.run_all(kinds, options)


if __name__ == "__main__":
    main()
