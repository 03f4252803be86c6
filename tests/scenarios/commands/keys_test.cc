#include "scenarios/commands/keys.h"

#include <doctest/doctest.h>

#include <cctype>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/text_file.h"
#include "model/error.h"
#include "scenarios/job/scenario.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

constexpr std::string_view kScenario =
    "name: a job\n"
    "model: bert-base-uncased\n"
    "task: sequence-classification\n"
    "dataset: { train: 100 }\n"
    "epochs: 3\n"
    "batch: 8\n"
    "padding: { static: 32 }\n"
    "precision: fp32\n"
    "optimizer: { name: adamw, implementation: fused }\n"
    "stack: eager\n";

// The cell of a row under the key of a column, as machines have it.
std::string CellOf(const Table& table,
                   const std::vector<Cell>& row,
                   std::string_view column) {
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].key == column) return row[c].raw;
  }
  FAIL("no such column");
  return "";
}

const std::vector<Cell>& RowOf(const Table& table, std::string_view key) {
  for (const auto& row : table.rows) {
    if (CellOf(table, row, "key") == key) return row;
  }
  FAIL("no such key");
  return table.rows.front();
}

// The keys of a map of a kind of file: those right below `map`.
std::set<std::string> KeysOf(std::string_view of, const std::string& map) {
  const Table table = Keys();
  std::set<std::string> keys;
  for (const auto& row : table.rows) {
    const std::string key = CellOf(table, row, "key");
    if (CellOf(table, row, "of") != of || !key.starts_with(map)) continue;
    const std::string rest = key.substr(map.size());
    if (rest.find('.') == std::string::npos) keys.insert(rest);
  }
  return keys;
}

// The keys that a reader knows, out of what it says of one that it does not.
template <class Read>
std::set<std::string> KnownBy(const Read& read) {
  std::string message;
  try {
    read();
  } catch (const model::InputError& error) {
    message = error.what();
  }
  const std::string_view before = "known: ";
  const size_t at = message.find(before);
  CAPTURE(message);
  REQUIRE(at != std::string::npos);
  std::istringstream words(message.substr(at + before.size()));
  std::set<std::string> known;
  for (std::string word; words >> word;) {
    known.insert(word.substr(0, word.find(',')));
  }
  return known;
}

std::set<std::string> KnownToScenarios(const std::string& more) {
  return KnownBy(
      [&] { ParseScenario(std::string(kScenario) + more, "s.yaml", {}); });
}

}  // namespace

TEST_CASE("every key says on one line what it is") {
  const Table table = Keys();
  CHECK(table.rows.size() > 100);
  std::set<std::string> seen;
  for (const auto& row : table.rows) {
    const std::string key = CellOf(table, row, "key");
    const std::string about = CellOf(table, row, "about");
    CAPTURE(key);
    CHECK(seen.insert(CellOf(table, row, "of") + " " + key).second);
    REQUIRE_FALSE(about.empty());
    CHECK(about.size() <= 80);
    CHECK(about.find('\n') == std::string::npos);
    const auto first = static_cast<unsigned char>(about.front());
    CHECK((std::isupper(first) != 0 || std::isdigit(first) != 0));
    CHECK(about.back() != '.');
  }
}

TEST_CASE("the keys are those that the readers know") {
  CHECK(KeysOf("scenario", "") == KnownToScenarios("zzzzzzzz: 1\n"));
  CHECK(KeysOf("scenario", "run.") == KnownToScenarios("run: { zzzzzzzz: 1 }"));
  CHECK(KeysOf("scenario", "learning_rate.") ==
        KnownToScenarios("learning_rate: { zzzzzzzz: 1 }"));
  CHECK(KeysOf("scenario", "parallel.") ==
        KnownToScenarios("parallel: { zzzzzzzz: 1 }"));
  const TemporaryFolder folder;
  const std::string l4 = hardware::ReadTextFile(
      hardware::DataDirectory("devices") + "/l4.yaml", "a device");
  const std::string path = folder.Write("l4.yaml", l4 + "\nzzzzzzzz: 1\n");
  CHECK(KeysOf("device", "") == KnownBy([&] { hardware::LoadDevice(path); }));
}

TEST_CASE("what a key may be stands beside it") {
  const Table table = Keys();
  const auto cell = [&](std::string_view key, std::string_view column) {
    return CellOf(table, RowOf(table, key), column);
  };
  CHECK(cell("parallel.shard", "words") == "none, zero1, zero2, zero3, fsdp");
  CHECK(cell("parallel.shard", "default") == "none");
  CHECK(cell("model.layers", "least") == "1");
  // No adapters are no `lora`, not a rank of 0.
  CHECK(cell("trainable.lora.rank", "least") == "1");
  CHECK(cell("trainable.lora.rank", "required") == "true");
  CHECK(cell("trainable.lora.rank", "default").empty());
  CHECK(cell("trainable.frozen_layers", "least") == "1");
  CHECK(cell("trainable.frozen_layers", "default").empty());
  CHECK(cell("model.layers", "most") == "65536");
  CHECK(cell("model.layers", "required") == "true");
  CHECK(cell("model.layers", "default").empty());
  CHECK(cell("memory.bandwidth", "unit") == "B/s");
  CHECK(cell("dropout", "default") == "0.1");
  CHECK(cell("work", "words") == "training, forward");
  CHECK(cell("work", "default") == "training");
  CHECK(cell("padding", "type") == "form");
  CHECK(cell("run.start_up", "default").empty());
  // A key of a struct that a file may leave out.
  CHECK(cell("generation.lanes", "required") == "true");
  CHECK(cell("generation", "required") == "false");
}

}  // namespace trainfare::scenarios
