"""Settings by their source: the line, the environment, folders, the user."""

import os

import program
from program import Case, ROOT


class Settings(Case):
    def test_settings_give_way_to_the_line(self):
        asked = ("recommend", "emotion_bert_base")
        self.assertEqual(
            self.good(*asked, "--all", environment={"TRAINFARE_TOP": "3"}).stdout,
            self.good(*asked, "--all").stdout)
        both = self.write("both.yaml", "top: 3\nall: true\n")
        self.begins(1, f"{both}:2:6: --all: not with --top, which {both}:1:6 says",
                    *asked, "--config", both)
        largest = ("predict", "emotion_bert_base", "--device", "l4", "--largest",
                   "batch", "--format", "csv")
        self.assertEqual(
            self.good(*largest, environment={"TRAINFARE_BATCH": "8"}).stdout,
            self.good(*largest).stdout)

        # A flag that is off goes with anything.
        off = self.write("off.yaml", "top: 3\nall: false\n")
        self.assertEqual(self.good(*asked, "--config", off).stdout,
                         self.good(*asked, "--top", "3").stdout)

    def test_a_stronger_source_of_settings_goes_first(self):
        """Of two settings that have no use together, by where they stand."""
        asked = ("recommend", "emotion_bert_base")
        whole = self.good(*asked, "--all").stdout
        three = self.good(*asked, "--top", "3").stdout
        self.assertNotEqual(whole, three)
        here = self.path("here")
        os.makedirs(here)
        os.makedirs(self.path("config/trainfare"))

        def answer(folder, user, **environment):
            self.write("here/trainfare.yaml", folder)
            self.write("config/trainfare/config.yaml", user)
            return self.good(*asked, cwd=here, environment=environment).stdout

        nothing = "spot: false\n"
        self.assertEqual(answer("top: 3\n", nothing, TRAINFARE_ALL="true"), whole)
        self.assertEqual(answer("all: true\n", nothing, TRAINFARE_TOP="3"), three)
        self.assertEqual(answer("top: 3\n", "all: true\n"), three)
        self.assertEqual(answer("recommend: { all: true }\n", "top: 3\n"), whole)
        self.assertEqual(answer("all: true\n", nothing, TRAINFARE_ALL="false"),
                         self.good(*asked).stdout)
        # In one source what is said of the command goes before what is of all.
        self.assertEqual(answer("recommend: { all: true }\ntop: 3\n", nothing), whole)
        self.assertEqual(answer("all: true\nrecommend: { top: 3 }\n", nothing), three)
        self.write("here/trainfare.yaml", "recommend: { all: true, top: 3 }\n")
        self.begins(1, "trainfare.yaml:1:19: --all: not with --top, which "
                    "trainfare.yaml:1:30 says", *asked, cwd=here)

    def test_where_a_job_runs_is_said_by_the_line_before_a_setting(self):
        """By a device or an instance: the line's stands alone."""
        file = self.path("trainfare.yaml")
        own = ("emotion_bert_base", "--format", "csv")

        def answer(command, setting, *flags, **environment):
            self.write("trainfare.yaml", setting)
            return self.good(command, *own, *flags, cwd=self.folder,
                             environment=environment).stdout

        instance = ("--instance", "aws/g5.xlarge")
        device = ("--device", "h100_sxm,l4")
        for command, setting, flags in (
            ("predict", "device: h100_sxm\n", instance),
            ("predict", "device: [h100_sxm, l4]\n", instance),
            ("predict", "instance: aws/g5.xlarge\n", device),
            ("recommend", "device: h100_sxm\n", instance),
            ("recommend", "cloud: gcp\n", instance),
            ("recommend", "instance: aws/g5.xlarge\n", device),
        ):
            with self.subTest((command, setting)):
                given = answer(command, setting, *flags)
                os.remove(file)
                self.assertEqual(given, self.good(command, *own, *flags).stdout)
        on_l4 = self.good("predict", *own, "--device", "l4").stdout
        # Of settings the stronger one; what both say of one file is refused.
        self.assertEqual(
            answer("predict", "instance: aws/g5.xlarge\n", TRAINFARE_DEVICE="l4"), on_l4)
        self.assertEqual(
            answer("predict", "instance: aws/g5.xlarge\npredict: { device: l4 }\n"), on_l4)
        self.write("trainfare.yaml", "device: l4\ninstance: aws/g5.xlarge\n")
        self.begins(2, "trainfare.yaml:1:9: --device and --instance: give one of them",
                    "predict", *own, cwd=self.folder)
        said = "--device, --instance: expected an instance that suits all of them"
        self.begins(2, f"trainfare.yaml:1:9: {said}", "recommend", *own,
                    cwd=self.folder)
        # A fit is of a device, too.
        fit = os.path.join(ROOT, "calibrate/fits/a10.yaml")
        self.assertEqual(answer("predict", "device: h100_sxm\n", "--fit", fit),
                         self.good("predict", *own, "--fit", fit).stdout)
        # A cloud still narrows instances; which setting is in its way is said.
        self.write("trainfare.yaml", "instance: aws/g5.xlarge\n")
        self.begins(2, "trainfare.yaml:1:11: --cloud, --instance: expected",
                    "recommend", *own, "--cloud", "gcp", cwd=self.folder)

    def test_prices_of_a_setting_wait_for_an_instance(self):
        device = ("predict", "emotion_bert_base", "--device", "l4", "--format", "csv")
        rented = ("predict", "emotion_bert_base", "--instance", "aws/g6.xlarge",
                  "--format", "csv")
        plain = self.good(*device).stdout
        for setting, flags in (("discount: aws=0.5\n", ("--discount", "aws=0.5")),
                               ("spot: true\n", ("--spot",)),
                               ("region: us-west-2\n", ("--region", "us-west-2"))):
            with self.subTest(setting):
                file = self.write("mine.yaml", setting)
                self.assertEqual(self.good(*device, "--config", file).stdout, plain)
                self.assertEqual(self.good(*rented, "--config", file).stdout,
                                 self.good(*rented, *flags).stdout)
                # Of a setting that gives way there is no instance either.
                file = self.write("mine.yaml", "instance: aws/g6.xlarge\n" + setting)
                self.assertEqual(self.good(*device, "--config", file).stdout, plain)
        self.begins(2, "--discount: needs --instance", *device, "--discount", "aws=0.5")
        # A published run has one only where its file says so.
        published = ("predict", os.path.join(
            ROOT, "scenarios/published/adan_optimizer.yaml#onestep_v100_adan_multi_fused"),
            "--format", "csv")
        file = self.write("mine.yaml", "discount: aws=0.5\n")
        self.assertEqual(self.good(*published, "--config", file).stdout,
                         self.good(*published).stdout)

    def test_largest_as_a_setting_gives_way(self):
        asked = ("predict", "emotion_bert_base", "--device", "l4", "--format", "csv")

        def given(largest, *flags):
            file = self.write("largest.yaml", f"largest: {largest}\n")
            return self.good(*asked, *flags, "--config", file).stdout

        self.assertEqual(given("batch"), self.good(*asked, "--largest", "batch").stdout)
        for largest, flags in (("batch", ("--batch", "8")), ("length", ("--seq", "48")),
                               ("model", ("--model", "bert-tiny"))):
            with self.subTest(largest):
                self.assertEqual(given(largest, *flags),
                                 self.good(*asked, *flags).stdout)
        both = self.write("both.yaml", "batch: 8\npredict: { largest: batch }\n")
        self.assertEqual(self.good(*asked, "--config", both).stdout, given("batch"))
        before = self.path("before.json")
        self.good(*asked, "--export", before)
        since = ("--baseline", before)
        self.assertEqual(given("batch", *since), self.good(*asked, *since).stdout)
        both = self.write("both.yaml", "largest: batch\nbatch: 8\n")
        self.begins(1, f"{both}:2:8: --batch: not with --largest, which "
                    f"{both}:1:10 says", *asked, "--config", both)

    def test_settings_from_a_pipe(self):
        """What stands there can be read once only."""
        asked = ("predict", "emotion_bert_base", "--config", "/dev/stdin")
        for text, message in (
            ("foo: 1\n", '1:1: unknown key "foo"'),
            ("batsh: 1\n", '1:1: unknown key "batsh"; did you mean "batch"?'),
            ("predict: { foo: 1 }\n", '1:12: predict: unknown key "foo"'),
            ("predict: 1\n", "1:10: predict: expected a map of options"),
        ):
            with self.subTest(text):
                self.begins(1, f"/dev/stdin:{message}", *asked, input=text)
        self.assertIn("batch: 8\n", self.good(*asked, "--dry-run",
                                              input="batch: 8\n").stdout)

    def test_settings_of_other_commands_are_known(self):
        """Wherever they stand: they change nothing, and a misspelt one is named."""
        asked = ("predict", "emotion_bert_base", "--device", "l4")
        plain = self.good(*asked).stdout
        os.makedirs(self.path("config/trainfare"))
        for name, path, flags in (
            ("trainfare.yaml", "trainfare.yaml", ()),
            (self.path("mine.yaml"), "mine.yaml", ("--config", self.path("mine.yaml"))),
            (self.path("config/trainfare/config.yaml"),
             "config/trainfare/config.yaml", ()),
        ):
            with self.subTest(path):
                file = self.write(path, "top: 3\nvalidate: { seed: 7 }\n")
                self.assertEqual(self.good(*asked, *flags, cwd=self.folder).stdout, plain)
                self.write(path, "validate: { sead: 7 }\n")
                self.begins(1, f'{name}:1:13: validate: unknown key "sead"; did you '
                            'mean "seed"?', *asked, *flags, cwd=self.folder)
                os.remove(file)


if __name__ == "__main__":
    program.main()
