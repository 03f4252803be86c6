#include "hardware/files/yaml_reader.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "model/error.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::hardware {
namespace {

using Reading = std::function<void(const Reader&)>;

// The whole message that reading `text` fails with; "no error" when it works.
std::string Message(std::string_view text, const Reading& read = {}) {
  try {
    const Reader root = Reader::FromText(text, "f.yaml");
    if (read) read(root);
    root.Finish();
  } catch (const model::InputError& error) {
    return error.what();
  }
  return "no error";
}

// The same with "KEY=VALUE" set from outside.
std::string MessageWith(std::string_view text,
                        const std::string& path,
                        const std::string& value,
                        const Reading& read) {
  try {
    const Reader root =
        Reader::FromText(text, "f.yaml", {{path, value, "--set"}});
    read(root);
    root.Finish();
  } catch (const model::InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a setting takes the place of what stands in the file") {
  constexpr std::string_view kText =
      "name: a\nbatch: 8\npadding: { static: 32 }\ndata: { train: 5 }\n";
  const Reader root =
      Reader::FromText(kText,
                       "f.yaml",
                       {{"batch", "16", "--set"},
                        {"padding", "{ buckets: [8, 64] }", "-"},
                        {"data.train", "7", "--set"},
                        {"data.eval", "3", "--set"},
                        {"run.new.key", "x", "--set"}});
  CHECK(root.Text("name") == "a");
  CHECK(root.Integer("batch", 1, 100) == 16);
  CHECK(root.Map("padding").Integers("buckets", 1, 100) ==
        std::vector<int64_t>{8, 64});
  CHECK(root.Map("data").Integer("train", 1, 100) == 7);
  CHECK(root.Map("data").Integer("eval", 1, 100) == 3);
  CHECK(root.Map("run").Map("new").Text("key") == "x");
  // The static padding of the file is nobody's question any more.
  CHECK_NOTHROW(root.Finish());
}

TEST_CASE("a setting that is wrong says who set it") {
  constexpr std::string_view kText = "batch: 8\npadding: dynamic\n";
  const Reading read = [](const Reader& root) {
    root.Integer("batch", 1, 100);
    root.Text("padding");
  };
  CHECK(MessageWith(kText, "batch", "9", read) == "no error");
  CHECK(MessageWith(kText, "batch", "x", read) ==
        "--set: batch: expected an integer from 1 to 100, got \"x\"");
  CHECK(MessageWith(kText, "bach", "9", read) ==
        "--set: unknown key \"bach\"; did you mean \"batch\"? known: batch, "
        "padding");
  CHECK(MessageWith(kText, "batch", " ", read) ==
        "--set batch: expected a value, got nothing");
  CHECK(MessageWith(kText, "batch", "{ a: 1", read)
            .starts_with("--set batch:1:"));
  CHECK(MessageWith(kText, "padding.static", "9", read) ==
        "--set padding.static: expected a map at padding, which is a single "
        "value; set it whole: padding={...}");
  CHECK(MessageWith(kText, "padding..static", "9", read).starts_with("--set"));
  // What the file itself says is still placed in the file.
  CHECK(MessageWith("batch: x\n", "padding", "9", read) ==
        "f.yaml:1:8: batch: expected an integer from 1 to 100, got \"x\"");
}

TEST_CASE("the texts of a setting's value are those that a reader gets") {
  const auto texts = [](const std::string& value) {
    return TextsOf({"model", value, "--set"});
  };
  using Texts = std::vector<std::string>;
  CHECK(texts("a/b # c") == Texts{"a/b"});
  CHECK(texts("'it''s'") == Texts{"it's"});
  CHECK(texts("\"\\x2e\\x2e/a\"") == Texts{"../a"});
  CHECK(texts("{ a: [x, {b: 'y'}], c: }") == Texts{"x", "y"});
  CHECK_THROWS_WITH_AS(texts(" "),
                       "--set model: expected a value, got nothing",
                       model::InputError);
}

TEST_CASE("values arrive with their units") {
  const Reader root = Reader::FromText(
      "name: H200\n"
      "memory: { capacity: 141 GB, bandwidth: 4.8 TB/s }\n"
      "latency: 0\n"
      "static: true\n"
      "sizes: [16, 32]\n"
      "scales: [0.5, 1]\n"
      "aliases: [a b, 'c']\n"
      "date: 2026-05-20\n"
      "peak: 989 TFLOP/s\n"
      "power: 0.7 kW\n"
      "price: 36 USD/h\n"
      "clock: 1.98 GHz\n"
      "energy: 2 kWh\n"
      "money: 3 USD\n",
      "f.yaml");
  CHECK(root.Text("name") == "H200");
  const Reader memory = root.Map("memory");
  CHECK(memory.Bytes("capacity") == model::GB(141));
  CHECK(memory.Bandwidth("bandwidth").base() == Near(4.8e12, 1e-12));
  CHECK(root.Time("latency", Reader::Sign::kZeroOrMore).base() == 0.0);
  CHECK(root.Flag("static"));
  CHECK(root.Integers("sizes", 1, 100) == std::vector<int64_t>{16, 32});
  CHECK(root.Numbers("scales", 0, 1) == std::vector<double>{0.5, 1.0});
  CHECK(root.Texts("aliases") == std::vector<std::string>{"a b", "c"});
  CHECK(root.Date("date") == "2026-05-20");
  CHECK(root.Quantity<model::FlopsPerSecond<>>("peak") ==
        model::TFlopPerSecond(989));
  CHECK(root.Power("power").base() == Near(700, 1e-12));
  CHECK(root.Price("price").base() == Near(0.01, 1e-12));
  CHECK(root.Frequency("clock").base() == Near(1.98e9, 1e-12));
  CHECK(root.Energy("energy") == model::KilowattHours(2));
  CHECK(root.Money("money") == model::Dollars(3));
  CHECK_NOTHROW(root.Finish());
}

TEST_CASE("an absent optional value is no error, and its key is known") {
  CHECK(Message("a: 1\n", [](const Reader& root) {
          CHECK_FALSE(root.OptionalText("b").has_value());
          CHECK_FALSE(root.OptionalBytes("c").has_value());
          CHECK(root.OptionalMaps("d").empty());
          CHECK(root.OptionalInteger("a", 0, 9) == 1);
        }) == "no error");
}

TEST_CASE("what is not a map of keys is refused with its position") {
  const char* empty = "f.yaml: expected a map of keys, got an empty file";
  CHECK(Message("") == empty);
  CHECK(Message("# only a comment\n") == empty);
  CHECK(Message("---\n") == empty);
  CHECK(Message("- 1\n") == "f.yaml:1:1: expected a map of keys, got a list");
  CHECK(Message("x") == "f.yaml:1:1: expected a map of keys, got \"x\"");
  CHECK(Message("a: b: c\n") ==
        "f.yaml:1:5: not valid YAML: illegal map value");
  CHECK(Message("a: [1,\nb: {\n") ==
        "f.yaml:3:1: not valid YAML: end of map flow not found");
  CHECK(Message("a: 1\n---\nb: 1\n") ==
        "f.yaml:2:1: expected one document, got a second; remove \"---\"");
  CHECK(Message(",\n") ==
        "f.yaml:1:1: expected one value, got \",\" behind it; put a text with "
        "such signs in quotes");
  CHECK(Message("a\x01: 1\n") ==
        "f.yaml:1:2: expected text, got the byte 0x01; is this YAML?");
  CHECK(Message("name: \xc3(\n") ==
        "f.yaml:1:7: expected text, got the byte 0xc3; is this UTF-8?");
}

TEST_CASE("anchors, aliases, tags and keys that are no words are refused") {
  CHECK(Message("a: &x 1\n") ==
        "f.yaml:1:4: expected a value, got an anchor (&); write the value out");
  CHECK(Message("a: !!int 1\n") ==
        "f.yaml:1:4: expected a value, got the tag \"tag:yaml.org,2002:int\"");
  CHECK(Message("? [1]\n: 2\n") ==
        "f.yaml:1:3: expected a key, got a map, a list or nothing");
}

TEST_CASE("a text in quotes ends with one") {
  for (const char* text : {"a: 'b\n", "a: 'it''s\n", "x: 1\na: [ 'b\n"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Reader::FromText(text, "f.yaml"), model::InputError);
  }
  CHECK_THROWS_WITH_AS(
      Reader::FromText("x: \xc3\xa9\na: 'b\n", "f.yaml"),
      "f.yaml:2:4: expected a text in quotes, got no quote behind it; is the "
      "file cut off?",
      model::InputError);
  CHECK(Reader::FromText("\xef\xbb\xbf"
                         "a: 'it''s'\nb: \"\\\"\"\n",
                         "f.yaml")
            .Text("b") == "\"");
}

TEST_CASE("overlong letters and halves of pairs are no UTF-8") {
  for (const char* text :
       {"a: \xe0\x80\xaf\n", "a: \xed\xa0\x80\n", "a: \xf4\x90\x80\x80\n"}) {
    CHECK_THROWS_AS(Reader::FromText(text, "f.yaml"), model::InputError);
  }
}

TEST_CASE("a duplicate key is refused") {
  CHECK(Message("a: 1\nb: 2\na: 3\n") ==
        "f.yaml:3:1: duplicate key \"a\"; first at 1:1");
  CHECK(Message("m: { x: 1,\n  x: 2 }\n") ==
        "f.yaml:2:3: m: duplicate key \"x\"; first at 1:6");
}

TEST_CASE("an unknown key is refused with the nearest known ones") {
  const Reading read = [](const Reader& root) {
    const Reader parallel = root.Map("parallel");
    parallel.OptionalInteger("data", 1, 9);
    parallel.OptionalInteger("tensor", 1, 9);
    parallel.OptionalInteger("pipeline", 1, 9);
  };
  CHECK(Message("parallel:\n  tensr: 2\n", read) ==
        "f.yaml:2:3: parallel: unknown key \"tensr\"; did you mean \"tensor\"? "
        "known: data, pipeline, tensor");
  CHECK(Message("parallel: {}\nzzz: 1\n", read) ==
        "f.yaml:2:1: unknown key \"zzz\"; known: parallel");
  CHECK(Message("a: 1\n") == "f.yaml:1:1: unknown key \"a\"; known: none");
  CHECK(
      Message("list:\n  - {x: 1}\n  - {x: 1, yy: 2}\n", [](const Reader& root) {
        for (const Reader& item : root.Maps("list")) {
          item.Integer("x", 1, 2);
        }
      }) == "f.yaml:3:12: list[1]: unknown key \"yy\"; known: x");
}

TEST_CASE("a key of another program is told what it is here") {
  const Reading read = [](const Reader& root) {
    root.Integer("batch", 1, 9);
    root.OptionalInteger("accumulation", 1, 9);
  };
  CHECK(Message("batch: 1\ngradient_accumulation_steps: 2\n", read) ==
        "f.yaml:2:1: unknown key \"gradient_accumulation_steps\"; hint: "
        "accumulation; known: accumulation, batch");
  CHECK(Message("per_device_train_batch_size: 2\n", read) ==
        "f.yaml:1:1: missing key \"batch\", an integer from 1 to 9; is "
        "\"per_device_train_batch_size\" at 1:1 meant?");
  // Only in a map that has the key.
  CHECK(Message("batch: 1\nmax_seq_length: 2\n", read) ==
        "f.yaml:2:1: unknown key \"max_seq_length\"; known: accumulation, "
        "batch");
}

TEST_CASE("keys of other programs for parts of a model are told ours") {
  const auto hint = [](const char* text) {
    return Message(text,
                   [](const Reader& root) { root.OptionalMap("parallel"); });
  };
  CHECK(hint("tensor_parallel_size: 2\n").find("parallel: { tensor: 8 }") !=
        std::string::npos);
  CHECK(hint("context_parallel_size: 2\n").find("{ context: 2 }") !=
        std::string::npos);
  CHECK(hint("expert_model_parallel_size: 2\n").find("{ expert: 8 }") !=
        std::string::npos);
  CHECK(hint("expert_tensor_parallel_size: 1\n").find("expert_tensor: 1 }") !=
        std::string::npos);
  CHECK(hint("moe_enable_deepep: true\n").find("expert_exchange: by_host") !=
        std::string::npos);
  CHECK(hint("virtual_pipeline_model_parallel_size: 2\n").find("chunks: 2") !=
        std::string::npos);
  CHECK(hint("sequence_parallel: true\n").find("sequence: true") !=
        std::string::npos);
}

TEST_CASE("a value of another program is told what it is here") {
  CHECK(Message("lora: { base_bits: nf4 }\n",
                [](const Reader& root) {
                  root.Map("lora").Integer("base_bits", 0, 8);
                }) ==
        "f.yaml:1:20: lora.base_bits: expected an integer from 0 to 8, got "
        "\"nf4\"; hint: 4");
  CHECK(Message("gradient_checkpointing: selective\n",
                [](const Reader& root) { root.Flag("gradient_checkpointing"); })
            .find("; hint: operation_checkpointing or "
                  "attention_checkpointing: true in its place") !=
        std::string::npos);
  CHECK(Message("trainable: lora\n",
                [](const Reader& root) { root.Map("trainable"); })
            .ends_with("got \"lora\"; hint: trainable: { lora: { rank: RANK, "
                       "matrices: [query, value] } }"));
  CHECK(Message("gradient_compression: bf16\n",
                [](const Reader& root) {
                  root.Choice<int>("gradient_compression",
                                   {{"none", 0}, {"half", 1}});
                }) ==
        "f.yaml:1:23: gradient_compression: expected one of none, half, got "
        "\"bf16\"; hint: half");
  CHECK(Message("optimizer: galore\n", [](const Reader& root) {
          root.Map("optimizer");
        }).ends_with("got \"galore\"; hint: its name is optimizer.name"));
  // Of this key alone.
  CHECK(Message("rank: nf4\n", [](const Reader& root) {
          root.Integer("rank", 0, 8);
        }).ends_with("got \"nf4\""));
}

TEST_CASE("a missing key is named, with what may be its mistyped form") {
  const Reading read = [](const Reader& root) {
    root.Map("memory").Bandwidth("bandwidth");
  };
  CHECK(Message("a: 1\n", read) ==
        "f.yaml:1:1: missing key \"memory\", a map of keys");
  CHECK(Message("memory: { bandwith: 4.8 TB/s }\n", read) ==
        "f.yaml:1:9: memory: missing key \"bandwidth\", a bandwidth such as "
        "\"4.8 TB/s\"; is \"bandwith\" at 1:11 meant?");
}

TEST_CASE("a quantity without the right unit is refused") {
  const Reading read = [](const Reader& root) { root.Bandwidth("bandwidth"); };
  const std::string start =
      "f.yaml:1:12: bandwidth: expected a bandwidth such as \"4.8 TB/s\", got ";
  CHECK(Message("bandwidth: 4.8 TB\n", read) ==
        start + "\"4.8 TB\"; TB is an amount, not a rate");
  CHECK(Message("bandwidth: 4.8\n", read) ==
        start + "4.8; a number needs its unit");
  CHECK(Message("bandwidth: 10 Gbps\n", read) ==
        start + "\"10 Gbps\"; a rate is written Gb/s");
  CHECK(Message("bandwidth: nan GB/s\n", read) == start + "\"nan GB/s\"");
  CHECK(Message("bandwidth: -1 GB/s\n", read) ==
        start + "\"-1 GB/s\"; it must be above 0");
  CHECK(Message("bandwidth: 0\n", read) == start + "0; it must be above 0");
  CHECK(Message("bandwidth: [1]\n", read) == start + "a list");
  CHECK(Message("t: -5 us\n",
                [](const Reader& root) {
                  root.Time("t", Reader::Sign::kZeroOrMore);
                }) ==
        "f.yaml:1:4: t: expected a time such as \"5 us\", got \"-5 us\"; it "
        "must be 0 or more");
  CHECK(Message("p: 989 TFLOPS\n",
                [](const Reader& root) {
                  root.Quantity<model::FlopsPerSecond<>>("p");
                }) ==
        "f.yaml:1:4: p: expected a compute rate such as \"989 TFLOP/s\", got "
        "\"989 TFLOPS\"; a rate is written TFLOP/s");
  CHECK(Message("p: 300 J\n", [](const Reader& root) { root.Power("p"); }) ==
        "f.yaml:1:4: p: expected a power such as \"300 W\", got \"300 J\"; "
        "known units: mW, W, kW, MW");
}

TEST_CASE("a number of the wrong kind or size is refused") {
  const Reading integer = [](const Reader& root) { root.Integer("a", 1, 512); };
  const std::string start = "f.yaml:1:4: a: expected an integer from 1 to 512";
  CHECK(Message("a: 0\n", integer) == start + ", got 0");
  CHECK(Message("a: 513\n", integer) == start + ", got 513");
  CHECK(Message("a: 1.5\n", integer) == start + ", got 1.5");
  CHECK(Message("a: \"5\"\n", integer) == start + ", got the text \"5\"");
  CHECK(Message("a: 99999999999999999999\n", integer) ==
        start + ", got 99999999999999999999");
  CHECK(Message("a:\n", integer) ==
        "f.yaml:1:1: a: expected an integer from 1 to 512, got nothing");
  CHECK(Message("a: -1\n", [](const Reader& root) {
          root.Integer("a", 1, Reader::kNoLimit);
        }) == "f.yaml:1:4: a: expected an integer of at least 1, got -1");
  const Reading number = [](const Reader& root) { root.Number("a", 0.0, 1.0); };
  const std::string range =
      "f.yaml:1:4: a: expected a number from 0 to 1, got ";
  CHECK(Message("a: .nan\n", number) == range + "\".nan\"");
  CHECK(Message("a: .inf\n", number) == range + "\".inf\"");
  CHECK(Message("a: 1e999\n", number) == range + "\"1e999\"");
  CHECK(Message("a: 1.01\n", number) == range + "1.01");
  CHECK(Message("a: [0.5, 2]\n", [](const Reader& root) {
          root.Numbers("a", 0.0, 1.0);
        }) == "f.yaml:1:10: a[1]: expected a number from 0 to 1, got 2");
}

TEST_CASE("texts, flags, dates, choices and lists are checked") {
  CHECK(Message("a: ''\n", [](const Reader& root) { root.Text("a"); }) ==
        "f.yaml:1:4: a: expected a text, got an empty text");
  CHECK(Message("a: {b: 2}\n", [](const Reader& root) { root.Text("a"); }) ==
        "f.yaml:1:4: a: expected a text, got a map");
  CHECK(Message("a: yes\n", [](const Reader& root) { root.Flag("a"); }) ==
        "f.yaml:1:4: a: expected true or false, got \"yes\"");
  CHECK(
      Message("a: 2026-02-29\n", [](const Reader& root) { root.Date("a"); }) ==
      "f.yaml:1:4: a: expected a date such as \"2026-05-20\", got "
      "\"2026-02-29\"");
  CHECK(Message("a: 2024-02-29\n",
                [](const Reader& root) { root.Date("a"); }) == "no error");
  CHECK(Message("a: gpuu\n",
                [](const Reader& root) {
                  root.Choice<int>("a", {{"cpu", 1}, {"gpu", 2}});
                }) ==
        "f.yaml:1:4: a: expected one of cpu, gpu, got \"gpuu\"; did you mean "
        "\"gpu\"?");
  CHECK(Message("a: |\n  two\n  lines\n",
                [](const Reader& root) { root.Date("a"); }) ==
        "f.yaml:1:4: a: expected a date such as \"2026-05-20\", got the text "
        "\"two lines \"");
  CHECK(Message("a: [x, {b: 1}]\n", [](const Reader& root) {
          root.Texts("a");
        }) == "f.yaml:1:8: a[1]: expected a text, got a map");
  CHECK(Message("a: x\n", [](const Reader& root) { root.Texts("a"); }) ==
        "f.yaml:1:4: a: expected a list of texts, got \"x\"");
  CHECK(Message("a: [1]\n", [](const Reader& root) { root.Maps("a"); }) ==
        "f.yaml:1:5: a[0]: expected a map of keys, got 1");
}

TEST_CASE("a function's InputError gets the position") {
  CHECK(Message("m:\n  a: x\n", [](const Reader& root) {
          root.Map("m").Parsed("a", [](const std::string&) -> int {
            throw model::InputError("expected y");
          });
        }) == "f.yaml:2:6: m.a: expected y");
  CHECK(Message("m: { a: 12 }\n", [](const Reader& root) {
          const int length = root.Map("m").Parsed("a", [](std::string_view t) {
            return static_cast<int>(t.size());
          });
          CHECK(length == 2);
        }) == "no error");
}

TEST_CASE("own checks point at the value, or at the map without it") {
  CHECK(Message("m: { a: 1 }\n", [](const Reader& root) {
          root.Map("m").Fail("a", "bad");
        }) == "f.yaml:1:9: m.a: bad");
  CHECK(Message("m: { a: 1 }\n", [](const Reader& root) {
          root.Map("m").Fail("b", "bad");
        }) == "f.yaml:1:4: m: b: bad");
  const Reader root = Reader::FromText("m:\n  a: 1\n", "f.yaml");
  CHECK(root.Map("m").Position("a") == "f.yaml:2:6");
  CHECK(root.Map("m").line() == 2);
}

TEST_CASE("keys that are names are known once listed") {
  CHECK(Message("m: { one: 1, two: 2 }\n", [](const Reader& root) {
          const Reader map = root.Map("m");
          CHECK(map.Keys() == std::vector<std::string>{"one", "two"});
        }) == "no error");
}

TEST_CASE("a file that is not there, and a folder, are refused") {
  const auto message = [](const std::string& path) -> std::string {
    try {
      Reader::FromFile(path);
    } catch (const model::InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK(message(folder + "/no-such.yaml") ==
        folder + "/no-such.yaml: cannot be opened: No such file or directory");
  CHECK(message(folder) == folder + ": expected a YAML file, got a directory");
}

}  // namespace trainfare::hardware
