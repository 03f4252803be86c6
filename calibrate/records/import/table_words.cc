#include "calibrate/records/import/table_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/import/table_said.h"

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

// The words of a column `sharding`; a bare number is a stage of ZeRO.
std::string WordsOfSharding(const TableRow& row) {
  const std::string words = WordsApart(row["sharding"]);
  const bool stage = words.size() == 3 && words[1] >= '0' && words[1] <= '3';
  return stage ? " zero" + words : words;
}

// The first word of the column that no rule of sharding has; empty: none.
std::string UnknownWordOfSharding(const std::string& words) {
  const TableRules& rules = RulesOfTables();
  std::string known = " ";
  for (const auto* list : {&rules.sharding_in_words, &rules.sharding_column}) {
    for (const ShardWords& rule : *list) known += rule.words + " ";
  }
  for (const std::string& word : rules.sharding_fillers) known += word + " ";
  for (const std::string& names : rules.resharding) known += names + " ";
  std::istringstream said(words);
  for (std::string word; said >> word;) {
    if (!Contains(known, " " + word + " ")) return word;
  }
  return "";
}

// Throws Unused where the column says more, or something else, than one way.
const ShardWords& ShardOfColumn(const TableRow& row) {
  const std::string words = WordsOfSharding(row);
  const TableRules& rules = RulesOfTables();
  const ShardWords* found = nullptr;
  bool one = true;
  for (const auto* list : {&rules.sharding_column, &rules.sharding_in_words}) {
    for (const ShardWords& rule : *list) {
      if (!SaysWhole(words, rule.words)) continue;
      if (found == nullptr) found = &rule;
      // "DDP + ZeRO-1" is the latter.
      one = one && found->shard &&
            (!rule.shard || *rule.shard == *found->shard ||
             *rule.shard == model::Shard::kNone);
    }
  }
  const std::string unknown = UnknownWordOfSharding(words);
  if (found != nullptr && one && unknown.empty()) return *found;
  throw Unused{fmt::format(
      "not predicted: {} over ranks{}; sharding none, zero1, zero2, zero3, "
      "fsdp, hybrid are",
      row["sharding"],
      found != nullptr && !unknown.empty()
          ? fmt::format(" (\"{}\" of it)", unknown)
          : "")};
}

}  // namespace

void RefuseAdaptersInWords(const TableRow& row) {
  if (FirstSaid(row, RulesOfTables().adapters_in_words).rule == nullptr) return;
  Refuse("adapters", "columns adapter, lora_rank");
}

const ShardWords* ShardInWords(const TableRow& row) {
  if (!row.Blank("sharding")) return &ShardOfColumn(row);
  const auto said = FirstSaid(row, RulesOfTables().sharding_in_words);
  if (said.rule == nullptr) return nullptr;
  if (said.in_notes || !said.rule->shard || said.rule->within_groups) {
    Refuse("sharding", "column sharding");
  }
  return said.rule;
}

bool SharesState(const TableRow& row) {
  return !row.Blank("sharding") &&
         ShardOfColumn(row).shard != model::Shard::kNone;
}

bool KeepsGathered(const TableRow& row) {
  const std::string words =
      WordsApart(row.StackWords() + "; " + row["sharding"]);
  for (const std::string& name : RulesOfTables().resharding) {
    if (Contains(words, name)) return !SaysWhole(words, name);
  }
  return false;
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
