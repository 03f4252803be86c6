#include "calibrate/records/import/table_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/import/table_rules.h"
#include "calibrate/records/import/table_said.h"
#include "calibrate/records/import/table_words.h"
#include "hardware/files/unit_text.h"
#include "model/fields.h"
#include "model/trainable.h"

namespace trainfare::calibrate {
namespace {

// "lora" of "lora rank 8", "qlora" of "qlora-bnb-nf4".
std::string_view KindOf(std::string_view adapter) {
  return adapter.substr(0, adapter.find_first_of(" -("));
}

// nullptr where nothing is known of the row's program.
const ProgramAdapters* ProgramOf(const TableRow& row) {
  const std::vector<ProgramAdapters>& programs =
      RulesOfTables().program_adapters;
  const auto found = std::find_if(
      programs.begin(), programs.end(), [&](const ProgramAdapters& program) {
        return Contains(row["framework"], program.words) ||
               Contains(row["source"], program.words);
      });
  return found == programs.end() ? nullptr : &*found;
}

// nullopt where the row does not say.
std::optional<double> StatedRank(const TableRow& row) {
  const std::string adapter = Lowered(row["adapter"]);
  static const std::regex rank(R"(\b(rank[ =]|r=)\s*(\d+))");
  std::smatch found;
  if (std::regex_search(adapter, found, rank)) {
    return hardware::ParseNumber(found.str(2));
  }
  return row.Number("lora_rank");
}

int64_t RankOf(const TableRow& row) {
  if (const auto rank = StatedRank(row)) {
    if (*rank < 1 || *rank != std::floor(*rank)) {
      throw Unused{"the adapters' rank is no whole number above 0"};
    }
    return static_cast<int64_t>(*rank);
  }
  if (const ProgramAdapters* program = ProgramOf(row)) return program->rank;
  throw Unused{"the adapters' rank is not stated"};
}

// "lora_dropout 0.05" in the notes or beside the adapter, or a column; nullopt
// where the row does not say.
std::optional<double> StatedDropout(const TableRow& row) {
  const std::string words = Lowered(fmt::format(
      "{} {} {}", row["adapter"], row["stack_notes"], row["notes"]));
  static const std::regex dropout(R"(\blora[ _]dropout[ =:]*([\d.]*\d))");
  std::smatch found;
  if (std::regex_search(words, found, dropout)) {
    return hardware::ParseNumber(found.str(1));
  }
  return row.Number("lora_dropout");
}

double DropoutOf(const TableRow& row) {
  const ProgramAdapters* program = ProgramOf(row);
  const bool drops =
      program != nullptr && (program->undropped.empty() ||
                             !Contains(row["stack_notes"], program->undropped));
  const double usual = drops ? program->dropout : 0.0;
  const double dropout = StatedDropout(row).value_or(usual);
  if (dropout >= 0 && dropout < 1) return dropout;
  throw Unused{"the adapters' dropout is no share below 1"};
}

// Names of matrices: letters, digits, '_' and the paths before them.
std::vector<std::string> NamesIn(const std::string& words) {
  static const std::regex name(R"([\w.*]+)");
  std::vector<std::string> names;
  for (auto match = std::sregex_iterator(words.begin(), words.end(), name);
       match != std::sregex_iterator();
       ++match) {
    const std::string path = match->str();
    names.push_back(path.substr(path.rfind('.') + 1));
  }
  return names;
}

// The list after "target_modules=" or "targets" in words; empty: there is none.
std::string ListedTargets(const std::string& words) {
  static const std::regex list(
      R"re(\b(target_modules|lora_modules|targets)[ =:]+([^;]*))re");
  std::smatch found;
  return std::regex_search(words, found, list) ? found.str(2) : "";
}

using Names = std::vector<std::string>;

// nullptr: nobody knows the name.
const Names* MatricesNamed(const std::string& name) {
  for (const auto* map :
       {&RulesOfTables().adapters, &RulesOfTables().listed_adapters}) {
    if (const auto known = map->find(name); known != map->end()) {
      return &known->second;
    }
  }
  return nullptr;
}

void AddNames(const Names& names, Names& all) {
  all.insert(all.end(), names.begin(), names.end());
}

// Of a list that says nothing else: what it does not know costs the row.
void AddListed(const std::string& list, Names& all) {
  for (const std::string& name : NamesIn(list)) {
    if (name.empty() || name == "and") continue;
    const Names* known = MatricesNamed(name);
    if (known == nullptr) {
      throw Unused{fmt::format(
          "not predicted: adapters beside {} (target_modules)", name)};
    }
    AddNames(*known, all);
  }
}

// By the column, the adapter's own words and the notes; none where they do not
// say.
model::LoraMatrices StatedMatrices(const TableRow& row,
                                   const model::Architecture& architecture,
                                   model::Fusion fusion) {
  const std::string column = Lowered(row["target_modules"]);
  const std::string words = Lowered(row.AllNotes() + "; " + row["adapter"]);
  if (ContainsAny(words + "; target_modules=" + column,
                  RulesOfTables().all_adapters)) {
    return model::Modules(fusion, model::LoraMatricesOf(architecture));
  }
  Names matrices;
  AddListed(column, matrices);
  AddListed(ListedTargets(words), matrices);
  for (const std::string& name : NamesIn(words)) {
    const auto known = RulesOfTables().adapters.find(name);
    if (known != RulesOfTables().adapters.end()) {
      AddNames(known->second, matrices);
    }
  }
  model::LoraMatrices stated;
  model::FromWords(matrices, stated);
  return stated;
}

// Bits of the base by words; nullopt: they say none. Throws Unused where they
// may mean several.
std::optional<int64_t> BitsIn(const std::string& cells,
                              const std::vector<BaseBits>& rules) {
  const std::string words = WordsApart(cells);
  for (const BaseBits& rule : rules) {
    if (!SaysWhole(words, rule.words)) continue;
    if (rule.bits) return rule.bits;
    throw Unused{fmt::format(
        "a base of few bits in words, \"{}\": column adapter (\"lora 4bit\") "
        "or precision (int4, int8)",
        rule.words)};
  }
  return std::nullopt;
}

// Throws Unused where the column says more of adapters than is known.
void RefuseQualified(const TableRow& row, const std::string& qualifiers) {
  static const std::regex number(R"(\d+(\.\d+)?)");
  const TableRules& rules = RulesOfTables();
  std::string known = " ; , ( ) . ";
  for (const std::string& word : rules.adapter_qualifiers) known += word + " ";
  for (const BaseBits& rule : rules.base_bits) known += rule.words + " ";
  std::istringstream said(WordsApart(qualifiers));
  for (std::string word; said >> word;) {
    const bool one =
        Contains(known, " " + word + " ") || rules.adapters.contains(word) ||
        std::regex_match(word.substr(word[0] == 'r' ? 1 : 0), number);
    if (!one) {
      throw Unused{fmt::format(
          "not predicted: adapters {} (\"{}\" of it)", row["adapter"], word)};
    }
  }
}

model::LoraMatrices MatricesOf(const TableRow& row,
                               const model::Architecture& architecture,
                               model::Fusion fusion) {
  model::LoraMatrices matrices = StatedMatrices(row, architecture, fusion);
  const ProgramAdapters* program = ProgramOf(row);
  if (matrices == model::LoraMatrices{} && program != nullptr) {
    model::FromWords(program->matrices, matrices);
  }
  if (!architecture.gated) matrices.feed_forward_gate = false;
  if (matrices == model::LoraMatrices{}) {
    throw Unused{"the adapters' matrices are not stated"};
  }
  return matrices;
}

}  // namespace

void SetAdapter(const TableRow& row, model::Workload& workload) {
  const std::string adapter = Lowered(row["adapter"]);
  if (row.Blank("adapter")) {
    RefuseAdaptersInWords(row);
    return;
  }
  if (adapter == "none" || adapter == "full") return;
  const std::string_view kind = KindOf(adapter);
  const bool quantised = kind == "qlora";
  if (kind != "lora" && !quantised) {
    throw Unused{fmt::format("not predicted: adapters {}", kind)};
  }
  const std::string qualifiers = adapter.substr(kind.size());
  RefuseQualified(row, qualifiers);
  auto bits = BitsIn(qualifiers, RulesOfTables().base_bits);
  if (!bits && !quantised) {
    bits = BitsIn(row["stack_notes"] + row.more_stack,
                  RulesOfTables().base_bits_in_words);
  }
  model::Trainable& trainable = workload.trainable;
  trainable.lora_rank = RankOf(row);
  trainable.lora =
      MatricesOf(row, workload.architecture, workload.stack.fusion);
  trainable.lora_dropout = DropoutOf(row);
  constexpr int64_t kOfQlora = 4;
  trainable.base_bits = bits.value_or(quantised ? kOfQlora : 0);
}

void SetAdapterPlacing(const TableRow& row, model::Workload& workload) {
  model::Trainable& trainable = workload.trainable;
  if (trainable.lora_rank == 0) return;
  const ProgramAdapters* program = ProgramOf(row);
  if (program != nullptr && program->masters_alone &&
      trainable.base_bits == 0 && row.Count("n_devices").value_or(1) == 1) {
    workload.optimizer.masters = *program->masters_alone;
  }
  const std::string words = row.StackWords();
  trainable.wide_adapters = workload.stack.narrow_weights &&
                            ContainsAny(words, RulesOfTables().wide_adapters);
  trainable.adapters_as_units =
      ContainsAny(words, RulesOfTables().adapters_as_units);
  trainable.embeddings_beside_adapters =
      ContainsAny(words, RulesOfTables().embeddings_beside_adapters);
  if (trainable.embeddings_beside_adapters &&
      !model::EmbeddingsMayTrainBesideAdapters(workload.architecture)) {
    throw Unused{"not predicted: such embeddings trained beside adapters"};
  }
  trainable.base_by_operations =
      trainable.base_bits > 0 &&
      ContainsAny(words, RulesOfTables().base_by_operations);
  if (trainable.base_by_operations &&
      !model::OperationsMayWidenBase(workload.architecture)) {
    throw Unused{"not predicted: such a base widened by operations"};
  }
}

}  // namespace trainfare::calibrate
