#include "calibrate/records/import/table_columns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/import/table.h"
#include "calibrate/records/import/table_rules.h"
#include "hardware/files/csv_file.h"
#include "hardware/files/text_file.h"
#include "model/error.h"
#include "model/letters.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

Names UnreadOf(const std::string& header, const std::string& cells) {
  return UnreadColumns(
      hardware::CsvFile::Parse(header + "\n" + cells + "\n", "t.csv"));
}

TEST_CASE("columns that nothing reads are named, with what they may mean") {
  CHECK(UnreadOf("device,lora_r,gradient_checkpointing,zero_stage,adaptor,"
                 "Precison,flux_capacitor",
                 "a,16,yes,3,lora,bf16,1.21") ==
        Names{"lora_r (lora_rank?)",
              "gradient_checkpointing (recompute?)",
              "zero_stage (sharding?)",
              "adaptor (adapter?)",
              "Precison (precision?)",
              "flux_capacitor"});
  // What is of no matter, what is read, and what says nothing.
  CHECK(UnreadOf("source_file,job_id,Status,bw_allreduce_gbs,lora_r",
                 "a,1,done,100,")
            .empty());
  const Table table = ParseTable(
      "device,model,seq_len,batch_per_device,precision,zero,metric,value\n"
      "A100-SXM4-80GB,bert-base,128,8,fp16,3,step_s,1\n",
      "t.csv");
  CHECK(table.unread == Names{"zero (sharding?)"});
}

TEST_CASE("a column that is missing may have another name") {
  CHECK_THROWS_WITH_AS(
      ParseTable("device,model,sequence_length\na,b,1\n", "t.csv"),
      "t.csv:1: expected a column \"seq_len\"; is \"sequence_length\" meant?; "
      "a table of measurements has: device, model, seq_len, precision, metric, "
      "value",
      model::InputError);
  CHECK_THROWS_WITH_AS(
      ParseTable("device,model,seq_len,batch_size,precision,metric,value\n"
                 "a,b,1,1,fp16,step_s,1\n",
                 "t.csv"),
      "t.csv:1: expected a column \"batch_per_device\" or \"micro_batch\", got "
      "neither; is \"batch_size\" meant?; see docs/guide/measurements.md",
      model::InputError);
}

// The list is all that the code asks a row for, and nothing more.
TEST_CASE("the columns of tables.yaml are those that are read") {
  const fs::path folder = fs::path(TRAINFARE_ROOT) / "calibrate/records/import";
  const std::regex asked(
      R"re((?:row\[|\b(?:Has|Blank|Number|Count|WholeNumber)\(\s*)"([a-z_]+)"\s*[\],)])re");
  const std::regex ways(R"re(k\w+Columns = ."(\w+)", "(\w+)")re");
  std::set<std::string> read;
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with("table") || !name.ends_with(".cc")) continue;
    const std::string text = hardware::ReadTextFile(file.path().string(), "");
    const auto add = [&](const std::regex& pattern) {
      for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern);
           match != std::sregex_iterator();
           ++match) {
        for (size_t i = 1; i < match->size(); ++i) read.insert(match->str(i));
      }
    };
    if (name != "table_rules.cc") add(asked);
    add(ways);
  }
  const TableRules& rules = RulesOfTables();
  for (const Doubt& doubt : rules.doubts) read.insert(doubt.column);
  const Names& known = rules.columns.read;
  // These two are asked for by a choice between them.
  read.insert({"micro_batch", "batch_per_device"});
  CHECK(read == std::set<std::string>(known.begin(), known.end()));
  for (const auto& name : rules.columns.other_names) {
    const std::string other(name.first);
    const std::string meant(name.second);
    CAPTURE(other);
    CHECK(other == model::Lowered(other));
    CHECK(std::find(known.begin(), known.end(), meant) != known.end());
    CHECK(std::find(known.begin(), known.end(), other) == known.end());
  }
}

}  // namespace
}  // namespace trainfare::calibrate
