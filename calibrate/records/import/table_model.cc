#include "calibrate/records/import/table_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/records/import/table_rules.h"
#include "calibrate/records/import/table_said.h"
#include "model/error.h"
#include "model/limits.h"
#include "model/presets.h"

namespace trainfare::calibrate {
namespace {

using model::Architecture;

// GPT-2's own, where a table does not say.
constexpr int64_t kGptVocabulary = 50257;

// 0 where the row says no number.
int64_t LengthOf(const TableRow& row) {
  const double length = row.Number("seq_len").value_or(0.0);
  return length >= 1.0 && length <= double{model::kLongestSequence}
             ? static_cast<int64_t>(length)
             : 0;
}

// Of a head, by notes ("head_dim 128"): heads need not make the width.
std::optional<int64_t> StatedHeadSize(const TableRow& row) {
  static const std::regex size(R"(\bhead_dim[ =](\d{1,5})\b)");
  return NumberIn(row["stack_notes"], size);
}

// A name that may be another's mistyped ("llama-9b") says no dimensions.
[[noreturn]] void RefuseUnstated(const TableRow& row) {
  throw Unused{fmt::format("model: dimensions of {} are not stated{}",
                           row["model"],
                           model::ArchitecturesMeant(Lowered(row["model"])))};
}

Architecture Decoder(const TableRow& row, std::string name) {
  const auto layers = row.Count("layers");
  const auto hidden = row.Count("hidden");
  const auto heads = row.Count("heads");
  if (!layers || !hidden || !heads) {
    RefuseUnstated(row);
  }
  if (row.Count("experts").value_or(1) > 1) {
    throw Unused{"model: experts of this kind"};
  }
  Architecture a = model::FindArchitecture("gpt2");
  a.separate_projections = name.substr(0, 3) == "opt";
  a.name = std::move(name);
  a.layers = *layers;
  a.hidden = *hidden;
  a.heads = *heads;
  const int64_t keys = row.Count("kv_heads").value_or(*heads);
  a.key_value_heads = keys == *heads ? 0 : keys;
  a.intermediate = row.Count("intermediate").value_or(4 * *hidden);
  a.vocabulary = row.Count("vocab").value_or(kGptVocabulary);
  a.positions = std::clamp(LengthOf(row), a.positions, model::kLongestSequence);
  return a;
}

// Between the products of a feed-forward: of a row that does not say, what the
// preset has, or four widths where it has that and the row's is another.
int64_t IntermediateOf(const TableRow& row,
                       int64_t preset_width,
                       int64_t of_preset) {
  constexpr int64_t kUsual = 4;
  if (const auto stated = row.Count("intermediate")) return *stated;
  const int64_t width = row.Count("hidden").value_or(preset_width);
  if (width == preset_width) return of_preset;
  if (of_preset == kUsual * preset_width) return kUsual * width;
  throw Unused{
      fmt::format("model: intermediate of {} is not stated, and hidden is not "
                  "that of its preset",
                  row["model"])};
}

// The feed-forward, or the experts in its place.
void SetFeedForward(const TableRow& row,
                    int64_t preset_width,
                    bool of_name,
                    Architecture& a) {
  if (a.experts == 0) {
    a.intermediate = IntermediateOf(row, preset_width, a.intermediate);
    if (row.Count("experts").value_or(1) > 1) {
      throw Unused{"model: experts of this kind"};
    }
    return;
  }
  a.experts = row.Count("experts").value_or(a.experts);
  a.experts_per_token =
      row.Count("experts_per_token").value_or(a.experts_per_token);
  a.expert_intermediate =
      IntermediateOf(row, preset_width, a.expert_intermediate);
  if (!of_name) a.intermediate = a.expert_intermediate;
}

// Blocks as those of `blocks`, dimensions as the columns say.
Architecture OfFamily(const TableRow& row, Architecture blocks, bool of_name) {
  Architecture a = std::move(blocks);
  const int64_t preset_width = a.hidden;
  const auto layers = row.Count("layers");
  const auto hidden = row.Count("hidden");
  const auto heads = row.Count("heads");
  if (!of_name && (!layers || !hidden || !heads)) {
    RefuseUnstated(row);
  }
  const bool wide = hidden.value_or(a.hidden) != a.hidden ||
                    heads.value_or(a.heads) != a.heads;
  if (a.other_blocks() && (wide || layers.value_or(a.layers) != a.layers)) {
    throw Unused{fmt::format("model: which blocks of {} {} is not stated",
                             row["model"],
                             a.delta_rule_layers > 0    ? "have the delta rule"
                             : a.convolution_layers > 0 ? "are convolutions"
                                                        : "are state spaces")};
  }
  if (layers && *layers != a.layers) {
    a.windowed_layers = a.windowed_layers * *layers / a.layers;
    a.unrotated_layers = a.unrotated_layers * *layers / a.layers;
  }
  if (layers && *layers != a.layers) {
    a.shared_key_value_layers = a.shared_key_value_layers * *layers / a.layers;
  }
  a.layers = layers.value_or(a.layers);
  a.dense_layers = std::min(a.dense_layers, a.layers);
  a.hidden = hidden.value_or(a.hidden);
  a.heads = heads.value_or(a.heads);
  if (wide) {
    a.head_size = a.full_head_size = a.full_key_value_heads = 0;
    a.rotary_head_size = 0;
  }
  if (const auto size = StatedHeadSize(row)) a.head_size = *size;
  const int64_t keys =
      row.Count("kv_heads").value_or(wide ? a.heads : a.key_heads());
  a.key_value_heads = keys == a.heads ? 0 : keys;
  SetFeedForward(row, preset_width, of_name, a);
  a.vocabulary = row.Count("vocab").value_or(a.vocabulary);
  // A model of that name has no more rows in its table; others of its family
  // may have been trained with as many as the row has.
  if (a.positions > 0 && !(of_name && a.longest_of_table())) {
    a.positions =
        std::clamp(LengthOf(row), a.positions, model::kLongestSequence);
  }
  const std::string_view notes = row["stack_notes"];
  if (Contains(notes, "tied embeddings")) {
    a.untied_output = Contains(notes, "untied embeddings");
  }
  return a;
}

// "deepseekv2-l4" with 4 in its column of layers: so many blocks of a preset,
// from its first one on, as benchmarks of a part of a model have them.
std::optional<Architecture> CutModel(const TableRow& row,
                                     const std::string& name) {
  const auto layers = row.Count("layers");
  if (!layers) return std::nullopt;
  const std::string cut = fmt::format("-l{}", *layers);
  if (!name.ends_with(cut)) return std::nullopt;
  const Architecture* whole = model::SpelledArchitecture(
      std::string_view(name).substr(0, name.size() - cut.size()));
  if (whole == nullptr || *layers > whole->layers) return std::nullopt;
  Architecture a = OfFamily(row, *whole, /*of_name=*/true);
  a.name = name;
  return a;
}

}  // namespace

Architecture ArchitectureOf(const TableRow& row) {
  std::string name = Lowered(row["model"]);
  // "bert-large (assumed)": the remark is of the row, not of the name.
  for (const std::string_view remark : {" (assumed", " (inferred"}) {
    name.erase(std::min(name.find(remark), name.size()));
  }
  std::replace(name.begin(), name.end(), '_', '-');
  std::string dashed = name;  // "Gemma 2 9B"
  std::replace(dashed.begin(), dashed.end(), ' ', '-');
  if (name.empty()) throw Unused{"model not stated"};
  const TableRules& rules = RulesOfTables();
  for (const Refusal& refused : rules.refused_models) {
    if (Contains(name, refused.words) || Contains(dashed, refused.words)) {
      throw Unused{"model: " + refused.reason};
    }
  }
  if (const auto known = rules.model_names.find(name);
      known != rules.model_names.end()) {
    Architecture a = model::FindArchitecture(known->second.preset);
    if (known->second.vocabulary) {
      a.name = name;
      a.vocabulary = *known->second.vocabulary;
    }
    // Columns that say otherwise than the name would be another model.
    const auto differs = [&](std::string_view column, int64_t value) {
      return row.Count(column).value_or(value) != value;
    };
    if (differs("hidden", a.hidden) || differs("layers", a.layers) ||
        differs("heads", a.heads) || differs("intermediate", a.intermediate)) {
      throw model::InputError(
          row.file,
          row.row.line,
          0,
          fmt::format("model: the dimensions are not those of {}", name));
    }
    return a;
  }
  if (const Architecture* preset = model::SpelledArchitecture(name)) {
    return OfFamily(row, *preset, /*of_name=*/true);
  }
  if (const auto cut = CutModel(row, name)) return *cut;
  for (const ModelFamily& family : rules.model_families) {
    if (!dashed.starts_with(family.beginning)) continue;
    for (const std::string& words : family.stated) {
      if (Contains(row["stack_notes"], words)) continue;
      throw Unused{fmt::format(
          "model: \"{}\" of {} is not stated", words, row["model"])};
    }
    Architecture a = model::FindArchitecture(family.preset);
    a.name = name;
    return OfFamily(row, std::move(a), /*of_name=*/false);
  }
  if (name.starts_with("gpt") || name.starts_with("opt")) {
    return Decoder(row, std::move(name));
  }
  throw Unused{fmt::format("model: {} is not known{}",
                           row["model"],
                           model::ArchitecturesMeant(name))};
}

StatedWidths::StatedWidths(const hardware::CsvFile& csv) : csv_(csv) {
  if (!csv.TryColumn("intermediate")) return;
  for (const hardware::CsvRow& row : csv.rows()) {
    const std::string& width = csv.Field(row, "intermediate");
    if (!width.empty()) widths_[ModelOf(row)].insert(width);
  }
}

std::string StatedWidths::ModelOf(const hardware::CsvRow& row) const {
  std::string model;
  for (const char* column : {"model", "hidden", "layers", "heads", "experts"}) {
    model += csv_.Field(row, column) + '\n';
  }
  return model;
}

hardware::CsvRow StatedWidths::Fill(hardware::CsvRow row) const {
  const auto column = csv_.TryColumn("intermediate");
  if (!column || *column >= row.fields.size() || !row.fields[*column].empty()) {
    return row;
  }
  const auto known = widths_.find(ModelOf(row));
  if (known != widths_.end() && known->second.size() == 1) {
    row.fields[*column] = *known->second.begin();
  }
  return row;
}

}  // namespace trainfare::calibrate
