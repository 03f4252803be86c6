#include "calibrate/records/import/table_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace trainfare::calibrate {
namespace {

// The first rule of what framework and stack_notes say, or, where neither says
// any, of what notes do.
template <class Rule>
struct Said {
  const Rule* rule = nullptr;
  bool in_notes = false;
};

template <class Rule>
Said<Rule> FirstSaid(const TableRow& row, const std::vector<Rule>& rules) {
  const auto said_in = [&](const std::string& cells) -> const Rule* {
    const std::string words = WordsApart(cells);
    const auto found =
        std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) {
          return SaysWhole(words, rule.words);
        });
    return found == rules.end() ? nullptr : &*found;
  };
  if (const Rule* rule = said_in(row.StackWords())) return {rule, false};
  return {said_in(row["notes"]), true};
}

[[noreturn]] void Refuse(std::string_view thing, std::string_view columns) {
  throw Unused{fmt::format("{} in words: {}", thing, columns)};
}

}  // namespace

void RefuseAdaptersInWords(const TableRow& row) {
  if (FirstSaid(row, RulesOfTables().adapters_in_words).rule == nullptr) return;
  Refuse("adapters", "columns adapter, lora_rank");
}

const ShardWords* ShardInWords(const TableRow& row) {
  const auto said = FirstSaid(row, RulesOfTables().sharding_in_words);
  if (said.rule == nullptr) return nullptr;
  if (said.in_notes || !said.rule->shard) {
    Refuse("sharding", "column sharding");
  }
  return said.rule;
}

std::optional<Recomputed> RecomputedInWords(const TableRow& row) {
  const auto said = FirstSaid(row, RulesOfTables().recomputation_in_words);
  if (said.rule == nullptr) return std::nullopt;
  if (said.in_notes || !said.rule->recomputed) {
    Refuse("recomputation", "column recompute");
  }
  return said.rule->recomputed;
}

}  // namespace trainfare::calibrate
