"""`recommend` as a person asks it."""

import json
import os

import program
from program import Case, GOOD


class Recommend(Case):
    def test_message_table_and_json_name_one_winner(self):
        for flags in ((), ("--objective", "time"), ("--spot",), ("--cloud", "aws")):
            with self.subTest(flags):
                command = ("recommend", "imdb_bert_base", *flags)
                chosen = self.json_of(*command)["chosen"]["instance"]
                text = self.good(*command).stdout
                self.assertIn(chosen, text.splitlines()[0])
                marked = [l for l in text.splitlines() if l.startswith("*")]
                self.assertEqual(len(marked), 1)
                self.assertEqual(marked[0].split()[1], chosen)

    def test_limits_that_nothing_meets(self):
        result = self.run_it(
            "recommend", "imdb_bert_base", "--deadline", "1ms", "--quiet"
        )
        self.assertEqual(result.returncode, 3)
        self.assertIn("misses the deadline by", result.stdout)
        self.assertEqual(
            result.stderr, "trainfare: no instance fits and meets the limits\n"
        )

    def test_what_no_instance_can_run_says_why(self):
        def complaint(*flags):
            result = self.run_it("recommend", "--quiet", *flags)
            self.assertEqual(result.returncode, 3)
            self.assertEqual(result.stderr.count("\n"), 1)
            return result.stderr

        p5 = ("--instance", "aws/p5.48xlarge")
        for batch, ranks, would in (("7", 4, "4 or 8"), ("15", 8, "8 or 16")):
            # Also where no more than one candidate is listed.
            self.assertIn(
                f"limits; aws/p5.48xlarge ({ranks} x h100_sxm) cannot run it: a "
                f"global batch of {batch} does not divide over {ranks} ranks; "
                f"{would} would\n",
                complaint("llama_8b_fsdp", *p5, "--global-batch", batch, "--top", "1"),
            )
        fp8 = ("llama_8b_lora", "--precision", "fp8")
        self.assertIn(
            "cannot run it: precision: a100_sxm4_40gb has no fp8; it runs",
            complaint(*fp8, "--instance", "aws/p4d.24xlarge"),
        )

    def test_a_consumer_card_is_a_choice(self):
        command = ("recommend", "llama_8b_lora", "--device", "rtx_4090")
        chosen = self.json_of(*command)["chosen"]
        self.assertRegex(chosen["instance"], r"^vast/\dx-RTX_4090-")
        self.assertIn("vast: hosts of other people", self.good(*command).stdout)

    def test_prices_of_ones_own(self):
        catalog = self.write("vms.csv", (
            "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,"
            "GpuInfo,Price,SpotPrice,Region\n"
            "gpu_1x_a10,A10,1,30,200,,0.01,,us-east-1\n"))  # fmt: skip
        prices = self.path("lambda.yaml")
        # Of a pipe, which is read once.
        with open(catalog, encoding="utf-8") as file:
            self.good("prices", "import", "/dev/stdin", "--cloud", "lambda",
                      "--date", "2026-11-20", "--output", prices,
                      input=file.read())  # fmt: skip
        # Whatever a region is called.
        odd = self.write("odd.csv", (
            "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\n"
            'gpu_1x_a10,A10,1,0.44,0.00,", CA, NA"\n'))  # fmt: skip
        odd_prices = self.path("odd.yaml")
        self.good("prices", "import", odd, "--cloud", "lambda", "--date",
                  "2026-11-20", "--output", odd_prices)  # fmt: skip
        row = self.json_of("predict", "emotion_bert_base", "--instance",
                           "gpu_1x_a10", "--prices", odd_prices)  # fmt: skip
        self.assertAlmostEqual(row["price"]["price_usd_per_hour"], 0.44)
        self.assertEqual(row["price"]["region"], "CA, NA")
        named = self.json_of("predict", "emotion_bert_base", "--instance", "gpu_1x_a10",
                             "--prices", odd_prices, "--region", "CA, NA")  # fmt: skip
        self.assertEqual(named["price"]["region"], "CA, NA")
        both = self.path("both.json")
        self.refused(2, "--export both.json: expected a file of its own, --output "
                     "writes this one", "prices", "import", catalog, "--cloud", "lambda",
                     "--date", "2026-11-20", "--output", both, "--export", both)
        asked = ("emotion_bert_base", "--prices", prices)
        result = self.run_it("recommend", *asked, "--format", "json")
        self.assertNotIn("days old", result.stderr)
        json_ = json.loads(result.stdout)
        self.assertEqual(json_["chosen"]["instance"], "lambda/gpu_1x_a10")
        others = {c["instance"]: c for c in json_["candidates"]}
        # The file is all there is of its cloud; the other clouds stay.
        self.assertEqual(others["lambda/gpu_1x_a100"]["reason"], "no price")
        self.assertGreater(others["aws/g5.xlarge"]["cost_usd"], 0)
        one = self.json_of("predict", *asked, "--instance", "gpu_1x_a10")
        self.assertEqual(one["price"]["price_usd_per_hour"], 0.01)
        self.assertEqual(one["price"]["date"], "2026-11-20")
        self.refused(
            1,
            "lambda.yaml: cloud: the prices of lambda are in lambda.yaml too",
            "recommend", *asked, "--prices", prices)  # fmt: skip
        for date in ("yesterday", "2026-13-01", "2026-02-29"):
            self.refused(
                1,
                f'--date: expected a day such as 2026-05-20, got "{date}"',
                "prices", "import", catalog, "--cloud", "lambda",
                "--date", date)  # fmt: skip
        self.assertIn(
            "no instance of lambada is known, so recommend has no use for "
            'them; did you mean "lambda"?',
            self.good("prices", "import", catalog, "--cloud", "lambada",
                      "--date", "2026-11-20").stdout)  # fmt: skip
        # An empty catalog takes no one's place, and prices no other file's.
        with open(prices, encoding="utf-8") as file:
            kept = file.read()
        with open(catalog, encoding="utf-8") as file:
            header, row = file.readlines()
        for text, why in ((header, "none of 0 can be used"),
                          (header + row.replace("0.01", "x"),
                           "none of 1 can be used; 1 dropped: price is no number"),
                          (header + row.replace("0.01", "nan"),
                           "none of 1 can be used; 1 dropped: price is no number")):
            self.refused(
                1, f"vms.csv: expected rows with prices, {why}",
                "prices", "import", self.write("vms.csv", text), "--cloud",
                "lambda", "--date", "2026-11-20", "--output", prices)  # fmt: skip
            with open(prices, encoding="utf-8") as file:
                self.assertEqual(file.read(), kept)
        again = ("prices", "import", self.write(
            "vms.csv", header + row + row.replace("0.01,", "0.02,x")), "--cloud",
            "lambda", "--date", "2026-11-20", "--output")  # fmt: skip
        self.assertIn("1 row dropped: price is no number",
                      self.good(*again, prices).stdout)
        none = self.path("none.yaml")
        self.begins(1, '--fail-if: unknown figure "foo"',
                    *again, none, "--fail-if", "foo>1")
        self.assertFalse(os.path.exists(none))
        self.refused(
            1, "--output job.yaml: expected a new file, or prices to replace; "
            "the one that is there is none",
            *again, self.write("job.yaml", GOOD))  # fmt: skip

    def test_top_shows_the_best_and_counts_the_rest(self):
        command = ("recommend", "emotion_bert_base")
        whole = self.json_of(*command)
        top = self.json_of(*command, "--top", "3")
        self.assertEqual(top["candidates"], whole["candidates"][:3])
        self.assertEqual(top["chosen"], whole["chosen"])
        priced = [c for c in whole["candidates"]
                  if c["chosen"] or c["reason"].endswith("dearer")]  # fmt: skip
        self.assertIn(
            f"--top 3: {len(priced) - 3} more candidates are worse, "
            f"{len(whole['candidates']) - len(priced)} do not fit, have no "
            "price or known network or miss a limit", top["notes"])  # fmt: skip
        self.assertEqual(self.json_of(*command, "--top", "9999")["candidates"],
                         whole["candidates"])  # fmt: skip
        self.refused(
            1, "--top: expected an integer from 1 to 1000000, got 0",
            *command, "--top", "0")  # fmt: skip

    def test_prices_of_a_region(self):
        regions = ("eu-west-1", "europe-west4")
        json_ = self.json_of(
            "recommend", "emotion_bert_base", "--region", ", ".join(regions)
        )
        seen = {}
        for c in json_["candidates"]:
            cloud = c["instance"].split("/")[0]
            if c["price"] is None:
                self.assertIsNone(c["cost_usd"])
            else:
                seen.setdefault(cloud, set()).add(c["price"]["region"])
        self.assertEqual(seen, {"aws": {"eu-west-1"}, "gcp": {"europe-west4"}})
        self.assertIn("no price in these regions",
                      [c["reason"] for c in json_["candidates"]])  # fmt: skip
        one = self.json_of("predict", "emotion_bert_base", "--instance",
                           "aws/g5.xlarge", "--region", "eu-west-1")  # fmt: skip
        self.assertEqual(one["price"]["region"], "eu-west-1")
        self.refused(
            1,
            '--region: unknown region "eu-west-11"; did you mean "eu-west-1", '
            '"eu-west1" or "us-west-1"? see: trainfare list prices',
            "recommend", "emotion_bert_base", "--region", "eu-west-11")  # fmt: skip

    def test_says_dates_market_and_what_is_left_out(self):
        text = self.good("recommend", "emotion_bert_base").stdout
        self.assertRegex(text, r"note: prices: on demand, aws \d{4}-\d\d-\d\d")
        self.assertIn("excludes", text)
        self.assertNotIn("$0.00 ", text)


if __name__ == "__main__":
    program.main()
