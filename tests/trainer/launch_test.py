"""The scripts of `trainfare calibrate --launch`, read and, for torchrun, run.

    launch_test.py TRAINER TRAINFARE

torchrun is that of the reference environment (reference_env.sh); without it that
test is skipped. TRAINFARE_SKYPILOT_PYTHON, a Python with SkyPilot, and
shellcheck check the scripts where they are at hand.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TRAINER = TRAINFARE = ""
CACHE = Path(os.environ.get("TRAINFARE_CACHE") or
             Path(os.environ.get("XDG_CACHE_HOME") or
                  Path.home() / ".cache") / "trainfare")
TORCHRUN = CACHE / "reference-2.11.0" / "bin" / "torchrun"
INSTANCES = "aws/g5.xlarge,aws/g5.12xlarge"


def script_of(launcher, *more):
    return subprocess.run(
        [TRAINFARE, "calibrate", "--launch", launcher, *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Launch(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def script(self, launcher, instances=INSTANCES, *more):
        path = self.folder / f"{launcher}.sh"
        result = script_of(launcher, "--instances", instances, "--script",
                           path, *more)
        self.assertEqual(result.returncode, 0, result.stderr)
        subprocess.run(["bash", "-n", path], check=True)
        if shutil.which("shellcheck"):
            subprocess.run(["shellcheck", path], check=True)
        return path

    def stub(self, name, text):
        """A program of that name, first on the path of what is run."""
        programs = self.folder / "programs"
        programs.mkdir(exist_ok=True)
        path = programs / name
        path.write_text("#!/usr/bin/env bash\n" + text)
        path.chmod(0o755)

    def run_script(self, path, *arguments):
        environment = {
            **os.environ, "TRAINFARE_TRAINER": TRAINER,
            "TRAINFARE_RECORDS": str(self.folder / "records"),
            "PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}"}
        return subprocess.run(["bash", path, *arguments], env=environment,
                              cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)

    def test_torchrun_measures_one_and_all_ranks(self):
        if not TORCHRUN.exists():
            self.skipTest("no torchrun: tests/trainer/reference_env.sh")
        path = self.script("torchrun", INSTANCES, "--models", "bert-tiny")
        # This machine stands for the instance, its processor for the GPUs.
        text = path.read_text().replace("--device cuda", "--threads 1")
        text = text.replace('"steps":6', '"steps":1').replace(
            "bench collectives", "bench collectives --bytes 4096,65536")
        # Of nine runs the short ones.
        text = "\n".join(line for line in text.split("\n")
                         if not re.search(r'"(sequence_length":(128|384)'
                                          r'|batch":64)', line))
        path.write_text(text)
        self.stub("torchrun", f'exec "{TORCHRUN}" "$@"\n')
        result = self.run_script(path, "aws/g5.12xlarge")
        self.assertEqual(result.returncode, 0, result.stderr)
        records = Path(result.stdout.strip())
        kinds = [(r["kind"], r["world_size"]) for r in
                 map(json.loads, records.read_text().splitlines())]
        self.assertEqual(kinds, [("step", 1)] * 2 + [("collective", 4)] * 4 +
                         [("step", 4)] * 2)
        result = self.run_script(path, "aws/none")
        self.assertEqual(result.returncode, 2)
        self.assertIn("aws/g5.xlarge, aws/g5.12xlarge", result.stderr)

    def test_slurm_submits_a_job_an_instance(self):
        path = self.script("slurm")
        # A stand-in that keeps what it is given, and leaves records of one.
        self.stub("sbatch", f"""
            job=$(cat); name=$(sed -n 's/^#SBATCH --job-name=//p' <<<"$job")
            echo "$*" >"{self.folder}/$name.arguments"
            echo "$job" >"{self.folder}/$name.job"
            if [[ $name == *12xlarge ]]; then echo {{}} >"$records/$name.jsonl"
            fi""")
        result = self.run_script(path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("trainfare-aws-g5-xlarge: no records", result.stderr)
        self.assertEqual(Path(result.stdout.strip()).name,
                         "trainfare-aws-g5-12xlarge.jsonl")
        job = self.folder / "trainfare-aws-g5-12xlarge.job"
        subprocess.run(["bash", "-n", job], check=True)
        text = job.read_text()
        lines = text.splitlines()
        self.assertEqual(lines[0], "#!/usr/bin/env bash")
        # sbatch reads directives up to the first command.
        head = lines[1:lines.index("set -euo pipefail")]
        self.assertTrue(all(l.startswith("#SBATCH --") for l in head), head)
        self.assertIn("#SBATCH --ntasks-per-node=4", head)
        self.assertIn("#SBATCH --gpus-per-node=4", head)
        self.assertIn("#SBATCH --constraint=g5.12xlarge", head)
        self.assertIn('srun --ntasks 4 "$trainer" bench collectives', text)
        one = (self.folder / "trainfare-aws-g5-xlarge.job").read_text()
        self.assertNotIn("bench collectives", one)
        # srun runs what the step's environment names: really, in one task.
        self.assertEqual(len((self.folder / "records/plan.jsonl").read_text()
                             .splitlines()), 9)

    def test_skypilot_tasks(self):
        path = self.script("skypilot")
        self.stub("sky", 'echo "$*" >>calls; exit 0\n')
        self.stub("rsync", 'echo {} >"${@: -1}"\n')
        result = self.run_script(path)
        self.assertEqual(result.returncode, 0, result.stderr)
        calls = (self.folder / "calls").read_text().splitlines()
        self.assertEqual(len(calls), 4)
        self.assertIn("down --yes trainfare-aws-g5-xlarge", calls)
        task = self.folder / "records/trainfare-aws-g5-12xlarge.yaml"
        text = task.read_text()
        self.assertIn("  instance_type: g5.12xlarge\n", text)
        sky = os.environ.get("TRAINFARE_SKYPILOT_PYTHON")
        if sky:
            checked = subprocess.run(
                [sky, "-c",
                 "import sys, sky\n"
                 "from sky.utils import common_utils, schemas\n"
                 "import yaml\n"
                 "config = yaml.safe_load(open(sys.argv[1]))\n"
                 "common_utils.validate_schema("
                 "config, schemas.get_task_schema(), 'task: ')\n"
                 "common_utils.validate_schema(config['resources'], "
                 "schemas.get_resources_schema(), 'resources: ')\n"
                 "print(sorted(config))", str(task)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)

    def plan_of(self, *more):
        """The requests that a script has in it."""
        result = script_of("torchrun", "--instances", "aws/g5.xlarge", *more)
        self.assertEqual(result.returncode, 0, result.stderr)
        plan = re.search(r"<<'PLAN'\n(.*?)PLAN\n", result.stdout, re.DOTALL)[1]
        return [json.loads(line) for line in plan.splitlines()]

    def test_models_whose_positions_have_no_end_are_planned(self):
        runs = self.plan_of("--models", "transformer-base")
        self.assertEqual([run["model"] for run in runs],
                         ["transformer-base"] * 9)
        self.assertEqual({run["sequence_length"] for run in runs},
                         {32, 128, 384})

    def test_models_that_the_trainer_has_not_are_not_planned(self):
        for model, lacks in (
                ("bloom-560m", "decoders like Llama's, without LayerNorm"),
                ("t5-small", "the blocks of BERT, GPT-2"),
                ("deepseek-v2-lite", "decoders like Llama's, without latent")):
            result = script_of("torchrun", "--instances", "aws/g5.xlarge",
                               "--models", f"bert-tiny,{model}")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertIn(f"model {model}: the trainer has ", result.stderr)
            self.assertIn(lacks, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_the_script_has_the_trainers_libtorch(self):
        version = subprocess.run([TRAINER, "--version"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        libtorch = re.search(r"LibTorch (\d+\.\d+\.\d+)", version)[1]
        result = script_of("skypilot", "--instances", "aws/g5.xlarge")
        self.assertIn(f" torch=={libtorch}\n", result.stdout)

    def test_what_cannot_be_launched(self):
        for arguments, code, message in [
                (["sloorm", "--instances", INSTANCES], 1, '"slurm"'),
                (["slurm"], 2, "--instances: expected instances"),
                (["slurm", "--instances", "aws/g5.xlarg"], 1, "g5.xlarge"),
                (["slurm", "--instances", "aws/g5.xlarge", "--models",
                  "bert-bse"], 1, "bert-base"),
                (["slurm", "--instances", "aws/g5.xlarge", "--script",
                  "/proc/none/script"], 1, "/proc/none"),
                (["slurm", "--instances", "aws/g5.xlarge", "--script",
                  self.folder / "none/script"], 1,
                 "none/script: cannot be written: No such file"),
                # The plan is one for all instances.
                (["slurm", "--instances", "aws/g5.xlarge,aws/p3.2xlarge",
                  "--precision", "fp32,bf16"], 1,
                 "--instances: aws/p3.2xlarge: precision: v100_sxm2_16gb has "
                 "no bf16; it runs fp32, fp16"),
                (["slurm", "--instances", "aws/p5.48xlarge", "--precision",
                  "fp8"], 1, "--instances: aws/p5.48xlarge: precision: the "
                 "trainer has fp32, tf32, fp16 and bf16, got fp8"),
        ]:
            result = script_of(*arguments)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertIn(message, result.stderr)
            self.assertEqual(len(result.stderr.strip().splitlines()), 1)
        result = subprocess.run(
            [TRAINFARE, "calibrate", "--instances", "aws/g5.xlarge"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    TRAINER = str(Path(sys.argv.pop(1)).resolve())
    TRAINFARE = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
