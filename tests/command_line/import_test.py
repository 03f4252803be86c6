"""Prices, tables and logs of others."""

import json

import program
from program import Case, GOOD


class Import(Case):
    # Two ranks: a bus bandwidth of 2 x 1 / 2 times the algorithm's.
    NCCL = """\
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1100 on     node-a device  0 [0x8d] NVIDIA L4
#  Rank  1 Group  0 Pid   1100 on     node-a device  1 [0x91] NVIDIA L4
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    62.50   16.78   16.78      0    62.50   16.78   16.78      0
     2097152        524288     float     sum      -1    150.0   13.98   13.98      0    150.0   13.98   13.98      0
# Avg bus bandwidth    : 13.5
"""  # fmt: skip

    def test_records_go_to_standard_output_or_a_file(self):
        log = self.write("nccl.txt", self.NCCL)
        result = self.good("import", log, log)
        records = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(
            [(r["kind"], r["world_size"], r["bytes"], r["samples"])
             for r in records],
            2 * [("collective", 2, 1048576, [{"time_s": 6.25e-05}]),
                 ("collective", 2, 2097152, [{"time_s": 0.00015}])])  # fmt: skip
        self.assertEqual(result.stderr, "")
        file = self.path("net.jsonl")
        self.assertEqual(self.good("import", log, "--output", file).stdout, "")
        with open(file, encoding="utf-8") as written:
            self.assertEqual(
                written.read(), self.good("import", log).stdout
            )

    def test_what_is_no_such_output(self):
        self.refused(
            1,
            "nccl.txt:9: expected 13 columns (size .. #wrong), got 5; is the "
            "line cut off?",
            "import",
            self.write("nccl.txt", self.NCCL[: self.NCCL.index("    62.50")]),
        )
        cut = self.write("cut.txt", self.NCCL[: self.NCCL.index("# Avg")])
        result = self.good("import", cut)
        self.assertIn("cut.txt: the end of a run is missing", result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 2)

    def test_an_mlperf_log_moves_a_fit(self):
        def event(time_ms, key, value=None):
            return ":::MLLOG " + json.dumps({
                "namespace": "", "time_ms": time_ms,
                "event_type": "POINT_IN_TIME", "key": key, "value": value,
                "metadata": {"file": "run.py", "lineno": 1}}) + "\n"  # fmt: skip

        def log(global_batch):
            return self.write("result_0.txt", "".join((
                event(1000, "global_batch_size", global_batch),
                event(2000, "run_start"),
                event(62000, "train_samples", 8 * 300),
                event(62000, "run_stop"))))  # fmt: skip

        asked = (self.write("job.yaml", GOOD), "--device", "t4")
        for devices in (1, 2):
            fit = self.path(f"t4_{devices}.yaml")
            of_so_many = (*asked, "--devices", str(devices))
            before = self.json_of("predict", *of_so_many)
            self.good("calibrate", "--from", log(8 * devices), "--scenario",
                      *asked, "--output", fit)  # fmt: skip
            after = self.json_of("predict", *of_so_many, "--fit", fit)
            step_s = [abs(run["predictions"][0]["step_time_s"] - 0.2 * devices)
                      for run in (before, after)]  # fmt: skip
            # Nearer to what was measured.
            self.assertLess(step_s[1], step_s[0])
        self.refused(
            1,
            "result_0.txt: does not say what was trained on what; calibrate "
            "--from it with --scenario and --device",
            "calibrate", "--from", log(8), "--device", "t4")  # fmt: skip
        self.refused(
            1,
            "other.txt: expected an MLPerf log, got no line with :::MLLOG; "
            "what nccl-tests prints is read by `trainfare import`",
            "calibrate", "--from", self.write("other.txt", self.NCCL),
            "--scenario", *asked)  # fmt: skip


if __name__ == "__main__":
    program.main()
