#include "calibrate/records/import/table_rules.h"

#include <fmt/format.h>

#include "calibrate/records/import/table_row.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/yaml_reader.h"
#include "model/architecture.h"
#include "model/letters.h"
#include "model/limits.h"
#include "model/presets.h"

namespace trainfare::calibrate {
namespace {

using YamlMap = hardware::Reader;

template <class Enum>
Enum WordOf(const YamlMap& map, std::string_view key) {
  return map.Parsed(key, model::FromText<Enum>);
}

// Each map of a list as a rule.
template <class Read>
auto ListOf(const YamlMap& root, std::string_view key, Read read) {
  std::vector<decltype(read(root))> rules;
  for (const YamlMap& map : root.Maps(key)) rules.push_back(read(map));
  return rules;
}

// Each value of a map, which may be a map itself.
template <class Read>
auto NamedOf(const YamlMap& root, std::string_view key, Read read) {
  const YamlMap map = root.Map(key);
  ByWord<decltype(read(map, std::string()))> rules;
  for (const std::string& name : map.Keys()) {
    rules.emplace(name, read(map, name));
  }
  return rules;
}

std::string PresetOf(const YamlMap& map) {
  return map.Parsed("preset", [](const std::string& name) {
    return model::FindArchitecture(name).name;
  });
}

std::string TextOr(const YamlMap& map, std::string_view key) {
  return map.OptionalText(key).value_or("");
}

// What is run, and what of it was timed.
void ReadRunRules(const YamlMap& root, TableRules& rules) {
  rules.doubts = ListOf(root, "doubts", [](const YamlMap& map) {
    Doubt doubt{
        .column = map.Text("column"),
        .words = map.Text("words"),
        .reason = map.Text("reason"),
        .of_pipelines = map.OptionalFlag("of_pipelines").value_or(false)};
    if (const auto but = map.OptionalMap("but")) {
      doubt.but = but->Text("words");
      doubt.but_metric = but->Text("metric");
    }
    return doubt;
  });
  const YamlMap parts = root.Map("timed_parts");
  rules.timed_parts = {.forward = parts.Texts("forward"),
                       .backward = parts.Texts("backward"),
                       .update = parts.Texts("update"),
                       .only = parts.Texts("only"),
                       .without = parts.Texts("without"),
                       .with = parts.Texts("with"),
                       .join = parts.Texts("join"),
                       .breaks = parts.Texts("breaks"),
                       .time = parts.Texts("time"),
                       .description = parts.Texts("description"),
                       .inference = parts.Texts("inference"),
                       .filler = parts.Texts("filler")};
  const YamlMap denials = root.Map("denials");
  rules.denials = {.before = denials.Texts("before"),
                   .right_before = denials.Texts("right_before"),
                   .between = denials.Texts("between"),
                   .behind = denials.Texts("behind"),
                   .behind_alone = denials.Texts("behind_alone")};
  rules.tasks =
      NamedOf(root, "tasks", [](const YamlMap& map, const std::string& at) {
        return WordOf<Task>(map, at);
      });
  rules.heads = ListOf(root, "heads", [](const YamlMap& map) {
    return HeadRule{map.Text("words"), WordOf<model::Head>(map, "head")};
  });
  rules.every_position = ListOf(root, "every_position", [](const YamlMap& map) {
    return EveryPosition{TextOr(map, "words"),
                         TextOr(map, "framework"),
                         TextOr(map, "framework_is")};
  });
  rules.optimizers = ListOf(root, "optimizers", [](const YamlMap& map) {
    return OptimizerRule{model::Lowered(map.Text("words")),
                         WordOf<model::OptimizerKind>(map, "name")};
  });
  rules.adam_names = root.Texts("adam_names");
  for (const std::string& words : root.Texts("fused_update")) {
    rules.fused_update.push_back(model::Lowered(words));
  }
  rules.bert_adam_but_in_fp16 = root.Texts("bert_adam_but_in_fp16");
}

// How long sequences are, and how sure a value is.
void ReadLengthRules(const YamlMap& root, TableRules& rules) {
  rules.packed_documents = root.Texts("packed_documents");
  rules.unpadded = root.Texts("unpadded");
  rules.benchmarks = ListOf(root, "benchmarks", [](const YamlMap& map) {
    return Benchmark{map.Text("words"),
                     map.Text("model"),
                     map.Number("tokens", 1.0, 1e9),
                     map.Texts("unpadded_by"),
                     map.Texts("unpadded_in"),
                     map.Texts("padded_in"),
                     map.Integer("evaluated", 1, model::kMostSamples),
                     map.Integer("every", 1, model::kMostSamples),
                     map.Number("every_of_batch", 0.0, 1e9),
                     map.Integer("every_step", 1, model::kMostSamples)};
  });
  rules.read_off = ListOf(root, "read_off", [](const YamlMap& map) {
    return ReadOff{map.Text("words"), map.Number("noise", 0.0, 1.0)};
  });
  rules.unequal_lengths = root.Texts("unequal_lengths");
  rules.packing = root.Texts("packing");
  const YamlMap of_one = root.Map("rates_of_one_device");
  rules.rates = of_one.Texts("rates");
  rules.one_device = of_one.Texts("of");
}

// Which kernels a row's step has.
void ReadStackRules(const YamlMap& root, TableRules& rules) {
  rules.stacks = ListOf(root, "stacks", [](const YamlMap& map) {
    return StackRule{model::Lowered(map.Text("words")),
                     WordOf<model::Fusion>(map, "stack")};
  });
  rules.published_stacks = NamedOf(
      root, "published_stacks", [](const YamlMap& map, const std::string& at) {
        return WordOf<model::Fusion>(map, at);
      });
  rules.eager_frameworks = root.Texts("eager_frameworks");
  rules.multi_tensor_update = root.Texts("multi_tensor_update");
  rules.flash_attention = root.Texts("flash_attention");
  rules.flash_attention_models = root.Texts("flash_attention_models");
  rules.first_flash_attention = root.Texts("first_flash_attention");
  rules.losses = ListOf(root, "losses", [](const YamlMap& map) {
    return LossRule{map.Text("words"), WordOf<model::LossKernels>(map, "loss")};
  });
  rules.experts = ListOf(root, "experts", [](const YamlMap& map) {
    return ExpertRule{map.Text("words"),
                      WordOf<model::ExpertKernels>(map, "experts")};
  });
  rules.padded_vocabularies =
      ListOf(root, "padded_vocabularies", [](const YamlMap& map) {
        return PaddedVocabulary{map.Text("words"),
                                map.Integer("multiple", 1, 1 << 20)};
      });
  rules.unknown_mechanisms =
      ListOf(root, "unknown_mechanisms", [](const YamlMap& map) {
        return Refusal{map.Text("words"), map.Text("name")};
      });
  rules.other_trainings =
      ListOf(root, "other_trainings", [](const YamlMap& map) {
        return Refusal{map.Text("words"), map.Text("name")};
      });
}

// How wide products, weights, gradients and state are.
void ReadPrecisionRules(const YamlMap& root, TableRules& rules) {
  rules.precisions = NamedOf(
      root, "precisions", [](const YamlMap& map, const std::string& at) {
        const YamlMap one = map.Map(at);
        PrecisionRule rule{WordOf<model::Precision>(one, "products"),
                           one.Integer("base_bits", 0, 8),
                           std::nullopt};
        if (one.Has("scaling")) {
          rule.scaling = WordOf<model::Fp8Scaling>(one, "scaling");
        }
        return rule;
      });
  rules.unstated_precisions =
      ListOf(root, "unstated_precisions", [](const YamlMap& map) {
        return UnstatedPrecision{map.Text("words"),
                                 WordOf<model::Precision>(map, "precision")};
      });
  rules.precision_hints =
      ListOf(root, "precision_hints", [](const YamlMap& map) {
        return Hint{TextOr(map, "words"), map.Text("hint")};
      });
  rules.narrow_products = root.Texts("narrow_products");
  rules.fp8 = ListOf(root, "fp8", [](const YamlMap& map) {
    return Fp8Rule{map.Text("words"),
                   WordOf<model::Fp8Scaling>(map, "scaling"),
                   map.OptionalFlag("weight_gradients").value_or(true)};
  });
  rules.fp8_gathered = root.Texts("fp8_gathered");
  rules.narrow_weights = ListOf(root, "narrow_weights", [](const YamlMap& map) {
    return WeightRule{model::Lowered(map.Text("words")),
                      WordOf<model::Masters>(map, "masters"),
                      TextOr(map, "but")};
  });
  rules.wide_gradients = ListOf(root, "wide_gradients", [](const YamlMap& map) {
    return WideGradientRule{model::Lowered(map.Text("words")),
                            TextOr(map, "precision")};
  });
  rules.narrow_sums = root.Texts("narrow_sums");
  rules.eight_bit_states = root.Texts("eight_bit_states");
  rules.updates_in_backward = root.Texts("updates_in_backward");
}

// Adapters, and the frozen base below them.
void ReadAdapterRules(const YamlMap& root, TableRules& rules) {
  const auto texts = [](const YamlMap& map, const std::string& at) {
    return map.Texts(at);
  };
  rules.adapters = NamedOf(root, "adapters", texts);
  rules.listed_adapters = NamedOf(root, "listed_adapters", texts);
  const auto base_bits = [](const YamlMap& map) {
    return BaseBits{map.Text("words"), map.OptionalInteger("bits", 1, 8)};
  };
  rules.base_bits = ListOf(root, "base_bits", base_bits);
  rules.base_bits_in_words = ListOf(root, "base_bits_in_words", base_bits);
  rules.adapter_qualifiers = root.Texts("adapter_qualifiers");
  rules.all_adapters = root.Texts("all_adapters");
  for (std::string& words : root.Texts("adapters_in_words")) {
    rules.adapters_in_words.push_back({std::move(words)});
  }
  rules.program_adapters =
      ListOf(root, "program_adapters", [](const YamlMap& map) {
        ProgramAdapters program{
            map.Text("words"),
            map.Integer("rank", 1, model::kLargestDimension),
            map.Texts("matrices"),
            std::nullopt};
        if (map.Has("masters_alone")) {
          program.masters_alone = WordOf<model::Masters>(map, "masters_alone");
        }
        program.dropout = map.OptionalNumber("dropout", 0, 0.99).value_or(0);
        program.undropped = TextOr(map, "undropped");
        return program;
      });
  rules.wide_adapters = root.Texts("wide_adapters");
  rules.adapters_as_units = root.Texts("adapters_as_units");
  rules.embeddings_beside_adapters = root.Texts("embeddings_beside_adapters");
  rules.widened_beside_adapters = root.Texts("widened_beside_adapters");
  rules.base_by_operations = root.Texts("base_by_operations");
  rules.fp8_bases = root.Texts("fp8_bases");
}

// What is computed again.
void ReadRecomputationRules(const YamlMap& root, TableRules& rules) {
  rules.selective_recomputation =
      ListOf(root, "selective_recomputation", [](const YamlMap& map) {
        return SelectiveRule{map.Text("words"), WordOf<Selective>(map, "of")};
      });
  rules.recomputing_recipes = root.Texts("recomputing_recipes");
  rules.recomputation = NamedOf(
      root, "recomputation", [](const YamlMap& map, const std::string& at) {
        return WordOf<Recomputed>(map, at);
      });
  rules.recomputation_in_words =
      ListOf(root, "recomputation_in_words", [](const YamlMap& map) {
        RecomputedWords rule{map.Text("words"), std::nullopt};
        if (map.Has("recomputed")) {
          rule.recomputed = WordOf<Recomputed>(map, "recomputed");
        }
        return rule;
      });
  rules.recomputed_blocks =
      ListOf(root, "recomputed_blocks", [](const YamlMap& map) {
        return RecomputedBlocks{map.Text("words"),
                                map.Integer("blocks", 1, 10'000)};
      });
}

// How ranks share a step, and what they send each other.
void ReadRankRules(const YamlMap& root, TableRules& rules) {
  rules.measured_all_reduce =
      NamedOf(root,
              "measured_all_reduce",
              [](const YamlMap& map, const std::string& at) {
                return map.Number(at, 1.0, 1e12);
              });
  rules.slice_networks = NamedOf(
      root, "slice_networks", [](const YamlMap& map, const std::string& at) {
        return map.Bandwidth(at);
      });
  const auto shard_rule = [](const YamlMap& map) {
    return ShardRule{model::Lowered(map.Text("words")),
                     WordOf<model::Shard>(map, "shard")};
  };
  rules.sharding = ListOf(root, "sharding", shard_rule);
  const auto shard_words = [](const YamlMap& map) {
    ShardWords rule{map.Text("words"), std::nullopt};
    if (map.Has("shard")) rule.shard = WordOf<model::Shard>(map, "shard");
    rule.reshard_after_forward =
        map.OptionalFlag("reshard_after_forward").value_or(true);
    rule.within_groups = map.OptionalFlag("within_groups").value_or(false);
    return rule;
  };
  rules.sharding_in_words = ListOf(root, "sharding_in_words", shard_words);
  rules.sharding_column = ListOf(root, "sharding_column", shard_words);
  rules.sharding_fillers = root.Texts("sharding_fillers");
  rules.resharding = root.Texts("resharding");
  rules.divided_updates = ListOf(root, "divided_updates", shard_rule);
  rules.offload = ListOf(root, "offload", [](const YamlMap& map) {
    return OffloadRule{map.Text("words"),
                       WordOf<model::Offload>(map, "offload"),
                       map.Flag("activations")};
  });
  rules.embedding_units = root.Texts("embedding_units");
  rules.splits = root.Texts("splits");
  rules.no_splits = root.Texts("no_splits");
  rules.sequence_parallel = root.Texts("sequence_parallel");
  rules.tensor_overlaps =
      ListOf(root, "tensor_overlaps", [](const YamlMap& map) {
        return TensorOverlapRule{map.Text("words"),
                                 WordOf<model::TensorOverlap>(map, "overlap")};
      });
  rules.expert_tensor = ListOf(root, "expert_tensor", [](const YamlMap& map) {
    return ExpertTensorRule{map.Text("words"),
                            TextOr(map, "model"),
                            map.Integer("ranks", 1, model::kMostDevices)};
  });
  rules.expert_exchanges =
      ListOf(root, "expert_exchanges", [](const YamlMap& map) {
        return ExpertExchangeRule{
            map.Text("words"),
            TextOr(map, "model"),
            WordOf<model::ExpertExchange>(map, "exchange")};
      });
  rules.next_token_blocks =
      ListOf(root, "next_token_blocks", [](const YamlMap& map) {
        return NextTokenRule{map.Text("words"),
                             TextOr(map, "model"),
                             map.Integer("blocks", 1, model::kMostLayers)};
      });
  rules.expert_overlaps = root.Texts("expert_overlaps");
  rules.stage_cuts = ListOf(root, "stage_cuts", [](const YamlMap& map) {
    return StageCutRule{map.Text("words"),
                        WordOf<model::StageCut>(map, "stages")};
  });
}

// Who measured a row, and what of memory they counted.
void ReadSourceRules(const YamlMap& root, TableRules& rules) {
  rules.sources = ListOf(root, "sources", [](const YamlMap& map) {
    return SourceRule{map.Text("source"), map.Text("notes")};
  });
  rules.reserved_peaks = root.Texts("reserved_peaks");
  rules.unstated_peaks = root.Texts("unstated_peaks");
}

void ReadColumns(const YamlMap& root, ColumnRules& columns) {
  columns.read = root.Texts("columns");
  columns.of_no_matter = root.Texts("columns_of_no_matter");
  columns.of_stack = root.Texts("columns_of_stack");
  columns.of_notes = root.Texts("columns_of_notes");
  columns.other_names = NamedOf(
      root, "other_columns", [](const YamlMap& map, const std::string& at) {
        return map.Text(at);
      });
}

void ReadMetrics(const YamlMap& root, TableRules& rules) {
  rules.metrics =
      NamedOf(root, "metrics", [](const YamlMap& map, const std::string& at) {
        const YamlMap one = map.Map(at);
        return MetricRule{
            WordOf<Metric>(one, "is"),
            one.OptionalNumber("unit", 1e-9, 1e12).value_or(1.0),
            one.OptionalFlag("holds_evaluations").value_or(false)};
      });
  rules.with_evaluations = root.Texts("with_evaluations");
  rules.whole_batches = root.Texts("whole_batches");
  rules.epochs = ListOf(root, "epochs", [](const YamlMap& map) {
    return EpochRule{map.Text("words"),
                     map.Integer("samples", 1, model::kMostSamples)};
  });
  rules.flops = ListOf(root, "flops", [](const YamlMap& map) {
    return FlopsRule{model::Lowered(map.Text("words")),
                     WordOf<model::CountedPairs>(map, "pairs"),
                     map.Flag("recomputed")};
  });
  rules.other_metrics = NamedOf(
      root, "other_metrics", [](const YamlMap& map, const std::string& at) {
        return map.Text(at);
      });
  rules.unused_metrics = NamedOf(
      root, "unused_metrics", [](const YamlMap& map, const std::string& at) {
        return map.Text(at);
      });
}

void ReadModels(const YamlMap& root, TableRules& rules) {
  rules.refused_models = ListOf(root, "refused_models", [](const YamlMap& map) {
    return Refusal{map.Text("words"), map.Text("reason")};
  });
  rules.model_names = NamedOf(
      root, "model_names", [](const YamlMap& map, const std::string& at) {
        const YamlMap one = map.Map(at);
        return NamedModel{PresetOf(one),
                          one.OptionalInteger("vocabulary", 1, 10'000'000)};
      });
  rules.model_families = ListOf(root, "model_families", [](const YamlMap& map) {
    return ModelFamily{
        map.Text("beginning"),
        PresetOf(map),
        map.Has("stated") ? map.Texts("stated") : std::vector<std::string>()};
  });
}

TableRules ReadRules(const std::string& path) {
  const YamlMap root = YamlMap::FromFile(path);
  TableRules rules;
  ReadColumns(root, rules.columns);
  ReadRunRules(root, rules);
  ReadLengthRules(root, rules);
  ReadStackRules(root, rules);
  ReadPrecisionRules(root, rules);
  ReadAdapterRules(root, rules);
  ReadRecomputationRules(root, rules);
  ReadRankRules(root, rules);
  ReadSourceRules(root, rules);
  ReadMetrics(root, rules);
  ReadModels(root, rules);
  root.Finish();
  return rules;
}

}  // namespace

const TableRules& RulesOfTables() {
  static const TableRules rules = ReadRules(
      hardware::ShippedDirectory("calibrate/records/import") + "/tables.yaml");
  return rules;
}

Task TaskOf(const std::string& task) {
  if (task.empty()) return Task::kFinetune;
  const ByWord<Task>& tasks = RulesOfTables().tasks;
  const auto known = tasks.find(model::Lowered(task));
  if (known != tasks.end()) return known->second;
  throw Unused{fmt::format("task {} is not known", task)};
}

}  // namespace trainfare::calibrate
